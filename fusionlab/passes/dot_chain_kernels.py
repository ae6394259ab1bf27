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

A product P may meet its own transpose, as in the Laplacian of log|det A|, the sum of P_ij P_ji with P = A^-1 A_k: such
a transpose counts as a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from jaxlib.mlir import ir

from fusionlab.codegen.kernels.dot_chains.axes import Stream
from fusionlab.codegen.kernels.dot_chains.chain import DotChain, NoChainError
from fusionlab.codegen.kernels.dot_chains.kernel import chain_kernel
from fusionlab.codegen.kernels.dot_chains.parts import dot_chain, may_belong, streams_of
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import walker_axes
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.chain_growth import ChainGrowth, put_kernel
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
            tally.rewrite(chain.members[0], _dots(chain))
            dead = _read_by(chain.members, chain.arrays, view)
            put_kernel(chain, look, chain_kernel(chain, dead=dead) if chain.fits_triton else None, "dot_chain")
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
                make = partial(_chain, stream, walkers)
                chains.append(ChainGrowth(block, seed, make, may_belong, lambda chain: chain.traffic).chain())
            except NoChainError:
                continue
        if not chains:
            raise Refusal(Ground.NO_GAIN, "it is no product of two small matrices of one walker")
        chain = min(chains, key=lambda chain: chain.traffic - chain.dot_traffic)
        if len(chain.products) + len(chain.exchanged) < self.fewest:
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


def _chain(stream: Stream | None, walkers: Walkers, members: Sequence[Node], outputs: Sequence[Value]) -> DotChain:
    """The chain of ``members`` if walkers are batch axes of its contractions; NoChainError if not."""
    chain = dot_chain(members, outputs, stream)
    if not all(axes.issuperset(walkers.get(value.handle, ())) for value, axes in chain.batch.items()):
        raise NoChainError("walkers are no batch axis of it")
    return chain


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


def _read_by(members: Sequence[Node], arrays: Sequence[Value], block: Block) -> set[Value]:
    """Those of ``arrays`` that the block makes and only ``members`` read, directly or as views."""

    def is_own(value: Value) -> bool:
        if value in block.returns:
            return False
        return all(
            user in members or (user.op.strided and is_own(user.results[0])) for user in block.users.get(value, ())
        )

    return {array for array in arrays if array.producer is not None and is_own(array)}
