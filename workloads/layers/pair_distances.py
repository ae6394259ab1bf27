"""Distances between electrons, as oneQMC takes them: full matrix first, then a gather of its upper triangle."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


def distance_matrix(r: Any, eps: float) -> Any:
    """``sqrt(|r_i - r_j|^2 + eps)`` as ``[electrons, electrons]``, diagonal included; ``r`` is ``[electrons, 3]``."""
    difference = r[:, None, :] - r[None, :, :]
    return jnp.sqrt(jnp.sum(difference * difference, axis=-1) + jnp.asarray(eps, r.dtype))


def pair_distances(r: Any) -> Any:
    """Distances of the pairs i < j, ``[electrons (electrons - 1) / 2]``, with 1e-26 inside the root."""
    i, j = np.triu_indices(r.shape[0], k=1)
    return distance_matrix(r, 1e-26)[i, j]


def opposite_spin_pairs(n_up: int, n_down: int) -> np.ndarray:
    """True for the pairs of ``pair_distances`` whose electrons have opposite spins; the first n_up are up."""
    i, j = np.triu_indices(n_up + n_down, k=1)
    return np.asarray((i < n_up) != (j < n_up))
