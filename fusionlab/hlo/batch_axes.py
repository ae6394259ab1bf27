"""The axes of a program's values that count walkers, and what each op does along them: the one table of ops' axes.

An op is described by factors, as in Shardy's sharding rules. A factor is a group of axes of operands and results:

    passed    element i of the results depends on element i of the operands alone
    reduced   an axis of operands alone: summed, contracted, or scattered from
    new       an axis of results alone: of a broadcast, a constant or an iota
    moved     elements come from other places of the axis: sorted, reversed, shifted, in windows
    part      a part of the longer axis is the shorter one
    indexed   read or written at places that are data
    unknown   whatever an op does of which the table knows nothing

A vmapped program treats walkers alike, so that a number of them is a property of its shapes. From the axes of a few
values that are known to count walkers, the axes of all others follow along factors: ``walker_axes``. An axis that
reshapes merge with others counts walkers with a stride. What an op does along these axes is ``factors_along``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.strided import row_major
from fusionlab.hlo.view import Node, Region, Value, constant_array

_MOST_INDICES = 2**22
"""Elements of the largest array of indices that is evaluated."""

Place = tuple[int, int]
"""The number of a value among the operands and then the results of an op, and an axis of it."""
Axis = tuple[Value, int]


class FactorKind(Enum):
    """What an op does along the axes of a factor: see the module."""

    PASSED = "passed"
    REDUCED = "reduced"
    NEW = "new"
    MOVED = "moved"
    PART = "part"
    INDEXED = "indexed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Factor:
    """Axes of an op's operands and results, and what it does along them.

    Of a part the longer axis comes first; ``start`` is the first element of it in the shorter one, None if it is not
    known or there are strides.
    """

    kind: FactorKind
    places: tuple[Place, ...]
    start: int | None = None


Factors = Iterator[Factor]


class Marks(dict[Value, set[int]]):
    """By value the axes that count walkers.

    ``strides`` of each of these: w * stride elements along the axis lie before those of walker w.
    """

    def __init__(self, strides: Mapping[Axis, frozenset[int]]) -> None:
        super().__init__()
        self.strides = dict(strides)
        for value, axis in strides:
            self.setdefault(value, set()).add(axis)


def factors_of(node: Node) -> list[Factor]:
    """The factors of an op: none for reshapes, loops and branches. What an op does along axes in none is unknown."""
    values = values_of(node)
    if not all(value.is_array for value in values) or not any(value.type.shape for value in values):
        return []
    return list(_RULES[node.op.axes](node))


def axes_after(node: Node, value: Value, axis: int) -> Iterator[int]:
    """The axes of the result of ``node``, if of more than one element, that ``axis`` of its operand ``value`` is."""
    shape, made = value.type.shape, node.results[0].type.shape
    if node.op is ops.RESHAPE:
        inner = row_major(shape)[axis]
        yield from (at for at, its in enumerate(row_major(made)) if made[at] == shape[axis] and its == inner)
        return
    operands = [at for at, operand in enumerate(node.operands) if operand == value]
    for factor in factors_of(node):
        if any((at, axis) in factor.places for at in operands):
            yield from (to for at, to in factor.places if at == len(node.operands) and made[to] > 1)


def values_of(node: Node) -> tuple[Value, ...]:
    """The values that the places of factors number."""
    return (*node.operands, *node.results)


# -- propagation


def walker_axes(region: Region, known: Collection[Axis]) -> Marks:
    """Axes of all values of ``region`` that count walkers (alone or merged with another axis), from those ``known``.

    An axis of two strides keeps the first: ``factors_along`` finds the op where they meet to be unknown.
    """
    extents = {value.type.shape[index] for value, index in known}
    if len(extents) != 1:
        raise ValueError(f"walker axes of different extents: {sorted(extents)}")
    walkers = extents.pop()
    links, reshapes = _links(region)
    strides: dict[Axis, int] = {}
    pending = [(axis, 1) for axis in known]
    while pending:
        axis, stride = pending.pop()
        if axis in strides:
            continue
        strides[axis] = stride
        for group in links.get(axis, ()):
            pending += [(other, stride) for other in group if other not in strides]
        for node in reshapes.get(axis[0], ()):
            pending += _reshaped(node, axis, stride, walkers)
    return Marks({axis: frozenset([stride]) for axis, stride in strides.items()})


def united(marks: Mapping[int, Marks]) -> Marks:
    """The axes of values that count walkers along any of the axes that ``marks`` are of."""
    strides: dict[Axis, frozenset[int]] = {}
    for of_axis in marks.values():
        for axis, own in of_axis.strides.items():
            strides[axis] = strides.get(axis, frozenset()) | own
    return Marks(strides)


Shapes = Mapping[Value, tuple[int, ...]]


def resized_shapes(marks: Marks, walkers: int, to: int, resized: Shapes | None = None) -> dict[Value, tuple[int, ...]]:
    """The shape of every marked value with ``to`` walkers instead of ``walkers``; of those ``resized`` along other axes
    too."""
    resized = resized or {}
    shapes = {
        value: tuple(n // walkers * to if a in axes else n for a, n in enumerate(resized.get(value, value.type.shape)))
        for value, axes in marks.items()
    }
    return {**resized, **shapes}


def _links(region: Region) -> tuple[dict[Axis, list[Sequence[Axis]]], dict[Value, list[Node]]]:
    """Of every axis the groups of those that count walkers if it does; of every value its reshapes."""
    links: dict[Axis, list[Sequence[Axis]]] = {}
    reshapes: dict[Value, list[Node]] = {}
    for node in region.walk():
        if node.op is ops.RESHAPE:
            for value in values_of(node):
                reshapes.setdefault(value, []).append(node)
        for group in (*_of_equal_extents(node), *_of_carried(node)):
            for axis in group:
                links.setdefault(axis, []).append(group)
    return links, reshapes


def _of_equal_extents(node: Node) -> Iterator[Sequence[Axis]]:
    values = values_of(node)
    for factor in factors_of(node):
        axes = dict.fromkeys((values[at], axis) for at, axis in factor.places)
        if len(axes) > 1 and len({value.type.shape[axis] for value, axis in axes}) == 1:
            yield tuple(axes)


def _of_carried(node: Node) -> Iterator[Sequence[Axis]]:
    for group in _carried(node):
        yield from ([(value, axis) for value in group] for axis in range(len(group[0].type.shape)))


def _carried(node: Node) -> list[tuple[Value, ...]]:
    """Groups of values that are the same one as far as axes go, of loops, branches and barriers; none with tokens."""
    if not all(value.is_array for value in values_of(node)):
        return []
    if node.op is ops.WHILE:
        condition, body = node.regions
        carried = (node.operands, node.results, condition.arguments, body.arguments, body.returns)
        return list(zip(*carried, strict=True))
    if node.op in (ops.CASE, ops.IF):
        return list(zip(node.results, *(region.returns for region in node.regions), strict=True))
    return list(zip(node.operands, node.results, strict=True)) if node.op is ops.OPTIMIZATION_BARRIER else []


def _reshaped(node: Node, axis: Axis, stride: int, walkers: int) -> Iterator[tuple[Axis, int]]:
    """The axis that holds the walkers of one side of a reshape on the other, if there is one, and its stride."""
    value, index = axis
    here, there = node.operands[0], node.results[0]
    if value is there:
        here, there = there, here
    if 0 in here.type.shape:
        return
    total = stride * math.prod(here.type.shape[index + 1 :])
    trailing = math.prod(there.type.shape)
    for to, extent in enumerate(there.type.shape):
        trailing //= extent
        within, remainder = divmod(total, trailing)
        if within and not remainder and extent % (within * walkers) == 0:
            yield (there, to), within
            return


# -- what ops do along the axes that count walkers


def factors_along(node: Node, marks: Marks, *, own_places: bool = True) -> list[Factor]:
    """What ``node`` does along the axes that count walkers: nothing if it has none.

    Axes that are passed have walkers with equal strides in all places; otherwise what happens is unknown. With
    ``own_places``, walkers at which a gather or scatter reads or writes by their own numbers are passed, too: so is a
    program that is cut to its first walkers, but constants may not number more of them.
    """
    values = values_of(node)
    marked = {(at, axis) for at, value in enumerate(values) for axis in marks.get(value, ())}
    if groups := _carried(node):
        counting = any(marks.get(value) for group in groups for value in group)
        alike = all(len({_strides(marks, value) for value in group}) == 1 for group in groups)
        return [Factor(FactorKind.PASSED if alike else FactorKind.UNKNOWN, tuple(marked))] if counting else []
    if not marked:
        return []
    if node.op is ops.RESHAPE:
        alike = _in_elements(marks, node.operands[0]) == _in_elements(marks, node.results[0])
        return [Factor(FactorKind.PASSED if alike else FactorKind.UNKNOWN, tuple(marked))]
    factors = factors_of(node)
    if own_places:
        factors = _joined(node, marks, factors)
    found = [_checked(factor, values, marks, marked) for factor in factors if not marked.isdisjoint(factor.places)]
    rest = marked.difference(place for factor in factors for place in factor.places)
    return [*found, *(Factor(FactorKind.UNKNOWN, (place,)) for place in rest)]


def keeps_apart(node: Node, marks: Marks, *, own_places: bool = True) -> bool:
    """True if ``node`` computes each walker from the same walker alone, or if nothing in it counts walkers."""
    found = factors_along(node, marks, own_places=own_places)
    return len(found) <= 1 and all(factor.kind in (FactorKind.PASSED, FactorKind.NEW) for factor in found)


def _checked(factor: Factor, values: Sequence[Value], marks: Marks, marked: Collection[Place]) -> Factor:
    """``factor``, unknown if what passes along it has walkers in some places only or at several strides."""
    if factor.kind not in (FactorKind.PASSED, FactorKind.REDUCED):
        return factor
    strides = {marks.strides.get((values[at], axis)) if (at, axis) in marked else None for at, axis in factor.places}
    return factor if len(strides) == 1 else Factor(FactorKind.UNKNOWN, factor.places)


def _strides(marks: Marks, value: Value) -> frozenset[tuple[int, frozenset[int]]]:
    return frozenset((axis, marks.strides[value, axis]) for axis in marks.get(value, ()))


def _in_elements(marks: Marks, value: Value) -> set[int]:
    """The distances between walkers in the elements of ``value``, which reshapes leave in order."""
    shape = value.type.shape
    return {s * math.prod(shape[a + 1 :]) for a in marks.get(value, ()) for s in marks.strides[value, a]}


def varies(node: Node, axis: int) -> bool:
    """True for a constant or an iota whose elements differ along ``axis``, or cannot be read."""
    if node.op is ops.IOTA:
        return bool(node.attributes["iota_dimension"].value == axis)
    if node.op is not ops.CONSTANT:
        return False
    if node.results[0].dtype not in NUMPY:
        return True
    if getattr(node.attributes["value"], "is_splat", False):
        return False
    array = constant_array(node)
    first = array.take([0], axis)
    return not bool(((array == first) | ((array != array) & (first != first))).all())


# -- indices


@dataclass(frozen=True)
class Indices:
    """Those of a gather or scatter: ``axes[i]`` is the axis of the operand that component i indexes.

    The components lie along axis ``vector`` of operand number ``at``; there is one if it has no such axis.
    """

    node: Node
    at: int
    vector: int
    axes: tuple[int, ...]

    @staticmethod
    def of(node: Node) -> Indices | None:
        """The indices of ``node``; None for another op."""
        if node.op is ops.GATHER:
            gather = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
            return Indices(node, 1, gather.index_vector_dim, tuple(gather.start_index_map))
        if node.op is ops.SCATTER:
            scatter = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
            axes = tuple(scatter.scattered_dims_to_operand_dims)
            return Indices(node, len(node.results), scatter.index_vector_dim, axes)
        return None

    @property
    def value(self) -> Value:
        """The indices."""
        return self.node.operands[self.at]

    def components(self) -> list[tuple[Value, np.ndarray | None]]:
        """Of each component the value that it is part of, and its integers if they follow from constants: the indices'
        axes without ``vector``."""
        value, vector = self.value, self.vector
        node, apart = value.producer, vector < len(value.type.shape)
        parts: tuple[Value, ...] = (value,)
        if apart and node is not None and node.op is ops.CONCATENATE and node.attributes["dimension"].value == vector:
            parts = node.operands
        found: list[tuple[Value, np.ndarray | None]] = []
        for part in parts:
            array = fold(part, most_elements=_MOST_INDICES)
            every = range(part.type.shape[vector]) if apart else (None,)
            found += [(part, array if array is None or i is None else array.take(i, vector)) for i in every]
        return found

    def without_vector(self, axis: int) -> int:
        """An axis of the indices as one of a component."""
        return axis - (axis > self.vector)


def _joined(node: Node, marks: Marks, factors: list[Factor]) -> list[Factor]:
    """``factors`` of a gather or scatter, where those along which walkers are indexed by their own numbers are passed
    with the axis of the indices along which the numbers count up."""
    indices = Indices.of(node)
    if indices is None or not marks.get(indices.value):
        return factors
    operand, components = node.operands[0], None
    for i, to in enumerate(indices.axes):
        indexed = next((f for f in factors if f.kind is FactorKind.INDEXED and (0, to) in f.places), None)
        if indexed is None or to not in marks.get(operand, ()):
            continue
        components = components or indices.components()
        array = components[i][1]
        for axis in marks[indices.value]:
            if array is not None and _counts_up(array, indices.without_vector(axis), operand.type.shape[to]):
                along = next(f for f in factors if (indices.at, axis) in f.places)
                passed = Factor(FactorKind.PASSED, (*indexed.places, *along.places))
                factors = [passed, *(f for f in factors if f not in (indexed, along))]
                break
    return factors


def _counts_up(array: np.ndarray, axis: int, extent: int) -> bool:
    """True for 0, 1, 2, ... along ``axis``, of so many elements."""
    if array.shape[axis] != extent:
        return False
    numbers = np.arange(extent).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
    return bool((array == numbers).all())


# -- the rules of ops


def _passed(*places: Place) -> Factor:
    return Factor(FactorKind.PASSED, places)


def _along_all(node: Node, moved: Collection[int], numbers: Sequence[int] | None = None) -> Factors:
    """Values of one shape: all axes are passed but those ``moved``."""
    values = values_of(node)
    numbers = range(len(values)) if numbers is None else numbers
    for axis in range(len(values[numbers[0]].type.shape)):
        yield Factor(FactorKind.MOVED if axis in moved else FactorKind.PASSED, tuple((at, axis) for at in numbers))


def _unknown(node: Node) -> Factors:
    """Axes of equal extents are taken for one another, of which nothing more is known."""
    if node.results:
        yield from _by_extents(node, len(node.operands), len(node.results[0].type.shape), FactorKind.UNKNOWN)


def _by_extents(node: Node, like: int, axes: int, kind: FactorKind) -> Factors:
    """A factor of each of the first ``axes`` of value number ``like`` with those of equal extents of the others."""
    values = values_of(node)
    shapes = [value.type.shape for value in values]
    for axis in range(axes):
        places = [(at, axis) for at, shape in enumerate(shapes) if shape[axis : axis + 1] == (shapes[like][axis],)]
        whole = len(places) == sum(bool(shape) for shape in shapes)
        yield Factor(kind if whole else FactorKind.UNKNOWN, tuple(places))


def _elementwise(node: Node) -> Factors:
    """Values of one shape, and scalars; of chlo's that broadcast, axes of other extents are repeated."""
    values = values_of(node)
    arrays = [at for at, value in enumerate(values) if value.type.shape]
    if not node.results or len({len(values[at].type.shape) for at in arrays}) > 1:
        yield from _unknown(node)
        return
    for axis, extent in enumerate(node.results[0].type.shape):
        yield _passed(*((at, axis) for at in arrays if values[at].type.shape[axis] == extent))


