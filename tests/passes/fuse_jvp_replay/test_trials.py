"""Which values are tried as F, in which order, and what one trial finds of several values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.program import program_view
from fusionlab.passes.fuse_jvp_replay.positions import groups

from ..laplacian_assertions import assert_rewritten

WALKERS, COORDINATES = 4, 6
X = np.random.default_rng(0).standard_normal((WALKERS, COORDINATES))


def layer(x):
    return jnp.tanh(jnp.sin(x * jnp.arange(1.0, 1 + COORDINATES)) + x**3)


def log_psi(x):
    """Shifted by the largest term, which drops out."""
    terms = layer(x).cumsum()
    return jnp.log(jnp.exp(terms - terms.max()).sum()) + terms.max()


def of_the_largest(x):
    """The largest term counts."""
    return layer(x).max() ** 3 + layer(x[::-1]).sum()


def test_a_value_built_on_another_one_is_tried_after_it(lowered):
    def both(x):
        value, gradient = jax.value_and_grad(log_psi)(x)
        return (gradient**2).sum(), value

    flat = program_view(lowered(jax.vmap(both), X))
    squares, value = flat.returns
    assert groups(flat, [squares, value], (WALKERS,)) == [[value], [squares]]


def test_values_of_equal_cost_are_tried_together(lowered):
    flat = program_view(lowered(jax.vmap(lambda x: (log_psi(x), log_psi(2 * x))), X))
    assert groups(flat, flat.returns, (WALKERS,)) == [list(flat.returns)]


def test_laplacians_of_two_loops_share_one_forward_pass_where_an_extreme_counts_in_one(lowered, rewritten):
    """Each alone needs the layer's jet again."""
    weights = np.linspace(-1, 1, 2 * 16).reshape(2, 16)

    def summed(x):
        return jnp.tanh(x.reshape(-1, 2) @ weights).sum(0)

    def with_laplacian(f, x):
        times = jax.linearize(jax.grad(f), x)[1]
        total = jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + times(jnp.eye(COORDINATES)[k])[k], 0.0)
        return total, f(x)

    values = (lambda x: jax.nn.logsumexp(summed(x)), lambda x: jnp.max(jnp.sin(summed(x))) ** 3)
    both = lowered(jax.vmap(lambda x: tuple(with_laplacian(f, x) for f in values)), X)
    one, other = rewritten(both, "sparsify-directions").applied
    assert one.what == other.what
    assert (one.sparsity is not None, other.sparsity) == (True, None)  # told once


@pytest.mark.slow
def test_an_extreme_is_constant_in_one_value_and_counts_in_another_of_one_loop(run_raised):
    def laplacians(x):
        hessians = [jax.linearize(jax.grad(f), x)[1] for f in (log_psi, of_the_largest)]

        def add(k, totals):
            return tuple(
                total + times(jnp.eye(COORDINATES)[k])[k] for total, times in zip(totals, hessians, strict=True)
            )

        return log_psi(x), of_the_largest(x), jax.lax.fori_loop(0, COORDINATES, add, (0.0, 0.0))

    def expected(x):
        values = (log_psi, of_the_largest)
        each = [jax.vmap(lambda y, f=f: jnp.trace(jax.hessian(f)(y)))(x) for f in values]
        return *(jax.vmap(f)(x) for f in values), *each

    result = assert_rewritten(run_raised, jax.vmap(laplacians), X, expected=expected)
    assert not [node for node in program_view(result.program).walk() if node.name == "stablehlo.while"]
