"""The classes of the axes of a set of ops: which are batch axes, which is the stream, and where axes begin in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.kernels.dot_chains.chain import NoChainError
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import FactorKind, factors_of
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.strided import StridedView, row_major
from fusionlab.hlo.view import Node, Value

REDUCTIONS = {"add": 0.0, "maximum": -math.inf, "minimum": math.inf}
"""The reductions that a chain may have, with the elements that do not change them."""


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


@dataclass(frozen=True)
class ChainAxis:
    """Axis number ``at`` of a slot, or the factor of it whose elements are ``inner`` apart: reshapes split axes."""

    slot: Slot
    at: int
    extent: int
    inner: int = 1


@dataclass(frozen=True)
class ChainClasses:
    """Classes of axes by number, where each axis begins in its class, which are of the grid, and the stream."""

    labels: Mapping[ChainAxis, int]
    starts: Mapping[ChainAxis, int]
    grid: frozenset[int]
    stream: int | None


@dataclass(frozen=True)
class _Relation:
    """Axis ``to`` of ``other`` is axis ``at`` of ``one``, from ``start`` on; without one, unless it is broadcast."""

    one: Slot
    at: int
    other: Slot
    to: int
    start: int | None = None


class Classes:
    """Classes of axes, with the coordinate at which each axis begins (a weighted union-find)."""

    def __init__(self, parent: Mapping[Any, tuple[Any, int]] | None = None) -> None:
        self._parent: dict[Any, tuple[Any, int]] = dict(parent or {})

    def copy(self) -> Classes:
        """The same classes, to be joined further."""
        return Classes(self._parent)

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


class ChainAxes:
    """The classes of the axes of a set of ops."""

    def __init__(self, members: tuple[Node, ...]) -> None:
        self.members = members
        self.made = {node.results[0]: node for node in members}
        self.slots = {node: [self._slot(node, at) for at in range(len(node.operands))] for node in members}
        self.dots = {node: DotAxes.of(node) for node in members if node.op is ops.DOT_GENERAL}
        self.exchanged = self._exchanged()
        relations = [relation for node in members for relation in self._relations(node)]
        self.axes = self._split(relations)
        self.classes = Classes()
        self.moved: set[ChainAxis] = set()
        for relation in relations:
            self._join(relation)
        for node in members:
            if node.op is ops.RESHAPE:
                pairs = (
                    [axis for axis in self.all_axes(s) if axis.extent > 1]
                    for s in (self.slots[node][0], node.results[0])
                )
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

    def all_axes(self, slot: Slot) -> list[ChainAxis]:
        """All axes of a slot, split, outer ones first."""
        return [axis for axes in self.axes[slot] for axis in axes]

    def _exchanged(self) -> set[Node]:
        """The transposes of members that a member reads together with what is transposed.

        Axes that they move are of two classes: before, and after.
        """
        reads = [set(node.operands) for node in self.members]
        moves = [node for node in self.members if node.op is ops.TRANSPOSE and node.operands[0] in self.made]
        return {node for node in moves if any({node.operands[0], node.results[0]} <= read for read in reads)}

    # The ops, as relations between axes.

    def _relations(self, node: Node) -> Iterator[_Relation]:
        """Those of the factors of ``node``; NoChainError where elements move by distances that are not known."""
        slots: list[Slot] = [*self.slots[node], *node.results]
        inputs = len(node.operands)
        if node.op is ops.REDUCE and number_of(node.operands[1]) != REDUCTIONS[combiner(node.regions[0])]:
            raise NoChainError("a reduction begins with another number")
        for factor in factors_of(node):
            (first, at), *others = factor.places
            if node in self.exchanged and others != [(inputs, at)]:
                continue
            if factor.kind is FactorKind.PART:
                if factor.start is None:
                    raise NoChainError(f"a {node.op.mnemonic} is of places that are data or apart")
                [(other, to)] = others
                yield _Relation(slots[first], at, slots[other], to, factor.start)
            elif factor.kind in (FactorKind.MOVED, FactorKind.UNKNOWN):
                raise NoChainError(f"a {node.op.mnemonic} moves elements along an axis")
            elif others and others[-1][0] >= inputs:
                out, to = others[-1]
                yield from (_Relation(slots[one], axis, slots[out], to) for one, axis in factor.places[:-1])
            else:
                yield from (_Relation(slots[first], at, slots[other], to) for other, to in others)

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

    def _split(self, relations: Sequence[_Relation]) -> dict[Slot, list[list[ChainAxis]]]:
        """The factors of every axis of every slot: one, but for those that reshapes split or merge."""
        slots = list(dict.fromkeys(slot for node in self.members for slot in (*self.slots[node], *node.results)))
        reshapes = [(self.slots[node][0], node.results[0]) for node in self.members if node.op is ops.RESHAPE]
        same = Classes()
        for relation in relations:
            if self.shape(relation.one)[relation.at] == self.shape(relation.other)[relation.to]:
                same.join((relation.one, relation.at), (relation.other, relation.to))
        cuts: dict[Any, set[int]] = {}  # of equal axes the same set
        of = {s: [cuts.setdefault(same.find((s, at))[0], set()) for at in range(len(self.shape(s)))] for s in slots}
        grown = True
        while grown:
            grown = False
            for pair in reshapes:
                sides = [(self.shape(slot), of[slot]) for slot in pair]
                marks = _marks(sides)
                for shape, known in sides:
                    grown = _cut(shape, known, marks) or grown
        return {slot: [_factors(slot, at, n, of[slot][at]) for at, n in enumerate(self.shape(slot))] for slot in slots}

    # The classes.

    def classes_of(self, along: Stream | None) -> ChainClasses:
        """The classes if the stream is that of an axis, and of axes along the same one of an array that is read."""
        if not self.dots:
            raise NoChainError("there is no batched contraction")
        classes, stream = self.classes.copy(), None
        if along is not None:
            stream, *others = self.axes[self.slots[along.of.node][along.of.at]][along.axis]
            if others:
                raise NoChainError("the stream is split")
            self._follow(classes, stream)
        labels = self._labels(classes)
        label = None if stream is None else labels[stream]
        if any(labels[axis] != label for axis in self.moved):
            raise NoChainError("values are sliced along another axis than the stream")
        starts = {axis: classes.find(axis)[1] for axis in labels}
        return ChainClasses(labels, starts, frozenset(self.grid(labels) - {label}), label)

    def _follow(self, classes: Classes, stream: ChainAxis) -> None:
        """Join the axes that run along the same axis of an array as one of the stream's class."""
        every = (axis for slot in self.axes for axis in self.all_axes(slot))
        anchors = [(axis, *anchor) for axis in every if (anchor := self._anchor(axis))]
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

    def _anchor(self, axis: ChainAxis) -> tuple[tuple[Value, int], int] | None:
        """The axis of the array that an axis of a use runs along, and where it begins there."""
        if not isinstance(axis.slot, Use) or axis.extent != self.shape(axis.slot)[axis.at]:
            return None
        view = StridedView.of(self.value(axis.slot))
        step, shape = view.strides[axis.at], view.base.type.shape
        alike = [at for at, stride in enumerate(view.strides) if stride == step]
        if axis.at != max(alike, key=lambda at: view.shape[at]):  # beside it, one of a single element runs along none
            return None
        for of, (extent, its) in enumerate(zip(shape, row_major(shape), strict=True)):
            if extent > 1 and its == step:
                start = view.offset // step % extent
                return ((view.base, of), start) if start + axis.extent <= extent else None
        return None

    def _labels(self, classes: Classes) -> dict[ChainAxis, int]:
        """A number for the class of every axis of more than one element, or that lies in such an axis."""
        number: dict[Any, int] = {}
        found: dict[ChainAxis, int] = {}
        placed = {classes.find(axis)[0] for axis in self.moved}
        for slot in self.axes:
            for axis in self.all_axes(slot):
                root, _ = classes.find(axis)
                if axis.extent > 1 or root in placed:
                    found[axis] = number.setdefault(root, len(number))
        return found

    def grid(self, labels: Mapping[ChainAxis, int]) -> set[int]:
        """The classes of batch axes of contractions that nothing contracts, sums or slices, and that are no rows."""
        batch: set[int] = set()
        others = self.gone(labels)
        for node, axes in self.dots.items():
            left, right = self.slots[node]
            batch |= self.labels_of(labels, left, axes.batch[0])
            others |= self.labels_of(labels, left, axes.free[0]) | self.labels_of(labels, right, axes.free[1])
        return batch - others

    def gone(self, labels: Mapping[ChainAxis, int]) -> set[int]:
        """The classes that something contracts, sums or slices."""
        found = {labels[axis] for axis in self.moved}
        for node, axes in self.dots.items():
            found |= self.labels_of(labels, self.slots[node][0], axes.contracted[0])
        for node in self.members:
            if node.op is ops.REDUCE:
                summed = (
                    at for factor in factors_of(node) if factor.kind is FactorKind.REDUCED for _, at in factor.places
                )
                found |= self.labels_of(labels, self.slots[node][0], summed)
        return found

    def labels_of(self, labels: Mapping[ChainAxis, int], slot: Slot, axes: Iterable[int]) -> set[int]:
        """The classes of some axes of a slot."""
        return {labels[axis] for at in axes for axis in self.axes[slot][at] if axis in labels}