def _source(node: Node) -> Factors:
    return (Factor(FactorKind.NEW, ((0, axis),)) for axis in range(len(node.results[0].type.shape)))


def _broadcast(node: Node) -> Factors:
    before, after = (value.type.shape for value in values_of(node))
    of = {to: axis for axis, to in enumerate(_integers(node, "broadcast_dimensions")) if before[axis] == after[to]}
    for to in range(len(after)):
        yield _passed((0, of[to]), (1, to)) if to in of else Factor(FactorKind.NEW, ((1, to),))


def _transpose(node: Node) -> Factors:
    return (_passed((0, axis), (1, to)) for to, axis in enumerate(_integers(node, "permutation")))


def _reduce(node: Node) -> Factors:
    count, gone = len(node.results), _integers(node, "dimensions")
    kept = [axis for axis in range(len(node.operands[0].type.shape)) if axis not in gone]
    for to, axis in enumerate(kept):
        yield _passed(*((at, axis) for at in range(count)), *((2 * count + at, to) for at in range(count)))
    yield from (Factor(FactorKind.REDUCED, tuple((at, axis) for at in range(count))) for axis in gone)


def _reduce_window(node: Node) -> Factors:
    inputs, attributes = len(node.results), node.attributes
    rank = len(node.results[0].type.shape)
    names = ("window_strides", "base_dilations", "window_dilations", "window_dimensions")
    sizes = zip(*(_integers(node, name) if name in attributes else (1,) * rank for name in names), strict=True)
    padding = np.array(attributes["padding"]) if "padding" in attributes else np.zeros(2 * rank, np.int64)
    framed = [bool(low or high) for low, high in padding.reshape(rank, 2).tolist()]
    moved = [axis for axis, own in enumerate(sizes) if framed[axis] or any(size > 1 for size in own)]
    yield from _along_all(node, moved, [*range(inputs), *range(2 * inputs, 3 * inputs)])


