"""unroll-loops: its cases (``cases/unroll_loops/``), bad options, and an inner loop that stays one."""

import re

import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.errors import InputError
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.program import program_view
from fusionlab.passes.interface import Declined, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .case_files import test_case  # noqa: F401
from .loop_functions import FUNCTIONS, WEIGHTS, X


@pytest.mark.parametrize("option", ["most_trips=0", "most_ops=-1"])
def test_a_bound_below_one_is_refused(option):
    with pytest.raises(InputError, match=rf"unroll-loops: {option.partition('=')[0]} must be at least 1"):
        parse_pipeline(f"unroll-loops{{{option}}}")


def test_an_inner_loop_of_many_trips_stays_a_loop(lowered, run_raised):
    def function(x):
        inner = lambda y: lax.fori_loop(0, 50, lambda k, z: jnp.sin(z) + k, y)  # noqa: E731
        return lax.fori_loop(0, 3, lambda k, y: inner(y) * k, x)

    x = jnp.linspace(-1, 1, 5)
    program = lowered(function, x)
    result = run_pipeline(program, parse_pipeline("unroll-loops"), Setting())
    assert [event.what for event in result.applied] == ["a loop became its 3 trips"]
    assert [loop.trips for loop in find_loops(program_view(result.program))] == [50, 50, 50]
    assert run_raised(result.program, (x,))[0] == pytest.approx(run_raised(program, (x,))[0], rel=1e-6)


@pytest.mark.parametrize(("most_ops", "trips"), [(890, []), (889, [10]), (200, [10])])
def test_an_inner_loop_counts_with_all_of_its_trips(most_ops, trips, lowered):
    def function(x):
        inner = lambda y: lax.fori_loop(0, 10, lambda k, z: jnp.sin(z) + k, y)  # noqa: E731
        return lax.fori_loop(0, 10, lambda k, y: inner(y) * k, x)

    result = run_pipeline(
        lowered(function, jnp.ones(5)), parse_pipeline(f"unroll-loops{{most_ops={most_ops}}}"), Setting()
    )
    assert [loop.trips for loop in find_loops(program_view(result.program))] == trips
    for event in result.events:
        if isinstance(event, Declined):
            assert "have 890 ops, more than most_ops=" in event.reason
            assert event.op.startswith("stablehlo.while at test_unroll_loops.py:")


def test_kernels_of_earlier_passes_stay(lowered):
    """Each trip calls them; a loop that is rebuilt from its ops would have their twins instead."""
    program = lowered(FUNCTIONS["layers"], WEIGHTS, X, platform="cuda")
    with_kernels = run_pipeline(program, parse_pipeline("dot-epilogue-kernels"), Setting(platform="cuda"))
    assert with_kernels.applied
    [loop] = find_loops(program_view(with_kernels.program))
    unrolled = run_pipeline(with_kernels.program, parse_pipeline("unroll-loops{most_trips=20}"), Setting())
    assert find_loops(program_view(unrolled.program)) == []
    calls = re.findall(r"call @(closed_call|fused_layers)", unrolled.program.text)
    assert calls.count("closed_call") == loop.trips  # the body, which calls the kernel
    assert "fused_layers" in calls
