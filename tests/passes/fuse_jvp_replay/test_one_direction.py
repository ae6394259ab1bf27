"""One trip in a random direction stands for all: sums of which it says nothing."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from ..laplacian_assertions import assert_rewritten
from ..laplacian_functions import WEIGHTS, X, fori, jvp_in_loop, smooth

pytestmark = pytest.mark.slow


def loop_of_jvp(trip, log_psi=smooth):
    """``trip(k, e_k, carried, gradient and its tangent)`` for all k, from zeros [], [] and [coordinates]."""

    def of_one(x):
        y, eye = x.reshape(-1), jnp.eye(x.size, dtype=x.dtype)

        def f(y):
            return log_psi(WEIGHTS, y.reshape(x.shape))

        def step(k, carried):
            return trip(k, eye[k], carried, *jax.jvp(jax.grad(f), (y,), (eye[k],)))

        start = (jnp.zeros((), x.dtype), jnp.zeros((), x.dtype), jnp.zeros_like(y))
        return f(y), lax.fori_loop(0, y.size, step, start), jax.grad(f)(y)

    return of_one


def squares_beside(k, e, carried, g, h):
    """Two sums, of which the second has another square than that of the derivative along any direction but e_k."""
    return carried[0] + h[k], carried[1] + jnp.vdot(e, g**2), carried[2]


def gradients_counted(k, e, carried, g, h):
    """A sum of what no trip changes, though a tangent is read."""
    return carried[0] + h[k], carried[1], carried[2] + (g + 0.0 * h)


def squares_of_second(k, e, carried, g, h):
    """Two sums, s and q, for which s ** 2 - q vanishes where one direction stands for all."""
    return carried[0] + h[k], carried[1] + h[k] ** 2, carried[2]


def wall(weights, x):
    """Undefined at most of the ties that are drawn."""
    return jnp.log(x[:, 2] ** 2).sum() + jnp.log(((x[0] - x[2]) ** 2).sum()) + smooth(weights, x)


def energy(of_one, gradient):
    """log|psi| and the kinetic energy with ``gradient(sums, the gradient)`` for the gradient."""

    def function(x):
        value, sums, direct = of_one(x)
        return value, -0.5 * (sums[0] + (gradient(sums, direct) ** 2).sum())

    return jax.vmap(function)


@pytest.mark.slow
def test_two_sums_of_which_one_is_no_form_of_any_direction(run_raised):
    of_one = loop_of_jvp(squares_beside)
    function = jax.vmap(lambda x: (of_one(x)[0], of_one(x)[1][0] + of_one(x)[1][1]))
    result = assert_rewritten(run_raised, function, X)
    assert "beside what the loop adds to it" in result.applied[0].what


@pytest.mark.slow
def test_a_gradient_that_is_summed_in_the_loop(run_raised):
    """It is no derivative along the one direction that could stand for all; at ties all is undefined."""
    function = energy(loop_of_jvp(gradients_counted, wall), lambda sums, _: sums[2] / X[0].size)
    assert_rewritten(run_raised, function, X[:1], rtol=1e-6)


@pytest.mark.slow
def test_a_value_that_is_the_gradient_for_one_direction_alone(run_raised):
    """It is none: both sums are made of all second derivatives."""
    function = energy(loop_of_jvp(squares_of_second, wall), lambda sums, g: g + 0.1 * (sums[0] ** 2 - sums[1]))
    assert_rewritten(run_raised, function, X[:1])


def from_the_last(log_psi, weights, x):
    """Directions in another order than the coordinates, subtracted from another number than zero."""
    y, gradient = x.reshape(-1), jax.grad(lambda y: log_psi(weights, y.reshape(x.shape)))
    last, h = y.size - 1, jax.linearize(gradient, y)[1]
    eye = jnp.eye(y.size, dtype=y.dtype)
    return 0.5 - lax.fori_loop(0, y.size, lambda k, s: s - h(eye[last - k])[last - k], jnp.asarray(0.5, y.dtype))


def by_a_reduction(log_psi, weights, x):
    """JAX does not batch the initial value of a reduction: one trip cannot be raised for all numbers at once."""
    y, gradient = x.reshape(-1), jax.grad(lambda y: log_psi(weights, y.reshape(x.shape)))

    def trip(k, total):
        number = lax.reduce(jnp.zeros(3, jnp.int32), jnp.int32(k), lax.bitwise_or, (0,))
        e = (jnp.arange(y.size) == number).astype(y.dtype)
        return total + jax.jvp(gradient, (y,), (e,))[1] @ e

    return lax.fori_loop(0, y.size, trip, jnp.zeros((), y.dtype))


@pytest.mark.by_turns(4, "fori")
@pytest.mark.parametrize("method", [fori, jvp_in_loop, from_the_last, by_a_reduction])
def test_loops_whose_trips_tell_more_than_their_direction(method, run_raised):
    function = jax.vmap(lambda x: (smooth(WEIGHTS, x), method(smooth, WEIGHTS, x)))
    assert_rewritten(run_raised, function, X)
