"""Sums of contractions of a block, with their axes aligned: the work of one kernel of products.

dot_general, transpose ---- add ---- transpose          a sum of contractions, read by nobody on the way
dot_general -----------'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fusionlab.codegen.kernels.batched_products import Product, SumOfProducts
from fusionlab.codegen.raising.rules.contraction import strictest_precision
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.cost import DotAxes
from fusionlab.hlo.strided import Axis, StridedView, count, row_major, run_on
from fusionlab.hlo.view import Node, Value

_MOST_PRODUCTS = 8
_MOST_NODES = 64
"""The limits of one kernel, and of the producers of its result."""

_Kind = Literal["batch", "row", "column"]
_OTHER: dict[_Kind, _Kind] = {"batch": "batch", "row": "column", "column": "row"}


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
        axes = DotAxes.of(node)
        left, right = (StridedView.of(value) for value in node.operands)
        each: list[tuple[_Kind, tuple[int, int]]] = [
            ("batch", (left.strides[ours], right.strides[theirs])) for ours, theirs in axes.batch
        ]
        each += [("row", (left.strides[axis], 0)) for axis in axes.free_left]
        each += [("column", (0, right.strides[axis])) for axis in axes.free_right]
        terms = run_on([Axis(axes.left[a], (left.strides[a], right.strides[b])) for a, b in axes.contracted])
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


def sums_with(node: Node, block: Block) -> Iterator[Value]:
    """The values that are ``node``, a dot_general, transposed and added to other contractions, inner ones first."""
    value = node.results[0]
    while True:
        yield value
        users = block.users.get(value, ())
        if len(users) != 1 or value in block.returns or users[0].op not in (ops.TRANSPOSE, ops.ADD):
            return
        value = users[0].results[0]


def parts_of(value: Value, block: Block) -> tuple[list[Node], list[ViewedDot]] | None:
    """The ops that sum contractions to ``value``, in program order, and these; None where other ops contribute."""
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
        return None
    return sorted(members, key=block.place.__getitem__), found


def as_one(out: Value, contractions: Sequence[ViewedDot]) -> SumOfProducts | None:
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
