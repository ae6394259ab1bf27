"""Stage A: what a network sees of a configuration: differences, lengths and their features."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np


def length(differences: Any) -> Any:
    """Euclidean length over the last axis, kept differentiable at zero by the dtype's epsilon under the root."""
    epsilon = float(jnp.finfo(differences.dtype).eps)
    return jnp.sqrt(epsilon + (differences * differences).sum(axis=-1))


def length_and_difference(differences: Any) -> Any:
    """``[..., 3]`` differences to ``[..., 4]`` features: the length, then the difference itself."""
    return jnp.concatenate([length(differences)[..., None], differences], axis=-1)


def rescaled_length_and_difference(differences: Any) -> Any:
    """The same four features times log(1 + r)/r, so that they grow slowly (Psiformer, von Glehn et al. 2023)."""
    r = length(differences)
    scale = (jnp.log1p(r) / r)[..., None]
    return jnp.concatenate([r[..., None] * scale, differences * scale], axis=-1)


def differences_between(senders: Any, receivers: Any) -> Any:
    """``[senders, receivers, 3]``: receiver minus sender."""
    return receivers[None, :, :] - senders[:, None, :]


def electron_nucleus_features(r: Any, nuclei: Any, features: Any = length_and_difference) -> Any:
    """``[electrons, 4 nuclei]``: the features of each electron about each nucleus."""
    per_pair = features(differences_between(nuclei, r))
    return per_pair.swapaxes(0, 1).reshape(r.shape[0], -1)


def upper_triangle(matrix: Any) -> Any:
    """The entries above the diagonal of the last two axes, row by row."""
    row, column = np.triu_indices(matrix.shape[-1], 1)
    return matrix[..., row, column]


def electron_pair_lengths(r: Any) -> Any:
    """``[pairs]`` distances between electrons i < j; each pair once, the diagonal never."""
    row, column = np.triu_indices(r.shape[0], 1)
    differences = r[:, None, :] - r[None, :, :]
    return length(differences[row, column])


def electron_distance_matrix(r: Any) -> Any:
    """``[electrons, electrons]`` symmetric distances with a zero diagonal, scattered from the pairs as in DeepQMC."""
    row, column = np.triu_indices(r.shape[0], 1)
    pairs = electron_pair_lengths(r)
    matrix = jnp.zeros((r.shape[0], r.shape[0]), r.dtype)
    return matrix.at[row, column].set(pairs).at[column, row].set(pairs)