def _dot_general(node: Node) -> Factors:
    axes = DotAxes.of(node)
    for to, pair in enumerate(axes.result):
        yield _passed(*((side, axis) for side, axis in enumerate(pair) if axis is not None), (2, to))
    yield from (Factor(FactorKind.REDUCED, ((0, left), (1, right))) for left, right in axes.contracted_pairs)


def _convolution(node: Node) -> Factors:
    """The batch axis; those of features and of space are mixed."""
    numbers = stablehlo.ConvDimensionNumbers(node.attributes["dimension_numbers"])
    if node.attributes["batch_group_count"].value == 1:
        yield _passed((0, numbers.input_batch_dimension), (2, numbers.output_batch_dimension))


def _concatenate(node: Node) -> Factors:
    along, out, start = node.attributes["dimension"].value, len(node.operands), 0
    for factor in _along_all(node, [along]):
        if factor.kind is FactorKind.PASSED:
            yield factor
    for at, operand in enumerate(node.operands):
        if (extent := operand.type.shape[along]) == node.results[0].type.shape[along]:
            yield _passed((at, along), (out, along))
        else:
            yield Factor(FactorKind.PART, ((out, along), (at, along)), start)
        start += extent


def _slice(node: Node) -> Factors:
    starts, strides = (_integers(node, name) for name in ("start_indices", "strides"))
    for axis, (extent, part) in enumerate(zip(*(value.type.shape for value in values_of(node)), strict=True)):
        if part == extent:
            yield _passed((0, axis), (1, axis))
        else:
            yield Factor(FactorKind.PART, ((0, axis), (1, axis)), starts[axis] if strides[axis] == 1 else None)


