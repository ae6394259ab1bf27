"""Sums that depend on integers made of data: refused where their value does not in the same way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ..laplacian_assertions import assert_refused, assert_rewritten

X = np.random.default_rng(0).standard_normal((3, 4, 3))
GRID = np.arange(4096) * 0.005
TABLE = np.sin(GRID)
SLOPES = np.cos(GRID)
ORDER = np.array([3, 1, 0, 2])


def cell(r):
    return jnp.clip((r / 0.005).astype(jnp.int32), 0, 4095)


def quadratic(r):
    return -0.3 * r * r


def tabulated(r):
    return jnp.take(TABLE, cell(r), mode="clip") * 1e-2 + quadratic(r)


def slope(r):
    return -0.6 * r


def by_jax(value):
    """Values and sums of second derivatives of ``value`` of the distances."""

    def function(x, *given):
        def one(x):
            f = lambda y: value(jnp.sqrt((y.reshape(-1, 3) ** 2).sum(-1)), *given).sum()  # noqa: E731
            y = x.reshape(-1)
            hessian, eye = jax.linearize(jax.grad(f), y)[1], jnp.eye(y.size)
            return f(y), lax.fori_loop(0, y.size, lambda k, s: s + hessian(eye[k])[k], 0.0)

        return jax.vmap(one)(x)

    return function


def energies(value, rule):
    """As ``by_jax``, where the derivative of ``value`` is ``rule`` by hand."""

    def by_hand(r, *given):
        u = jax.custom_jvp(lambda r: value(r, *given))
        u.defjvp(lambda primals, tangents: (u(*primals), rule(*primals, *given) * tangents[0]))
        return u(r)

    return by_jax(by_hand)


def frozen(integers):
    """A gate of integers is no function of the positions that has a derivative."""
    return lax.stop_gradient(integers)


def steps(r):
    """How often r can be multiplied until it reaches 1e3."""
    start = (jnp.zeros(r.shape, jnp.int32), lax.stop_gradient(r))
    return lax.while_loop(lambda s: jnp.any(s[1] < 1e3), lambda s: (s[0] + 1, s[1] * 1.1 + 0.1), start)[0]


GATES = {
    "clip": (tabulated, lambda r: jnp.clip(cell(r) - 1600, 0, 1)),
    "unsigned shift": (tabulated, lambda r: jnp.minimum(cell(r).astype(jnp.uint32) >> 10, 1)),
    "remainder": (tabulated, lambda r: cell(r) % 4000 // 3000),
    "quotient": (tabulated, lambda r: cell(r) // 3000),
    "mask": (tabulated, lambda r: (cell(r) & 2048) >> 11),
    "narrowed": (tabulated, lambda r: jnp.minimum(cell(r) - cell(r).astype(jnp.int8), 1)),
    "a table of as many": (tabulated, lambda r: jnp.take(np.repeat([0.0, 1.0], 2048), cell(r), mode="clip")),
    "cells of its own": (lambda r: quadratic(r), lambda r: jnp.clip(cell(r) - 1600, 0, 1)),
    "exponents": (quadratic, lambda r: jnp.clip(jnp.frexp(r)[1] - 4, 0, 1)),
    "bits": (quadratic, lambda r: jnp.clip((lax.bitcast_convert_type(r, jnp.int64) >> 52) - 1027, 0, 1)),
    "an order": (quadratic, lambda r: jnp.prod(jnp.maximum(1 - jnp.abs(jnp.argsort(r) - ORDER), 0))),
    "the order of the value": (
        lambda r: quadratic(r[jnp.argsort(r)]), lambda r: jnp.prod(jnp.maximum(1 - jnp.abs(jnp.argsort(r) - ORDER), 0))
    ),
    "the largest": (quadratic, lambda r: jnp.maximum(lax.top_k(r, 1)[1] - 2, 0)),
    "a count": (quadratic, lambda r: jnp.clip((r > 8.0).sum() - 3, 0, 1)),
    "trips": (quadratic, lambda r: jnp.clip(steps(r) - 40, 0, 1)),
    "digits": (quadratic, lambda r: jnp.clip(jnp.digitize(r, GRID[::64]) - 40, 0, 1)),
}  # fmt: skip


FAST = ("clip", "a table of as many", "exponents", "a count")


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in GATES]
)
def test_a_force_cut_by_integers(name):
    value, gate = GATES[name]
    assert_refused(energies(value, lambda r: slope(r) * (1 - frozen(gate(r)))), X)


def test_a_shorter_table_of_derivatives():
    value = lambda r: jnp.asarray(TABLE)[cell(r)] + jnp.asarray(SLOPES)[cell(r)] * (r - cell(r) * 0.005)  # noqa: E731
    assert_refused(energies(value, lambda r: jnp.asarray(SLOPES[:2048])[cell(r)]), X)


@pytest.mark.parametrize("gate", [lambda n: n >> 8, lambda n: jnp.clip(n - 1600, 0, 1)])
def test_an_integer_argument_that_the_value_reads_too(gate):
    function = energies(lambda r, n: quadratic(r) * n, lambda r, n: slope(r) * n * (1 - gate(n)))
    assert_refused(function, X, np.array(3, np.int32))


def splines(r):
    i = cell(r)
    t = r - i * 0.005
    return jnp.asarray(TABLE)[i] + jnp.asarray(SLOPES)[i] * t + 0.3 * jnp.asarray(SLOPES)[i] * t * t


SPIKE = np.eye(4096)[3001] * 2.0


def float_trips(r, top):
    start = (jnp.zeros(r.shape), lax.stop_gradient(r))
    return lax.while_loop(lambda s: jnp.any(s[1] < top), lambda s: (s[0] + 1.0, s[1] * 1.1 + 0.1), start)[0]


BESIDE = {
    "a table times x": (
        lambda r: jnp.take(TABLE * r[0], cell(r), mode="clip") * 1e-2 + quadratic(r),
        lambda r: jnp.take(SPIKE * r[0], cell(r), mode="clip"),
    ),
    "a mask of bits": (
        quadratic,
        lambda r: lax.reduce((r > 1.0).astype(jnp.int32) << jnp.arange(4), np.int32(0), lax.bitwise_or, (0,)) == 11,
    ),
    "another loop": (lambda r: jnp.sin(r) * (1 + 1e-3 * float_trips(r, 1e3)), lambda r: float_trips(r, 1e4) == 93.0),
    "a remainder": (quadratic, lambda r: r - jnp.mod(r, 1.0) == 7.0),
    "a branch": (quadratic, lambda r: lax.switch(cell(r)[0], [lambda k=k: 1.0 * (k == 23) for k in range(40)])),
}


@pytest.mark.parametrize("name", [n if n == "a remainder" else pytest.param(n, marks=pytest.mark.slow) for n in BESIDE])
def test_a_term_behind_integers_beside_the_derivative_by_jax(name):
    value, gate = BESIDE[name]

    def beside(r):
        u = jax.custom_jvp(value)
        u.defjvp(lambda p, t: (u(*p), jax.jvp(value, p, t)[1] + frozen(gate(p[0]) * 1.0) * p[0] * t[0]))
        return u(r)

    assert_refused(by_jax(beside), X)


RECOMPUTED = {
    "interpolated": lambda r: jnp.interp(r, GRID[::256], TABLE[::256]) * r * r,
    "in a loop": lambda r: lax.fori_loop(0, 3, lambda i, s: jnp.sin(s) * jnp.asarray(TABLE)[(i + cell(r[0])) % 64], r),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RECOMPUTED)
def test_loops_of_integers_that_each_trip_computes_again(name, run_raised):
    def function(x):
        def one(x):
            f = lambda y: RECOMPUTED[name](jnp.sqrt((y.reshape(-1, 3) ** 2).sum(-1))).sum()  # noqa: E731
            y = x.reshape(-1)
            eye, gradient = jnp.eye(y.size), jax.grad(f)
            add = lambda k, s: s + jax.jvp(gradient, (y,), (eye[k],))[1][k]  # noqa: E731
            return f(y), lax.fori_loop(0, y.size, add, 0.0)

        return jax.vmap(one)(x)

    assert_rewritten(run_raised, function, X)


@pytest.mark.slow
def test_kinds_of_electrons_by_one_hot(run_raised):
    """At most draws of integers, no electron has a kind."""
    value = lambda r, kinds: jnp.sin(r) * (jax.nn.one_hot(kinds, 3) @ jnp.arange(3.0))  # noqa: E731
    assert_rewritten(run_raised, by_jax(value), X, np.array([0, 2, 1, 1], np.int32))


RIGHT = {
    "splines": splines,
    "a gate of the value": lambda r: quadratic(r) * (1 - jnp.clip(cell(r) - 300, 0, 1)),
    "sorted": lambda r: jnp.sin(jnp.sort(r)) * np.arange(1, 5),
    "in an order": lambda r: jnp.sin(r[jnp.argsort(r)]) * np.arange(1, 5),
    "the largest": lambda r: jnp.sin(r[jnp.argmax(r)]),
    "the largest three": lambda r: jnp.sin(lax.top_k(r, 3)[0]) * np.arange(1, 4),
    "branches": lambda r: lax.switch((r[0] > 1.0).astype(jnp.int32), [jnp.sin, jnp.cos], r),
    "an element at a cell": lambda r: jnp.sin(r[cell(r)[0] % 4]) + jnp.cos(r),
}


FAST_AND_RIGHT = ("splines", "in an order", "an element at a cell")


@pytest.mark.parametrize("name", [n if n in FAST_AND_RIGHT else pytest.param(n, marks=pytest.mark.slow) for n in RIGHT])
def test_integers_of_the_value_itself(name, run_raised):
    assert_rewritten(run_raised, by_jax(RIGHT[name]), X)


def test_an_integer_argument_as_an_index(run_raised):
    charges = np.array([1.0, 3.0, 6.0])
    value = lambda r, kinds: jnp.sin(r) * jnp.asarray(charges)[kinds]  # noqa: E731
    assert_rewritten(run_raised, by_jax(value), X, np.array([0, 2, 1, 1], np.int32))
