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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from fusionlab.codegen.kernels.batched_products import Product, SumOfProducts, product_kernel
from fusionlab.codegen.kernels.triton_tiles import is_addressable
from fusionlab.codegen.raising.outline import outline
from fusionlab.codegen.raising.rules.contraction import strictest_precision
from fusionlab.codegen.raising.splice import drop_dead
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program
from fusionlab.hlo.strided import Axis, StridedView, count, row_major, run_on
from fusionlab.hlo.view import Node, Value, view_of
from fusionlab.passes.expand_small_dots import batched_axes
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite, no_kernels

_MOST_PRODUCTS = 8
_MOST_NODES = 64
"""The limits of one kernel, and of the producers of its result."""

_Kind = Literal["batch", "row", "column"]
_OTHER: dict[_Kind, _Kind] = {"batch": "batch", "row": "column", "column": "row"}


@dataclass(frozen=True)
class BatchedDotKernels(Pass):
    """Options: ``intensity`` (FLOP/byte) and ``longest`` (elements); see the module's docstring."""

    intensity: float = 8.0
    longest: int = 64

    name: ClassVar[str] = "batched-dot-kernels"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every contraction that qualifies, in any block."""
        module = program.parse()
        tally = Tally()
        if any(node.op is ops.DOT_GENERAL for node in view_of(module).walk()):
            if (barrier := no_kernels(self.name, program, module, setting)) is not None:
                return Result(program, (barrier,))
            for look in blocks_to_rewrite(module):
                self._rewrite(look, tally)
        what = "contractions became kernels that read where it lies"
        return tally.result(
            program, module, self, what, "there is no dot_general in the program", ops.DOT_GENERAL.mnemonic
        )

    def _rewrite(self, look: Callable[[], Block], tally: Tally) -> None:
        """Rewrite in the block that ``look`` returns, one kernel at a time: each moves others."""
        while True:
            block = look()
            refused: list[tuple[Node, Refusal]] = []
            for node in block.nodes:
                if node.op is not ops.DOT_GENERAL:
                    continue
                try:
                    members, work = self.decide(node, block)
                except Refusal as refusal:
                    refused.append((node, refusal))
                    continue
                break
            else:
                for each in refused:
                    tally.refuse(*each)
                return
            tally.rewrite(node, len(work.products))
            inside = {member.results[0] for member in members}
            operands = [v.handle for member in members for v in member.operands if v not in inside]
            kernel = product_kernel(work) if work.fits_triton else None
            outline(
                block,
                members,
                work.arrays,
                [work.out],
                kernel,
                name="batched_product",
                platform="cuda",
                flops=work.flops,
            )
            drop_dead(operands)

    def decide(self, node: Node, block: Block) -> tuple[list[Node], SumOfProducts]:
        """The largest sum of contractions with ``node``, a dot_general, that can be one kernel, and the nodes that it
        replaces; Refusal with the reason if there is none."""
        self._require(node)
        best: tuple[list[Node], SumOfProducts] | None = None
        for value in _sums_with(node, block):
            members, contractions = _parts_of(value, block)
            work = self._work(value, contractions) if contractions else None
            if work is not None and not (len(contractions) == 1 and contractions[0].lies_for_the_library(value)):
                best = members, work
        if best is None:
            raise Refusal(Ground.NO_GAIN, "the library takes it as it lies")
        return best

    def _work(self, value: Value, contractions: Sequence[ViewedDot]) -> SumOfProducts | None:
        """``contractions``, which add up to ``value``, as a kernel's work; None if that is impossible or not needed."""
        try:
            for one in contractions:
                self._require(one.node)
        except Refusal:
            return None
        if len(contractions) > 1 and all(one.lies_for_the_library(one.node.results[0]) for one in contractions):
            return None
        return _as_one(value, contractions)

    def _require(self, node: Node) -> None:
        """Refusal unless ``node``, a dot_general, qualifies alone."""
        axes = batched_axes(node)
        arrays = [*node.results, *(StridedView.of(value).base for value in node.operands)]
        if not is_addressable(arrays):
            raise Refusal(Ground.ELEMENTS, "it has no elements, or 2^31 and more")
        if min(axes.extents) == 1:
            raise Refusal(Ground.NO_GAIN, "it is a product with a vector: XLA makes a product and a sum of it itself")
        if min(axes.extents[:2]) > self.longest:
            raise Refusal(Ground.NO_GAIN, f"both operands are longer than {self.longest} along their free axes")
        if axes.intensity > self.intensity:
            raise Refusal(Ground.NO_GAIN, f"it does more than {self.intensity} FLOP per byte")


