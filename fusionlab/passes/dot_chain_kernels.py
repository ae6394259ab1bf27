"""dot-chain-kernels: batched contractions and everything between them become one kernel, an instance per batch element.

rewrite:
    %s = dot_general %q, %k                      w,h,i,d and w,h,j,d to w,h,i,j
    %e = exponential %s
    %n = reduce add %e over j             -->    %o = call @dot_chain(%q, %k, %v)
    %a = divide %e, (broadcast %n)               (one Pallas kernel for Triton: each program instance computes the
    %o = dot_general %a, %v                       chain for one walker and head, in registers)

Attention is two products of ten by 64 by ten numbers and the softmax between them: XLA lowers each product to cuBLAS,
with transpositions around it, and reads and writes the scores in between several times. Its forward Laplacian is the
same with 3N + 2 rows of everything: the kernel runs through the directions, and holds what is summed over them.

requires: a program for CUDA, on one device; float32 (in float64 the ops are outlined in the same way, and stay
    plain: Triton has no such product); arrays of less than 2^31 elements; results with one leading axis in common, of
    walkers, which is a batch axis of every chain. Must be after all passes but
    `batched-dot-kernels` and `dot-epilogue-kernels`: passes that raise the program again read the twins, and lose the
    kernels. Optimization barriers between the ops of a chain, and before what it reads, are removed.
exact: reassociates the sums over contracted axes and directions; the higher precision of both operands of a contraction
    is kept (HIGHEST is float32, HIGH and DEFAULT are TF32, as in the library). Zeros that pads put there are not
    multiplied.
hopes: the bytes of all that is between the products, the transpositions around them, and the launches of both.

A chain grows from a contraction with batch axes by its neighbours, as long as every value is a matrix of one batch
element, or one of each direction (``fusionlab.codegen.kernels.dot_chains``). It pays if it has ``fewest`` products of
matrices, reads and writes less than ``at_most`` times as much as they do, and has a matrix of ``smallest`` elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

from jaxlib.mlir import ir

from fusionlab.codegen.kernels.dot_chains.axes import Stream
from fusionlab.codegen.kernels.dot_chains.chain import DotChain, NoChainError
from fusionlab.codegen.kernels.dot_chains.kernel import chain_kernel
from fusionlab.codegen.kernels.dot_chains.parts import dot_chain, may_belong, streams_of
from fusionlab.codegen.raising.outline import outline
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import walker_axes
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.expand_small_dots import batched_axes
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite, no_kernels


@dataclass(frozen=True)
class DotChainKernels(Pass):
    """Options: ``fewest``, ``at_most`` and ``smallest``; see the module's docstring."""

    fewest: int = 2
    at_most: float = 1.0
    smallest: int = 64

    name: ClassVar[str] = "dot-chain-kernels"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every chain, in any block."""
        module = program.parse()
        tally = Tally()
        if any(node.op is ops.DOT_GENERAL and may_belong(node) for node in view_of(module).walk()):
            if (barrier := no_kernels(self.name, program, module, setting)) is not None:
                return Result(program, (barrier,))
            walkers = _walkers(module)
            if walkers is None:
                reason = "its results have no leading axis in common, of walkers"
                return Result(program, (Refusal(Ground.WALKERS_UNKNOWN, reason).of(self.name, ""),))
            for look in blocks_to_rewrite(module):
                self._rewrite(look, walkers, tally)
        what = "contractions became kernels with what lies between them"
        otherwise = "there is no dot_general with batch axes in the program"
        return tally.result(program, module, self, what, otherwise, ops.DOT_GENERAL.mnemonic)

    def _rewrite(self, look: Callable[[], Block], walkers: Walkers, tally: Tally) -> None:
        """Rewrite in the block that ``look`` returns, one chain at a time: each moves others."""
        drop_dead([result.handle for node in look().nodes for result in node.results])
        refused: list[tuple[Node, Refusal]] = []
        while (chain := self._next(view := look().data_flow(), walkers, refused)) is not None:
            operations = [node.operation for node in chain.members]  # no set: an operation's hash is its operands'
            refused = [each for each in refused if each[0].operation not in operations]
            dead = _read_by(chain.members, chain.arrays, view)
            _remove_barriers_before(chain)
            block = _without_barriers_between(operations, look)
            known = {value.handle: value for node in block.nodes for value in (*node.operands, *node.results)}
            members = [node for node in block.nodes if node.operation in operations]
            tally.rewrite(members[0], _dots(chain))
            inside = {node.results[0] for node in members}
            operands = [v.handle for node in members for v in node.operands if v not in inside]
            outline(
                block,
                members,
                [known[array.handle] for array in chain.arrays],
                [known[value.handle] for value in chain.outputs],
                chain_kernel(chain, dead=dead) if chain.fits_triton else None,
                name="dot_chain",
                platform="cuda",
                flops=chain.flops,
            )
            drop_dead(operands)
        for each in refused:
            tally.refuse(*each)

    def _next(self, block: Block, walkers: Walkers, refused: list[tuple[Node, Refusal]]) -> DotChain | None:
        """The first chain that pays, of the largest contraction that is not ``refused``; those that are join these."""
        dots = [node for node in block.nodes if node.op is ops.DOT_GENERAL]
        for node in sorted(dots, key=lambda node: -_elements_of_one(node.results[0], walkers)):
            if any(node.operation == other.operation for other, _ in refused):
                continue
            try:
                return self.chain_of(node, block, walkers)
            except Refusal as refusal:
                refused.append((node, refusal))
        return None

    def chain_of(self, seed: Node, block: Block, walkers: Walkers) -> DotChain:
        """The chain with ``seed``, a dot_general of ``block``, that saves most; Refusal if none pays.

        The block has neither barriers nor dead ops. Nothing that decides depends on the number of ``walkers``.
        """
        if not may_belong(seed):
            raise Refusal(Ground.NO_GAIN, "it has no batch axes")
        if min(batched_axes(seed).extents) == 1:
            raise Refusal(Ground.NO_GAIN, "it is a product with a vector")
        chains: list[DotChain] = []
        for stream in streams_of(seed):
            try:
                chains.append(_ChainGrowth(block, seed, stream, walkers).chain())
            except NoChainError:
                continue
        if not chains:
            raise Refusal(Ground.NO_GAIN, "it is no product of two small matrices of one walker")
        chain = min(chains, key=lambda chain: chain.traffic - chain.dot_traffic)
        if len(chain.products) < self.fewest:
            raise Refusal(Ground.NO_GAIN, f"it is in a chain of less than {self.fewest} products of matrices")
        if chain.largest < self.smallest:
            raise Refusal(Ground.NO_GAIN, f"its chain has no matrix of {self.smallest} elements")
        if not chain.is_addressable:
            raise Refusal(Ground.ELEMENTS, "its chain has an array of no elements, or of 2^31 and more")
        if chain.traffic >= self.at_most * chain.dot_traffic:
            raise Refusal(Ground.NO_GAIN, "its chain reads and writes as much as the contractions do")
        return chain


def _dots(chain: DotChain) -> int:
    return sum(node.op is ops.DOT_GENERAL for node in chain.members)


Walkers = Mapping[Any, Collection[int]]
"""The axes of results that count walkers, by the results' MLIR values."""


