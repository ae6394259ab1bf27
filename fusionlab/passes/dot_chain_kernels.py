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
    plain: Triton has no such product); arrays of less than 2^31 elements. Must be after all passes but
    `batched-dot-kernels` and `dot-epilogue-kernels`: passes that raise the program again read the twins, and lose the
    kernels. Optimization barriers between the ops of a chain, and before what it reads, are removed.
exact: reassociates the sums over contracted axes and directions; the higher precision of both operands of a contraction
    is kept (HIGHEST is float32, HIGH and DEFAULT are TF32, as in the library). Zeros that pads put there are not
    multiplied.
hopes: the bytes of all that is between the products, the transpositions around them, and the launches of both.

A chain grows from a contraction with batch axes by its neighbours, as long as every value is a matrix of one batch
element, or one of each direction (``fusionlab.codegen.kernels.dot_chains``). It pays if it has ``fewest`` contractions
and reads and writes less than they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxlib.mlir import ir

from fusionlab.codegen.kernels.chain_kernels import chain_kernel
from fusionlab.codegen.kernels.dot_chains import DotChain, NoChainError, may_belong
from fusionlab.codegen.raising.outline import outline
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.cost import DotAxes
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite, no_kernels


@dataclass(frozen=True)
class DotChainKernels(Pass):
    """Options: ``fewest`` contractions of a chain; see the module's docstring."""

    fewest: int = 2

    name: ClassVar[str] = "dot-chain-kernels"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every chain, in any block."""
        module = program.parse()
        tally = Tally()
        if any(node.op is ops.DOT_GENERAL and may_belong(node) for node in view_of(module).walk()):
            if (barrier := no_kernels(self.name, program, module, setting)) is not None:
                return Result(program, (barrier,))
            for look in blocks_to_rewrite(module):
                self._rewrite(look, tally)
        what = "contractions became kernels with what lies between them"
        otherwise = "there is no dot_general with batch axes in the program"
        return tally.result(program, module, self, what, otherwise, ops.DOT_GENERAL.mnemonic)

    def _rewrite(self, look: Callable[[], Block], tally: Tally) -> None:
        """Rewrite in the block that ``look`` returns, one chain at a time: each moves others."""
        drop_dead([result.handle for node in look().nodes for result in node.results])
        done: list[Any] = []  # compared one by one: the hash of an operation is that of its operands
        while (found := self._next(look().without_barriers(), done, tally)) is not None:
            operations = [node.operation for node in found.members]
            _remove_barriers(found)
            block = look()
            members = [node for node in block.nodes if node.operation in operations]
            chain = DotChain.of(members, outputs_of(members, block))
            tally.rewrite(members[0], sum(node.op is ops.DOT_GENERAL for node in members))
            kernel = chain_kernel(chain, dead=_read_by(members, chain.arrays, block)) if chain.fits_triton else None
            inside = {node.results[0] for node in members}
            operands = [v.handle for node in members for v in node.operands if v not in inside]
            outline(
                block, members, chain.arrays, chain.outputs, kernel, name="dot_chain", platform="cuda", flops=chain.flops
            )
            drop_dead(operands)

    def _next(self, block: Block, done: list[Any], tally: Tally) -> DotChain | None:
        """The first chain that pays; contractions that are in none are in ``done`` afterwards, and counted."""
        for node in block.nodes:
            if node.op is not ops.DOT_GENERAL or node.operation in done:
                continue
            try:
                return self.chain_of(node, block)
            except Refusal as refusal:
                done.append(node.operation)
                tally.refuse(node, refusal)
        return None

    def chain_of(self, seed: Node, block: Block) -> DotChain:
        """The largest chain with ``seed``, a dot_general of ``block``, which has no barriers; Refusal if none pays."""
        if not may_belong(seed):
            raise Refusal(Ground.NO_GAIN, "it has no batch axes")
        chain = _Growth(block, seed).chain()
        dots = [node for node in chain.members if node.op is ops.DOT_GENERAL]
        if len(dots) < self.fewest:
            raise Refusal(Ground.NO_GAIN, f"it is in a chain of less than {self.fewest} contractions")
        if not chain.is_addressable:
            raise Refusal(Ground.ELEMENTS, "its chain has an array of no elements, or of 2^31 and more")
        if chain.traffic >= sum(_elements((*node.operands, *node.results)) for node in dots):
            raise Refusal(Ground.NO_GAIN, "its chain reads and writes as much as the contractions do")
        return chain


def _elements(values: Iterable[Value]) -> int:
    return sum(math.prod(value.type.shape) for value in values)


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
        return all(user in members or (user.op.strided and is_own(user.results[0])) for user in block.users.get(value, ()))

    return {array for array in arrays if array.producer is not None and is_own(array)}


class _Growth:
    """A chain that grows from one contraction."""

    def __init__(self, block: Block, seed: Node) -> None:
        self.block = block
        try:
            self.best = self._with({seed})
        except NoChainError as error:
            raise Refusal(Ground.NO_GAIN, str(error)) from error

    def chain(self) -> DotChain:
        """The chain when nothing can be added, without what XLA fuses with its readers."""
        refused: set[Node] = set()
        while (more := next(filter(None, (self._grown(node, refused) for node in self._around(refused))), None)) is not None:
            self.best = more
        return self._trimmed()

    def _with(self, nodes: set[Node]) -> DotChain:
        members = sorted(nodes, key=self.block.place.__getitem__)
        return DotChain.of(members, outputs_of(members, self.block))

    def _around(self, refused: set[Node]) -> Iterator[Node]:
        """Neighbours that may be added: readers, and producers of what only the chain reads."""
        inside = set(self.best.members)
        for node in self.best.members:
            for user in self.block.users.get(node.results[0], ()):
                if user not in inside and user not in refused and may_belong(user):
                    yield user
        for node in self.best.members:
            for value in node.operands:
                maker = value.producer
                if maker is None or maker in inside or maker in refused or not may_belong(maker):
                    continue
                if value not in self.block.returns and inside.issuperset(self.block.users[value]):
                    yield maker

    def _grown(self, node: Node, refused: set[Node]) -> DotChain | None:
        """The chain with ``node`` and what lies between, may be with what makes its operands; None if it is none then."""
        nodes = self.block.convex_hull({*self.best.members, node})
        for more in (nodes, self._with_makers(nodes, node)):
            if all(map(may_belong, more)):
                try:
                    return self._with(more)
                except NoChainError:
                    continue
        refused.add(node)
        return None

    def _with_makers(self, nodes: set[Node], node: Node) -> set[Node]:
        """``nodes`` and the ops that make operands of ``node`` and that nothing else reads, up to contractions."""
        found = {*nodes}
        waiting = [node]
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


def _remove_barriers(chain: DotChain) -> None:
    """Remove the optimization barriers that a chain reads through: what read them reads what went into them."""
    waiting = [handle for node in chain.members for handle in node.operation.operands]
    barriers: dict[Any, None] = {}
    seen = set(waiting)
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block):
            continue
        owner = getattr(owner, "operation", owner)
        op = ops.op_of(owner.name)
        if op is ops.OPTIMIZATION_BARRIER:
            barriers[owner] = None
        if op is ops.OPTIMIZATION_BARRIER or op.strided:
            waiting += [handle for handle in owner.operands if handle not in seen]
            seen.update(owner.operands)
    for barrier in barriers:
        for result, operand in zip(barrier.results, barrier.operands, strict=True):
            result.replace_all_uses_with(operand)
        barrier.erase()
