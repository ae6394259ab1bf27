"""The work of one kernel: the rows and weights of a contraction, and the parts of what follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from fusionlab.codegen.kernels.dot_chains.axes import ChainAxes, ChainAxis, ChainClasses, Slot, Stream, Use
from fusionlab.codegen.kernels.dot_chains.chain import (
    DotChain,
    Exchanged,
    Interval,
    NoChainError,
    Part,
    Rows,
    TileLoad,
    TileStore,
)
from fusionlab.codegen.kernels.dot_chains.parts import ChainParts, may_be_held
from fusionlab.codegen.kernels.row_programs import features, side_by_side
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import axes_after
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value


@dataclass(frozen=True)
class RowSource:
    """Some of the contracted features of the rows: ``extent`` of them, ``step`` apart, that meet the weights from row
    ``first`` on. ``load`` is where the first one lies."""

    load: TileLoad
    step: int
    extent: int
    first: int


@dataclass(eq=False)
class JetLayer(DotChain):
    """A dot chain of one contraction, ``node``, of all of whose rows an instance has a block of ``columns``.

    ``weights`` are ``[features, columns]``; ``rows`` the number of rows.
    """

    node: Node
    sources: tuple[RowSource, ...]
    weights: StridedView
    columns: int
    rows: int

    @property
    def arrays(self) -> list[Value]:
        """The arrays that are read, each once, in order of first use."""
        product = [*(source.load.base for source in self.sources), self.weights.base]
        return list(dict.fromkeys((*product, *(load.base for _, load in self.loads))))

    @property
    def written(self) -> int:
        """Elements that one instance writes."""
        extents = {**self.extents, **dict.fromkeys(self.grid, 1)}
        return sum(
            math.prod(
                self._rows_of(store) if label == self.stream else extents[label] for label, _ in store.place.steps
            )
            for store in self.stores
        )

    @staticmethod
    def _rows_of(store: TileStore) -> int:
        return 1 if store.interval is None else store.interval[1] - store.interval[0]

    @property
    def is_jet(self) -> bool:
        """True if a sum over the rows is among what follows the contraction."""
        return any(part.of is None for part in self.parts)


def may_follow(node: Node) -> bool:
    """True if ``node`` is of an op that may follow the contraction."""
    return node.op is not ops.DOT_GENERAL and may_be_held(node)


def is_layer(node: Node) -> bool:
    """True if ``node`` contracts the last axis of rows with a matrix, in floating point, by no explicit algorithm."""
    if node.op is not ops.DOT_GENERAL or not may_be_held(node):
        return False
    axes = DotAxes.of(node)
    rows, matrix = (value.type.shape for value in node.operands)
    of_floats = all(value.dtype in WIDE_FLOATS for value in (*node.operands, *node.results))
    return of_floats and not axes.batch_pairs and len(matrix) == 2 and axes.contracted[0] == (len(rows) - 1,)


def streams_of(node: Node) -> list[Stream]:
    """The axes of what a layer reads that may be those of its rows."""
    shape = node.operands[0].type.shape
    return [Stream(Use(node, 0), axis) for axis in range(len(shape) - 1) if shape[axis] > 2]


def sum_over_rows(node: Node, stream: Stream, users: Mapping[Value, Sequence[Node]]) -> Node | None:
    """A sum over the rows of ``node``, which lie along ``stream``, by ops that may follow it; None if there is none.

    ``users`` are the nodes that read each value.
    """
    waiting = [(node.results[0], stream.axis)]
    seen = set(waiting)
    while waiting:
        value, axis = waiting.pop(0)
        for user in filter(may_follow, users.get(value, ())):
            if user.op is ops.REDUCE and value == user.operands[0] and axis in user.attributes["dimensions"]:
                if combiner(user.regions[0]) == "add":
                    return user
                continue
            for to in axes_after(user, value, axis):
                if (user.results[0], to) not in seen:
                    seen.add((user.results[0], to))
                    waiting.append((user.results[0], to))
    return None


def jet_layer(members: Iterable[Node], outputs: Sequence[Value], *, node: Node, stream: Stream) -> JetLayer:
    """The layer of ``node`` with what else is of ``members``, in program order, which computes ``outputs``.

    NoChainError if they are none with rows along ``stream``.
    """
    axes = _LayerAxes(tuple(members))
    return _LayerParts(axes, axes.classes_of(stream), node).layer(tuple(outputs))


class _LayerAxes(ChainAxes):
    """The classes of the axes of a layer: its grid are the free axes of its rows that nothing sums or slices."""

    def grid(self, labels: Mapping[ChainAxis, int]) -> set[int]:
        """The classes of the grid; the stream may be one of them."""
        free: set[int] = set()
        others = self.gone(labels)
        for node, axes in self.dots.items():
            left, right = self.slots[node]
            free |= self.labels_of(labels, left, axes.free[0])
            others |= self.labels_of(labels, right, axes.free[1])
        return free - others


class _LayerParts(ChainParts):
    """The parts of a layer: vectors of columns, of all rows or of one."""

    def __init__(self, axes: ChainAxes, classes: ChainClasses, node: Node) -> None:
        super().__init__(axes, classes)
        self.node = node
        left, right = axes.slots[node]
        free = axes.labels_of(self.labels, right, DotAxes.of(node).free[1])
        whole = self.along(left)
        if len(free) != 1 or whole is None or whole[0] != 0:
            raise NoChainError("the contraction has no rows, or no columns")
        (self.columns,), self.whole = free, whole
        self.streamed = frozenset(node.operands)

    def layer(self, outputs: tuple[Value, ...]) -> JetLayer:
        """The layer, with the parts that ``outputs`` need."""
        chain = self.chain(outputs)
        value, matrix = self.node.operands
        weights = StridedView.of(matrix)
        if DotAxes.of(self.node).contracted[1] == (1,):
            weights = StridedView(weights.base, weights.shape[::-1], weights.strides[::-1], weights.offset)
        sources = [self._source(part, first) for part, first in side_by_side(value)]
        known = {one.name: getattr(chain, one.name) for one in fields(DotChain)}
        rows = self.whole[1]
        return JetLayer(
            **known, node=self.node, sources=tuple(sources), weights=weights, columns=self.columns, rows=rows
        )

    def _source(self, part: Value, first: int) -> RowSource:
        view = StridedView.of(part)
        load = self.load(self.axes.slots[self.node][0], view, self.whole)
        outer = {*self.grid, self.stream}
        place = TileLoad(load.base, load.offset, tuple(step for step in load.steps if step[0] in outer))
        return RowSource(place, view.strides[-1], features(part), first)

    def product(self, node: Node, slots: Sequence[Slot], interval: Interval | None) -> Part:
        """The rows of the contraction on ``interval``."""
        if interval is None:
            raise NoChainError("the contraction has no rows there")
        loop = interval if interval[1] - interval[0] > 1 else None
        contracted = DotAxes.of(node).contracted[0]
        over = tuple(self.axes.labels_of(self.labels, slots[0], contracted))
        return self.kept(Part(Rows(node, interval), (), (self.columns,), over, loop))

    def require_tile(
        self, of: Node | TileLoad | Exchanged, operands: Sequence[Part], tile: Sequence[int], over: Sequence[int]
    ) -> None:
        """NoChainError unless a part is a vector of columns, or one number."""
        if over or not set(tile) <= {self.columns}:
            raise NoChainError("a value has another axis than rows and columns, or features are summed")
