"""Directions that a program writes one by one are found where all of them are there."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.passes.fuse_jvp_replay.directions import seeds_of_constants

from ..laplacian_assertions import assert_rewritten

X = np.ones((2, 3), np.float32)


def constants(x):
    return sum((x @ row)[0] for row in np.eye(3, dtype=np.float32))


def written(x):
    return sum((jnp.zeros_like(x).at[:, k].set(1) * x).sum() for k in range(3))


def padded(x):
    return sum((jnp.pad(jnp.ones((2, 1), x.dtype), ((0, 0), (k, 2 - k))) * x).sum() for k in range(3))


def identities_in_zeros(x):
    return sum((jnp.zeros((2, 4, 2)).at[:, i].set(jnp.eye(2)) * x[0, 0]).sum() for i in range(4))


def shared(x):
    """Unit vectors are in the function that is differentiated, too: beside an identity they are no directions."""

    def log_psi(y):
        return sum(jnp.tanh(y @ np.eye(3)[k]) ** 2 for k in range(3)) * jnp.sin(y).sum()

    def of_one(y):
        hessian = jax.linearize(jax.grad(log_psi), y)[1]
        return log_psi(y), jnp.trace(jax.vmap(hessian)(jnp.eye(3, dtype=y.dtype)))

    return jax.vmap(of_one)(x)


def potential(x):
    """The energy is a sum with something else, and many values of its type follow."""

    def log_psi(y):
        return jnp.tanh(y @ np.arange(6.0).reshape(3, 2)).sum() ** 2

    def of_one(y):
        hessian = jax.linearize(jax.grad(log_psi), y)[1]
        energy = jnp.trace(jax.vmap(hessian)(jnp.eye(3, dtype=y.dtype))) + jnp.cos(y).sum()
        more = [energy]
        for _ in range(8):
            more.append(jnp.sin(more[-1]) * 1.5)
        return log_psi(y), *more

    return jax.vmap(of_one)(x)


def twice_unit_length(x):
    return sum((x @ row)[0] for row in 2 * np.eye(3, dtype=np.float32))


def of_the_argument(x):
    return sum((jnp.zeros_like(x).at[:, k].set(x[0, 0]) * x).sum() for k in range(3))


def places(function, lowered):
    """By number of coordinates, those in which the unit vectors of ``function`` are 1."""
    found = {}
    for seed in seeds_of_constants(simplified_view(lowered(function, X).parse())):
        found.setdefault(seed.extent, set()).update(int(at) for at in seed.places.ravel())
    return found


@pytest.mark.parametrize(("function", "n"), [(constants, 3), (written, 3), (padded, 3), (identities_in_zeros, 8)])
def test_unit_vectors_however_they_are_made(function, n, lowered):
    assert places(function, lowered)[n] == set(range(n))


@pytest.mark.parametrize("function", [twice_unit_length, of_the_argument])
def test_no_unit_vectors(function, lowered):
    assert not places(function, lowered)


def empty(x):
    return jnp.zeros((0, 3)).at[:, 1].set(1.0).sum() + x.sum()


def large_on_the_way(x):
    return sum((jnp.zeros((2, 3)).at[:, k].set(jnp.ones(20_000_000)[k]) * x).sum() for k in range(3))


def computed(x):
    return sum((jnp.zeros((2, 3)).at[:, k].set(jnp.sin(jnp.arange(5.0)).sum() * 0 + 1) * x).sum() for k in range(3))


@pytest.mark.parametrize("function", [empty, large_on_the_way, computed])
def test_what_is_empty_too_large_or_computed_of_floats_is_none(function, lowered):
    assert not places(function, lowered)


@pytest.mark.parametrize("function", [shared, potential])
def test_sums_over_an_identity_as_without_unit_vectors(function, run_raised):
    assert_rewritten(run_raised, function, np.linspace(0.1, 1, 6).reshape(2, 3), passes="sparsify-directions")
