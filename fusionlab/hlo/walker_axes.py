"""The axes of a program's values that count walkers, and the program's shapes at another number of walkers.

A vmapped program treats walkers alike, so that a number of them is a property of its shapes. From the axes of a few
values that are known to count walkers, the axes of all others follow op by op: an elementwise op shares its axes with
its operands, a contraction its batch axes, and so on. Where an op mixes walkers (a mean), the axis ends there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.view import Node, Region, Value

Axis = tuple[Value, int]
Marks = dict[Value, set[int]]


def walker_axes(region: Region, known: Collection[Axis]) -> Marks:
    """Axes of all values of ``region`` that count walkers (alone or merged with another axis), from those ``known``."""
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
        pending += [(other, stride) for other in links.get(axis, ())]
        for node in reshapes.get(axis[0], ()):
            pending += _reshaped(node, axis, stride, walkers)
    marks: Marks = {}
    for value, index in strides:
        marks.setdefault(value, set()).add(index)
    return marks


def united(marks: Mapping[int, Marks]) -> Marks:
    """The axes of values that count walkers along any of the axes that ``marks`` are of."""
    found: Marks = {}
    for of_axis in marks.values():
        for value, axes in of_axis.items():
            found.setdefault(value, set()).update(axes)
    return found


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


def _links(region: Region) -> tuple[dict[Axis, list[Axis]], dict[Value, list[Node]]]:
    """From every axis to those that count walkers if it does; of every value its reshapes, which depend on strides."""
    links: dict[Axis, list[Axis]] = {}
    reshapes: dict[Value, list[Node]] = {}
    for node in region.walk():
        if not all(value.is_array for value in (*node.operands, *node.results)):
            continue
        if node.op.axes == "reshape":
            for value in (*node.operands, *node.results):
                reshapes.setdefault(value, []).append(node)
            continue
        for first, second in linked_axes(node):
            links.setdefault(first, []).append(second)
            links.setdefault(second, []).append(first)
    return links, reshapes


Pairs = Iterator[tuple[Axis, Axis]]


def linked_axes(node: Node) -> Pairs:
    """Pairs of axes of operands and results of ``node``, no reshape, of which both or neither count walkers."""
    return _RULES[node.op.axes](node)


_OF_MATRICES = ("factorisation", "triangular-solve", "fft")


def mixes_matrices(node: Node, marks: Mapping[Value, Collection[int]]) -> bool:
    """True if walkers are along an axis of the matrices that ``node`` factorises or solves with, or one it transforms.

    No axis of the results counts them then, and a raised ``node`` has results of other shapes at other numbers of them.
    """
    if node.family not in _OF_MATRICES:
        return False
    batch = {axis for pair in linked_axes(node) for axis in pair}
    values = (*node.operands, *node.results)
    return any((value, axis) not in batch for value in values for axis in marks.get(value, ()))


def _elementwise(node: Node) -> Pairs:
    """Axes of equal extents of operands and results are the same (scalars have none); also of slices and updates."""
    if not node.results:
        return
    result = node.results[0]
    for value in (*node.operands, *node.results[1:]):
        for axis, (n, m) in enumerate(zip(value.type.shape, result.type.shape, strict=False)):
            if n == m:
                yield (value, axis), (result, axis)


def _broadcast(node: Node) -> Pairs:
    operand, result = node.operands[0], node.results[0]
    for axis, to in enumerate(_integers(node, "broadcast_dimensions")):
        if operand.type.shape[axis] == result.type.shape[to]:
            yield (operand, axis), (result, to)


def _transpose(node: Node) -> Pairs:
    for to, axis in enumerate(_integers(node, "permutation")):
        yield (node.operands[0], axis), (node.results[0], to)


def _reshaped(node: Node, axis: Axis, stride: int, walkers: int) -> Iterator[tuple[Axis, int]]:
    """The axes that hold the walkers of one side of a reshape on the other, and their stride along that axis.

    An axis that is merged with others counts walkers with a stride: element w * stride + ... belongs to walker w.
    """
    value, index = axis
    here, there = node.operands[0], node.results[0]
    if value is there:
        here, there = there, here
    for before, after in _groups(here.type.shape, there.type.shape):
        if index not in before:
            continue
        total = stride * math.prod(here.type.shape[a] for a in before if a > index)
        for to in after:
            within, remainder = divmod(total, math.prod(there.type.shape[a] for a in after if a > to))
            if within and not remainder and there.type.shape[to] % (within * walkers) == 0:
                yield (there, to), within
                return


def _groups(before: tuple[int, ...], after: tuple[int, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest runs of axes of two shapes with equal numbers of elements, in order."""
    if 0 in before or 0 in after:
        return
    i = j = 0
    while i < len(before) and j < len(after):
        left, right = [i], [j]
        p, q = before[i], after[j]
        while p != q:
            if p < q:
                i += 1
                p *= before[i]
                left.append(i)
            else:
                j += 1
                q *= after[j]
                right.append(j)
        yield left, right
        i, j = i + 1, j + 1