def _pad(node: Node) -> Factors:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    for axis, (low, high, interior) in enumerate(zip(*(_integers(node, name) for name in names), strict=True)):
        if not (low or high or interior):
            yield _passed((0, axis), (2, axis))
        elif interior or low < 0 or high < 0:
            yield Factor(FactorKind.MOVED, ((0, axis), (2, axis)))
        else:
            yield Factor(FactorKind.PART, ((2, axis), (0, axis)), low)


def _reverse(node: Node) -> Factors:
    return _along_all(node, _integers(node, "dimensions"))


def _sort(node: Node) -> Factors:
    return _along_all(node, [node.attributes["dimension"].value])


def _dynamic_slice(node: Node) -> Factors:
    out, whole, part = len(node.operands), node.operands[0].type.shape, node.results[0].type.shape
    for axis in range(len(whole)):
        kind = FactorKind.PASSED if whole[axis] == part[axis] else FactorKind.INDEXED
        yield Factor(kind, ((0, axis), (out, axis)))


def _dynamic_update_slice(node: Node) -> Factors:
    out, (whole, part) = len(node.operands), (value.type.shape for value in node.operands[:2])
    for axis, at in enumerate(node.operands[2:]):
        if whole[axis] == part[axis]:
            yield _passed((0, axis), (1, axis), (out, axis))
            continue
        place = fold(at)
        yield Factor(FactorKind.INDEXED, ((0, axis), (out, axis)))
        start = None if place is None else min(max(int(place), 0), whole[axis] - part[axis])
        yield Factor(FactorKind.PART, ((out, axis), (1, axis)), start)


