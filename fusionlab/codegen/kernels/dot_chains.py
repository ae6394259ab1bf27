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
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from fusionlab.codegen.kernels.triton_tiles import padded
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
    """``part`` is written to the places of output number ``output`` that ``place`` describes."""

    output: int
    part: Part
    place: Load


@dataclass(eq=False)
class DotChain:
    """The work of a kernel: ``stores`` into ``outputs``, for every element of the classes ``grid``.

    ``extents`` are those of the classes; ``stream`` is that of the loops, if there is one.
    """

    members: tuple[Node, ...]
    outputs: tuple[Value, ...]
    extents: Mapping[int, int]
    grid: tuple[int, ...]
    stream: int | None
    stores: tuple[Store, ...]
    parts: list[Part] = field(default_factory=list)

    @staticmethod
    def of(members: Iterable[Node], outputs: Sequence[Value]) -> DotChain:
        """The chain of ``members``, in program order, that computes ``outputs``; NoChainError if they are none."""
        return _Analysis(tuple(members), tuple(outputs)).chain()

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

        Every element of it is read by the instance that writes there, before: to compute what it writes.
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
        """True if one of ``written`` is where ``load`` lies, and computed from it."""
        where = self._covered(load.of), load.interval
        return any(
            (self._covered(store.place), store.part.interval) == where and load in _needed([store.part])
            for store in written
        )

    def _covered(self, place: Load) -> tuple[Any, ...]:
        """What tells whether two tiles cover the same elements: their own axes may be of other classes, or exchanged."""
        outer = {*self.grid, self.stream}
        tile = sorted((self._extent[label], step) for label, step in place.steps if label not in outer)
        return place.offset, [axis for axis in place.steps if axis[0] in outer], tile

    @property
    def traffic(self) -> int:
        """Elements that are read and written, each tile once."""
        total = 0
        for part in self.parts:
            if isinstance(part.of, Load):
                total += self._count(dict(part.of.steps)) * self._trips(part)
        for store in self.stores:
            total += self._count(dict(store.place.steps)) * self._trips(store.part)
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

    def _trips(self, part: Part) -> int:
        return 1 if part.interval is None else part.interval[1] - part.interval[0]

    @property
    def loops(self) -> list[tuple[int, Interval]]:
        """The loops in the order in which they run: their phases, and intervals."""
        return sorted({(part.phase, part.interval) for part in self.parts if part.interval is not None})


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


