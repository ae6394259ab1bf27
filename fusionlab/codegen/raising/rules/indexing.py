"""Raising rules for slices, gather and scatter. Out-of-range behaviour is StableHLO's.

StableHLO clamps the start indices of dynamic_slice, dynamic_update_slice and gather, and drops the out-of-range
updates of scatter (StableHLO specification, sections of these ops); JAX's CLIP and FILL_OR_DROP modes say the same.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.folding import is_small
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule


def _slice(op: RaisedOp) -> list[Any]:
    start, strides = op.integers("start_indices", "strides")
    return [op.jax(lax.slice, op.operands[0], start, op.sizes("limit_indices"), strides)]


def _dynamic_slice(op: RaisedOp) -> list[Any]:
    array, *start = op.operands
    return [op.jax(lax.dynamic_slice, array, start, op.sizes("slice_sizes"), allow_negative_indices=False)]


def _dynamic_update_slice(op: RaisedOp) -> list[Any]:
    array, update, *start = op.operands
    return [op.jax(lax.dynamic_update_slice, array, update, start, allow_negative_indices=False)]


def _gather(op: RaisedOp) -> list[Any]:
    numbers = stablehlo.GatherDimensionNumbers(op.node.attributes["dimension_numbers"])
    _require_trailing_index_vector(op, numbers)
    if is_small(op) and all(isinstance(operand, np.ndarray) for operand in op.operands):
        array, indices = op.operands
        return [_known_gather(array, indices, numbers, op.sizes("slice_sizes"))]
    dimensions = lax.GatherDimensionNumbers(
        offset_dims=tuple(numbers.offset_dims),
        collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
        start_index_map=tuple(numbers.start_index_map),
        operand_batching_dims=tuple(numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(numbers.start_indices_batching_dims),
    )
    how = {"indices_are_sorted": op.flag("indices_are_sorted"), "mode": lax.GatherScatterMode.CLIP}
    return [op.jax(lax.gather, *op.operands, dimensions, op.sizes("slice_sizes"), **how)]


def _known_gather(array: np.ndarray, indices: np.ndarray, numbers: Any, sizes: Sequence[int]) -> np.ndarray:
    """A gather of known arrays by NumPy, without a compile: each slice from its start, moved inside."""
    batch, offset = indices.shape[:-1], list(numbers.offset_dims)
    of_batch = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    window = [a for a in range(array.ndim) if a not in {*numbers.collapsed_slice_dims, *of_batch}]
    rank, starts = len(batch) + len(window), list(numbers.start_index_map)

    def along(count: int, axis: int) -> np.ndarray:
        return np.arange(count).reshape([count if at == axis else 1 for at in range(rank)])

    places = list[np.ndarray]()
    for axis, (extent, size) in enumerate(zip(array.shape, sizes, strict=True)):
        place = np.zeros((1,) * rank, np.int64)
        if axis in of_batch:
            place = along(extent, of_batch[axis])
        if axis in starts:
            start = indices[..., starts.index(axis)]
            start = np.minimum(start, np.uint64(extent - size)) if start.dtype.kind == "u" else start
            start = np.clip(start.astype(np.int64), 0, extent - size)
            place = place + start.reshape((*batch, *(1,) * len(window)))
        if axis in window:
            place = place + along(size, len(batch) + window.index(axis))
        places.append(place)
    found = array[tuple(places)] if places else array
    return np.moveaxis(np.broadcast_to(found, (*batch, *(sizes[a] for a in window))), range(len(batch), rank), offset)


_SCATTERS: dict[str, Callable[..., Any]] = {
    "add": lax.scatter_add,
    "multiply": lax.scatter_mul,
    "minimum": lax.scatter_min,
    "maximum": lax.scatter_max,
    "second": lax.scatter,
}


def _scatter(op: RaisedOp) -> list[Any]:
    if len(op.operands) != 3:
        raise RaiseError("scatter of several operands", op.node)
    name = combiner(op.node.regions[0])
    if name not in _SCATTERS:
        raise RaiseError(f"scatter combined by {name}", op.node)
    numbers = stablehlo.ScatterDimensionNumbers(op.node.attributes["scatter_dimension_numbers"])
    _require_trailing_index_vector(op, numbers)
    if op.raising.fold and (placed := _placed_updates(op, name, numbers)) is not None:
        return [placed]
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_window_dims=tuple(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )
    flags = {name: op.flag(name) for name in ("indices_are_sorted", "unique_indices")}
    return [op.jax(_SCATTERS[name], *op.operands, dimensions, mode=lax.GatherScatterMode.FILL_OR_DROP, **flags)]


def _require_trailing_index_vector(op: RaisedOp, numbers: Any) -> None:
    if numbers.index_vector_dim != op.operands[1].ndim - 1:
        reason = f"index_vector_dim {numbers.index_vector_dim} is not the last axis of the indices"
        raise RaiseError(reason, op.node)


def _placed_updates(op: RaisedOp, combined_by: str, numbers: Any) -> Any | None:
    """A scatter as a gather and a selection, which XLA can fuse; None where that takes more than moves.

    The indices must be known, in range and distinct, windows cover the axes that are not indexed, and updates be added
    or overwrite. Every element is computed as the scatter computes it: of known arrays by NumPy, without a compile.
    """
    operand, indices, updates = op.operands
    axes = tuple(numbers.scattered_dims_to_operand_dims)
    window = tuple(numbers.update_window_dims)
    if combined_by not in ("add", "second") or not isinstance(indices, np.ndarray):
        return None
    if sorted(axes) != list(numbers.inserted_window_dims) or tuple(numbers.input_batching_dims):
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

    known = is_small(op) and isinstance(operand, np.ndarray) and isinstance(updates, np.ndarray)
    numpy = np if known else jnp

    def in_place(rows: Any) -> Any:
        """[*extents, *kept] in the order of the operand's axes."""
        return op.jax(numpy.transpose, rows, [[*axes, *kept].index(axis) for axis in range(len(axes) + len(kept))])

    batch = [axis for axis in range(np.ndim(updates)) if axis not in window]
    ordered = op.jax(numpy.transpose, updates, [*batch, *window])
    rows = op.jax(numpy.reshape, ordered, (flat.size, *(np.shape(operand)[a] for a in kept)))
    read = op.jax(operator.getitem, rows, np.maximum(source, 0))
    moved = in_place(op.jax(numpy.reshape, read, (*extents, *rows.shape[1:])))
    written = in_place((source >= 0).reshape(*extents, *(1 for _ in kept)))
    if combined_by == "add" and not (isinstance(operand, np.ndarray) and not operand.any()):
        with np.errstate(all="ignore"):
            moved = op.jax(numpy.add, operand, moved)
    return op.jax(numpy.where, written, moved, operand)


RULES: dict[str, Rule] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _slice,
}