@dataclass(frozen=True)
class ViewedDot:
    """``node``, a dot_general, as a term of a value: the kind of each axis of that value in it, with its strides in the
    arrays that the two operands are views of."""

    node: Node
    kinds: tuple[_Kind, ...]
    steps: tuple[tuple[int, int], ...]
    product: Product

    @staticmethod
    def of(node: Node, order: Sequence[int]) -> ViewedDot:
        """``order`` maps each axis of the value to an axis of the node's result."""
        if "algorithm" in node.attributes:
            raise Refusal(Ground.ALGORITHM, "it asks for an explicit algorithm")
        axes = DotAxes.of(node)
        left, right = (StridedView.of(value) for value in node.operands)
        each: list[tuple[_Kind, tuple[int, int]]] = [
            ("batch", (left.strides[ours], right.strides[theirs])) for ours, theirs in axes.batch_pairs
        ]
        each += [("row", (left.strides[axis], 0)) for axis in axes.free[0]]
        each += [("column", (0, right.strides[axis])) for axis in axes.free[1]]
        terms = run_on([Axis(axes.shapes[0][a], (left.strides[a], right.strides[b])) for a, b in axes.contracted_pairs])
        product = Product((left.base, right.base), (left.offset, right.offset), terms, strictest_precision(node))
        kinds, steps = zip(*(each[axis] for axis in order), strict=True)
        return ViewedDot(node, kinds, steps, product)

    def swapped(self) -> ViewedDot:
        """The same with operands exchanged."""
        of = self.product
        terms = tuple(Axis(axis.extent, axis.steps[::-1]) for axis in of.terms)
        product = Product(of.arrays[::-1], of.offsets[::-1], terms, of.precision)
        kinds = tuple(_OTHER[kind] for kind in self.kinds)
        return ViewedDot(self.node, kinds, tuple(s[::-1] for s in self.steps), product)

    def lies_for_the_library(self, out: Value) -> bool:
        """True if each kind of axis has one stride in each array, and one of a matrix's two kinds stride 1: then cuBLAS
        takes operands in place, and writes to ``out`` directly."""
        where = row_major(out.type.shape)
        axes: dict[str, list[Axis]] = {"batch": [], "row": [], "column": []}
        for extent, kind, steps, at in zip(out.type.shape, self.kinds, self.steps, where, strict=True):
            axes[kind].append(Axis(extent, (*steps, at)))
        axes["term"] = [Axis(axis.extent, (*axis.steps, 0)) for axis in self.product.terms]
        for array, matrix in enumerate((("row", "term"), ("column", "term"), ("row", "column"))):
            strides = [_stride(axes[kind], array) for kind in ("batch", *matrix)]
            if None in strides or 0 in strides or 1 not in strides[1:]:
                return False
        return True


def _stride(axes: Sequence[Axis], array: int) -> int | None:
    """The stride of ``axes`` merged into one in an array; None if they cannot be merged there."""
    one = run_on([Axis(axis.extent, (axis.steps[array],)) for axis in axes])
    return None if len(one) > 1 else one[0].steps[0] if one else 1


def _sums_with(node: Node, block: Block) -> Iterator[Value]:
    """The values that are ``node``, a dot_general, transposed and added to other contractions, inner ones first."""
    value = node.results[0]
    while True:
        yield value
        users = block.users.get(value, ())
        if len(users) != 1 or value in block.returns or users[0].op not in (ops.TRANSPOSE, ops.ADD):
            return
        value = users[0].results[0]


def _parts_of(value: Value, block: Block) -> tuple[list[Node], list[ViewedDot]]:
    """The ops that sum contractions to ``value``, in program order, and these; none where other ops contribute."""
    members: dict[Node, None] = {}
    found: list[ViewedDot] = []

    def visit(value: Value, order: list[int], inside: bool) -> bool:
        node = value.producer
        if node is None or node in members or len(members) == _MOST_NODES or len(found) == _MOST_PRODUCTS:
            return False
        if inside and (len(block.users.get(value, ())) != 1 or value in block.returns):
            return False
        members[node] = None
        if node.op is ops.DOT_GENERAL:
            found.append(ViewedDot.of(node, order))
            return True
        if node.op is ops.TRANSPOSE:
            permutation = list(node.attributes["permutation"])
            return visit(node.operands[0], [permutation[axis] for axis in order], True)
        return node.op is ops.ADD and all(visit(operand, order, True) for operand in node.operands)

    if not visit(value, list(range(len(value.type.shape))), False):
        return [], []
    return sorted(members, key=block.place.__getitem__), found


def _as_one(out: Value, contractions: Sequence[ViewedDot]) -> SumOfProducts | None:
    """The contractions that add up to ``out`` as one kernel's work; None where they have no rows or columns in common.

    An axis that is of rows in one of them and not in another is a batch axis of all.
    """
    first = contractions[0]
    aligned = [first, *(_aligned(other, first) for other in contractions[1:])]
    axes: dict[str, list[Axis]] = {"batch": [], "row": [], "column": []}
    for at, (extent, step) in enumerate(zip(out.type.shape, row_major(out.type.shape), strict=True)):
        kinds = {one.kinds[at] for one in aligned}
        steps = [step_of for one in aligned for step_of in one.steps[at]]
        axes[kinds.pop() if len(kinds) == 1 else "batch"].append(Axis(extent, (*steps, step)))
    batch, rows, columns = (run_on(axes[kind]) for kind in ("batch", "row", "column"))
    if count(rows) == 1 or count(columns) == 1:
        return None
    return SumOfProducts(tuple(one.product for one in aligned), out, batch, rows, columns)


def _aligned(one: ViewedDot, first: ViewedDot) -> ViewedDot:
    """``one``, swapped if more of its axes are then of the kinds that they have in ``first``."""
    swapped = one.swapped()

    def alike(other: ViewedDot) -> int:
        return sum(mine == its != "batch" for mine, its in zip(other.kinds, first.kinds, strict=True))

    return swapped if alike(swapped) > alike(one) else one
