"""The jets of every family of ops are the value, Laplacian and derivatives that JAX has for the function itself."""

import jax
import numpy as np
import pytest

from .conftest import assert_equal_jets
from .jet_cases import CASES, X

# Lowered in another way for CUDA than for the CPU.
BOTH_PLATFORMS = ("cumulative", "sort", "blocks", "solve", "gather-by-walker")


@pytest.mark.parametrize(
    ("function", "others", "platform"),
    [
        pytest.param(function, others, platform, id=f"{name}-{platform}")
        for name, function, others in CASES
        for platform in (("cpu", "cuda") if name.startswith(BOTH_PLATFORMS) else ("cpu",))
    ],
)
def test_jets_are_those_of_the_function(function, others, platform, jets_of, brute_force):
    found = jets_of(function, X, *others, platform=platform)
    assert_equal_jets(found, brute_force(function, X, *others), 1e-10)


def test_the_cases_have_names_of_their_own():
    names = [name for name, _, _ in CASES]
    assert len(set(names)) == len(names)
    assert all(np.isfinite(X).ravel())


@pytest.mark.parametrize("function", [jax.nn.sigmoid, jax.nn.silu], ids=["sigmoid", "silu"])
def test_logistic_functions_where_their_exponential_overflows(function, jets_of, brute_force):
    """A random replay had NaN there: 1 / (1 + exp(-x)) was differentiated part by part."""

    def summed(x):
        return function(3e3 * x).sum((-1, -2)) + (x**2).sum((-1, -2))

    assert (X < -0.3).any()
    found = jets_of(summed, X)
    assert np.isfinite(found.laplacians[0]).all()
    assert_equal_jets(found, brute_force(summed, X), 1e-10)
