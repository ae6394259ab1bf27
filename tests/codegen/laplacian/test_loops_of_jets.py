"""Loops whose trips depend on the coordinates: what they carry may change with these and still have no derivative."""

import jax.numpy as jnp
from jax import lax

from .jet_cases import X


def until_large(x):
    """In each trip a count goes on, and a constant replaces what was carried; as many as ``x`` [N, 3] needs."""

    def goes_on(carry):
        return carry[1] * jnp.sum(x**2) < 40.0

    def trip(carry):
        h, count, _ = carry
        return jnp.tanh(1.3 * h + count), count + 1.0, jnp.full_like(h, 0.25)

    h, count, constant = lax.while_loop(goes_on, trip, (x, jnp.zeros((), x.dtype), jnp.ones_like(x)))
    return (h * constant).sum() * x.sum() + count


def test_a_condition_decides_what_has_no_derivative(check_jets):
    check_jets(until_large, X[0], walkers=False)
