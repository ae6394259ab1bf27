"""Layers that see means over electrons: contracted once per walker, forwards and backwards, with the same numbers."""

import pytest

from fusionlab.hlo import lowering
from fusionlab.hlo.cost import program_cost
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads.catalogue import build

PIPELINE = "sink-broadcast-through-dot{fewest=2},hoist-reduce-through-dot{fewest=2}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "applied"),
    [
        ("ferminet", {"sink-broadcast-through-dot"}),
        ("paulinet", {"sink-broadcast-through-dot", "hoist-reduce-through-dot"}),
    ],
)
def test_sampling_is_the_same_with_fewer_flops(name, applied, assert_same_numbers):
    """In float64 rounding does not decide whether a step is accepted."""
    workload = build(name, "LiH", program="mcmc", walkers=3, size="tiny", dtype="float64")
    program = lowering.lower(workload, "cpu")
    result = run_pipeline(program, parse_pipeline(PIPELINE), Setting(platform="cpu"))
    assert {event.pass_name for event in result.applied} == applied
    assert program_cost(result.program).flops < program_cost(program).flops
    assert_same_numbers(result.program, workload)
