"""The parts of a chain: an op's on an interval of the stream, made where they are needed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

import numpy as np

from fusionlab.codegen.kernels.dot_chains.axes import REDUCTIONS, ChainAxes, ChainAxis, ChainClasses, Slot, Stream, Use
from fusionlab.codegen.kernels.dot_chains.chain import (
    DotChain,
    Exchanged,
    Interval,
    NoChainError,
    Padding,
    Part,
    TileLoad,
    TileStore,
)
from fusionlab.codegen.kernels.triton_tiles import padded
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.constants import splat_number
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value, constant_array, keyword

_MOST_ELEMENTS = 8192
"""Elements of a tile, padded: 64 registers of each of 128 threads."""
_MOST_PARTS = 2000
_MOVES = {
    ops.BROADCAST_IN_DIM,
    ops.CONCATENATE,
    ops.DYNAMIC_UPDATE_SLICE,
    ops.PAD,
    ops.RESHAPE,
    ops.SLICE,
    ops.TRANSPOSE,
}


Make = Callable[[Sequence[Part], Sequence[int]], Part]
"""The part of an op, of the parts of its operands and the classes that it sums."""


def dot_chain(members: Iterable[Node], outputs: Sequence[Value], stream: Stream | None) -> DotChain:
    """The chain of ``members``, in program order, that computes ``outputs`` in loops over the class of ``stream``.

    NoChainError if they are none.
    """
    axes = ChainAxes(tuple(members))
    return ChainParts(axes, axes.classes_of(stream)).chain(tuple(outputs))


def streams_of(dot: Node) -> list[Stream | None]:
    """The streams of chains with ``dot``, a contraction: none, if it is a product of two matrices; else any axis that
    makes it one."""
    axes_of_dot = ChainAxes((dot,))
    found: dict[int | None, Stream | None] = {}
    shapes = ((at, value.type.shape) for at, value in enumerate(dot.operands))
    axes = (Stream(Use(dot, at), axis) for at, shape in shapes for axis, extent in enumerate(shape) if extent > 1)
    for stream in (None, *axes):
        try:
            classes = axes_of_dot.classes_of(stream)
            ChainParts(axes_of_dot, classes).chain(dot.results)
            found.setdefault(classes.stream, stream)
        except NoChainError:
            continue
        if stream is None:
            break
    return [*found.values()]


def may_belong(node: Node) -> bool:
    """True if ``node`` is of an op that a chain can hold: a batched contraction, or what may lie between two."""
    if node.op is ops.DOT_GENERAL and not DotAxes.of(node).batch_pairs:
        return False
    return may_be_held(node)


def may_be_held(node: Node) -> bool:
    """True if parts can be made of ``node``."""
    read = node.operands[:2] if node.op is ops.DYNAMIC_UPDATE_SLICE else node.operands
    values = (*read, *node.results)
    if len(node.results) != 1 or not all(v.dtype in (*ops.WIDE_FLOATS, "i1") and 0 not in v.type.shape for v in values):
        return False
    if node.op is ops.DOT_GENERAL:
        return "algorithm" not in node.attributes
    if node.op is ops.REDUCE:
        return len(node.operands) == 2 and bool(node.regions) and combiner(node.regions[0]) in REDUCTIONS
    if node.op in _MOVES:
        return node.results[0].dtype != "i1" or node.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE)
    if node.op is ops.COMPARE and keyword(node.attributes.get("compare_type")) == "TOTALORDER":
        return False
    is_of_predicates = any(value.dtype == "i1" for value in node.operands) and node.op is not ops.SELECT
    return node.op.triton and (not is_of_predicates or node.op in (ops.AND, ops.OR, ops.NOT))


class ChainParts:
    """The parts of a chain with given classes: an op's on an interval of the stream, made where they are needed."""

    def __init__(self, axes: ChainAxes, classes: ChainClasses) -> None:
        self.axes, self.classes, self.labels, self.stream = axes, classes, classes.labels, classes.stream
        self.grid = tuple(sorted(classes.grid))
        self.extents: dict[int, int] = {}
        for slot in axes.axes:
            labels = [self.labels[axis] for axis in axes.all_axes(slot) if axis in self.labels]
            if len(set(labels)) < len(labels):
                raise NoChainError("two axes of a value are of one class")
        for axis, label in self.labels.items():
            if label != self.stream and self.extents.setdefault(label, axis.extent) != axis.extent:
                raise NoChainError("an axis has two extents")
        self.cuts = self._cuts()
        self.made: dict[tuple[Slot, Interval | None], Part] = {}
        self.known: dict[Hashable, Part] = {}
        self.parts: list[Part] = []
        self.streamed: frozenset[Value] = frozenset()
        """Operands that a kernel reads piece by piece, and that are no parts."""

    def chain(self, outputs: tuple[Value, ...]) -> DotChain:
        """The chain, with the parts that ``outputs`` need."""
        stores: list[TileStore] = []
        for number, value in enumerate(outputs):
            if not self._labels(value).issuperset(self.grid):
                raise NoChainError("a result is that of several batch elements")
            for interval in self.intervals(value):
                part = self.part(value, interval)
                place = self.load(value, StridedView.whole(value), interval)
                loop = interval if interval is not None and interval[1] - interval[0] > 1 else None
                stores.append(TileStore(number, part, place, loop))
        kept = _in_order([store.part for store in stores], self.parts)
        axes = self.axes
        arrays = {part.of.base for part in kept if isinstance(part.of, TileLoad)}
        if len({value.type.dtype for value in (*arrays, *outputs)}) > 1:
            raise NoChainError("its arrays are of several types")
        for slot in axes.axes:
            value = axes.value(slot)
            if not isinstance(slot, Use) or value.dtype in ops.INTEGERS or _constant(value) is not None:
                continue  # places of updates, which are constants too
            if StridedView.of(value).base not in arrays and value not in self.streamed:
                raise NoChainError("an operand is not read")
        reads = [slot for node in axes.dots for slot in (*axes.slots[node], *node.results)]
        reads += [node.results[0] for node in axes.exchanged]
        return DotChain(
            axes.members,
            outputs,
            self.extents,
            self.grid,
            self.stream,
            tuple(stores),
            kept,
            {node.results[0]: self._batch_axes(node.results[0]) for node in axes.dots},
            sum(math.prod(a.extent for a in axes.all_axes(s) if self.labels.get(a) not in self.grid) for s in reads),
        )

    def _batch_axes(self, value: Value) -> frozenset[int]:
        """The axes of a value that are of the grid, alone or merged with others."""
        return frozenset(axis.at for axis in self.axes.all_axes(value) if self.labels.get(axis) in self.grid)

    # The stream.

    def _labels(self, slot: Slot, axes: Iterable[int] | None = None) -> set[int]:
        """The classes of some axes of a slot, or of all."""
        every = range(len(self.axes.shape(slot)))
        return self.axes.labels_of(self.labels, slot, every if axes is None else axes)

    def _streaming(self, slot: Slot) -> ChainAxis | None:
        """The axis of a slot that is of the stream, which may be merged with others."""
        every = self.axes.all_axes(slot) if self.stream is not None else ()
        return next((axis for axis in every if self.labels.get(axis) == self.stream), None)

    def along(self, slot: Slot) -> Interval | None:
        """The coordinates of the stream that a slot has; None if it has no such axis."""
        if (axis := self._streaming(slot)) is None:
            return None
        start = self.classes.starts[axis]
        return start, start + axis.extent

    def _cuts(self) -> list[int]:
        found: set[int] = set()
        for slot in self.axes.axes:
            if (interval := self.along(slot)) is not None:
                found.update(interval)
                found.update(self._changes(slot, interval[0]))
        return sorted(found)

    def _changes(self, slot: Slot, start: int) -> Iterator[int]:
        """Where a constant changes along the stream."""
        array, axis = _constant(self.axes.value(slot)) if isinstance(slot, Use) else None, self._streaming(slot)
        if array is not None and axis is not None and array.shape[axis.at] == axis.extent > 1:
            lines = np.moveaxis(array, axis.at, 0).reshape(array.shape[axis.at], -1)
            yield from (start + at for at in range(1, len(lines)) if (lines[at] != lines[at - 1]).any())

    def intervals(self, slot: Slot) -> list[Interval | None]:
        """The intervals of a slot, those between the cuts; None alone if it has no axis of the stream."""
        if (whole := self.along(slot)) is None:
            return [None]
        inside = [cut for cut in self.cuts if whole[0] <= cut <= whole[1]]
        return [*itertools.pairwise(inside)]

    # Parts.

    def part(self, slot: Slot, interval: Interval | None) -> Part:
        """A slot's part on ``interval``; a slot of one coordinate, or of none, is the same on every interval."""
        whole = self.along(slot)
        if whole is None:
            interval = None
        elif whole[1] - whole[0] == 1:
            interval = whole
        elif interval is None or not whole[0] <= interval[0] < interval[1] <= whole[1]:
            raise NoChainError("an op reads outside of its operand's stream")
        key = slot, interval
        if key not in self.made:
            if len(self.made) > _MOST_PARTS:
                raise NoChainError("it is too large")
            self.made[key] = self._use(slot, interval) if isinstance(slot, Use) else self._result(slot, interval)
        return self.made[key]

    def _use(self, use: Use, interval: Interval | None) -> Part:
        value = self.axes.value(use)
        if (array := _constant(value)) is not None:
            axis = self._streaming(use)
            if interval is not None and axis is not None and array.shape[axis.at] == axis.extent > 1:
                start = self.classes.starts[axis]
                array = np.take(array, range(interval[0] - start, interval[1] - start), axis.at)
            number = splat_number(array)
            if number is not None:
                return self.kept(Part(float(number.real)))
        if value.type.dtype == "i1":
            raise NoChainError("it reads an array of predicates")
        load = self.load(use, StridedView.of(value), interval)
        return self.kept(self._new(load, (), [label for label, _ in load.steps], interval))

    def load(self, slot: Slot, view: StridedView, interval: Interval | None) -> TileLoad:
        """Where the elements of ``view`` lie, whose axes are those of ``slot``."""
        offset, steps = view.offset, {}
        for axis in self.axes.all_axes(slot):
            label, step = self.labels.get(axis), view.strides[axis.at] * axis.inner
            if label is None or step == 0 or (axis.extent == 1 and label != self.stream):
                continue
            if label == self.stream:
                assert interval is not None
                offset -= self.classes.starts[axis] * step
                if interval[1] - interval[0] == 1:
                    offset += interval[0] * step
                    continue
            steps[label] = step
        return TileLoad(view.base, offset, tuple(sorted(steps.items())))

    def _result(self, value: Value, interval: Interval | None) -> Part:
        node = self.axes.made[value]
        slots = self.axes.slots[node]
        if node.op in (ops.BROADCAST_IN_DIM, ops.TRANSPOSE, ops.RESHAPE, ops.SLICE):
            return self._moved(node, self.part(slots[0], interval))
        if node.op is ops.PAD:
            found = self._first_that_has(interval, slots[:1])
            return self._padding(slots[1]) if found is None else found
        if node.op is ops.CONCATENATE:
            found = self._first_that_has(interval, slots)
            if found is None:
                raise NoChainError("nothing is concatenated there")
            return found
        if node.op is ops.DYNAMIC_UPDATE_SLICE:
            found = self._first_that_has(interval, [slots[1], slots[0]])
            if found is None:
                raise NoChainError("an update cuts its operand where nothing else does")
            return found
        if node.op is ops.DOT_GENERAL:
            return self.product(node, slots, interval)
        if node.op is ops.REDUCE:
            over = sorted(self._labels(slots[0], node.attributes["dimensions"]))
            if self.stream in over and combiner(node.regions[0]) != "add":
                raise NoChainError("an extremum is taken over the stream")
            return self._summed(
                slots[:1], over, interval, lambda operands, over: self._reduced(node, operands[0], over)
            )
        return self._elementwise(node, [self.part(slot, interval) for slot in slots])

    def _moved(self, node: Node, operand: Part) -> Part:
        """``operand`` itself, but of an exchange its transpose, whose moved axes are of other classes."""
        if node not in self.axes.exchanged or not operand.labels:
            return operand
        order = [int(axis) for axis in node.attributes["permutation"]]
        before, after = (self.axes.axes[slot] for slot in (self.axes.slots[node][0], node.results[0]))
        pairs = [(self._label(before[at]), self._label(after[to])) for to, at in enumerate(order) if at != to]
        if any(old != new and {old, new} & {*self.grid, self.stream} for old, new in pairs):
            raise NoChainError("a transpose exchanges batch axes or the stream")
        classes = {label: label for label in operand.labels}
        classes |= {old: new for old, new in pairs if old in classes and old is not None and new is not None}
        of = Exchanged(node, tuple(classes.items()))
        return self.kept(self._new(of, [operand], classes.values(), None))

    def _label(self, axes: Sequence[ChainAxis]) -> int | None:
        """The class of an axis that is not split; None if it is of one element."""
        if len(axes) > 1:
            raise NoChainError("a transpose exchanges an axis that is split")
        return self.labels.get(axes[0])

    def _padding(self, number: Slot) -> Part:
        """What pads with ``number``: a known zero, but for -0, is ``Padding``, which sums and products leave out."""
        padding = self.part(number, None)
        is_zero = isinstance(padding.of, float) and padding.of == 0 and math.copysign(1, padding.of) > 0
        return self.kept(Part(Padding(0.0))) if is_zero else padding

    def _first_that_has(self, interval: Interval | None, slots: Sequence[Slot]) -> Part | None:
        """The part of the first of ``slots`` that lies there; None if none does. Of no interval, it is the first."""
        for slot in slots:
            whole = self.along(slot)
            if whole is None or interval is None:
                return self.part(slot, interval)
            if whole[0] <= interval[0] < interval[1] <= whole[1]:
                return self.part(slot, interval)
        return None

    def _summed(self, slots: Sequence[Slot], over: Sequence[int], interval: Interval | None, make: Make) -> Part:
        """``make`` of the slots' parts; if it sums over the stream, of those of every interval, summed."""
        rest = [label for label in over if label != self.stream]
        if self.stream is None or self.stream not in over:
            return make([self.part(slot, interval) for slot in slots], rest)
        wholes = {whole for slot in slots if (whole := self.along(slot)) is not None}
        if len(wholes) != 1:
            raise NoChainError("it sums over a stream that its operands do not have alike")
        terms: list[Part] = []
        for each in self.intervals(next(slot for slot in slots if self.along(slot) is not None)):
            term = make([self.part(slot, each) for slot in slots], rest)
            if term.is_padding:
                continue
            if each is not None and each[1] - each[0] > 1 and term.interval is None:
                raise NoChainError("it sums what does not change along the stream")
            terms.append(term)
        if not terms:
            return self.kept(Part(Padding(0.0)))
        labels = sorted({label for term in terms for label in term.labels})
        phase = max(term.phase + (term.interval is not None) for term in terms)
        return self.kept(Part(None, tuple(terms), tuple(labels), (), None, phase))

    def product(self, node: Node, slots: Sequence[Slot], interval: Interval | None) -> Part:
        """The part of a contraction on ``interval``."""
        axes = self.axes.dots[node]
        over = sorted(self._labels(slots[0], axes.contracted[0]))
        free = [self._labels(slot, own) for slot, own in zip(slots, axes.free, strict=True)]
        if any(len(labels - {self.stream}) > 1 for labels in (*free, set(over))):
            raise NoChainError("a contraction has two axes of rows, columns or terms")

        def multiplied(operands: Sequence[Part], over: Sequence[int]) -> Part:
            if any(part.is_padding for part in operands):
                return self.kept(Part(Padding(0.0)))
            labels = {label for part in operands for label in part.labels}
            if not labels.issuperset(over):
                raise NoChainError("it sums what does not change along an axis")
            labels -= set(over)
            return self.kept(self._new(node, operands, labels, None, over))

        return self._summed(slots, over, interval, multiplied)

    def _reduced(self, node: Node, operand: Part, over: Sequence[int]) -> Part:
        if not over:
            return operand
        if not set(over) <= set(operand.labels):
            raise NoChainError("it sums what does not change along an axis")
        return self.kept(self._new(node, [operand], set(operand.labels) - set(over), None, over))

    def _elementwise(self, node: Node, operands: Sequence[Part]) -> Part:
        zero = [part.is_padding for part in operands]
        if node.op is ops.ADD and any(zero):
            return operands[zero.index(True) ^ 1] if sum(zero) == 1 else operands[0]
        if node.op is ops.SUBTRACT and zero[1]:
            return operands[0]
        if node.op is ops.MULTIPLY and any(zero):
            return operands[zero.index(True)]
        if node.op is ops.SELECT and isinstance(operands[0].of, float):
            return operands[1] if operands[0].of else operands[2]
        numbers = [part.of for part in operands if isinstance(part.of, float)]
        if len(numbers) == len(operands):
            return self.kept(Part(_number_of(node, numbers)))
        return self.kept(self._new(node, operands, {label for part in operands for label in part.labels}, None))

    def _new(
        self,
        of: Node | TileLoad | Exchanged,
        operands: Sequence[Part],
        labels: Iterable[int],
        interval: Interval | None,
        over: Sequence[int] = (),
    ) -> Part:
        if interval is not None and interval[1] - interval[0] == 1:
            interval = None
        intervals = {part.interval for part in operands} | {interval}
        intervals.discard(None)
        if len(intervals) > 1:
            raise NoChainError("an op reads two intervals of the stream")
        (loop,) = intervals or {None}
        tile = tuple(sorted(label for label in set(labels) if label not in self.grid and label != self.stream))
        self.require_tile(of, operands, tile, over)
        return Part(of, tuple(operands), tile, tuple(over), loop, max((part.phase for part in operands), default=0))

    def require_tile(
        self, of: Node | TileLoad | Exchanged, operands: Sequence[Part], tile: Sequence[int], over: Sequence[int]
    ) -> None:
        """NoChainError unless an instance can hold a part of the axes ``tile``, a sum over ``over``."""
        both = {*tile, *over}
        if len(tile) > 2 or len(both) > 3 or math.prod(padded(self.extents[label]) for label in tile) > _MOST_ELEMENTS:
            raise NoChainError("a value is no small matrix")
        if len(both) > 2 and not (isinstance(of, Node) and _is_matrix_product(operands, over)):
            raise NoChainError("a contraction is none of two matrices")

    def kept(self, part: Part) -> Part:
        """``part``, or the equal one that is there."""
        of = (type(part.of), repr(part.of)) if isinstance(part.of, float) else part.of
        key = of, part.operands, part.interval, part.over
        if key not in self.known:
            self.known[key] = part
            self.parts.append(part)
        return self.known[key]