def _walkers(module: ir.Module) -> Walkers | None:
    """The walkers of a program: the leading axis of all its results, and what it is elsewhere; None without one."""
    flat = view_of(module)
    known = [(value, 0) for value in flat.returns if value.is_array and value.type.shape]
    if len({value.type.shape[0] for value, _ in known}) != 1:
        return None
    found: dict[Any, set[int]] = {}
    for value, axes in walker_axes(flat, known).items():
        found.setdefault(value.handle, set()).update(axis for axis in axes if value.type.shape[axis] > 1)
    return found


def _elements_of_one(value: Value, walkers: Walkers) -> int:
    """The elements of ``value`` that one walker has."""
    batch = walkers.get(value.handle, ())
    return math.prod(extent for axis, extent in enumerate(value.type.shape) if axis not in batch)


def outputs_of(members: Iterable[Node], block: Block) -> tuple[Value, ...]:
    """The results of ``members`` that are read elsewhere."""
    inside = set(members)
    values = (node.results[0] for node in members)
    return tuple(v for v in values if v in block.returns or not inside.issuperset(block.users.get(v, ())))


def _read_by(members: Sequence[Node], arrays: Sequence[Value], block: Block) -> set[Value]:
    """Those of ``arrays`` that the block makes and only ``members`` read, directly or as views."""

    def is_own(value: Value) -> bool:
        if value in block.returns:
            return False
        return all(
            user in members or (user.op.strided and is_own(user.results[0])) for user in block.users.get(value, ())
        )

    return {array for array in arrays if array.producer is not None and is_own(array)}


