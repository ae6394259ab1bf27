"""Every pass on the tiny form of all four ansätze: a second run changes nothing, and the numbers stay.

Adding a pass adds no line here. The slow tier has a fifth of the passes on one of the four by turns,
``make full`` all on all.
"""

import functools
from collections import Counter

import jax
import numpy as np
import pytest

from fusionlab.hlo import lowering
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.view import view_of
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.workloads.catalogue import build

NARROW = {name: f"{name}{{fewest=4}}" for name in ("sink-broadcast-through-dot", "hoist-reduce-through-dot")}
NARROW["jet-layer-kernels"] = "jet-layer-kernels{narrowest=4}"
"""Passes over wide layers, asked for the narrow ones of the tiny forms too."""
BY_STRUCTURE = tuple(name for name in PASSES if name != "split-fusions")
"""The one that asks for the code of kernels finds nothing in small ones; its own tests give it figures."""
ANSATZE = ("ferminet", "psiformer", "paulinet", "orbformer")


def tiny(ansatz, program):
    """Three walkers, in float64: a mistake cannot hide, and rounding does not decide whether a step is accepted."""
    return build(ansatz, "LiH", program=program, walkers=3, size="tiny", dtype="float64")


def run(name, program):
    [found] = parse_pipeline(NARROW.get(name, name))
    return found.run(program, Setting(platform="cuda"))


@pytest.fixture(scope="module")
def rewritten():
    """``rewritten(ansatz, pass)``: what the pass makes of sampling and local energy of the ansatz, once."""
    program = functools.cache(lambda ansatz: lowering.lower(tiny(ansatz, "inference-step"), "cuda"))
    return functools.cache(lambda ansatz, name: run(name, program(ansatz)))


@pytest.fixture(scope="module")
def assert_same_numbers(run_directly, run_raised):
    """``assert_same_numbers(ansatz, program, rewritten, tolerance)``: as the workload's untouched function."""

    @functools.cache
    def expected(ansatz, program):
        workload = tiny(ansatz, program)
        with jax.enable_x64(True):
            inputs = workload.inputs(0)
            return [np.asarray(leaf) for leaf in jax.tree.leaves(inputs)], run_directly(workload.function, *inputs)

    def compare(ansatz, program, rewritten, tolerance):
        arrays, values = expected(ansatz, program)
        for value, wanted in zip(run_raised(rewritten, arrays), values, strict=True):
            assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)

    return compare


def assert_nothing_is_left_to_do(pass_name, result):
    again = run(pass_name, result.program)
    assert again.applied == ()
    assert again.program is result.program


@pytest.mark.by_turns(5)
@pytest.mark.parametrize("pass_name", BY_STRUCTURE)
def test_the_numbers_stay_and_a_second_run_changes_nothing(pass_name, rewritten, assert_same_numbers):
    """On the first ansatz to which it applies; there is one for every pass.

    What ``transpose-replay`` makes has sums of its own, and to see that they are no Laplacians takes a minute: that is
    left to ``make full``.
    """
    name, result = next(found for found in ((name, rewritten(name, pass_name)) for name in ANSATZE) if found[1].applied)
    if pass_name != "transpose-replay":
        assert_nothing_is_left_to_do(pass_name, result)
    assert_same_numbers(name, "inference-step", result.program, 1e-8)


@pytest.mark.full
@pytest.mark.parametrize("name", ANSATZE)
@pytest.mark.parametrize("pass_name", PASSES)
def test_a_second_run_changes_nothing(pass_name, name, rewritten):
    assert_nothing_is_left_to_do(pass_name, rewritten(name, pass_name))


_NARROW_LAYERS = "sink-broadcast-through-dot{fewest=2},hoist-reduce-through-dot{fewest=2}"
_PACKS = "pack-isomorphic-slices"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "program_name", "pipeline", "applied", "fewer"),
    [
        ("psiformer", "mcmc", "layout", {"expand-small-dots", "merge-dots", "licm"}, ()),
        ("paulinet", "mcmc", "layout", {_PACKS, "scatter-to-gather", "merge-dots", "licm"}, ()),
        ("ferminet", "mcmc", _NARROW_LAYERS, {"sink-broadcast-through-dot"}, ("flops",)),
        ("paulinet", "mcmc", _NARROW_LAYERS, {"sink-broadcast-through-dot", "hoist-reduce-through-dot"}, ("flops",)),
        ("ferminet", "mcmc", _PACKS, {_PACKS}, ("dot_general", "reduce")),
        ("ferminet", "local-energy", _PACKS, {_PACKS}, ("dot_general", "reduce")),
    ],
)
def test_passes_together_for_the_cpu(name, program_name, pipeline, applied, fewer, assert_same_numbers):
    program = lowering.lower(tiny(name, program_name), "cpu")
    result = run_pipeline(program, parse_pipeline(pipeline), Setting(platform="cpu"))
    assert {event.pass_name for event in result.applied} == applied
    before, after = counted(program), counted(result.program)
    assert all(after[kind] < before[kind] for kind in fewer)
    assert_same_numbers(name, program_name, result.program, 1e-9)


def counted(program):
    """The numbers of ops by name, and the FLOPs."""
    names = Counter(node.op.mnemonic for node in view_of(program.parse()).walk())
    return {**names, "flops": program_cost(program).flops}
