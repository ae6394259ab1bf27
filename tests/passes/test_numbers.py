"""Rewritten programs compute what the untouched function computes."""

import jax
import numpy as np
import pytest

from .loop_functions import FUNCTIONS, WEIGHTS, X

PIPELINES = ("batch-replay", "batch-replay{chunk=2}", "fuse-jvp-replay{chunk=3}", "licm", "layout")
NOT_SUMMED = ("shared", "halves")
"""Functions whose only loop is not a sum over its trips: a near miss, left alone."""


@pytest.fixture(scope="module")
def expected(run_directly):
    with jax.enable_x64(True):
        return {
            name: run_directly(function, WEIGHTS.astype(float), X.astype(float)) for name, function in FUNCTIONS.items()
        }


@pytest.mark.by_turns(4, "fuse-jvp-replay{chunk=3}", "layout")
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_numbers_in_float64(name, pipeline, loop_program, rewritten, expected, run_raised):
    """In float64 a mistake has no rounding to hide in; counters stay what they are."""
    result = rewritten(loop_program(name, "float64"), pipeline)
    if pipeline not in ("licm", "layout"):
        assert bool(result.applied) == (name not in NOT_SUMMED), result.events
    if (name, pipeline) == ("pairs", "layout"):
        assert {event.pass_name for event in result.applied} >= {"scatter-to-gather", "expand-small-dots"}
    values = run_raised(result.program, (WEIGHTS.astype(float), X.astype(float)))
    for value, wanted in zip(values, expected[name], strict=True):
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-13)
