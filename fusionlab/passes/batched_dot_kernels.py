"""batched-dot-kernels: small batched contractions become a kernel each, which reads its operands in place.

rewrite:
    %q = transpose (reshape %a)                     w,30,10,(h,d) to w,30,h,10,d
    %k = transpose (reshape %b)              -->    %z = call @batched_product(%a, %b)
    %s = dot_general %q, %k, batch = [w, h]         (one Pallas kernel for Triton: each program instance takes a block
    %z = transpose %s                                of rows and columns of one walker and head)

XLA lowers every batched dot_general to cuBLAS, which takes one batch axis, one of rows and one of columns, each of one
stride. Attention has its heads between the electrons and the features; with derivatives in all directions as leading
axes, the transpositions read and write more than anything else (Psiformer's local energy: 300 MiB each time, up to six
times a layer). A product of 10 by 64 by 10 does two FLOPs per byte: it is bound by memory.

requires: a program for CUDA, on one device; float32 (in float64 the ops are outlined in the same way, and stay
    plain: Triton has no such product); operands and result of less than 2^31 elements. Must be the last pass, but for
    `dot-epilogue-kernels`: passes that raise the program again read the twins, and lose the kernels.
exact: reassociates the sums over contracted axes; the higher precision of both operands is kept (HIGHEST is float32,
    HIGH and DEFAULT are TF32, as in the library).
hopes: the launches and bytes of the transpositions around the call.

A contraction qualifies if it has batch axes, is no product with a vector, does at most ``intensity`` FLOPs per byte
(per batch element, four bytes a number), has at most ``longest`` elements along the free axes of one operand, and would
be transposed for the library, before or after the call.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.kernels.batched_products import SumOfProducts, product_kernel
from fusionlab.codegen.raising.inline import drop_dead
from fusionlab.codegen.raising.outline import outline
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block, blocks_to_change
from fusionlab.hlo.program import Program
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.expand_small_dots import batched_axes
from fusionlab.passes.interface import Declined, Kind, Pass, Result, Setting
from fusionlab.passes.rewriting import Refusal, changed, functions_of_others, no_kernels
from fusionlab.passes.sums_of_products import ViewedDot, as_one, parts_of, sums_with


@dataclass(frozen=True)
class BatchedDotKernels(Pass):
    """Options: ``intensity`` (FLOP/byte) and ``longest`` (elements); see the module's docstring."""

    intensity: float = 8.0
    longest: int = 64

    name: ClassVar[str] = "batched-dot-kernels"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every contraction that qualifies, in any block."""
        module = program.parse()
        if not any(node.op is ops.DOT_GENERAL for node in view_of(module).walk()):
            reason = "there is no dot_general in the program"
            return Result(program, (Declined(self.name, "unprofitable", reason, ""),))
        if (barrier := no_kernels(self.name, program, module, setting)) is not None:
            return Result(program, (barrier,))
        kept = functions_of_others(module)
        made: Counter[str] = Counter()
        refused: Counter[tuple[Kind, str]] = Counter()
        places: dict[tuple[Kind, str], str] = {}
        for function in [op for op in module.body.operations if op.operation.name == "func.func"]:
            if function.name.value in kept:
                continue
            for look in blocks_to_change(function, module):
                for kind, reason, place in self._in_block(look, made):
                    refused[kind, reason] += 1
                    places.setdefault((kind, reason), place)
        total = made.total() + refused.total()
        refusals = [
            Declined(self.name, kind, f"{many} of {total} dot_general: {reason}", places[kind, reason])
            for (kind, reason), many in refused.items()
        ]
        return changed(program, module, self, made, "contractions became kernels that read where it lies", refusals)

    def _in_block(self, look: Callable[[], Block], made: Counter[str]) -> list[tuple[Kind, str, str]]:
        """Rewrite in the block that ``look`` returns, one kernel at a time: each moves others. Returns the refusals."""
        while True:
            refused: list[tuple[Kind, str, str]] = []
            block = look()
            for node in block.nodes:
                if node.op is not ops.DOT_GENERAL:
                    continue
                place = node.scope.rpartition("/")[0]
                decided = self.decide(node, block)
                if not isinstance(decided, Refusal):
                    break
                refused.append((decided.kind, str(decided), place))
            else:
                return refused
            members, work = decided
            inside = {member.results[0] for member in members}
            operands = [v.handle for member in members for v in member.operands if v not in inside]
            made[place] += len(work.products)
            _put(block, members, work)
            drop_dead(operands)

    def decide(self, node: Node, block: Block) -> tuple[list[Node], SumOfProducts] | Refusal:
        """The largest sum of contractions with ``node``, a dot_general, that can be one kernel, and the nodes that it
        replaces; or the reason why there is none."""
        if (refusal := self._refusal(node)) is not None:
            return refusal
        best: tuple[list[Node], SumOfProducts] | None = None
        for value in sums_with(node, block):
            parts = parts_of(value, block)
            work = None if parts is None else self._work(value, parts[1])
            if parts is None or work is None:
                continue
            if not (len(parts[1]) == 1 and parts[1][0].lies_for_the_library(value)):
                best = (parts[0], work)
        return best or Refusal("unprofitable", "the library takes it as it lies")

    def _work(self, value: Value, contractions: Sequence[ViewedDot]) -> SumOfProducts | None:
        """``contractions``, which add up to ``value``, as a kernel's work; None if that is impossible or not needed."""
        if any(self._refusal(one.node) is not None for one in contractions):
            return None
        if len(contractions) > 1 and all(one.lies_for_the_library(one.node.results[0]) for one in contractions):
            return None
        return as_one(value, contractions)

    def _refusal(self, node: Node) -> Refusal | None:
        """The reason why ``node``, a dot_general, does not qualify, or None."""
        axes = batched_axes(node)
        if isinstance(axes, Refusal):
            return axes
        arrays = [*node.results, *(StridedView.of(value).base for value in node.operands)]
        if not all(0 < math.prod(array.type.shape) < 1 << 31 for array in arrays):
            return Refusal("unsupported", "it has no elements, or 2^31 and more")
        if min(axes.extents) == 1:
            return Refusal("unprofitable", "it is a product with a vector: XLA makes a product and a sum of it itself")
        if min(axes.extents[:2]) > self.longest:
            return Refusal("unprofitable", f"both operands are longer than {self.longest} along their free axes")
        if axes.intensity > self.intensity:
            return Refusal("unprofitable", f"it does more than {self.intensity} FLOP per byte")
        return None


def _put(block: Block, members: Sequence[Node], work: SumOfProducts) -> None:
    outline(
        block,
        members,
        work.arrays,
        [work.out],
        product_kernel(work) if work.fits_triton else None,
        name="batched_product",
        platform="cuda",
        flops=work.flops,
    )
