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


def selected_by_the_user(a):
    factors = lax.linalg.lu(a)[0]
    return jnp.where(factors[..., :1, :1] >= 0, factors, jnp.nan)


OTHERS = {
    "another-factorisation": (lambda a: jnp.where(a >= 0, lax.linalg.cholesky(a), jnp.nan), 0),
    "no-factors": (lambda a: jnp.where(jnp.isnan(a), a, jnp.nan), 0),
    "of-the-user": (selected_by_the_user, 1),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_selections_stay(name, lowered):
    function, checks = OTHERS[name]
    program = lowered(function, A, platform="cuda")
    dropped, after = without_checks(program)
    assert dropped == checks
    # What is dropped has no readers any more, and is erased later.
    selects = [each.text.count("stablehlo.select") for each in (program, after)]
    assert selects[0] == selects[1] > 0
