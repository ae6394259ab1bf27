"""Predicates of a value, or of a supposed gradient, that the replay lacks: it is one function, the value several."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..laplacian_functions import X, fori
from .test_guards import W, psi, rewritten


def core(y):
    return jnp.log(1 + ((y @ W) ** 2).sum())


def both(value, replayed):
    return lambda x: jax.vmap(lambda y: (value(y), fori(lambda _, z: replayed(z), None, y)))(x)


ONE_WAY = {
    "clip": lambda y: core(jnp.clip(y, -50, 50)),
    "far-away": lambda y: core(jnp.where((y**2).sum() > 1e6, 2 * y, y)),
    "rounded": lambda y: core(y + jnp.floor(1e-3 * (y**2).sum())),
    "region": lambda y: core(jax.lax.cond(y[0, 0] > 50, lambda: 2 * y, lambda: y)),
}


@pytest.mark.parametrize("name", ONE_WAY)
def test_a_value_of_several_pieces_and_a_replay_of_one(name):
    _, result = rewritten(both(ONE_WAY[name], core), X)
    assert not result.applied
    assert any("none has the Laplacian" in event.reason for event in result.events), result.events


SAME_DERIVATIVES = {
    "absolute-value": lambda y: jnp.log(jnp.abs(1 + ((y @ W) ** 2).sum())),
    "constant-apart": lambda y: core(y) + jnp.where((y**2).sum() > 1e6, 1.0, 0.0),
}


@pytest.mark.parametrize("name", SAME_DERIVATIVES)
def test_pieces_with_the_same_derivatives(name, run_raised):
    program, result = rewritten(both(SAME_DERIVATIVES[name], core), X)
    assert result.applied, result.events
    for ours, theirs in zip(run_raised(result.program, [9e3 * X]), run_raised(program, [9e3 * X]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


GRADIENTS = {
    "limited-length": lambda g, _: g * jnp.minimum(1.0, 1e6 / jnp.sqrt((g**2).sum())),
    "term-behind-a-gate": lambda g, y: g + jnp.where(y > 9, 1e6, 0.0),
    "floor": lambda g, y: jnp.where(jnp.floor(y) == 30, 2 * g, g),
    "precision": lambda g, _: jax.lax.reduce_precision(g, 8, 7),
    "clip-and-product": lambda g, y: jnp.clip(g, -1e6, 1e6) * (1 + jax.nn.relu(y - 9)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_that_is_another_elsewhere(name, run_raised):
    def singular(_, y):
        return psi(None, y) + (y**4).sum()

    def function(x):
        def of_one(y):
            gradient = GRADIENTS[name](jax.grad(singular, 1)(None, y), y)
            return singular(None, y), fori(singular, None, y), gradient

        return jax.vmap(of_one)(x)

    program, result = rewritten(function, X)
    assert result.applied, result.events
    far = 40 * X
    for ours, theirs in zip(run_raised(result.program, [far]), run_raised(program, [far]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
