"""Evaluation rules for ops that move or make elements. Arrays have the axis of draws first, indices may have it too.

Out-of-range behaviour is StableHLO's: starts of slices and gathers are clamped, scattered updates dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step, Uncovered
from fusionlab.hlo.flat import Node, constant_array

Move = Callable[[Sequence[Array]], Array]


def moving(node: Node, evaluator: Evaluator, move: Move) -> Step:
    """The step that applies ``move`` to the operands' arrays [draws, ...]; it stays known where they all are."""

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if all(isinstance(operand, Known) for operand in operands):
            return [Known(move([operand.array[None] for operand in operands])[0])]
        return [Drawn(move([evaluator.lifted(o, v) for o, v in zip(operands, node.operands, strict=True)]))]

    return step


def _constant(node: Node, evaluator: Evaluator) -> Step:
    known = Known(np.asarray(constant_array(node)).astype(evaluator.dtype(node.results[0])))
    return lambda operands, environment: [known]


def _iota(node: Node, evaluator: Evaluator) -> Step:
    shape, axis = node.results[0].type.shape, node.attributes["iota_dimension"].value
    places = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    known = Known(np.broadcast_to(places, shape).astype(evaluator.dtype(node.results[0])))
    return lambda operands, environment: [known]


def _broadcast_in_dim(node: Node, evaluator: Evaluator) -> Step:
    axes, shape = integers(node.attributes["broadcast_dimensions"]), node.results[0].type.shape
    order = np.argsort(axes)
    inner = [1] * len(shape)
    for at, axis in enumerate(axes):
        inner[axis] = node.operands[0].type.shape[at]

    def move(arrays: Sequence[Array]) -> Array:
        [x] = arrays
        ordered = x.transpose(0, *(order + 1)) if len(axes) > 1 else x
        return np.broadcast_to(ordered.reshape(len(x), *inner), (len(x), *shape))

    return moving(node, evaluator, move)


def _reshape(node: Node, evaluator: Evaluator) -> Step:
    shape = node.results[0].type.shape
    return moving(node, evaluator, lambda arrays: arrays[0].reshape(len(arrays[0]), *shape))


def _transpose(node: Node, evaluator: Evaluator) -> Step:
    axes = (0, *(axis + 1 for axis in integers(node.attributes["permutation"])))
    return moving(node, evaluator, lambda arrays: arrays[0].transpose(axes))


def _concatenate(node: Node, evaluator: Evaluator) -> Step:
    axis = node.attributes["dimension"].value + 1
    return moving(node, evaluator, lambda arrays: np.concatenate(_same_draws(arrays), axis))


def _same_draws(arrays: Sequence[Array]) -> list[Array]:
    draws = max(len(array) for array in arrays)
    return [array if len(array) == draws else np.broadcast_to(array, (draws, *array.shape[1:])) for array in arrays]


def _reverse(node: Node, evaluator: Evaluator) -> Step:
    axes = tuple(axis + 1 for axis in integers(node.attributes["dimensions"]))
    return moving(node, evaluator, lambda arrays: np.flip(arrays[0], axes))