def _gather(node: Node) -> Factors:
    numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
    batching = dict(zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True))
    window = list(numbers.offset_dims)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    yield from _windows(node, [0], 1, [2], window, dropped, numbers.index_vector_dim, batching)


def _scatter(node: Node) -> Factors:
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    batching = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    count, window = len(node.results), list(numbers.update_window_dims)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    whole = [*range(count), *range(2 * count + 1, 3 * count + 1)]
    moved = range(count + 1, 2 * count + 1)
    yield from _windows(node, whole, count, moved, window, dropped, numbers.index_vector_dim, batching)


def _windows(
    node: Node,
    whole: Sequence[int],
    indices: int,
    moved: Sequence[int],
    window: Sequence[int],
    dropped: set[int],
    vector: int,
    batching: Mapping[int, int],
) -> Factors:
    """The windows ``moved`` (a gather's result, a scatter's updates) of the values ``whole`` at ``indices``.

    Axes of the whole ones but the ``dropped`` are the ``window`` axes of what is moved; its other axes are those of the
    indices, of which the ``batching`` ones are axes of the whole ones, too.
    """
    values = values_of(node)
    extents, sizes = values[whole[0]].type.shape, values[moved[0]].type.shape
    kept = [axis for axis in range(len(extents)) if axis not in dropped]
    for axis, to in zip(kept, window, strict=True):
        if extents[axis] == sizes[to]:
            yield _passed(*((at, axis) for at in whole), *((at, to) for at in moved))
        else:
            yield Factor(FactorKind.INDEXED if sizes[to] == 1 else FactorKind.MOVED, tuple((at, axis) for at in whole))
    batch = [axis for axis in range(len(sizes)) if axis not in window]
    of_indices = [axis for axis in range(len(values[indices].type.shape)) if axis != vector]
    is_read = node.op is ops.GATHER
    for axis, to in zip(of_indices, batch, strict=True):
        own = [(at, batching[axis]) for at in whole] if axis in batching else []
        kind = FactorKind.PASSED if own or is_read else FactorKind.REDUCED
        yield Factor(kind, (*own, (indices, axis), *((at, to) for at in moved)))
    for axis in dropped - {*batching.values()}:
        yield Factor(FactorKind.INDEXED, tuple((at, axis) for at in whole))


