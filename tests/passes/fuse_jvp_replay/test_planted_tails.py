"""Sums that are nearly those of second derivatives: what makes the products, or follows them, is another function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.oracle import program_runner

from ..laplacian_assertions import in_their_precision, rewritten

_random = np.random.default_rng(11)
W, X = _random.standard_normal((3, 5)), _random.standard_normal((4, 3))
TIED = np.where(np.arange(4)[:, None] < 2, X * np.array([0.0, 1, 1]), X)
E = np.eye(3)
MANY = _random.standard_normal((18, 18))


def psi(y):
    return jnp.log(jnp.cosh(jnp.tanh(y @ W) @ jnp.ones(5))) + (jnp.sin(y) ** 2).sum()


def pushed(y):
    return jax.linearize(jax.grad(psi), y)[1]


def in_a_loop(term):
    """psi and the sum over k of term(k, y, product with row k, row k)."""

    def one(y):
        h, e = pushed(y), jnp.eye(3)
        return psi(y), lax.fori_loop(0, 3, lambda k, s: s + term(k, y, h(e[k]), e[k]), 0.0)

    return jax.vmap(one)


def with_masses(term):
    def one(m, y):
        h, e = pushed(y), jnp.eye(3)
        return psi(y), lax.fori_loop(0, 3, lambda k, s: s + term(m, k, y, h(e[k])[k]), 0.0)

    return jax.vmap(one, (None, 0))


def at_once(of):
    """psi and a function of the rows of the Hessian at once."""
    return jax.vmap(lambda y: (psi(y), of(y, jax.vmap(pushed(y))(jnp.eye(3)), jnp.eye(3))))


def from_outside(y):
    h, e0 = pushed(y), jnp.array([1.0, 0, 0])
    q = e0 @ h(e0)
    return psi(y), lax.fori_loop(0, 3, lambda k, s: s + q + (jax.nn.one_hot(k, 3) - e0) @ y, 0.0)


def chosen_by_floats(y):
    h, e = pushed(y), jnp.eye(3)

    def add(k, s):
        d = jnp.where(0.3 * k < 0.7, e[0], e[2])
        return s + d @ h(d)

    return psi(y), lax.fori_loop(0, 3, add, 0.0)


def slopes_of_many(x):
    """As many walkers as coordinates, and more than are evaluated."""
    f = lambda y: jnp.sum(jnp.sin(y) ** 3, -1)  # noqa: E731
    rows = jnp.broadcast_to(jnp.eye(18), (18, 18, 18))
    points = jnp.broadcast_to(x[:, None], (18, 18, 18))
    first, second = jax.jvp(lambda y: jax.jvp(f, (y,), (rows,))[1], (points,), (rows,))
    return f(x), (second + first * jnp.arange(1.0, 19)).sum(1)


@jax.custom_jvp
def rectified(x):
    return jnp.maximum(x, 0)


rectified.defjvp(lambda p, t: (rectified(*p), jnp.where(p[0] >= 0, *t, 0.0)))  # 1 at 0, of which the value says nothing


def tied_where_no_weight_is(y):
    """The Laplacian by the first coordinate, and slopes by all."""
    f = lambda z: psi(z) * jnp.tanh(rectified(z[1:]).sum())  # noqa: E731
    (g, h), e = jax.linearize(jax.grad(f), y), jnp.eye(3)
    add = lambda k, s: s + jnp.where(k < 1, h(e[k])[k], 0.0) + jnp.dot(g, e[k]) ** 2  # noqa: E731
    return f(y), lax.fori_loop(0, 3, add, 0.0), lax.fori_loop(0, 1, lambda k, s: s + h(e[k])[k], 0.0), g


def switched_off(flag, y):
    """Where the flag is off, derivatives may be undefined."""
    f = lambda z: psi(z) * jnp.exp(-jnp.linalg.norm(z))  # noqa: E731
    h, e = jax.linearize(jax.grad(f), y)[1], jnp.eye(3)
    return f(y), lax.fori_loop(0, 3, lambda k, s: s + jnp.where(flag > 0, h(e[k])[k], 0.0), 0.0)


def term_of_an_integer(n, y):
    """A branch that the value takes, too, and no draw does."""
    f = lambda z: psi(z) + jnp.where(n == 77777, 1.0, 0.0)  # noqa: E731
    (g, h), e = jax.linearize(jax.grad(f), y), jnp.eye(3)
    return f(y), lax.fori_loop(0, 3, lambda k, s: s + h(e[k])[k] + jnp.where(n == 77777, jnp.sin(g[k]), 0.0), 0.0)


def electron_by_electron(y):
    """A loop that starts from the sum of another."""
    h, e = pushed(y), jnp.eye(3)
    total = lax.fori_loop(0, 1, lambda k, s: s + h(e[k])[k], 0.0)
    return psi(y), lax.fori_loop(1, 3, lambda k, s: s + h(e[k])[k] / 2, total)


@jax.custom_jvp
def rectified_by(x, slope):
    return jnp.maximum(x, 0)


rectified_by.defjvp(lambda p, t: (rectified_by(*p), jnp.where(p[0] == 0, p[1], jnp.where(p[0] > 0, 1.0, 0.0)) * t[0]))


def slope_of_one_walker(x):
    """One of the walkers has another slope at 0, by a constant."""
    slopes = np.where(np.arange(15) == 1, 0.25, 0.5)

    def one(y, slope):
        h, e = jax.linearize(jax.grad(lambda z: psi(z) + jnp.sum(rectified_by(z, slope) ** 2)), y)[1], jnp.eye(3)
        return psi(y) + jnp.sum(jnp.maximum(y, 0) ** 2), lax.fori_loop(0, 3, lambda k, s: s + h(e[k])[k], 0.0)

    return jax.vmap(one)(x, jnp.asarray(slopes))


C = np.array([0.0, 1, -1])
FIFTEEN = _random.standard_normal((15, 3)) * np.array([0.0, 1, 1])
OFF = np.concatenate([X[:2], np.zeros((2, 3))])
PLANTED = {
    "tied-where-no-weight-is": (jax.vmap(tied_where_no_weight_is), (np.where(np.arange(3) == 2, 0.0, X),)),
    "switched-off": (jax.vmap(switched_off, (None, 0)), (np.float64(-1), OFF)),
    "term-of-an-integer": (jax.vmap(term_of_an_integer, (None, 0)), (np.int32(77777), X)),
    "electron-by-electron": (jax.vmap(electron_by_electron), (X,)),
    "rows-that-cancel": (in_a_loop(lambda k, y, t, _: t[k] + jnp.asarray(C)[k] * t[0]), (X,)),
    "rows-at-once": (at_once(lambda y, h, _: jnp.trace(h) + h[1, 0] - h[2, 0]), (X,)),
    "antisymmetric": (
        in_a_loop(lambda k, y, t, d: t[k] + (t + jnp.cross(jnp.sin(y), d))[0] - t[0]), (X,),
    ),
    "volume-of-rows": (at_once(lambda y, h, e: jnp.trace(h + y * jnp.dot(e[0], jnp.cross(e[1], e[2])))), (X,)),
    "offset-at-a-tie": (in_a_loop(lambda k, y, t, _: t[k] + jnp.where(y[0] == 0, 7.0, 0.0)), (TIED,)),
    "weight-at-a-tie": (in_a_loop(lambda k, y, t, _: jnp.where(y[0] == 0, 0.0, t[k])), (TIED,)),
    "sign-at-a-tie": (in_a_loop(lambda k, y, t, _: t[k] * jnp.sign(y[0]) ** 2), (TIED,)),
    "sides-of-a-tie": (in_a_loop(lambda k, y, t, _: t[k] + (y[0] >= 0) + (y[0] <= 0) - 1.0), (TIED,)),
    "rare-parameters": (
        with_masses(lambda m, k, y, t: t * jnp.where(jnp.all(m > 0), 1.0, 2.0)), (np.ones(8), X),
    ),
    "masses-of-walkers": (with_masses(lambda m, k, y, t: jnp.exp(m[k] + y[0]) * t), (np.arange(1.0, 4), X)),
    "directions-from-outside": (jax.vmap(from_outside), (X,)),
    "directions-by-floats": (jax.vmap(chosen_by_floats), (X,)),
    "slopes-of-many": (slopes_of_many, (MANY,)),
    "slope-of-one-walker": (slope_of_one_walker, (FIFTEEN,)),
}  # fmt: skip


@pytest.mark.by_turns(3, "rows-that-cancel", "antisymmetric", "volume-of-rows", "offset-at-a-tie", "rare-parameters")
@pytest.mark.parametrize("name", PLANTED)
def test_what_is_rewritten_has_the_numbers_of_the_program(name):
    function, arrays = PLANTED[name]
    program, result = rewritten(function, *arrays, keep_unused=True)
    if not result.applied:
        assert result.events, "a refusal has its reason"
        return
    with in_their_precision(arrays):
        expected, found = (program_runner(each)(list(arrays)) for each in (program, result.program))
    for right, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-9)
