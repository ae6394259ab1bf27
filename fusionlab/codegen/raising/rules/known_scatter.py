"""A scatter to known, distinct indices, as a gather and a selection, which XLA can fuse."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising.rules.rule import in_jax
from fusionlab.hlo.view import Node


def placed_updates(node: Node, combiner: str, numbers: Any, operands: Sequence[Any]) -> Any | None:
    """``node``, ``scatter(operand, indices, updates)``, without a scatter; None where that takes more than moves.

    The indices must be known, in range and distinct, and windows must cover the axes that are not indexed.
    ``combiner`` is ``add`` or ``second`` (overwrite); ``numbers`` are StableHLO's ScatterDimensionNumbers. Every
    element is computed as the scatter computes it.
    """
    operand, indices, updates = operands
    axes = tuple(numbers.scattered_dims_to_operand_dims)
    window = tuple(numbers.update_window_dims)
    if combiner not in ("add", "second") or not isinstance(indices, np.ndarray) or tuple(numbers.input_batching_dims):
        return None
    if sorted(axes) != list(numbers.inserted_window_dims):
        return None
    kept = [axis for axis in range(np.ndim(operand)) if axis not in axes]
    if [np.shape(updates)[axis] for axis in window] != [np.shape(operand)[axis] for axis in kept]:
        return None
    extents = tuple(np.shape(operand)[axis] for axis in axes)
    places = indices.reshape(-1, len(axes)).T
    if any(((place < 0) | (place >= extent)).any() for place, extent in zip(places, extents, strict=True)):
        return None
    flat = np.ravel_multi_index(tuple(places), extents)
    if not flat.size or len(set(flat.tolist())) != flat.size:
        return None
    source = np.full(math.prod(extents), -1)
    source[flat] = np.arange(flat.size)

    def jax_of(function: Callable[..., Any], *given: Any) -> Any:
        return in_jax(node, function, *given)

    def in_place(array: Any) -> Any:
        """[*extents, *kept] in the order of the operand's axes."""
        return jax_of(jnp.transpose, array, [[*axes, *kept].index(axis) for axis in range(len(axes) + len(kept))])

    batch = [axis for axis in range(np.ndim(updates)) if axis not in window]
    ordered = jax_of(jnp.transpose, updates, [*batch, *window])
    rows = jax_of(jnp.reshape, ordered, (flat.size, *(np.shape(operand)[a] for a in kept)))
    read = jax_of(operator.getitem, rows, np.maximum(source, 0))
    moved = in_place(jax_of(jnp.reshape, read, (*extents, *rows.shape[1:])))
    written = in_place((source >= 0).reshape(*extents, *(1 for _ in kept)))
    if combiner == "add" and not (isinstance(operand, np.ndarray) and not operand.any()):
        moved = jax_of(jnp.add, operand, moved)
    return jax_of(jnp.where, written, moved, operand)