class _Analysis:
    def __init__(self, members: tuple[Node, ...], outputs: tuple[Value, ...]) -> None:
        self.members, self.outputs = members, outputs
        self.made = {node.results[0]: node for node in members}
        self.classes = _Classes()
        self.moved: set[tuple[Slot, int]] = set()
        self.summed: dict[tuple[Slot, int], str] = {}
        self.dots: list[tuple[Node, DotAxes]] = []
        for node in members:
            self._join(node)

    # The ops, as maps of axes to axes.

    def slot(self, node: Node, at: int) -> Slot:
        """Operand number ``at`` of ``node``."""
        value = node.operands[at]
        return value if value in self.made else Use(node, at)

    def value(self, slot: Slot) -> Value:
        """The value of a slot."""
        return slot.node.operands[slot.at] if isinstance(slot, Use) else slot

    def shape(self, slot: Slot) -> tuple[int, ...]:
        """The extents of a slot's axes."""
        return self.value(slot).type.shape

    def _join(self, node: Node) -> None:
        (out,) = node.results
        slots = [self.slot(node, at) for at in range(len(node.operands))]
        rank, shape = len(out.type.shape), out.type.shape
        if node.op is ops.DOT_GENERAL:
            self._join_dot(node, slots, out)
        elif node.op is ops.BROADCAST_IN_DIM:
            for axis, to in enumerate(node.attributes["broadcast_dimensions"]):
                self._same(slots[0], axis, out, to)
        elif node.op is ops.TRANSPOSE:
            for to, axis in enumerate(node.attributes["permutation"]):
                self._same(slots[0], axis, out, to)
        elif node.op is ops.RESHAPE:
            long, made = ([a for a, n in enumerate(s) if n > 1] for s in (self.shape(slots[0]), shape))
            if [self.shape(slots[0])[a] for a in long] != [shape[a] for a in made]:
                raise NoChainError("a reshape splits or merges axes")
            for axis, to in zip(long, made, strict=True):
                self._same(slots[0], axis, out, to)
        elif node.op is ops.SLICE:
            if any(step != 1 for step in node.attributes["strides"]):
                raise NoChainError("a slice has strides")
            for axis, start in enumerate(node.attributes["start_indices"]):
                self._placed(slots[0], axis, out, axis, int(start))
        elif node.op is ops.PAD:
            self._pad(node, slots[0], out)
        elif node.op is ops.CONCATENATE:
            along, start = int(node.attributes["dimension"]), 0
            for slot in slots:
                for axis in range(rank):
                    self._placed(out, axis, slot, axis, start if axis == along else 0)
                start += self.shape(slot)[along]
        elif node.op is ops.DYNAMIC_UPDATE_SLICE:
            starts = [fold(value) for value in node.operands[2:]]
            if any(start is None for start in starts):
                raise NoChainError("an update's place is data")
            for axis, start in enumerate(starts):
                self._placed(slots[0], axis, out, axis, 0)
                self._placed(out, axis, slots[1], axis, int(start))
        elif node.op is ops.REDUCE:
            gone = list(node.attributes["dimensions"])
            kind = combiner(node.regions[0])
            if number_of(node.operands[1]) != REDUCTIONS[kind]:
                raise NoChainError("a reduction begins with another number")
            kept = [axis for axis in range(len(self.shape(slots[0]))) if axis not in gone]
            for to, axis in enumerate(kept):
                self._same(slots[0], axis, out, to)
            for axis in gone:
                self.summed[slots[0], axis] = kind
        else:
            for slot in slots:
                for axis in range(rank if self.shape(slot) else 0):
                    self._same(slot, axis, out, axis)

    def _join_dot(self, node: Node, slots: Sequence[Slot], out: Value) -> None:
        axes = DotAxes.of(node)
        self.dots.append((node, axes))
        left, right = slots
        for at, (ours, theirs) in enumerate(axes.batch):
            self._same(left, ours, right, theirs)
            self._same(left, ours, out, at)
        for ours, theirs in axes.contracted:
            self._same(left, ours, right, theirs)
        free = [*((left, axis) for axis in axes.free_left), *((right, axis) for axis in axes.free_right)]
        for at, (slot, axis) in enumerate(free, len(axes.batch)):
            self._same(slot, axis, out, at)

    def _same(self, one: Slot, axis: int, other: Slot, to: int) -> None:
        extent = self.shape(one)[axis]
        if extent == self.shape(other)[to] and extent != 1:
            self.classes.join((one, axis), (other, to))

    def _placed(self, one: Slot, axis: int, other: Slot, to: int, start: int) -> None:
        """Element i of ``other``'s axis is element ``start`` + i of ``one``'s."""
        long, short = self.shape(one)[axis], self.shape(other)[to]
        if long == short == 1:
            return
        self.classes.join((one, axis), (other, to), start)
        if long != short:
            self.moved |= {(one, axis), (other, to)}

    def _pad(self, node: Node, slot: Slot, out: Value) -> None:
        low, high = (list(node.attributes[f"edge_padding_{side}"]) for side in ("low", "high"))
        if any(node.attributes["interior_padding"]) or min((*low, *high), default=0) < 0:
            raise NoChainError("a pad is no frame")
        for axis, start in enumerate(low):
            self._placed(out, axis, slot, axis, int(start))

    # The classes.

    def chain(self) -> DotChain:
        """The chain; NoChainError with the reason if there is none."""
        if not self.dots:
            raise NoChainError("there is no batched contraction")
        roots = self._classes_by_axis(self.classes)
        if self.moved:
            return self._streaming(next(iter(self.moved)))
        reason = NoChainError("there are no axes")
        grid = self._grid(roots)
        firsts = {label: axis for axis, label in reversed(roots.items()) if label not in grid}
        for stream in (None, *firsts.values()):
            try:
                return self._streaming(stream)
            except NoChainError as error:
                reason = error
        raise reason

    def _streaming(self, stream: tuple[Slot, int] | None) -> DotChain:
        """The chain whose stream is the class of an axis, and of axes along the same one of an array that is read."""
        classes = self.classes.copy()
        if stream is not None:
            anchors = [(axis, *anchor) for axis in self._axes() if (anchor := self._anchor(*axis)) is not None]
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
        roots = self._classes_by_axis(classes)
        label = None if stream is None else roots[stream]
        if any(roots[axis] != label for axis in self.moved):
            raise NoChainError("values are sliced along two axes")
        return _Parts(self, classes, roots, self._grid(roots) - {label}, label).chain()

    def _axes(self) -> Iterator[tuple[Slot, int]]:
        """Every axis of every operand and result."""
        for node in self.members:
            for slot in (*(self.slot(node, at) for at in range(len(node.operands))), *node.results):
                for axis in range(len(self.shape(slot))):
                    yield slot, axis

    def _anchor(self, slot: Slot, axis: int) -> tuple[tuple[Value, int], int] | None:
        """The axis of the array that an axis of a use runs along, and where it begins there."""
        if not isinstance(slot, Use):
            return None
        view = StridedView.of(self.value(slot))
        step, shape = view.strides[axis], view.base.type.shape
        for of, (extent, its) in enumerate(zip(shape, row_major(shape), strict=True)):
            if extent > 1 and its == step:
                start = view.offset // step % extent
                return ((view.base, of), start) if start + view.shape[axis] <= extent else None
        return None

    def _grid(self, roots: Mapping[tuple[Slot, int], int]) -> set[int]:
        contracted, free, batch = self._kinds(roots)
        others = {roots[axis] for axis in (*self.moved, *self.summed) if axis in roots}
        return batch - contracted - free - others

    def _classes_by_axis(self, classes: _Classes) -> dict[tuple[Slot, int], int]:
        """A number for the class of every axis of more than one element, or that lies in such an axis."""
        number: dict[Any, int] = {}
        found: dict[tuple[Slot, int], int] = {}
        placed = {classes.find(axis)[0] for axis in self.moved}
        for slot, axis in self._axes():
            root, _ = classes.find((slot, axis))
            if self.shape(slot)[axis] > 1 or root in placed:
                found[slot, axis] = number.setdefault(root, len(number))
        return found

    def _kinds(self, roots: Mapping[tuple[Slot, int], int]) -> tuple[set[int], set[int], set[int]]:
        """The classes of contracted, free and batch axes of contractions."""
        kinds: tuple[set[int], set[int], set[int]] = set(), set(), set()
        for node, axes in self.dots:
            left, right = self.slot(node, 0), self.slot(node, 1)
            pairs = (
                [(left, axis) for axis, _ in axes.contracted],
                [*((left, axis) for axis in axes.free_left), *((right, axis) for axis in axes.free_right)],
                [(left, axis) for axis, _ in axes.batch],
            )
            for kind, found in zip(kinds, pairs, strict=True):
                kind.update(roots[axis] for axis in found if axis in roots)
        return kinds