def _marks(sides: Iterable[tuple[Sequence[int], Sequence[set[int]]]]) -> list[int]:
    """How many elements lie inside each factor and axis of shapes with these cuts, ascending.

    NoChainError unless each number divides the next.
    """
    found: set[int] = set()
    for shape, cuts in sides:
        trailing = 1
        for extent, known in zip(reversed(shape), reversed(cuts), strict=True):
            found.update(trailing * cut for cut in known)
            trailing *= extent
            found.add(trailing)
    marks = sorted(found)
    if any(more % less for less, more in itertools.pairwise(marks)):
        raise NoChainError("a reshape regroups axes")
    return marks


def _cut(shape: Sequence[int], cuts: Sequence[set[int]], marks: Sequence[int]) -> bool:
    """Add the cuts of each axis at the ``marks`` that lie inside of it; True if one is new."""
    grown, trailing = False, 1
    for extent, known in zip(reversed(shape), reversed(cuts), strict=True):
        inside = {mark // trailing for mark in marks if trailing < mark < trailing * extent}
        grown = grown or not inside <= known
        known |= inside
        trailing *= extent
    return grown


def _factors(slot: Slot, at: int, extent: int, cuts: set[int]) -> list[ChainAxis]:
    """Axis ``at`` of ``slot``, cut into factors: outer ones first."""
    ends = [1, *sorted(cuts), extent]
    found = [ChainAxis(slot, at, outer // inner, inner) for inner, outer in itertools.pairwise(ends)]
    return found[::-1]
