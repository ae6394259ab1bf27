"""A dot chain: batched contractions of small matrices with what lies between them, as work on tiles of one batch element.

Every axis of every value of a set of ops belongs to a class: an op that maps an axis to an axis joins their classes
(``c = dot_general a, b`` joins a's batch axes with b's and c's, its contracted axes with b's, its free axes with c's).
The classes of a chain are

- *grid*: batch axes of its contractions, which nothing sums, contracts or slices: an instance of the kernel each;
- *stream*: at most one, along which values are sliced, padded, concatenated or summed, as the directions of a forward
  Laplacian: an instance runs through it in a loop;
- *tile*: the others. A value has at most two of them: a matrix in registers.

An axis of the stream class begins at a coordinate of it: ``slice %x [2:32]`` at 2. Where the coordinates of all values
begin and end cuts the class into intervals; on one of them an op is one *part*, of matrices. Intervals of one
coordinate are computed as they are, longer ones in loops; what sums over the stream is complete after its loops.

    stream [0, 32):  %s = dot_general %q, %k     rows of 32 x [10, 10]     s[0]; s[1]; for c in 2 ... 31: s[c]
                     %t = slice %s [2:32]                                  t[c] = s[c]
                     %u = reduce add %t * %t over the stream                u = sum of t[c] t[c], in the loop
                     %v = multiply %u, (slice %s [0:1])                     v = u s[0], after the loop
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fusionlab.codegen.kernels.triton_tiles import padded
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold, number_of, splat_number
from fusionlab.hlo.cost import DotAxes
from fusionlab.hlo.strided import StridedView, row_major
from fusionlab.hlo.view import Node, Value, constant_array

_MOST_ELEMENTS = 8192
"""Elements of a tile, padded: 64 registers of each of 128 threads."""
_MOST_PARTS = 2000
_MOVES = {ops.BROADCAST_IN_DIM, ops.CONCATENATE, ops.DYNAMIC_UPDATE_SLICE, ops.PAD, ops.RESHAPE, ops.SLICE, ops.TRANSPOSE}
REDUCTIONS = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}
"""The reductions that a chain may have, with the elements that do not change them."""

Interval = tuple[int, int]


class NoChainError(ValueError):
    """A set of ops is no chain; the message is the reason."""


@dataclass(frozen=True)
class Use:
    """Operand number ``at`` of ``node``, which the chain loads or knows: its axes are its own."""

    node: Node
    at: int


Slot = Value | Use
"""A result of an op of the chain, or a use of a value from outside."""


@dataclass(frozen=True)
class Stream:
    """Axis number ``axis`` of what a contraction reads."""

    of: Use
    axis: int


def streams_of(dot: Node) -> list[Stream | None]:
    """The streams of chains with ``dot``, a contraction: none, if it is a product of two matrices; else any axis that
    makes it one."""
    analysis = _Analysis((dot,), dot.results)
    found: dict[int | None, Stream | None] = {}
    shapes = ((at, value.type.shape) for at, value in enumerate(dot.operands))
    axes = (Stream(Use(dot, at), axis) for at, shape in shapes for axis, extent in enumerate(shape) if extent > 1)
    for stream in (None, *axes):
        try:
            found.setdefault(analysis.chain(stream).stream, stream)
        except NoChainError:
            continue
        if stream is None:
            break
    return [*found.values()]


def may_belong(node: Node) -> bool:
    """True if ``node`` is of an op that a chain can hold."""
    if len(node.results) != 1 or node.results[0].type.dtype not in (*ops.WIDE_FLOATS, "i1"):
        return False
    if node.op is ops.DOT_GENERAL:
        return "algorithm" not in node.attributes and bool(DotAxes.of(node).batch)
    if node.op is ops.REDUCE:
        return len(node.operands) == 2 and bool(node.regions) and combiner(node.regions[0]) in REDUCTIONS
    if node.op in _MOVES:
        return node.results[0].type.dtype != "i1" or node.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE)
    return node.op.triton


@dataclass(eq=False)
class Part:
    """What one op is on one interval of the stream, or for all of it: a matrix (or vector, or number) of the axes
    ``labels``, in the order of the chain.

    ``of`` is the node of an op, the ``Load`` or number that it is, or None for the sum of ``operands`` over the stream.
    ``over`` is the class that the op contracts or reduces. ``interval`` is that of the loop that it is in; None outside
    of loops. A loop of ``phase`` n runs after what is summed in those before is complete.
    """

    of: Node | Load | float | None
    operands: tuple[Part, ...] = ()
    labels: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    interval: Interval | None = None
    phase: int = 0

    @property
    def is_zero(self) -> bool:
        """True if it is the number 0."""
        return isinstance(self.of, float) and self.of == 0


@dataclass(frozen=True)
class Load:
    """A tile of ``base``: element ``offset`` plus, along each class of ``steps``, its index times the step."""

    base: Value
    offset: int
    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Store:
    """``part`` is written to the places of output number ``output`` that ``place`` describes, in a loop if there is an
    ``interval``."""

    output: int
    part: Part
    place: Load
    interval: Interval | None


@dataclass(eq=False)
class DotChain:
    """The work of a kernel: ``stores`` into ``outputs``, for every element of the classes ``grid``.

    ``extents`` are those of the classes; ``stream`` is that of the loops, if there is one. ``batch`` are the axes of
    results of contractions that are of the grid; ``dot_traffic`` the elements that the contractions, each alone, read
    and write in one instance.
    """

    members: tuple[Node, ...]
    outputs: tuple[Value, ...]
    extents: Mapping[int, int]
    grid: tuple[int, ...]
    stream: int | None
    stores: tuple[Store, ...]
    parts: list[Part]
    batch: Mapping[Value, frozenset[int]]
    dot_traffic: int

    @staticmethod
    def of(members: Iterable[Node], outputs: Sequence[Value], stream: Stream | None) -> DotChain:
        """The chain of ``members``, in program order, that computes ``outputs`` in loops over the class of ``stream``.

        NoChainError if they are none.
        """
        return _Analysis(tuple(members), tuple(outputs)).chain(stream)

    @property
    def arrays(self) -> list[Value]:
        """The arrays that are read, each once, in order of first use."""
        return list(dict.fromkeys(part.of.base for part in self.parts if isinstance(part.of, Load)))

    @property
    def instances(self) -> int:
        """The number of instances of the kernel."""
        return math.prod(self.extents[label] for label in self.grid)

    @property
    def fits_triton(self) -> bool:
        """True if all arrays are float32: Triton has no matrix product of other types that is as precise."""
        return all(value.type.dtype == "f32" for value in (*self.arrays, *self.outputs))

    @property
    def is_addressable(self) -> bool:
        """True if no array is empty and 32-bit offsets reach every element."""
        return all(0 < math.prod(value.type.shape) < 1 << 31 for value in (*self.arrays, *self.outputs))

    def overwrites(self, dead: Collection[Value]) -> dict[int, int]:
        """For numbers of ``arrays`` in ``dead``, which nothing else reads, an output that may be written in its place.

        Every element of it is read by the instance that writes there, and in the same trip: before, if an instance
        writes when all of it has read.
        """
        found: dict[int, int] = {}
        if any(phase for phase, _ in self.loops):
            return found
        loads = [part for part in self.parts if isinstance(part.of, Load)]
        for number, array in enumerate(self.arrays):
            for output, value in enumerate(self.outputs):
                sizes = [math.prod(one.type.shape) for one in (array, value)]
                if array not in dead or output in found.values() or sizes[0] != sizes[1] or array.dtype != value.dtype:
                    continue
                written = [store for store in self.stores if store.output == output]
                if all(self._read_first(part, written) for part in loads if part.of.base is array):
                    found[number] = output
                    break
        return found

    def _read_first(self, load: Part, written: Sequence[Store]) -> bool:
        """True if one of ``written`` is where ``load`` lies."""
        where = self._covered(load.of), load.interval
        return any((self._covered(store.place), store.interval) == where for store in written)

    def _covered(self, place: Load) -> tuple[Any, ...]:
        """What tells whether two tiles cover the same elements: their own axes may be of other classes, or exchanged."""
        outer = {*self.grid, self.stream}
        tile = sorted((self._extent[label], step) for label, step in place.steps if label not in outer)
        return place.offset, [axis for axis in place.steps if axis[0] in outer], tile

    @property
    def largest(self) -> int:
        """The elements of the largest matrix of an instance."""
        return max(self._count(part.labels) for part in self.parts)

    @property
    def traffic(self) -> int:
        """Elements that one instance reads and writes, each tile once."""
        total = 0
        for part in self.parts:
            if isinstance(part.of, Load):
                total += self._count(part.labels) * self._trips(part)
        for store in self.stores:
            tile = (label for label, _ in store.place.steps if label not in self.grid)
            total += self._count(tile) * self._trips(store)
        return total

    @property
    def flops(self) -> int:
        """Floating-point operations: two per term of a contraction, one per element of everything else."""
        total = 0
        for part in self.parts:
            if isinstance(part.of, Load | float):
                continue
            is_dot = isinstance(part.of, Node) and part.of.op is ops.DOT_GENERAL
            each = self._count(part.labels) * (self._count(part.over) if part.over else 1) * (2 if is_dot else 1)
            total += each * self._trips(part) * self.instances
        return total

    @cached_property
    def _extent(self) -> dict[int, int]:
        return {label: extent for label, extent in self.extents.items() if label != self.stream}

    def _count(self, labels: Iterable[int]) -> int:
        return math.prod(self._extent.get(label, 1) for label in labels)

    def _trips(self, of: Part | Store) -> int:
        return 1 if of.interval is None else of.interval[1] - of.interval[0]

    @property
    def loops(self) -> list[tuple[int, Interval]]:
        """The loops in the order in which they run: their phases, and intervals."""
        made = {(part.phase, part.interval) for part in self.parts if part.interval is not None}
        return sorted(made | {(store.part.phase, store.interval) for store in self.stores if store.interval is not None})


class _Classes:
    """Classes of axes, with the coordinate at which each axis begins (a weighted union-find)."""

    def __init__(self, parent: Mapping[Any, tuple[Any, int]] | None = None) -> None:
        self._parent: dict[Any, tuple[Any, int]] = dict(parent or {})

    def copy(self) -> _Classes:
        """The same classes, to be joined further."""
        return _Classes(self._parent)

    def find(self, axis: Any) -> tuple[Any, int]:
        """The representative of an axis' class, and where the axis begins in the representative's coordinates."""
        parent, start = self._parent.setdefault(axis, (axis, 0))
        if parent == axis:
            return axis, 0
        root, more = self.find(parent)
        self._parent[axis] = root, start + more
        return self._parent[axis]

    def join(self, one: Any, other: Any, start: int = 0) -> None:
        """Element i of axis ``other`` is element ``start`` + i of ``one``; NoChainError if they are known otherwise."""
        (root, begins), (other_root, other_begins) = self.find(one), self.find(other)
        if root == other_root:
            if begins + start != other_begins:
                raise NoChainError("an axis meets itself shifted")
            return
        self._parent[other_root] = root, begins + start - other_begins


@dataclass(frozen=True)
class _Axis:
    """Axis number ``at`` of a slot, or the factor of it whose elements are ``inner`` apart: axes are split by reshapes."""

    slot: Slot
    at: int
    extent: int
    inner: int = 1


@dataclass(frozen=True)
class _Relation:
    """Axis ``to`` of ``other`` is axis ``at`` of ``one``, from ``start`` on; without one, unless it is broadcast."""

    one: Slot
    at: int
    other: Slot
    to: int
    start: int | None = None


class _Analysis:
    """The classes of the axes of a set of ops."""

    def __init__(self, members: tuple[Node, ...], outputs: tuple[Value, ...]) -> None:
        self.members, self.outputs = members, outputs
        self.made = {node.results[0]: node for node in members}
        self.slots = {node: [self._slot(node, at) for at in range(len(node.operands))] for node in members}
        self.dots = {node: DotAxes.of(node) for node in members if node.op is ops.DOT_GENERAL}
        relations = [relation for node in members for relation in self._relations(node)]
        self.axes = self._split(relations)
        self.classes = _Classes()
        self.moved: set[_Axis] = set()
        for relation in relations:
            self._join(relation)
        for node in members:
            if node.op is ops.RESHAPE:
                pairs = ([axis for axis in self.all_axes(s) if axis.extent > 1] for s in (self.slots[node][0], node.results[0]))
                for one, other in zip(*pairs, strict=True):
                    self.classes.join(one, other)

    def _slot(self, node: Node, at: int) -> Slot:
        value = node.operands[at]
        return value if value in self.made else Use(node, at)

    def value(self, slot: Slot) -> Value:
        """The value of a slot."""
        return slot.node.operands[slot.at] if isinstance(slot, Use) else slot

    def shape(self, slot: Slot) -> tuple[int, ...]:
        """The extents of a slot's axes."""
        return self.value(slot).type.shape

    def all_axes(self, slot: Slot) -> list[_Axis]:
        """All axes of a slot, split, outer ones first."""
        return [axis for axes in self.axes[slot] for axis in axes]

    # The ops, as relations between axes.

    def _relations(self, node: Node) -> Iterator[_Relation]:
        (out,), slots, shape = node.results, self.slots[node], node.results[0].type.shape
        if node.op is ops.DOT_GENERAL:
            yield from self._of_dot(self.dots[node], slots[0], slots[1], out)
        elif node.op is ops.BROADCAST_IN_DIM:
            yield from (_Relation(slots[0], at, out, to) for at, to in enumerate(node.attributes["broadcast_dimensions"]))
        elif node.op is ops.TRANSPOSE:
            yield from (_Relation(slots[0], at, out, to) for to, at in enumerate(node.attributes["permutation"]))
        elif node.op is ops.SLICE:
            if any(step != 1 for step in node.attributes["strides"]):
                raise NoChainError("a slice has strides")
            starts = node.attributes["start_indices"]
            yield from (_Relation(slots[0], at, out, at, int(start)) for at, start in enumerate(starts))
        elif node.op is ops.PAD:
            low, high = (list(node.attributes[f"edge_padding_{side}"]) for side in ("low", "high"))
            if any(node.attributes["interior_padding"]) or min((*low, *high), default=0) < 0:
                raise NoChainError("a pad is no frame")
            yield from (_Relation(out, at, slots[0], at, int(start)) for at, start in enumerate(low))
        elif node.op is ops.CONCATENATE:
            along, start = int(node.attributes["dimension"]), 0
            for slot in slots:
                yield from (_Relation(out, at, slot, at, start if at == along else None) for at in range(len(shape)))
                start += self.shape(slot)[along]
        elif node.op is ops.DYNAMIC_UPDATE_SLICE:
            for at, value in enumerate(node.operands[2:]):
                if (start := fold(value)) is None:
                    raise NoChainError("an update's place is data")
                yield _Relation(slots[0], at, out, at)
                yield _Relation(out, at, slots[1], at, int(start))
        elif node.op is ops.REDUCE:
            if number_of(node.operands[1]) != REDUCTIONS[combiner(node.regions[0])]:
                raise NoChainError("a reduction begins with another number")
            gone = list(node.attributes["dimensions"])
            kept = [at for at in range(len(self.shape(slots[0]))) if at not in gone]
            yield from (_Relation(slots[0], at, out, to) for to, at in enumerate(kept))
        elif node.op is not ops.RESHAPE:
            for slot in slots:
                yield from (_Relation(slot, at, out, at) for at in range(len(self.shape(slot))))

    def _of_dot(self, axes: DotAxes, left: Slot, right: Slot, out: Value) -> Iterator[_Relation]:
        for at, (ours, theirs) in enumerate(axes.batch):
            yield from (_Relation(left, ours, right, theirs), _Relation(left, ours, out, at))
        yield from (_Relation(left, ours, right, theirs) for ours, theirs in axes.contracted)
        free = [*((left, at) for at in axes.free_left), *((right, at) for at in axes.free_right)]
        yield from (_Relation(slot, at, out, to) for to, (slot, at) in enumerate(free, len(axes.batch)))

    def _join(self, relation: _Relation) -> None:
        one, other = self.axes[relation.one][relation.at], self.axes[relation.other][relation.to]
        extent, its = self.shape(relation.one)[relation.at], self.shape(relation.other)[relation.to]
        if extent == its:
            if extent > 1:
                for axis, to in zip(one, other, strict=True):
                    self.classes.join(axis, to)
            return
        if relation.start is None:
            return
        if len(one) > 1 or len(other) > 1:
            raise NoChainError("an axis is sliced and split")
        self.classes.join(one[0], other[0], relation.start)
        self.moved |= {one[0], other[0]}

    # Reshapes.

    def _split(self, relations: Sequence[_Relation]) -> dict[Slot, list[list[_Axis]]]:
        """The factors of every axis of every slot: one, but for those that reshapes split or merge."""
        slots = list(dict.fromkeys(slot for node in self.members for slot in (*self.slots[node], *node.results)))
        reshapes = [(self.slots[node][0], node.results[0]) for node in self.members if node.op is ops.RESHAPE]
        same = _Classes()
        for relation in relations:
            if self.shape(relation.one)[relation.at] == self.shape(relation.other)[relation.to]:
                same.join((relation.one, relation.at), (relation.other, relation.to))
        cuts: dict[Any, set[int]] = {}

        def of(slot: Slot, at: int) -> set[int]:
            return cuts.setdefault(same.find((slot, at))[0], set())

        grown = True
        while grown:
            grown = False
            for pair in reshapes:
                marks: set[int] = set()
                for slot in pair:
                    trailing = 1
                    for at in reversed(range(len(self.shape(slot)))):
                        marks.update(trailing * cut for cut in of(slot, at))
                        trailing *= self.shape(slot)[at]
                        marks.add(trailing)
                chain = sorted(marks)
                if any(more % less for less, more in zip(chain, chain[1:], strict=False)):
                    raise NoChainError("a reshape regroups axes")
                for slot in pair:
                    trailing = 1
                    for at in reversed(range(len(self.shape(slot)))):
                        extent, known = self.shape(slot)[at], of(slot, at)
                        inside = {mark // trailing for mark in chain if trailing < mark < trailing * extent}
                        grown = grown or not inside <= known
                        known |= inside
                        trailing *= extent
        return {slot: [_factors(slot, at, n, of(slot, at)) for at, n in enumerate(self.shape(slot))] for slot in slots}

    # The classes.

    def chain(self, along: Stream | None) -> DotChain:
        """The chain whose stream is the class of an axis, and of axes along the same one of an array that is read."""
        classes, stream = self.classes.copy(), None
        if along is not None:
            stream, *others = self.axes[self.slots[along.of.node][along.of.at]][along.axis]
            if others:
                raise NoChainError("the stream is split")
            anchors = [(axis, *anchor) for slot in self.axes for axis in self.all_axes(slot) if (anchor := self._anchor(axis))]
            grown = True
            while grown:
                grown = False
                root = classes.find(stream)[0]
                known = {where: (axis, start) for axis, where, start in anchors if classes.find(axis)[0] == root}
                for axis, where, start in anchors:
                    if where in known and classes.find(axis)[0] != root:
                        one, begins = known[where]
                        classes.join(one, axis, start - begins)
                        grown = True
        labels = self._labels(classes)
        label = None if stream is None else labels[stream]
        if any(labels[axis] != label for axis in self.moved):
            raise NoChainError("values are sliced along another axis than the stream")
        return _Parts(self, classes, labels, self._grid(labels) - {label}, label).chain()

    def _anchor(self, axis: _Axis) -> tuple[tuple[Value, int], int] | None:
        """The axis of the array that an axis of a use runs along, and where it begins there."""
        if not isinstance(axis.slot, Use) or axis.extent != self.shape(axis.slot)[axis.at]:
            return None
        view = StridedView.of(self.value(axis.slot))
        step, shape = view.strides[axis.at], view.base.type.shape
        for of, (extent, its) in enumerate(zip(shape, row_major(shape), strict=True)):
            if extent > 1 and its == step:
                start = view.offset // step % extent
                return ((view.base, of), start) if start + axis.extent <= extent else None
        return None

    def _labels(self, classes: _Classes) -> dict[_Axis, int]:
        """A number for the class of every axis of more than one element, or that lies in such an axis."""
        number: dict[Any, int] = {}
        found: dict[_Axis, int] = {}
        placed = {classes.find(axis)[0] for axis in self.moved}
        for slot in self.axes:
            for axis in self.all_axes(slot):
                root, _ = classes.find(axis)
                if axis.extent > 1 or root in placed:
                    found[axis] = number.setdefault(root, len(number))
        return found

    def _grid(self, labels: Mapping[_Axis, int]) -> set[int]:
        """The classes of batch axes of contractions that nothing contracts, sums or slices, and that are no rows."""
        batch: set[int] = set()
        others = {labels[axis] for axis in self.moved}
        for node, axes in self.dots.items():
            left, right = self.slots[node]
            batch |= self.labels_of(labels, left, (at for at, _ in axes.batch))
            others |= self.labels_of(labels, left, (*axes.free_left, *(at for at, _ in axes.contracted)))
            others |= self.labels_of(labels, right, axes.free_right)
        for node in self.members:
            if node.op is ops.REDUCE:
                others |= self.labels_of(labels, self.slots[node][0], node.attributes["dimensions"])
        return batch - others

    def labels_of(self, labels: Mapping[_Axis, int], slot: Slot, axes: Iterable[int]) -> set[int]:
        """The classes of some axes of a slot."""
        return {labels[axis] for at in axes for axis in self.axes[slot][at] if axis in labels}


def _factors(slot: Slot, at: int, extent: int, cuts: set[int]) -> list[_Axis]:
    """Axis ``at`` of ``slot``, cut into factors: outer ones first."""
    ends = [1, *sorted(cuts), extent]
    found = [_Axis(slot, at, outer // inner, inner) for inner, outer in zip(ends, ends[1:], strict=False)]
    return found[::-1]


class _Parts:
    """The parts of a chain with given classes: an op's on an interval of the stream, made where they are needed."""

    def __init__(
        self,
        analysis: _Analysis,
        classes: _Classes,
        labels: Mapping[_Axis, int],
        grid: set[int],
        stream: int | None,
    ) -> None:
        self.analysis, self.classes, self.labels, self.stream = analysis, classes, labels, stream
        self.grid = tuple(sorted(grid))
        self.extents: dict[int, int] = {}
        for axis, label in labels.items():
            if label != stream and self.extents.setdefault(label, axis.extent) != axis.extent:
                raise NoChainError("an axis has two extents")
        self.cuts = self._cuts()
        self.made: dict[tuple[Slot, Interval | None], Part] = {}
        self.known: dict[Any, Part] = {}
        self.parts: list[Part] = []

    def chain(self) -> DotChain:
        """The chain, with the parts that its outputs need."""
        stores: list[Store] = []
        for number, value in enumerate(self.analysis.outputs):
            if not self._labels(value).issuperset(self.grid):
                raise NoChainError("a result is that of several batch elements")
            for interval in self.intervals(value):
                part = self.part(value, interval)
                place = self._load(value, StridedView.whole(value), interval)
                loop = interval if interval is not None and interval[1] - interval[0] > 1 else None
                stores.append(Store(number, part, place, loop))
        kept = _in_order([store.part for store in stores], self.parts)
        analysis = self.analysis
        reads = [slot for node in analysis.dots for slot in (*analysis.slots[node], *node.results)]
        return DotChain(
            analysis.members,
            analysis.outputs,
            self.extents,
            self.grid,
            self.stream,
            tuple(stores),
            kept,
            {node.results[0]: self._batch_axes(node.results[0]) for node in analysis.dots},
            sum(math.prod(a.extent for a in analysis.all_axes(s) if self.labels.get(a) not in self.grid) for s in reads),
        )

    def _batch_axes(self, value: Value) -> frozenset[int]:
        """The axes of a value that are of the grid, alone or merged with others."""
        return frozenset(axis.at for axis in self.analysis.all_axes(value) if self.labels.get(axis) in self.grid)

    # The stream.

    def _labels(self, slot: Slot, axes: Iterable[int] | None = None) -> set[int]:
        """The classes of some axes of a slot, or of all."""
        every = range(len(self.analysis.shape(slot)))
        return self.analysis.labels_of(self.labels, slot, every if axes is None else axes)

    def _streaming(self, slot: Slot) -> _Axis | None:
        """The axis of a slot that is of the stream."""
        axes = [axis for axis in self.analysis.all_axes(slot) if axis in self.labels and self.labels[axis] == self.stream]
        if len(axes) > 1:
            raise NoChainError("a value has the stream twice")
        return axes[0] if axes else None

    def along(self, slot: Slot) -> Interval | None:
        """The coordinates of the stream that a slot has; None if it has no such axis."""
        if (axis := self._streaming(slot)) is None:
            return None
        start = self.classes.find(axis)[1]
        return start, start + axis.extent

    def _cuts(self) -> list[int]:
        found: set[int] = set()
        for slot in self.analysis.axes:
            if (interval := self.along(slot)) is not None:
                found.update(interval)
                found.update(self._changes(slot, interval[0]))
        return sorted(found)

    def _changes(self, slot: Slot, start: int) -> Iterator[int]:
        """Where a constant changes along the stream."""
        array, axis = _constant(self.analysis.value(slot)) if isinstance(slot, Use) else None, self._streaming(slot)
        if array is not None and axis is not None and array.shape[axis.at] > 1:
            lines = np.moveaxis(array, axis.at, 0).reshape(array.shape[axis.at], -1)
            yield from (start + at for at in range(1, len(lines)) if (lines[at] != lines[at - 1]).any())

    def intervals(self, slot: Slot) -> list[Interval | None]:
        """The intervals of a slot, those between the cuts; None alone if it has no axis of the stream."""
        if (whole := self.along(slot)) is None:
            return [None]
        inside = [cut for cut in self.cuts if whole[0] <= cut <= whole[1]]
        return list(zip(inside, inside[1:], strict=False))

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
        value = self.analysis.value(use)
        if (array := _constant(value)) is not None:
            axis = self._streaming(use)
            if interval is not None and axis is not None and array.shape[axis.at] > 1:
                start = self.classes.find(axis)[1]
                array = np.take(array, range(interval[0] - start, interval[1] - start), axis.at)
            number = splat_number(array)
            if number is not None:
                return self._kept(Part(float(number.real)))
        if value.type.dtype == "i1":
            raise NoChainError("it reads an array of predicates")
        load = self._load(use, StridedView.of(value), interval)
        return self._kept(self._new(load, (), [label for label, _ in load.steps], interval))

    def _load(self, slot: Slot, view: StridedView, interval: Interval | None) -> Load:
        """Where the elements of ``view`` lie, whose axes are those of ``slot``."""
        offset, steps = view.offset, {}
        for axis in self.analysis.all_axes(slot):
            label, step = self.labels.get(axis), view.strides[axis.at] * axis.inner
            if label is None or step == 0 or (axis.extent == 1 and label != self.stream):
                continue
            if label == self.stream:
                assert interval is not None
                offset -= self.classes.find(axis)[1] * step
                if interval[1] - interval[0] == 1:
                    offset += interval[0] * step
                    continue
            if label in steps:
                raise NoChainError("it reads a diagonal")
            steps[label] = step
        return Load(view.base, offset, tuple(sorted(steps.items())))

    def _result(self, value: Value, interval: Interval | None) -> Part:
        node = self.analysis.made[value]
        slots = self.analysis.slots[node]
        if node.op in (ops.BROADCAST_IN_DIM, ops.TRANSPOSE, ops.RESHAPE, ops.SLICE):
            return self.part(slots[0], interval)
        if node.op is ops.PAD:
            return self._first_that_has(interval, slots[:1]) or self.part(slots[1], None)
        if node.op is ops.CONCATENATE:
            found = self._first_that_has(interval, slots)
            if found is None:
                raise NoChainError("nothing is concatenated there")
            return found
        if node.op is ops.DYNAMIC_UPDATE_SLICE:
            return self._first_that_has(interval, [slots[1], slots[0]]) or self.part(slots[0], interval)
        if node.op is ops.DOT_GENERAL:
            return self._dot(node, slots, interval)
        if node.op is ops.REDUCE:
            over = sorted(self._labels(slots[0], node.attributes["dimensions"]))
            if self.stream in over and combiner(node.regions[0]) != "add":
                raise NoChainError("an extremum is taken over the stream")
            return self._summed(slots[:1], over, interval, lambda operands, over: self._reduced(node, operands[0], over))
        return self._elementwise(node, [self.part(slot, interval) for slot in slots])

    def _first_that_has(self, interval: Interval | None, slots: Sequence[Slot]) -> Part | None:
        """The part of the first of ``slots`` that lies there; None if none does. Of no interval, it is the first."""
        for slot in slots:
            whole = self.along(slot)
            if whole is None or interval is None:
                return self.part(slot, interval)
            if whole[0] <= interval[0] < interval[1] <= whole[1]:
                return self.part(slot, interval)
        return None

    def _summed(self, slots: Sequence[Slot], over: Sequence[int], interval: Interval | None, make: Any) -> Part:
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
            if term.is_zero:
                continue
            if each is not None and each[1] - each[0] > 1 and term.interval is None:
                raise NoChainError("it sums what does not change along the stream")
            terms.append(term)
        if not terms:
            return self._kept(Part(0.0))
        labels = sorted({label for term in terms for label in term.labels})
        phase = max(term.phase + (term.interval is not None) for term in terms)
        return self._kept(Part(None, tuple(terms), tuple(labels), (), None, phase))

    def _dot(self, node: Node, slots: Sequence[Slot], interval: Interval | None) -> Part:
        axes = self.analysis.dots[node]
        over = sorted(self._labels(slots[0], (at for at, _ in axes.contracted)))
        free = [self._labels(slots[0], axes.free_left), self._labels(slots[1], axes.free_right)]
        if not (free[0] | free[1]).isdisjoint(self.grid):
            raise NoChainError("a batch axis of one contraction is none of another")
        if any(len(labels - {self.stream}) > 1 for labels in (*free, set(over))):
            raise NoChainError("a contraction has two axes of rows, columns or terms")

        def product(operands: Sequence[Part], over: Sequence[int]) -> Part:
            if any(part.is_zero for part in operands):
                return self._kept(Part(0.0))
            labels = {label for part in operands for label in part.labels}
            if not labels.issuperset(over):
                raise NoChainError("it sums what does not change along an axis")
            labels -= set(over)
            return self._kept(self._new(node, operands, labels, None, over))

        return self._summed(slots, over, interval, product)

    def _reduced(self, node: Node, operand: Part, over: Sequence[int]) -> Part:
        if operand.is_zero and not over:
            return operand
        missing = [label for label in over if label not in operand.labels]
        if missing:
            raise NoChainError("it sums what does not change along an axis")
        if not over:
            return operand
        return self._kept(self._new(node, [operand], set(operand.labels) - set(over), None, over))

    def _elementwise(self, node: Node, operands: Sequence[Part]) -> Part:
        if all(isinstance(part.of, float) for part in operands):
            return self._kept(Part(_number_of(node, [part.of for part in operands])))
        zero = [part.is_zero for part in operands]
        if node.op is ops.ADD and any(zero):
            return operands[zero.index(True) ^ 1] if sum(zero) == 1 else operands[0]
        if node.op is ops.SUBTRACT and zero[1]:
            return operands[0]
        if node.op is ops.MULTIPLY and any(zero):
            return operands[zero.index(True)]
        if node.op is ops.SELECT and isinstance(operands[0].of, float):
            return operands[1] if operands[0].of else operands[2]
        return self._kept(self._new(node, operands, {label for part in operands for label in part.labels}, None))

    def _new(
        self,
        of: Node | Load,
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
        both = {*tile, *over}
        if len(tile) > 2 or len(both) > 3 or math.prod(padded(self.extents[label]) for label in tile) > _MOST_ELEMENTS:
            raise NoChainError("a value is no small matrix")
        is_product = len(both) > 2 and not (isinstance(of, Node) and _is_matrix_product(operands, over))
        if is_product:
            raise NoChainError("a contraction is none of two matrices")
        return Part(of, tuple(operands), tile, tuple(over), loop, max((part.phase for part in operands), default=0))

    def _kept(self, part: Part) -> Part:
        """``part``, or the equal one that is there."""
        key = repr(part.of) if isinstance(part.of, float) else part.of, part.operands, part.interval, part.over
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


def _constant(value: Value) -> np.ndarray | None:
    """The array of a constant, with one element along the axes that it was broadcast to; None for other values."""
    node = value.producer
    if node is None:
        return None
    if node.op.triton:
        arrays = [_constant(operand) for operand in node.operands]
        if any(array is None or array.size != 1 for array in arrays):
            return None
        number = _number_of(node, [float(array.item()) for array in arrays if array is not None])
        return np.full([1] * len(value.type.shape), number, ops.NUMPY[value.type.dtype])
    if node.op not in (ops.CONSTANT, ops.BROADCAST_IN_DIM, ops.RESHAPE):
        return None
    if node.op is ops.CONSTANT:
        array = constant_array(node)
        number = splat_number(array)
        return array if number is None else np.full([1] * array.ndim, number, array.dtype)
    array = _constant(node.operands[0])
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
