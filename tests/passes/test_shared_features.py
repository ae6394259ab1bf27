"""Layers that see means over electrons: contracted once per walker, forwards and backwards, with the same numbers."""

import jax
import numpy as np
import pytest

from fusionlab.hlo import lowering
from fusionlab.hlo.cost import program_cost
from fusionlab.passes.contract import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads.catalogue import build

PIPELINE = "contract-before-broadcast{fewest=2},sum-before-contract{fewest=2}"


@pytest.mark.parametrize(
    ("name", "applied"),
    [
        ("ferminet", {"contract-before-broadcast"}),
        ("paulinet", {"contract-before-broadcast", "sum-before-contract"}),
    ],
)
def test_sampling_is_the_same_with_fewer_flops(name, applied, run_raised, run_directly):
    """In float64 rounding does not decide whether a step is accepted."""
    workload = build(name, "LiH", program="mcmc", walkers=3, size="tiny", dtype="float64")
    program = lowering.lower(workload, "cpu")
    result = run_pipeline(program, parse_pipeline(PIPELINE), Setting(platform="cpu"))
    assert {event.pass_name for event in result.applied} == applied
    assert program_cost(result.program).flops < program_cost(program).flops
    with jax.enable_x64(True):
        inputs = workload.inputs(0)
        expected = run_directly(workload.function, *inputs)
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(inputs)]
    for value, wanted in zip(run_raised(result.program, arrays), expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)