def _is_matrix_product(operands: Sequence[Part], over: Sequence[int]) -> bool:
    left, right = (set(part.labels) - set(over) for part in operands)
    return len(left) == len(right) == len(over) == 1 and left != right


def _number_of(node: Node, operands: Sequence[float]) -> float:
    """What an elementwise op makes of numbers."""
    arrays = (np.asarray(x, ops.NUMPY[v.type.dtype]) for x, v in zip(operands, node.operands, strict=True))
    (result,) = Raising().node(node, dict(zip(node.operands, arrays, strict=True)))
    return float(np.asarray(result))


def _constant(value: Value, depth: int = 4) -> np.ndarray | None:
    """The array of a constant, with one element along the axes that it was broadcast to; None for other values.

    Of numbers up to ``depth`` elementwise ops follow.
    """
    node = value.producer
    if node is None or value.dtype not in (*ops.WIDE_FLOATS, "i1"):
        return None
    if node.op.triton:
        numbers: list[float] = []
        for operand in node.operands if depth else ():
            array = _constant(operand, depth - 1)
            if array is None or array.size != 1:
                return None
            numbers.append(float(array.item()))
        return _filled(value, _number_of(node, numbers)) if numbers else None
    if node.op is ops.CONSTANT:
        whole = constant_array(node)
        number = splat_number(whole)
        return whole if number is None else _filled(value, number)
    array = _constant(node.operands[0], depth) if node.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE) else None
    if array is None:
        return None
    shape = value.type.shape
    if node.op is ops.RESHAPE:
        if array.size == 1:
            return array.reshape((1,) * len(shape))
        return array.reshape(shape) if array.shape == node.operands[0].type.shape else None
    found = [1] * len(shape)
    for axis, to in enumerate(node.attributes["broadcast_dimensions"]):
        found[to] = array.shape[axis]
    return array.reshape(found)


def _filled(value: Value, number: complex) -> np.ndarray:
    """A single element, with the rank of ``value``."""
    return np.full([1] * len(value.type.shape), number).astype(ops.NUMPY[value.type.dtype])


def _in_order(ends: Sequence[Part], parts: Sequence[Part]) -> list[Part]:
    """Those of ``parts`` that ``ends`` need, in order."""
    needed: set[Part] = set()
    waiting = [*ends]
    while waiting:
        part = waiting.pop()
        if part not in needed:
            needed.add(part)
            waiting += part.operands
    return [part for part in parts if part in needed]
