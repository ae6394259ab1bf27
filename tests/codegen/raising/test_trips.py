"""One trip in any direction instead of all: terms that are polynomials of it, and their values at unit vectors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import in_one_direction, is_polynomial
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of

N = 4
X = np.random.default_rng(3).standard_normal(N).astype(np.float32)


def gradient(x):
    return jax.grad(lambda y: jnp.log(1 + (jnp.tanh(jnp.outer(y, y)) ** 2).sum()))(x)


def tangent(x, direction):
    return jax.jvp(gradient, (x,), (direction,))


def summed(term):
    """The sum over trips of ``term(x, k)``."""
    return lambda x: lax.fori_loop(0, N, lambda k, total: total + term(x, k), 0.0)


def scanned(x):
    table = jnp.eye(N)
    return lax.scan(lambda total, k: (total + tangent(x, table[k])[1] @ table[k], None), 0.0, jnp.arange(N))[0]


def one_hot(k):
    return (jnp.arange(N) == k).astype(jnp.float32)


POLYNOMIALS = {
    "row-of-identity": summed(lambda x, k: tangent(x, jnp.eye(N)[k])[1][k]),
    "one-hot": summed(lambda x, k: tangent(x, one_hot(k))[1] @ one_hot(k)),
    "written": summed(lambda x, k: tangent(x, jnp.zeros(N).at[k].set(1.0))[1][k]),
    "selected": summed(lambda x, k: jnp.where(jnp.arange(N) == k, tangent(x, one_hot(k))[1], 0.0).sum()),
    "squared-primal": summed(lambda x, k: tangent(x, one_hot(k))[0][k] ** 2 + tangent(x, one_hot(k))[1][k]),
    "scan": scanned,
    "barrier": summed(
        lambda x, k: lax.optimization_barrier((x[0], tangent(x, one_hot(k))[1], k))[1][k] * jnp.tanh(x[0])
    ),
    "added-to-others": summed(lambda x, k: jnp.zeros(2).at[k % 2].add(tangent(x, one_hot(k))[1][k]).sum()),
    "number-as-weight": summed(lambda x, k: k * tangent(x, one_hot(k))[1][k]),
    "some-trips": summed(lambda x, k: jnp.where(k < 2, tangent(x, one_hot(k))[1][k], 0.0)),
    "primal-predicate": summed(lambda x, k: jnp.where(x[0] > 0, tangent(x, one_hot(k))[1][k], 0.0)),
}
OTHERS = {
    "predicate": summed(lambda x, k: jnp.where(one_hot(k)[0] == 0, 7.0, tangent(x, one_hot(k))[1][k])),
    "maximum": summed(lambda x, k: jnp.maximum(tangent(x, one_hot(k))[1], 0)[k]),
    "function": summed(lambda x, k: jnp.tanh(tangent(x, one_hot(k))[1][k])),
    "denominator": summed(lambda x, k: 1 / (2 + one_hot(k) @ x)),
    "rounded": summed(lambda x, k: jnp.float32(jnp.int32(tangent(x, one_hot(k))[1][k]))),
    "largest": summed(lambda x, k: tangent(x, one_hot(k))[1].max()),
    "no-trip": summed(lambda x, k: x.sum()),
    "largest-written": summed(lambda x, k: jnp.zeros(2).at[k % 2].max(tangent(x, one_hot(k))[1][k]).sum()),
    "stacked": lambda x: lax.map(lambda k: tangent(x, one_hot(k))[1][k], jnp.arange(N)).sum(),
}


def loop_of(function, lowered):
    view = view_of(lowered(function, X).parse())
    return view, find_loops(view)[0]


@pytest.mark.by_turns(4, "row-of-identity", "one-hot", "some-trips")
@pytest.mark.parametrize("name", POLYNOMIALS)
def test_a_unit_vector_as_weights_is_one_trip(name, lowered):
    """And a term is homogeneous of its degree in the weights."""
    view, loop = loop_of(POLYNOMIALS[name], lowered)
    assert is_polynomial(loop)
    environment, raising = {view.arguments[0]: jnp.asarray(X)}, Raising()
    raising.run(view.nodes[: view.nodes.index(loop.node)], environment)

    def total(weights):
        results = in_one_direction(loop, jnp.asarray(weights), raising, environment)
        return next(r for r in results if r.dtype == np.float32 and r.shape == ())

    terms = [total(row) for row in np.eye(N, dtype=np.float32)]
    np.testing.assert_allclose(sum(terms), POLYNOMIALS[name](X), rtol=1e-5)
    degree = 3 if name in ("number-as-weight", "some-trips", "added-to-others") else 2
    weights = np.array([0.5, -1.0, 2.0, 0.25], np.float32)
    np.testing.assert_allclose(total(2 * weights), 2**degree * total(weights), rtol=1e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_terms_that_are_no_polynomials(name, lowered):
    assert not is_polynomial(loop_of(OTHERS[name], lowered)[1])