def _batched(node: Node) -> Factors:
    """Batched linear algebra: the leading axes, up to those of matrices."""
    first = len(node.operands[0].type.shape) - (1 if "permutation" in node.call_target else 2)
    yield from _by_extents(node, 0, max(first, 0), FactorKind.PASSED)


def _call(node: Node) -> Factors:
    if node.family in ("factorisation", "triangular-solve"):
        yield from _batched(node)
    elif node.family == "layout":
        yield from _elementwise(node)
    elif node.operands:
        yield from _by_extents(node, 0, max(len(node.operands[0].type.shape) - 2, 0), FactorKind.UNKNOWN)


def _fft(node: Node) -> Factors:
    """All axes but those that are transformed."""
    rank = len(node.operands[0].type.shape) - len(_integers(node, "fft_length"))
    return (_passed((0, axis), (1, axis)) for axis in range(rank))


def _rows(node: Node) -> Factors:
    """All axes but the last."""
    return _by_extents(node, 0, len(node.operands[0].type.shape) - 1, FactorKind.PASSED)


def _nothing(node: Node) -> Factors:
    return iter(())


def _integers(node: Node, name: str) -> list[int]:
    return [int(element) for element in node.attributes[name]]


_RULES: dict[str, Callable[[Node], Factors]] = {
    "batched": _batched,
    "broadcast_in_dim": _broadcast,
    "call": _call,
    "carried": _nothing,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "dot_general": _dot_general,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "elementwise": _elementwise,
    "fft": _fft,
    "gather": _gather,
    "pad": _pad,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "reshape": _nothing,
    "reverse": _reverse,
    "rows": _rows,
    "scatter": _scatter,
    "slice": _slice,
    "sort": _sort,
    "source": _source,
    "transpose": _transpose,
    "unknown": _unknown,
}
"""``axes`` of ``hlo.ops`` to its rule; that of a reshape depends on strides, and loops and branches carry values."""
