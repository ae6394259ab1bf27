"""Tails whose weights come from their transpose, and tails that have none: loops over the diagonal, selections."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.passes.fuse_jvp_replay.tail import Tail

from ..laplacian_assertions import assert_rewritten
from ..laplacian_functions import WEIGHTS, X, pushed, smooth

N = X[0].size
MASSES = np.random.default_rng(5).uniform(0.5, 2.0, N)


def hessian(x, beside=0.0):
    """All rows at once, along directions to which ``beside`` is added."""
    push, eye = pushed(smooth, WEIGHTS, x)
    return jax.vmap(push)(eye + beside)


def counted(x):
    """The diagonal added up in a loop."""
    rows = hessian(x)
    return lax.fori_loop(0, N, lambda k, total: total + rows[k, k], 0.0)


def mapped(x):
    """The diagonal taken entry by entry."""
    rows = hessian(x)
    return lax.map(lambda k: rows[k, k], jnp.arange(N)).sum()


def halves(x):
    """A loop whose trips are those of one half of the coordinates, beside the others."""
    diagonal = jnp.diag(hessian(x))
    return lax.fori_loop(0, 4, lambda k, total: total + diagonal[k], 0.0) + 2 * diagonal[4:].sum()


def two_sums(x):
    """Two sums of one loop, of which one has a factor that is undefined where two electrons meet."""
    push, eye = pushed(smooth, WEIGHTS, x)
    once, again = jnp.sin(x[0, 0]), 1 / ((x[0] - x[1]) ** 2).sum()

    def trip(k, sums):
        second = push(eye[k])[k]
        return sums[0] + once * second, sums[1] + again * second

    return lax.fori_loop(0, N, trip, (0.0, 0.0))


def left_out(x):
    """Weights of two kinds, of which a slice leaves out the one that is undefined where two electrons meet."""
    factors = jnp.stack([jnp.sin(x[0, 0]), 1 / ((x[0] - x[1]) ** 2).sum()])
    return (jnp.diagonal(hessian(x))[:, None] * factors)[:, 0].sum()


WITH_TRANSPOSE = {
    "trace": lambda x: jnp.trace(hessian(x)),
    "masses": lambda x: jnp.trace(hessian(x) * MASSES),
    "factor of each walker": lambda x: jnp.sin(x).sum() * jnp.trace(hessian(x)),
    "elementwise": lambda x: jnp.sum(hessian(x) * jnp.eye(N)) / 3 - x[0, 0],
    "some coordinates": lambda x: jnp.trace(hessian(x)[1::2, 1::2]),
    "directions and nothing": lambda x: jnp.trace(hessian(x, 0 * x.reshape(-1))),
}
WITHOUT = {
    "counted": counted,
    "mapped": mapped,
    "halves": halves,
    "diagonal": lambda x: jnp.diag(hessian(x)) @ MASSES,  # JAX makes a branch of it
    "selected": lambda x: jnp.where(np.arange(N) % 2, jnp.log(x[0, 0] ** 2) * jnp.diag(hessian(x)), 0).sum(),
    "a channel of each electron": lambda x: jnp.diag(hessian(x)).reshape(x.shape).sum(-1),
    "two sums of a loop": two_sums,
    "factors that are left out": left_out,
    "complex": lambda x: (1 + 2j) * jnp.trace(hessian(x)),
}


@pytest.fixture
def transposed(monkeypatch):
    """Whether each tail that was weighed has a transpose."""
    found = []
    real = Tail.has_transpose.func

    def noted(tail):
        found.append(real(tail))
        return found[-1]

    monkeypatch.setattr(Tail, "has_transpose", property(noted))
    return found


def energy(tail):
    return jax.vmap(lambda x: (smooth(WEIGHTS, x), tail(x)))


@pytest.mark.parametrize("name", WITH_TRANSPOSE)
def test_weights_by_the_transpose(name, transposed, run_raised):
    assert_rewritten(run_raised, energy(WITH_TRANSPOSE[name]), X)
    assert transposed[-1]


@pytest.mark.parametrize("name", WITHOUT)
def test_tails_without_a_transpose_or_of_another_shape(name, run_raised):
    assert_rewritten(run_raised, energy(WITHOUT[name]), X)


@pytest.mark.parametrize("name", ["counted", "mapped", "selected"])
def test_loops_and_selections_are_not_transposed(name, transposed, run_raised):
    assert_rewritten(run_raised, energy(WITHOUT[name]), X)
    assert not transposed[-1]
