"""Directions that a program writes one by one are found where all of them are there."""

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.hlo.view import reached
from fusionlab.passes.fuse_jvp_replay.unit_vectors import unit_vectors

X = np.ones((2, 3), np.float32)


def constants(x):
    return sum((x @ row)[0] for row in np.eye(3, dtype=np.float32))


def written(x):
    return sum((jnp.zeros_like(x).at[:, k].set(1) * x).sum() for k in range(3))


def padded(x):
    return sum((jnp.pad(jnp.ones((2, 1), x.dtype), ((0, 0), (k, 2 - k))) * x).sum() for k in range(3))


def identities_in_zeros(x):
    return sum((jnp.zeros((2, 4, 2)).at[:, i].set(jnp.eye(2)) * x[0, 0]).sum() for i in range(4))


def two_of_three(x):
    return sum((x @ row)[0] for row in np.eye(3, dtype=np.float32)[:2])


def twice_unit_length(x):
    return sum((x @ row)[0] for row in 2 * np.eye(3, dtype=np.float32))


def of_one_walker(x):
    return sum((jnp.zeros_like(x).at[0, k].set(1) * x).sum() for k in range(3))


def of_the_argument(x):
    return sum((jnp.zeros_like(x).at[:, k].set(x[0, 0]) * x).sum() for k in range(3))


@pytest.mark.parametrize(("function", "n"), [(constants, 3), (written, 3), (padded, 3), (identities_in_zeros, 8)])
def test_unit_vectors(function, n, lowered):
    flat = simplified_view(lowered(function, X).parse())
    ((extent, found),) = unit_vectors(flat, reached(flat, flat.arguments)).items()
    assert extent == len(found) == n
    assert all(found)


@pytest.mark.parametrize("function", [two_of_three, twice_unit_length, of_one_walker, of_the_argument])
def test_no_unit_vectors(function, lowered):
    flat = simplified_view(lowered(function, X).parse())
    assert not unit_vectors(flat, reached(flat, flat.arguments))
