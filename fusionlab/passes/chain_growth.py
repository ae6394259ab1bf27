"""What passes share that make a kernel of an op and of what lies around it: growth by neighbours, and replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeGuard, TypeVar

from jaxlib.mlir import ir

from fusionlab.codegen.kernels.dot_chains.chain import DotChain, NoChainError
from fusionlab.codegen.raising.outline import outline
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.view import Node, Value

ChainT = TypeVar("ChainT", bound=DotChain)


class ChainGrowth(Generic[ChainT]):
    """A chain that grows from ``seed`` by the neighbours that ``may_belong``.

    ``make`` is what nodes, in program order, are as a chain with these outputs; NoChainError if they are none. Last ops
    that make its ``cost`` greater are left to XLA. ``refused`` are the neighbours that cannot be added, each with the
    reason.
    """

    def __init__(
        self,
        block: Block,
        seed: Node,
        make: Callable[[Sequence[Node], Sequence[Value]], ChainT],
        may_belong: Callable[[Node], bool],
        cost: Callable[[ChainT], int],
    ) -> None:
        self.block, self.seed, self.make, self.may_belong, self.cost = block, seed, make, may_belong, cost
        self.best = self._with({seed})
        self.refused: dict[Node, str] = {}

    def chain(self) -> ChainT:
        """The chain when nothing can be added, without what XLA fuses with its readers."""
        grown = True
        while grown:  # what is refused once may fit when the chain has a stream
            grown, self.refused = False, {}
            while around := list(dict.fromkeys(self._around())):
                grown = self._add(around) or grown
        return self._trimmed()

    def _with(self, nodes: set[Node]) -> ChainT:
        members = sorted(nodes, key=self.block.place.__getitem__)
        return self.make(members, outputs_of(members, self.block))

    def _around(self) -> Iterator[Node]:
        """Neighbours that may be added: readers, makers of what only the chain reads, contractions of what it reads."""
        inside = set(self.best.members)

        def is_new(node: Node | None) -> TypeGuard[Node]:
            return node is not None and node not in inside and node not in self.refused and self.may_belong(node)

        for node in self.best.members:
            yield from filter(is_new, self.block.users.get(node.results[0], ()))
        for value in (value for node in self.best.members for value in node.operands):
            if (
                value not in self.block.returns
                and inside.issuperset(self.block.users[value])
                and is_new(value.producer)
            ):
                yield value.producer
        for value in (value for node in self.best.members for value in node.operands):
            if value.producer not in inside:
                yield from filter(is_new, self._contractions_of(value))

    def _contractions_of(self, value: Value) -> Iterator[Node]:
        """The contractions that read ``value`` or a view of it."""
        for user in self.block.users.get(value, ()):
            if user.op is ops.DOT_GENERAL:
                yield user
            elif user.op.strided:
                yield from self._contractions_of(user.results[0])

    def _add(self, nodes: Sequence[Node]) -> bool:
        """Add ``nodes`` with what lies between, and perhaps with makers of their operands: all, else each half.

        True if some were added; one that cannot be is ``refused``.
        """
        nodes = [node for node in nodes if node not in self.best.members]
        if not nodes:
            return False
        between = self.block.convex_hull({*self.best.members, *nodes})
        reason = "an op that it cannot hold lies before it"
        for more in (between, self._with_makers(between, nodes)):
            if all(node is self.seed or self.may_belong(node) for node in more):
                try:
                    self.best = self._with(more)
                except NoChainError as error:
                    reason = str(error)
                    continue
                return True
        if len(nodes) == 1:
            self.refused[nodes[0]] = reason
            return False
        half = len(nodes) // 2
        first = self._add(nodes[:half])
        return self._add(nodes[half:]) or first

    def _with_makers(self, nodes: set[Node], readers: Sequence[Node]) -> set[Node]:
        """``nodes`` and the ops that make operands of ``readers`` and that nothing else reads, up to contractions."""
        found = {*nodes}
        waiting = [*readers]
        while waiting:
            for value in waiting.pop().operands:
                maker = value.producer
                if maker is None or maker in found or not self.may_belong(maker) or value in self.block.returns:
                    continue
                if found.issuperset(self.block.users[value]):
                    found.add(maker)
                    if maker.op is not ops.DOT_GENERAL:
                        waiting.append(maker)
        return found

    def _trimmed(self) -> ChainT:
        """The chain without results that are as cheaply computed elsewhere: last ones first."""
        chain = self.best
        for node in reversed(chain.members):
            inside = {*chain.members} - {node}
            if node.op is ops.DOT_GENERAL or not inside.isdisjoint(self.block.users.get(node.results[0], ())):
                continue
            try:
                less = self._with(inside)
            except NoChainError:
                continue
            if self.cost(less) < self.cost(chain):
                chain = less
        return chain


def outputs_of(members: Iterable[Node], block: Block) -> tuple[Value, ...]:
    """The results of ``members`` that are read elsewhere."""
    inside = set(members)
    values = (node.results[0] for node in members)
    return tuple(v for v in values if v in block.returns or not inside.issuperset(block.users.get(v, ())))


def put_kernel(
    chain: DotChain, look: Callable[[], Block], kernel: Callable[..., Sequence[Any]] | None, name: str
) -> str:
    """Replace the members of ``chain``, of the block that ``look`` returns, by a call of ``kernel``.

    Returns the symbol of its function, which begins with ``name``. Without a ``kernel`` the function holds the plain
    operations. The barriers between them are removed.
    """
    operations = [node.operation for node in chain.members]  # no set: an operation's hash is its operands'
    _remove_barriers_before(chain)
    block = _without_barriers_between(operations, look)
    known = {value.handle: value for node in block.nodes for value in (*node.operands, *node.results)}
    members = [node for node in block.nodes if node.operation in operations]
    inside = {node.results[0] for node in members}
    operands = [v.handle for node in members for v in node.operands if v not in inside]
    symbol = outline(
        block,
        members,
        [known[array.handle] for array in chain.arrays],
        [known[value.handle] for value in chain.outputs],
        kernel,
        name=name,
        platform="cuda",
        flops=chain.flops,
    )
    drop_dead(operands)
    return symbol


def _without_barriers_between(operations: Sequence[Any], look: Callable[[], Block]) -> Block:
    """The block when it has no optimization barriers that read ``operations``, or lie between them."""
    while True:
        block = look()
        members = {node for node in block.nodes if node.operation in operations}
        readers = {node for node in block.nodes if any(value.producer in members for value in node.operands)}
        around = readers | block.convex_hull(members)
        barriers = [node.operation for node in around if node.op is ops.OPTIMIZATION_BARRIER]
        if not barriers:
            return block
        _remove(barriers)


def _remove_barriers_before(chain: DotChain) -> None:
    """Remove the optimization barriers that a chain reads through, directly or by views."""
    waiting = [handle for node in chain.members for handle in node.operation.operands]
    barriers: list[Any] = []
    seen = set(waiting)
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block):
            continue
        owner = getattr(owner, "operation", owner)
        op = ops.op_of(owner.name)
        if op is ops.OPTIMIZATION_BARRIER and owner not in barriers:
            barriers.append(owner)
        if op is ops.OPTIMIZATION_BARRIER or op.strided:
            waiting += [handle for handle in owner.operands if handle not in seen]
            seen.update(owner.operands)
    _remove(barriers)


def _remove(barriers: Sequence[Any]) -> None:
    """Let what reads optimization barriers read what goes into them, and erase what is dead then."""
    operands = [operand for barrier in barriers for operand in barrier.operands if operand.owner not in barriers]
    for barrier in barriers:
        for result, operand in zip(barrier.results, barrier.operands, strict=True):
            result.replace_all_uses_with(operand)
        barrier.erase()
    drop_dead(operands)
