"""Shared by the tests of passes on whole workloads."""

import jax
import numpy as np
import pytest


@pytest.fixture
def assert_same_numbers(run_raised, run_directly):
    """``assert_same_numbers(program, workload)``: the program computes what the workload's own function does."""

    def compare(program, workload):
        with jax.enable_x64(True):
            inputs = workload.inputs(0)
            expected = run_directly(workload.function, *inputs)
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(inputs)]
        for value, wanted in zip(run_raised(program, arrays), expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)

    return compare
