"""JAX's test for singular matrices is recognised where its predicate does nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.singularity import singularity_tests
from fusionlab.hlo.program import program_view

MATRIX = np.eye(4, dtype=np.float32) + 1


def solved(matrix, used):
    """A solution between JAX's filters, and what ``used`` makes of their predicate."""
    factors = jax.lax.linalg.lu(matrix)[0].at[-1, -1].set(1.0)
    d = jax.scipy.linalg.solve_triangular(factors, jnp.ones(4))
    is_singular = jnp.any(jnp.isnan(d) | jnp.isinf(d))
    x = jnp.where(is_singular, jnp.zeros_like(matrix), matrix)
    y = jax.scipy.linalg.solve_triangular(factors, x)
    return jnp.where(is_singular, jnp.zeros_like(y), y), used(is_singular, matrix)


USES = {
    "returned": lambda p, m: p,
    "a branch": lambda p, m: jax.lax.cond(p, jnp.sin, jnp.cos, m),
    "the end of a loop": lambda p, m: jax.lax.while_loop(lambda y: (y.sum() < 9) & p, lambda y: y * 2, m),
    "returned by a loop": lambda p, m: jax.lax.fori_loop(0, 3, lambda k, y: (y[0] * 2, p), (m, False)),
    "a number": lambda p, m: m * p,
    "selects something else": lambda p, m: jnp.where(p, m, jnp.sin(m)),
    "zeros in a system of other factors": lambda p, m: jax.scipy.linalg.solve_triangular(
        jax.lax.linalg.lu(m + 1)[0], jnp.where(p, jnp.zeros_like(m), m)
    ),
    "zeros elsewhere": lambda p, m: jnp.where(p, jnp.zeros_like(m), jnp.sin(m)),
}


@pytest.mark.parametrize("name", USES)
def test_a_predicate_of_another_use_is_a_guard(name, lowered):
    assert not singularity_tests(program_view(lowered(lambda m: solved(m, USES[name]), MATRIX)))


def test_a_predicate_of_filters_alone_is_recognised(lowered):
    found = singularity_tests(program_view(lowered(lambda m: solved(m, lambda p, m: m), MATRIX)))
    assert len(found) == 2
    of_jax = jax.grad(lambda m: jax.grad(jnp.linalg.det)(m).sum())
    assert len(singularity_tests(program_view(lowered(of_jax, MATRIX)))) >= 2
