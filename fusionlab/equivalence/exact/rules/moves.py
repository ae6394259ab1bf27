"""Evaluation rules for ops that move or create elements. Arrays have a leading axis of draws, indices may have one.

Out-of-range behaviour is StableHLO's: starts of slices and gathers are clamped, scattered updates dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.equivalence.exact.machine import COMMUTATIVE, METHODS
from fusionlab.equivalence.exact.rules.rule import Computed, Formula, Rule
from fusionlab.equivalence.exact.values import Array, Environment, Held, Uncovered, dtype_of, same_draws
from fusionlab.hlo.view import Node, constant_array

if TYPE_CHECKING:
    from fusionlab.equivalence.exact.evaluation import Evaluator


def _constant(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    dtype = dtype_of(node.results[0])
    return [evaluator.known(np.asarray(constant_array(node)).astype(dtype))]


def _iota(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    shape, axis = node.results[0].type.shape, node.attributes["iota_dimension"].value
    places = _along(np.arange(shape[axis]), axis, len(shape))
    return [evaluator.known(np.broadcast_to(places, shape).astype(dtype_of(node.results[0])))]


def _along(x: Array, axis: int, rank: int) -> Array:
    return x.reshape([-1 if each == axis else 1 for each in range(rank)])


def _broadcast_in_dim(node: Node) -> Formula:
    axes, shape = integers(node.attributes["broadcast_dimensions"]), node.results[0].type.shape
    order = [0, *(np.argsort(axes) + 1)]
    extents = dict(zip(axes, node.operands[0].type.shape, strict=True))
    inner = [extents.get(axis, 1) for axis in range(len(shape))]
    return lambda arithmetic, x: np.broadcast_to(x.transpose(order).reshape(len(x), *inner), (len(x), *shape))


def _reshape(node: Node) -> Formula:
    shape = node.results[0].type.shape
    return lambda arithmetic, x: x.reshape(len(x), *shape)


def _transpose(node: Node) -> Formula:
    axes = (0, *(axis + 1 for axis in integers(node.attributes["permutation"])))
    return lambda arithmetic, x: x.transpose(axes)


def _concatenate(node: Node) -> Formula:
    axis = node.attributes["dimension"].value + 1
    return lambda arithmetic, *arrays: np.concatenate(same_draws(arrays), axis)


def _reverse(node: Node) -> Formula:
    axes = tuple(axis + 1 for axis in integers(node.attributes["dimensions"]))
    return lambda arithmetic, x: np.flip(x, axes)


def _slice(node: Node) -> Formula:
    bounds = (integers(node.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    at = (slice(None), *(slice(*each) for each in zip(*bounds, strict=True)))
    return lambda arithmetic, x: x[at]


def padded(x: Array, filling: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """x [draws, ...] between copies of ``filling`` [draws]; negative paddings cut."""
    shape, inside, kept = [], [slice(None)], [slice(None)]
    for n, before, after, between in zip(x.shape[1:], low, high, interior, strict=True):
        first, spread = max(before, 0), (n - 1) * (between + 1) + 1 if n else 0
        shape.append(first + spread + max(after, 0))
        inside.append(slice(first, first + spread, between + 1))
        kept.append(slice(max(-before, 0), shape[-1] - max(-after, 0)))
    result = np.empty((max(len(x), len(filling)), *shape), np.result_type(x, filling))
    result[...] = filling.reshape(-1, *(1,) * len(shape))
    result[tuple(inside)] = x
    return result[tuple(kept)]


def _pad(node: Node) -> Formula:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    paddings = [integers(node.attributes[name]) for name in names]
    return lambda arithmetic, x, filling: padded(x, filling, *paddings)


def _places(
    extents: Sequence[int],
    starts: Mapping[int, Array],
    window: Mapping[int, int],
    batching: Mapping[int, int],
    batch: Sequence[int],
    clamp: bool,
) -> tuple[Array, Array]:
    """Flat indices into an array of ``extents`` and whether they lie inside, [draws or 1, *batch, *window].

    By axis: ``starts`` [draws or 1, *batch] of windows, extents of ``window``, and, for ``batching`` axes, the axis of
    ``batch``.
    """
    rank, kept = 1 + len(batch) + len(window), list(window)
    flat, inside = np.zeros((1,) * rank, np.int64), np.ones((1,) * rank, bool)
    for axis, extent in enumerate(extents):
        place = np.zeros((1,) * rank, np.int64)
        if axis in starts:
            start = starts[axis].astype(np.int64)
            start = np.clip(start, 0, extent - window.get(axis, 1)) if clamp else start
            place = place + start.reshape(*start.shape, *(1,) * (rank - start.ndim))
        if axis in batching:
            place = place + _along(np.arange(batch[batching[axis]]), 1 + batching[axis], rank)
        if axis in window:
            place = place + _along(np.arange(window[axis]), 1 + len(batch) + kept.index(axis), rank)
        flat, inside = flat * extent + place, inside & (place >= 0) & (place < extent)
    shape = (len(flat), *batch, *window.values())
    return np.broadcast_to(flat, shape), np.broadcast_to(inside, shape)


def _taken(x: Array, places: Array) -> Array:
    """The elements of x [draws or 1, ...] at flat ``places`` [draws or 1, ...]."""
    x = x.reshape(len(x), -1)
    if len(places) == 1:
        return x[:, places[0]]
    x, flat = same_draws([x, places.reshape(len(places), -1)])
    return np.take_along_axis(x, flat, 1).reshape(-1, *places.shape[1:])


def put(arithmetic: Any, x: Array, places: Array, inside: Array, updates: Array, how: str) -> Array:
    """x with ``updates`` at flat ``places`` where ``inside``, combined by ``how``, in order."""
    x, *others = same_draws([x, places, inside, updates])
    result = np.array(x, np.result_type(x, updates), order="C").reshape(len(x), -1)
    places, inside, updates = (each.reshape(len(x), -1) for each in others)
    every = np.arange(len(x))
    flat, at = result.reshape(-1), (places + result.shape[1] * every[:, None])[inside]
    if how == "second":
        flat[at] = updates[inside]
    elif how == "add" and x.dtype != np.bool_:
        np.add.at(flat, at, updates[inside])
        flat[at] = arithmetic.add(flat[at], np.zeros((), x.dtype))  # reduces residues
    else:
        for each, taken, update in zip(places.T, inside.T, updates.T, strict=True):
            place = np.where(taken, each, 0)
            before = result[every, place]
            result[every, place] = np.where(taken, getattr(arithmetic, METHODS[how])(before, update), before)
    return result.reshape(x.shape)


def _dimension_size(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    size = node.operands[0].type.shape[node.attributes["dimension"].value]
    return [evaluator.known(np.asarray(size, dtype_of(node.results[0])))]


def _broadcast(node: Node) -> Formula:
    shape, rank = node.results[0].type.shape, len(integers(node.attributes["broadcast_sizes"]))
    return lambda arithmetic, x: np.broadcast_to(x.reshape(len(x), *(1,) * rank, *x.shape[1:]), (len(x), *shape))


def _dynamic_slice(node: Node) -> Formula:
    sizes = dict(enumerate(integers(node.attributes["slice_sizes"])))

    def formula(arithmetic: Any, x: Array, *starts: Array) -> Array:
        return _taken(x, _places(x.shape[1:], dict(enumerate(starts)), sizes, {}, (), True)[0])

    return formula


def _dynamic_update_slice(node: Node) -> Formula:
    sizes = dict(enumerate(node.operands[1].type.shape))

    def formula(arithmetic: Any, x: Array, update: Array, *starts: Array) -> Array:
        places = _places(x.shape[1:], dict(enumerate(starts)), sizes, {}, (), True)
        return put(arithmetic, x, *places, update, "second")

    return formula


def _vectors(indices: Array, axis: int, mapped: Sequence[int]) -> dict[int, Array]:
    """The starts [draws or 1, *batch] by the axis of the operand, of index vectors along ``axis`` of the indices."""
    vectors = indices[..., None] if axis == indices.ndim - 1 else np.moveaxis(indices, axis + 1, -1)
    return {each: vectors[..., at] for at, each in enumerate(mapped)}


def _batching(operand: Sequence[int], indices: Sequence[int], vector: int) -> dict[int, int]:
    return {a: b if b < vector else b - 1 for a, b in zip(operand, indices, strict=True)}


def _gather(node: Node) -> Formula:
    numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
    offset, vector, mapped = list(numbers.offset_dims), numbers.index_vector_dim, list(numbers.start_index_map)
    batching = _batching(numbers.operand_batching_dims, numbers.start_indices_batching_dims, vector)
    dropped = {*numbers.collapsed_slice_dims, *batching}
    window = {a: n for a, n in enumerate(integers(node.attributes["slice_sizes"])) if a not in dropped}
    shape = node.results[0].type.shape
    outer = [axis for axis in range(len(shape)) if axis not in offset]
    order = [0, *(np.argsort([*outer, *offset]) + 1)]

    def formula(arithmetic: Any, x: Array, indices: Array) -> Array:
        starts, batch = _vectors(indices, vector, mapped), [shape[axis] for axis in outer]
        return _taken(x, _places(x.shape[1:], starts, window, batching, batch, True)[0]).transpose(order)

    return formula


def _scatter(node: Node) -> Formula:
    how = combiner(node.regions[0])
    if len(node.operands) != 3 or how not in ("second", *COMMUTATIVE):
        raise Uncovered(f"a scatter of {len(node.operands) // 2} operands that combines by {how}", node.scope)
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    vector, mapped = numbers.index_vector_dim, list(numbers.scattered_dims_to_operand_dims)
    batching = _batching(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, vector)
    given, shape, inner = node.operands[0].type.shape, node.operands[2].type.shape, list(numbers.update_window_dims)
    outer = [axis for axis in range(len(shape)) if axis not in inner]
    kept = [axis for axis in range(len(given)) if axis not in {*numbers.inserted_window_dims, *batching}]
    window = {axis: shape[at] for axis, at in zip(kept, inner, strict=True)}
    order = [0, *(axis + 1 for axis in (*outer, *inner))]

    def formula(arithmetic: Any, x: Array, indices: Array, updates: Array) -> Array:
        starts, batch = _vectors(indices, vector, mapped), [shape[axis] for axis in outer]
        places, inside = _places(given, starts, window, batching, batch, False)
        return put(arithmetic, x, places, inside, updates.transpose(order), how)

    return formula


RULES: dict[str, Rule] = {
    "stablehlo.broadcast": Computed(_broadcast, carrying=(0, None)),
    "stablehlo.broadcast_in_dim": Computed(_broadcast_in_dim, carrying=(0, None)),
    "stablehlo.concatenate": Computed(_concatenate, carrying=(0, None)),
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": Computed(_dynamic_slice, carrying=(0, 1)),
    "stablehlo.dynamic_update_slice": Computed(_dynamic_update_slice, carrying=(0, 2)),
    "stablehlo.gather": Computed(_gather, carrying=(0, 1)),
    "stablehlo.get_dimension_size": _dimension_size,
    "stablehlo.iota": _iota,
    "stablehlo.pad": Computed(_pad, carrying=(0, None)),
    "stablehlo.reshape": Computed(_reshape, carrying=(0, None)),
    "stablehlo.reverse": Computed(_reverse, carrying=(0, None)),
    "stablehlo.scatter": Computed(_scatter),
    "stablehlo.slice": Computed(_slice, carrying=(0, None)),
    "stablehlo.transpose": Computed(_transpose, carrying=(0, None)),
}
