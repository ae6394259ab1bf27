"""Two lanes: isomorphic ops of one block on two neighbouring equal slices of one value.

A *region* is a set of pairs (an op of the first lane, the same op of the second). Each of its inputs is of one of three
kinds: shared (one value for both lanes), slices (neighbours, of one value), or two values of equal shape, which have
fewer axes than the results they contribute to (matrices) or are loop-invariant.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.element_types import WIDE_FLOATS
from fusionlab.hlo.loops import Invariant, find_loops
from fusionlab.hlo.program import TensorType
from fusionlab.hlo.view import Node, Value, view_of

_VIEWS = frozenset({ops.CONVERT, *(op for op in ops.OPS.values() if op.strided)})
ELEMENTWISE = frozenset({ops.COSINE, ops.POWER, ops.SINE, *(op for op in ops.OPS.values() if op.triton)})
_KERNELS = frozenset({ops.CONCATENATE, ops.DOT_GENERAL, ops.REDUCE})


@dataclass(frozen=True)
class Part:
    """``[first, last)`` of ``root``, an MLIR value, along ``axis``; ``dropped``: the axis, of extent 1, is removed."""

    root: Any
    axis: int
    first: int
    last: int
    dropped: bool

    def is_before(self, other: Part) -> bool:
        """True if ``other`` is the next part of the same length."""
        same = (self.axis, self.dropped) == (other.axis, other.dropped) and self.root == other.root
        return same and self.last == other.first and other.last - other.first == self.last - self.first


def part_of(value: Value) -> Part | None:
    """``value``, of this block or carried into it unchanged, as a slice along one axis; None if it is not one."""
    operation, dropped = _maker(value.handle), False
    if operation is not None and operation.name == ops.RESHAPE.name:
        operation, dropped = _maker(operation.operands[0]), True
    if operation is None or operation.name != ops.SLICE.name or set(operation.attributes["strides"]) != {1}:
        return None
    starts, limits = list(operation.attributes["start_indices"]), list(operation.attributes["limit_indices"])
    root = _outside(operation.operands[0])
    shape = TensorType.of(root.type).shape
    cut = [axis for axis, extent in enumerate(shape) if limits[axis] - starts[axis] != extent]
    if len(cut) != 1:
        return None
    axis = cut[0]
    rest = (*shape[:axis], *shape[axis + 1 :])
    if dropped and (limits[axis] - starts[axis] != 1 or value.type.shape != rest):
        return None
    return Part(root, axis, starts[axis], limits[axis], dropped)


def _outside(handle: Any) -> Any:
    """The initial value of ``handle`` before the loops that carry it unchanged."""
    while isinstance(handle.owner, ir.Block):
        block, at = handle.owner, ir.BlockArgument(handle).arg_number
        loop = getattr(block.owner, "operation", block.owner)
        if loop.name != ops.WHILE.name or loop.regions[1].blocks[0] != block:
            return handle
        if block.operations[len(block.operations) - 1].operation.operands[at] != handle:
            return handle
        handle = loop.operands[at]
    return handle


def _maker(handle: Any) -> Any:
    """The operation that produces ``handle``, in any block; None for an argument."""
    owner = _outside(handle).owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


def _number(handle: Any) -> float | None:
    """The number that all elements of ``handle`` equal; None if they differ or are not known."""
    operation = _maker(handle)
    if operation is None or operation.name == ops.CONVERT.name:
        return None
    if operation.name == ops.CONSTANT.name:
        elements = operation.attributes["value"]
        known = isinstance(elements, ir.DenseFPElementsAttr) and elements.is_splat
        return float(elements.get_splat_value().value) if known else None
    return _number(operation.operands[0]) if ops.op_of(operation.name) in _VIEWS else None


@dataclass
class Lanes:
    """A region of ``block`` while it grows: ``pairs`` of nodes, ``values`` of the first lane with their twins.

    ``invariant``: arguments of blocks that are the same in every trip of the loop around them.
    """

    block: Block
    invariant: Container[Any] = ()
    pairs: dict[Node, Node] = field(default_factory=dict)
    values: dict[Value, Value] = field(default_factory=dict)
    parts: dict[Value, Value] = field(default_factory=dict)
    own: dict[Value, Value] = field(default_factory=dict)
    shared: dict[Value, None] = field(default_factory=dict)

    def nodes(self) -> list[Node]:
        """The nodes of both lanes, in program order."""
        return sorted([*self.pairs, *self.pairs.values()], key=self.block.place.__getitem__)

    def outputs(self) -> list[tuple[Node, Node]]:
        """The pairs with a result that is read outside, in program order of the first lane."""
        inside = set(self.nodes())
        found = []
        for one, two in sorted(self.pairs.items(), key=lambda pair: self.block.place[pair[0]]):
            values = [*one.results, *two.results]
            readers = [reader for value in values for reader in self.block.users.get(value, ())]
            if not inside.issuperset(readers) or any(value in self.block.returns for value in values):
                found.append((one, two))
        return found

    def grow(self, first: Value, second: Value) -> None:
        """Add the pairs of isomorphic ops that read both, and their readers in turn."""
        waiting = [(first, second)]
        while waiting:
            one, two = waiting.pop(0)
            for reader in self.block.users.get(one, ()):
                for other in self.block.users.get(two, ()):
                    if reader not in self.pairs and self._take(reader, other):
                        waiting += zip(reader.results, other.results, strict=True)
                        break

    def trim(self) -> None:
        """Remove views that nothing in the region reads: outside, they are free."""
        while ends := [pair for pair in self.outputs() if pair[0].op in _VIEWS and not self._is_read(pair[0])]:
            for one, _ in ends:
                del self.pairs[one]
                for value in one.results:
                    del self.values[value]
        read = {value for node in self.pairs for value in node.operands}
        for inputs in (self.parts, self.own, self.shared):
            for value in [value for value in inputs if value not in read]:
                del inputs[value]

    def kernels(self) -> int:
        """The number of pairs of ops that XLA does not fuse with all their neighbours."""
        return sum(node.op in _KERNELS for node in self.pairs)

    def _is_read(self, node: Node) -> bool:
        return any(reader in self.pairs for value in node.results for reader in self.block.users.get(value, ()))

    def _take(self, one: Node, two: Node, axes: int = 0) -> bool:
        """Add a pair of equal ops if its inputs are of a known kind; ``axes``: the number of axes of its readers."""
        if one in self.pairs:
            return self.pairs[one] is two
        if two in self.pairs or two in self.pairs.values() or one in self.pairs.values() or not _same(one, two):
            return False
        if self.block.depends(two, [one]) or self.block.depends(one, [two]):
            return False
        if one.op not in _VIEWS:
            axes = max(len(value.type.shape) for value in one.results)
        kept = dict(self.pairs), dict(self.values), dict(self.parts), dict(self.own), dict(self.shared)
        if all(self._match(a, b, axes) for a, b in zip(one.operands, two.operands, strict=True)):
            self.pairs[one] = two
            self.values.update(zip(one.results, two.results, strict=True))
            given = {*self.shared, *self.parts, *self.parts.values(), *self.own, *self.own.values()}
            if given.isdisjoint([*one.results, *two.results]) and self.block.is_convex(self.nodes()):
                return True
        self.pairs, self.values, self.parts, self.own, self.shared = kept
        return False

    def _match(self, one: Value, two: Value, axes: int) -> bool:
        """True if a pair may read ``one`` in the first lane and ``two`` in the second."""
        for known in (self.values, self.parts, self.own):
            if one in known:
                return two is known[one]
        if any(value.producer in self.pairs.values() for value in (one, two)):
            return False
        number = _number(one.handle)
        if one is two or (number is not None and number == _number(two.handle)):
            self.shared[one] = None
            return True
        if one in self.shared:
            return False
        before, after = part_of(one), part_of(two)
        if before is not None and after is not None and before.is_before(after):
            self.parts[one] = two
            return True
        makers = [value.producer for value in (one, two) if value.producer is not None]
        if len(makers) == 2 and makers[0].op in _VIEWS and self._take(makers[0], makers[1], axes):
            return True
        if one.type != two.type or one.type.dtype not in (*WIDE_FLOATS, "i1"):
            return False
        once = one.handle in self.invariant and two.handle in self.invariant
        if not once and len(one.type.shape) >= axes:  # the number of walkers must not decide
            return False
        self.own[one] = two
        return True


def invariant_arguments(module: Any) -> set[Any]:
    """The arguments of blocks and functions, as MLIR values, that are the same in every trip of a loop around them.

    Operands among these are stacked once, when licm has moved the stacking out of the loop.
    """
    same: set[Any] = set()
    varying: set[Any] = set()
    for loop in find_loops(view_of(module)):
        fixed = {loop.body.arguments[at] for at in loop.indices(Invariant)}
        made = {a for a in loop.body.arguments if a not in fixed} | {v for n in loop.body.walk() for v in n.results}
        for node in loop.body.walk():
            for value, handle in zip(node.operands, node.operation.operands, strict=True):
                if isinstance(handle.owner, ir.Block):
                    (varying if value in made else same).add(handle)
    return same - varying


def seeds(block: Block) -> Iterator[tuple[Value, Value]]:
    """Every two neighbouring slices that the block reads."""
    found = ((value, part_of(value)) for value in block.users)
    parts = {value: part for value, part in found if part is not None}
    for value, part in parts.items():
        for end, neighbour in parts.items():
            if part.is_before(neighbour):
                yield value, end


def _same(one: Node, two: Node) -> bool:
    """True if both are the same op, one that lanes may hold, with equal attributes and types."""
    if one.name != two.name or one.op not in _VIEWS | ELEMENTWISE | _KERNELS or one is two:
        return False
    if one.results[0].type.dtype not in (*WIDE_FLOATS, "i1") or "algorithm" in one.attributes:
        return False
    if one.op is ops.REDUCE and not (_adds(one) and _adds(two)):
        return False
    types = [[str(value.type) for value in (*node.operands, *node.results)] for node in (one, two)]
    return types[0] == types[1] and one.attributes == two.attributes


def _adds(node: Node) -> bool:
    """True if ``node`` is a sum that starts from zero."""
    if len(node.operands) != 2 or _number(node.operands[1].handle) != 0:
        return False
    return [op.operation.name for op in node.operation.regions[0].blocks[0].operations][:-1] == [ops.ADD.name]