class _ChainGrowth:
    """A chain that grows from one contraction."""

    def __init__(self, block: Block, seed: Node, stream: Stream | None, walkers: Walkers) -> None:
        self.block, self.stream, self.walkers = block, stream, walkers
        self.best = self._with({seed})

    def chain(self) -> DotChain:
        """The chain when nothing can be added, without what XLA fuses with its readers."""
        grown = True
        while grown:  # what is refused once may fit when the chain has a stream
            grown, refused = False, set[Node]()
            while around := list(dict.fromkeys(self._around(refused))):
                grown = self._add(around, refused) or grown
        return self._trimmed()

    def _with(self, nodes: set[Node]) -> DotChain:
        members = sorted(nodes, key=self.block.place.__getitem__)
        chain = dot_chain(members, outputs_of(members, self.block), self.stream)
        if not all(axes.issuperset(self.walkers.get(value.handle, ())) for value, axes in chain.batch.items()):
            raise NoChainError("walkers are no batch axis of it")
        return chain

    def _around(self, refused: set[Node]) -> Iterator[Node]:
        """Neighbours that may be added: readers, makers of what only the chain reads, contractions of what it reads."""
        inside = set(self.best.members)

        def is_new(node: Node | None) -> TypeGuard[Node]:
            return node is not None and node not in inside and node not in refused and may_belong(node)

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

    def _add(self, nodes: Sequence[Node], refused: set[Node]) -> bool:
        """Add ``nodes`` with what lies between, and perhaps with makers of their operands: all, else each half.

        True if some were added; one that cannot be is ``refused`` then.
        """
        nodes = [node for node in nodes if node not in self.best.members]
        if not nodes:
            return False
        between = self.block.convex_hull({*self.best.members, *nodes})
        for more in (between, self._with_makers(between, nodes)):
            if all(map(may_belong, more)):
                try:
                    self.best = self._with(more)
                except NoChainError:
                    continue
                return True
        if len(nodes) == 1:
            refused.add(nodes[0])
            return False
        half = len(nodes) // 2
        first = self._add(nodes[:half], refused)
        return self._add(nodes[half:], refused) or first

    def _with_makers(self, nodes: set[Node], readers: Sequence[Node]) -> set[Node]:
        """``nodes`` and the ops that make operands of ``readers`` and that nothing else reads, up to contractions."""
        found = {*nodes}
        waiting = [*readers]
        while waiting:
            for value in waiting.pop().operands:
                maker = value.producer
                if maker is None or maker in found or not may_belong(maker) or value in self.block.returns:
                    continue
                if found.issuperset(self.block.users[value]):
                    found.add(maker)
                    if maker.op is not ops.DOT_GENERAL:
                        waiting.append(maker)
        return found

    def _trimmed(self) -> DotChain:
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
            if less.traffic < chain.traffic:
                chain = less
        return chain


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
