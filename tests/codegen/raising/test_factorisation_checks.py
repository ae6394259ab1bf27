"""The NaN that JAX's lowering of LU selects on an illegal argument goes; every other selection stays."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising.factorisation_checks import drop_factorisation_checks
from fusionlab.hlo.program import Program

A = np.random.default_rng(3).standard_normal((5, 3, 3)).astype(np.float32)


def without_checks(program):
    module = program.parse()
    dropped = drop_factorisation_checks(module)
    return dropped, Program.from_module(module, name="without", provenance="test", platform=program.platform)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_check_goes_and_the_numbers_stay(platform, lowered, run_raised):
    program = lowered(lambda a: lax.linalg.lu(a)[0], A, platform=platform)
    dropped, after = without_checks(program)
    assert dropped == 1
    np.testing.assert_array_equal(run_raised(after, [A])[0], run_raised(program, [A])[0])


def test_a_singular_matrix_passes_either_way(lowered, run_raised):
    program = lowered(lambda a: jnp.linalg.slogdet(a), A, platform="cpu")
    singular = np.ones_like(A)
    _, after = without_checks(program)
    for ours, theirs in zip(run_raised(after, [singular]), run_raised(program, [singular]), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a: jnp.where(a >= 0, lax.linalg.cholesky(a), jnp.nan), id="another-factorisation"),
        pytest.param(lambda a: jnp.where(jnp.isnan(a), a, jnp.nan), id="no-factors"),
    ],
)
def test_other_selections_stay(function, lowered):
    dropped, _ = without_checks(lowered(function, A, platform="cuda"))
    assert dropped == 0


def test_a_user_s_own_question_about_factors_stays(lowered):
    def function(a):
        factors = lax.linalg.lu(a)[0]
        return jnp.where(factors[..., :1, :1] >= 0, factors, jnp.nan)

    dropped, after = without_checks(lowered(function, A, platform="cuda"))
    assert dropped == 1
    assert after.text.count("stablehlo.select") == 2  # the user's, and JAX's own, which nothing reads any more
