"""What a kernel does: parts, each a matrix of one instance, and where they are read and written."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fusionlab.codegen.kernels.triton_tiles import fits_triton, is_addressable
from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Value

Interval = tuple[int, int]


class NoChainError(ValueError):
    """A set of ops is no chain; the message is the reason."""


class Padding(float):
    """The zero of a pad: what it is multiplied with is not computed there."""


@dataclass(frozen=True)
class Rows:
    """The rows of a contraction that an instance holds, those of ``interval`` of the stream."""

    node: Node
    interval: Interval


@dataclass(frozen=True)
class Exchanged:
    """The transpose of a matrix by ``node``, which an op reads together with the matrix: ``classes`` has the class that
    each axis of the matrix becomes."""

    node: Node
    classes: tuple[tuple[int, int], ...]


@dataclass(eq=False)
class Part:
    """What one op is on one interval of the stream, or for all of it: a matrix (or vector, or number) of the axes
    ``labels``, in the order of the chain.

    ``of`` is the node of an op, the ``TileLoad`` or number that it is, or None for the sum of ``operands`` over the
    stream. ``over`` is the class that the op contracts or reduces. ``interval`` is that of the loop that it is in; None
    outside of loops. A loop of ``phase`` n runs after what is summed in those before is complete.
    """

    of: Node | TileLoad | Rows | Exchanged | float | None
    operands: tuple[Part, ...] = ()
    labels: tuple[int, ...] = ()
    over: tuple[int, ...] = ()
    interval: Interval | None = None
    phase: int = 0

    @property
    def is_padding(self) -> bool:
        """True if it is zero because a pad put zeros there, or is a product with such zeros."""
        return isinstance(self.of, Padding)


@dataclass(frozen=True)
class TileLoad:
    """A tile of ``base``: element ``offset`` plus, along each class of ``steps``, its index times the step."""

    base: Value
    offset: int
    steps: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class TileStore:
    """``part`` is written to the places of output number ``output`` that ``place`` describes, in a loop if there is an
    ``interval``."""

    output: int
    part: Part
    place: TileLoad
    interval: Interval | None


@dataclass(eq=False)
class DotChain:
    """The work of a kernel: ``stores`` into ``outputs``, for every element of the classes ``grid``.

    ``extents`` are those of the classes; ``stream`` is that of the loops, if there is one. ``batch`` are the axes of
    results of contractions that are of the grid; ``dot_traffic`` the elements that the contractions, each alone, read
    and write in one instance, and that the transposes of their results write that meet these.
    """

    members: tuple[Node, ...]
    outputs: tuple[Value, ...]
    extents: Mapping[int, int]
    grid: tuple[int, ...]
    stream: int | None
    stores: tuple[TileStore, ...]
    parts: list[Part]
    batch: Mapping[Value, frozenset[int]]
    dot_traffic: int

    @property
    def loads(self) -> Iterator[tuple[Part, TileLoad]]:
        """The parts that are loaded, with where they lie."""
        return ((part, part.of) for part in self.parts if isinstance(part.of, TileLoad))

    @property
    def arrays(self) -> list[Value]:
        """The arrays that are read, each once, in order of first use."""
        return list(dict.fromkeys(load.base for _, load in self.loads))

    @property
    def instances(self) -> int:
        """The number of instances of the kernel."""
        return math.prod(self.extents[label] for label in self.grid)

    @property
    def fits_triton(self) -> bool:
        """True if Triton has products for all arrays."""
        return fits_triton((*self.arrays, *self.outputs))

    @property
    def is_addressable(self) -> bool:
        """True if kernels reach every element of the arrays."""
        return is_addressable((*self.arrays, *self.outputs))

    def overwrites(self, dead: Collection[Value]) -> dict[int, int]:
        """For numbers of ``arrays`` in ``dead``, which nothing else reads, an output that may be written in its place.

        Every element of it is read by the instance that writes there, and in the same trip: before, if an instance
        writes when all of it has read.
        """
        found: dict[int, int] = {}
        if any(phase for phase, _ in self.loops):
            return found
        for number, array in enumerate(self.arrays):
            for output, value in enumerate(self.outputs):
                sizes = [math.prod(one.type.shape) for one in (array, value)]
                if array not in dead or output in found.values() or sizes[0] != sizes[1] or array.dtype != value.dtype:
                    continue
                places = [(self._covered(s.place), s.interval) for s in self.stores if s.output == output]
                read = [(self._covered(load), part.interval) for part, load in self.loads if load.base is array]
                if all(place in places for place in read):
                    found[number] = output
                    break
        return found

    def _covered(self, place: TileLoad) -> tuple[int, list[tuple[int, int]], list[tuple[int, int]]]:
        """What tells whether two tiles cover the same elements: their axes may be of other classes, or exchanged."""
        outer = {*self.grid, self.stream}
        tile = sorted((self._extent[label], step) for label, step in place.steps if label not in outer)
        return place.offset, [axis for axis in place.steps if axis[0] in outer], tile

    @property
    def products(self) -> set[Node]:
        """The contractions that are products of two matrices, with rows and columns, in one instance."""
        dots = ((part, part.of) for part in self.parts if isinstance(part.of, Node) and part.of.op is ops.DOT_GENERAL)
        return {node for part, node in dots if len(part.labels) == 2 and part.over}

    @property
    def exchanged(self) -> set[Node]:
        """The transposes that ops read together with what is transposed."""
        return {part.of.node for part in self.parts if isinstance(part.of, Exchanged)}

    @property
    def largest(self) -> int:
        """The elements of the largest matrix of an instance."""
        return max(self._count(part.labels) for part in self.parts)

    @property
    def traffic(self) -> int:
        """Elements that one instance reads and writes, each tile once."""
        total = 0
        for part, _ in self.loads:
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
            if isinstance(part.of, TileLoad | float):
                continue
            is_dot = isinstance(part.of, Rows) or (isinstance(part.of, Node) and part.of.op is ops.DOT_GENERAL)
            each = self._count(part.labels) * (self._count(part.over) if part.over else 1) * (2 if is_dot else 1)
            total += each * self._trips(part) * self.instances
        return total

    @cached_property
    def _extent(self) -> dict[int, int]:
        return {label: extent for label, extent in self.extents.items() if label != self.stream}

    def _count(self, labels: Iterable[int]) -> int:
        return math.prod(self._extent.get(label, 1) for label in labels)

    def _trips(self, of: Part | TileStore) -> int:
        return 1 if of.interval is None else of.interval[1] - of.interval[0]

    @property
    def loops(self) -> list[tuple[int, Interval]]:
        """The loops in the order in which they run: their phases, and intervals."""
        made = {(part.phase, part.interval) for part in self.parts if part.interval is not None}
        return sorted(
            made | {(store.part.phase, store.interval) for store in self.stores if store.interval is not None}
        )