class _Parts:
    """The parts of a chain with given classes: an op's on an interval of the stream, made where they are needed."""

    def __init__(
        self,
        analysis: _Analysis,
        classes: _Classes,
        roots: Mapping[tuple[Slot, int], int],
        grid: set[int],
        stream: int | None,
    ) -> None:
        self.analysis, self.classes, self.roots, self.stream = analysis, classes, roots, stream
        self.grid = tuple(sorted(grid))
        self.extents: dict[int, int] = {}
        for (slot, axis), label in roots.items():
            extent = analysis.shape(slot)[axis]
            if label != stream and self.extents.setdefault(label, extent) != extent:
                raise NoChainError("an axis has two extents")
        self.cuts = self._cuts()
        self.made: dict[tuple[Slot, Interval | None], Part] = {}
        self.known: dict[Any, Part] = {}
        self.parts: list[Part] = []

    def chain(self) -> DotChain:
        """The chain, with the parts that its outputs need."""
        stores: list[Store] = []
        for number, value in enumerate(self.analysis.outputs):
            labels = {label for axis in range(len(value.type.shape)) if (label := self.roots.get((value, axis))) is not None}
            if not labels.issuperset(self.grid):
                raise NoChainError("a result is that of several batch elements")
            for interval in self.intervals(value):
                part = self.part(value, interval)
                stores.append(Store(number, part, self._load(value, StridedView.whole(value), interval)))
        kept = _in_order([store.part for store in stores], self.parts)
        members, outputs = self.analysis.members, self.analysis.outputs
        return DotChain(members, outputs, self.extents, self.grid, self.stream, tuple(stores), kept)

    # The stream.

    def along(self, slot: Slot) -> Interval | None:
        """The coordinates of the stream that a slot has; None if it has no such axis."""
        for axis, extent in enumerate(self.analysis.shape(slot)):
            if self.stream is not None and self.roots.get((slot, axis)) == self.stream:
                start = self.classes.find((slot, axis))[1]
                return start, start + extent
        return None

    def _cuts(self) -> list[int]:
        found: set[int] = set()
        axes_of: dict[Slot, list[int]] = {}
        for (slot, axis), label in self.roots.items():
            if label == self.stream:
                axes_of.setdefault(slot, []).append(axis)
        for slot, axes in axes_of.items():
            if len(axes) > 1:
                raise NoChainError("a value has the stream twice")
            if (interval := self.along(slot)) is not None:
                found.update(interval)
                found.update(self._changes(slot, axes[0], interval[0]))
        return sorted(found)

    def _changes(self, slot: Slot, axis: int, start: int) -> Iterator[int]:
        """Where a constant changes along the stream."""
        array = _constant(self.analysis.value(slot)) if isinstance(slot, Use) else None
        if array is not None and array.ndim > axis and array.shape[axis] > 1:
            lines = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
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
            axis = next((a for a in range(array.ndim) if array.shape[a] > 1 and self.roots.get((use, a)) == self.stream), None)
            if interval is not None and axis is not None:
                start = self.classes.find((use, axis))[1]
                array = np.take(array, range(interval[0] - start, interval[1] - start), axis)
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
        for axis, (extent, step) in enumerate(zip(view.shape, view.strides, strict=True)):
            label = self.roots.get((slot, axis))
            if label is None or step == 0 or (extent == 1 and label != self.stream):
                continue
            if label == self.stream:
                assert interval is not None
                offset -= self.classes.find((slot, axis))[1] * step
                if interval[1] - interval[0] == 1:
                    offset += interval[0] * step
                    continue
            if label in steps:
                raise NoChainError("it reads a diagonal")
            steps[label] = step
        return Load(view.base, offset, tuple(sorted(steps.items())))

    def _result(self, value: Value, interval: Interval | None) -> Part:
        node = self.analysis.made[value]
        slots = [self.analysis.slot(node, at) for at in range(len(node.operands))]
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
            gone = [(slots[0], axis) for axis in node.attributes["dimensions"]]
            over = [self.roots[axis] for axis in gone if axis in self.roots]
            kind = self.analysis.summed[gone[0]] if gone else "add"
            if kind != "add" and self.stream in over:
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
        axes = DotAxes.of(node)
        over = [self.roots[slots[0], axis] for axis, _ in axes.contracted if (slots[0], axis) in self.roots]
        for label in (self.roots.get((slots[0], axis)) for axis, _ in axes.batch):
            if label is not None and label != self.stream and label not in self.grid:
                raise NoChainError("a batch axis of one contraction is none of another")
        for slot, free in ((slots[0], axes.free_left), (slots[1], axes.free_right)):
            labels = [self.roots[slot, axis] for axis in free if (slot, axis) in self.roots]
            if len([label for label in labels if label != self.stream]) > 1:
                raise NoChainError("a contraction has two axes of rows")
            if any(label in self.grid for label in labels):
                raise NoChainError("a batch axis of one contraction is none of another")
        if len([label for label in over if label != self.stream]) > 1:
            raise NoChainError("a contraction sums over two axes")

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


def _constant(value: Value) -> np.ndarray | None:
    """The array of a constant, with one element along the axes that it was broadcast to; None for other values."""
    node = value.producer
    if node is None or node.op not in (ops.CONSTANT, ops.BROADCAST_IN_DIM, ops.RESHAPE):
        return None
    if node.op is ops.CONSTANT:
        return constant_array(node)
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
    needed = _needed(ends)
    return [part for part in parts if part in needed]


def _needed(ends: Sequence[Part]) -> set[Part]:
    """The parts that ``ends`` need, themselves included."""
    needed: set[Part] = set()
    waiting = [*ends]
    while waiting:
        part = waiting.pop()
        if part not in needed:
            needed.add(part)
            waiting += part.operands
    return needed