def _reduce(node: Node) -> Pairs:
    half = len(node.operands) // 2
    gone = set(_integers(node, "dimensions"))
    for operand, result in zip(node.operands[:half], node.results, strict=True):
        kept = [axis for axis in range(len(operand.type.shape)) if axis not in gone]
        for to, axis in enumerate(kept):
            yield (operand, axis), (result, to)
        for axis in range(len(operand.type.shape)):
            yield (operand, axis), (node.operands[0], axis)


def _dot_general(node: Node) -> Pairs:
    axes, (left, right), result = DotAxes.of(node), node.operands, node.results[0]
    for a, b in axes.contracted_pairs:
        yield (left, a), (right, b)
    for to, pair in enumerate(axes.result):
        for operand, axis in zip(node.operands, pair, strict=True):
            if axis is not None:
                yield (operand, axis), (result, to)


def _concatenate(node: Node) -> Pairs:
    along = node.attributes["dimension"].value
    for operand in node.operands:
        for axis in range(len(operand.type.shape)):
            if axis != along:
                yield (operand, axis), (node.results[0], axis)


def _gather(node: Node) -> Pairs:
    numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
    operand, indices = node.operands
    batching = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    yield from _windows(
        operand, indices, node.results[0], dropped, list(numbers.offset_dims), numbers.index_vector_dim, batching
    )


def _scatter(node: Node) -> Pairs:
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    operand, indices, updates = node.operands
    batching = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    dropped = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    yield from _identical(operand, node.results[0])
    yield from _windows(
        operand, indices, updates, dropped, list(numbers.update_window_dims), numbers.index_vector_dim, batching
    )


def _windows(
    operand: Value,
    indices: Value,
    moved: Value,
    dropped: set[int],
    window: list[int],
    index_vector: int,
    batching: Iterable[tuple[int, int]],
) -> Pairs:
    """The windows ``moved`` (a gather's result, a scatter's updates) of ``operand`` at ``indices``.

    Axes of ``operand`` but the ``dropped`` ones are the ``window`` axes of ``moved``, where they keep their extent; its
    other axes are those of ``indices``.
    """
    kept = (axis for axis in range(len(operand.type.shape)) if axis not in dropped)
    for axis, to in zip(kept, window, strict=True):
        if operand.type.shape[axis] == moved.type.shape[to]:
            yield (operand, axis), (moved, to)
    batch = (axis for axis in range(len(moved.type.shape)) if axis not in window)
    index_axes = (axis for axis in range(len(indices.type.shape)) if axis != index_vector)
    for axis, to in zip(index_axes, batch, strict=True):
        yield (indices, axis), (moved, to)
    for axis, at in batching:
        yield (operand, axis), (indices, at)


def _while(node: Node) -> Pairs:
    for i, operand in enumerate(node.operands):
        arguments = (region.arguments[i] for region in node.regions)
        yield from _identical(operand, node.results[i], *arguments, node.regions[1].returns[i])


def _branches(node: Node) -> Pairs:
    for results in zip(node.results, *(region.returns for region in node.regions), strict=True):
        yield from _identical(*results)


def _leading(node: Node) -> Pairs:
    """Batched linear algebra and library calls: leading axes of equal extent are batch axes, up to the last two."""
    first = node.operands[0]
    batch = max(len(first.type.shape) - (1 if "permutation" in node.call_target else 2), 0)
    for value in (*node.operands[1:], *node.results):
        for axis, (n, m) in enumerate(zip(first.type.shape[:batch], value.type.shape, strict=False)):
            if n == m:
                yield (first, axis), (value, axis)


def _fft(node: Node) -> Pairs:
    """All axes but those that are transformed."""
    rank = len(node.operands[0].type.shape) - len(_integers(node, "fft_length"))
    yield from (((node.operands[0], axis), (node.results[0], axis)) for axis in range(rank))


def _rows(node: Node) -> Pairs:
    """All axes but the last."""
    for result in node.results:
        yield from (((node.operands[0], axis), (result, axis)) for axis in range(len(result.type.shape) - 1))


def _convolution(node: Node) -> Pairs:
    """The batch axes; those of features and of space are mixed."""
    numbers = stablehlo.ConvDimensionNumbers(node.attributes["dimension_numbers"])
    if node.attributes["batch_group_count"].value == 1:
        yield (node.operands[0], numbers.input_batch_dimension), (node.results[0], numbers.output_batch_dimension)


def _identical(value: Value, *others: Value) -> Pairs:
    for other in others:
        if value.is_array and other.is_array:
            for axis in range(len(value.type.shape)):
                yield (value, axis), (other, axis)


def _nothing(node: Node) -> Pairs:
    return iter(())


def _integers(node: Node, name: str) -> list[int]:
    return [int(element) for element in node.attributes[name]]


_RULES: dict[str, Callable[[Node], Pairs]] = {
    "batched": _leading,
    "branches": _branches,
    "broadcast_in_dim": _broadcast,
    "concatenate": _concatenate,
    "convolution": _convolution,
    "dot_general": _dot_general,
    "elementwise": _elementwise,
    "fft": _fft,
    "gather": _gather,
    "none": _nothing,
    "reduce": _reduce,
    "rows": _rows,
    "scatter": _scatter,
    "transpose": _transpose,
    "while": _while,
}
"""``axes`` of ``hlo.ops`` to its rule; that of ``reshape`` is ``_reshaped``, which tracks strides."""
