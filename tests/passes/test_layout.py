"""The preset ``layout`` keeps the numbers of sampling programs: attention, pairs, and networks of parameters alone."""

import pytest

from fusionlab.hlo import lowering
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads.catalogue import build

APPLIED = {
    "psiformer": {"expand-small-dots", "merge-dots", "licm"},
    "paulinet": {"pack-isomorphic-slices", "scatter-to-gather", "merge-dots", "licm"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", APPLIED)
def test_sampling_is_the_same(name, assert_same_numbers):
    """In float64 rounding does not decide whether a step is accepted."""
    workload = build(name, "LiH", program="mcmc", walkers=3, size="tiny", dtype="float64")
    program = lowering.lower(workload, "cpu")
    result = run_pipeline(program, parse_pipeline("layout"), Setting(platform="cpu"))
    assert {event.pass_name for event in result.applied} == APPLIED[name]
    assert_same_numbers(result.program, workload)