def _slice(node: Node, evaluator: Evaluator) -> Step:
    bounds = (integers(node.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    at = (slice(None), *(slice(*each) for each in zip(*bounds, strict=True)))
    return moving(node, evaluator, lambda arrays: arrays[0][at])


def _pad(node: Node, evaluator: Evaluator) -> Step:
    low, interior = (integers(node.attributes[name]) for name in ("edge_padding_low", "interior_padding"))
    shape = node.results[0].type.shape

    def move(arrays: Sequence[Array]) -> Array:
        x, filling = arrays
        result = np.empty((max(len(x), len(filling)), *shape), x.dtype)
        result[...] = filling.reshape(len(filling), *(1,) * len(shape))
        source, target = [slice(None, None)], [slice(None, None)]
        for axis, extent in enumerate(shape):
            places = low[axis] + np.arange(x.shape[axis + 1]) * (interior[axis] + 1)
            [kept] = np.nonzero((places >= 0) & (places < extent))
            if not len(kept):
                return result
            source.append(slice(kept[0], kept[-1] + 1))
            target.append(slice(places[kept[0]], places[kept[-1]] + 1, interior[axis] + 1))
        result[tuple(target)] = x[tuple(source)]
        return result

    return moving(node, evaluator, move)


def _by_draw(arrays: Sequence[Array], indices: Sequence[Array], function: Callable[..., Array]) -> Array:
    """``function(arrays, indices)``: once where the indices are the same in all draws, else draw by draw."""
    if all(len(index) == 1 for index in indices):
        return function(arrays, [index[0] for index in indices])
    draws = max(map(len, [*arrays, *indices]))
    parts = [
        function(
            [array[draw : draw + 1] if len(array) > 1 else array for array in arrays],
            [index[draw if len(index) > 1 else 0] for index in indices],
        )
        for draw in range(draws)
    ]
    return np.concatenate(parts)


def _window(starts: Sequence[Array], whole: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    begins = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, whole, sizes, strict=True)]
    return (slice(None), *(slice(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)))


def _dynamic_slice(node: Node, evaluator: Evaluator) -> Step:
    sizes = integers(node.attributes["slice_sizes"])

    def one(arrays: Sequence[Array], starts: Sequence[Array]) -> Array:
        return arrays[0][_window(starts, arrays[0].shape[1:], sizes)]

    return moving(node, evaluator, lambda arrays: _by_draw(arrays[:1], arrays[1:], one))


def _dynamic_update_slice(node: Node, evaluator: Evaluator) -> Step:
    def one(arrays: Sequence[Array], starts: Sequence[Array]) -> Array:
        x, update = _same_draws(arrays)
        result = np.array(x)
        result[_window(starts, x.shape[1:], update.shape[1:])] = update
        return result

    return moving(node, evaluator, lambda arrays: _by_draw(arrays[:2], arrays[2:], one))


def _index_vectors(indices: Array, axis: int) -> Array:
    """``indices`` with the axis of index vectors last."""
    return np.expand_dims(indices, -1) if axis == indices.ndim else np.moveaxis(indices, axis, -1)


def _coordinates(
    extents: Sequence[int],
    starts: dict[int, Array],
    batching: dict[int, int],
    window: dict[int, int],
    batch: tuple[int, ...],
) -> list[Array]:
    """For each axis of the operand its index, over axes (*batch, *window axes in order)."""
    kept = list(window)
    total = len(batch) + len(kept)
    found = []
    for axis in range(len(extents)):
        if axis in batching:
            shape = [1] * total
            shape[batching[axis]] = -1
            found.append(np.arange(batch[batching[axis]]).reshape(shape))
            continue
        place = np.zeros((1,) * total, np.int64)
        if axis in starts:
            place = starts[axis].astype(np.int64).reshape((*batch, *(1,) * len(kept)))
        if axis in window:
            shape = [1] * total
            shape[len(batch) + kept.index(axis)] = -1
            place = place + np.arange(window[axis]).reshape(shape)
        found.append(place)
    return found


def _gather(node: Node, evaluator: Evaluator) -> Step:
    numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
    offset, collapsed = list(numbers.offset_dims), set(numbers.collapsed_slice_dims)
    mapped, vector_axis = list(numbers.start_index_map), numbers.index_vector_dim
    operand_batch, start_batch = list(numbers.operand_batching_dims), list(numbers.start_indices_batching_dims)
    sizes, rank = integers(node.attributes["slice_sizes"]), len(node.results[0].type.shape)
    batching = {a: b if b < vector_axis else b - 1 for a, b in zip(operand_batch, start_batch, strict=True)}
    window = {a: size for a, size in enumerate(sizes) if a not in collapsed and a not in batching}
    outer = [axis for axis in range(rank) if axis not in offset]
    order = np.argsort([*outer, *offset])

    def one(arrays: Sequence[Array], indices: Sequence[Array]) -> Array:
        x, vectors = arrays[0], _index_vectors(indices[0], vector_axis)
        extents, batch = x.shape[1:], vectors.shape[:-1]
        starts = {a: np.clip(vectors[..., i], 0, extents[a] - sizes[a]) for i, a in enumerate(mapped)}
        places = _coordinates(extents, starts, batching, window, batch)
        at: Any = (slice(None), *places)
        found = x[at] if places else x
        found = np.broadcast_to(found, (len(x), *batch, *window.values()))
        return found.transpose(0, *(order + 1))

    return moving(node, evaluator, lambda arrays: _by_draw(arrays[:1], arrays[1:], one))


def _scatter(node: Node, evaluator: Evaluator) -> Step:
    if len(node.operands) != 3:
        raise Uncovered("a scatter of several operands", node.scope)
    how = combiner(node.regions[0])
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    window_axes, inserted = list(numbers.update_window_dims), set(numbers.inserted_window_dims)
    mapped, vector_axis = list(numbers.scattered_dims_to_operand_dims), numbers.index_vector_dim
    operand_batch, index_batch = list(numbers.input_batching_dims), list(numbers.scatter_indices_batching_dims)
    batching = {a: b if b < vector_axis else b - 1 for a, b in zip(operand_batch, index_batch, strict=True)}
    native, exact = (_combination(node, evaluator, how, exact) for exact in (False, True))

    def one(arrays: Sequence[Array], indices: Sequence[Array], combine: Combination) -> Array:
        x, updates = _same_draws(arrays)
        result = np.moveaxis(np.array(x), 0, -1)
        vectors = _index_vectors(indices[0], vector_axis)
        extents, batch = x.shape[1:], vectors.shape[:-1]
        outer = [axis for axis in range(updates.ndim - 1) if axis not in window_axes]
        updates = updates.transpose(*(a + 1 for a in outer), *(a + 1 for a in window_axes), 0)
        kept = [axis for axis in range(len(extents)) if axis not in inserted and axis not in batching]
        window = dict(zip(kept, updates.shape[len(batch) : -1], strict=True))
        starts = {a: vectors[..., i] for i, a in enumerate(mapped)}
        places = [
            np.broadcast_to(p, updates.shape[:-1]) for p in _coordinates(extents, starts, batching, window, batch)
        ]
        inside = np.ones(updates.shape[:-1], bool)
        for place, extent in zip(places, extents, strict=True):
            inside &= (place >= 0) & (place < extent)
        combine(result, tuple(place[inside] for place in places), updates[inside])
        return np.moveaxis(result, -1, 0)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        known = all(isinstance(operand, Known) for operand in operands)
        x, indices, updates = (
            operand.array[None] if known else evaluator.lifted(operand, value)
            for operand, value in zip(operands, node.operands, strict=True)
        )
        combine = native if known else exact
        found = _by_draw([x, updates], [indices], lambda arrays, at: one(arrays, at, combine))
        return [Known(found[0]) if known else Drawn(found)]

    return step


Combination = Callable[[Array, tuple[Array, ...], Array], None]


def _combination(node: Node, evaluator: Evaluator, how: str, exact: bool) -> Combination:
    """Puts updates [n, draws] into the places of an array [..., draws], in order."""
    floats, arithmetic = exact and evaluator.is_float(node.operands[0]), evaluator.arithmetic

    def add(into: Array, places: tuple[Array, ...], updates: Array) -> None:
        np.add.at(into, places, updates)
        if floats:
            into[places] = arithmetic.add(into[places], np.zeros(1))

    def put(into: Array, places: tuple[Array, ...], updates: Array) -> None:
        into[places] = updates

    def fold(into: Array, places: tuple[Array, ...], updates: Array) -> None:
        function = getattr(arithmetic, how) if floats else _NATIVE[how]
        for at, update in zip(zip(*places, strict=True), updates, strict=True):
            into[at] = function(into[at], update)

    if how == "add" and node.operands[0].type.dtype != "i1":
        return add
    if how == "second":
        return put
    if how not in _NATIVE:
        raise Uncovered(f"a scatter that combines by {how}", node.scope)
    return fold


_NATIVE: dict[str, Callable[..., Array]] = {
    "add": np.logical_or,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}

RULES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.constant": _constant,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.iota": _iota,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
