"""expand-small-dots: small batched contractions become a product and a sum, which XLA fuses with their neighbours.

rewrite:
    %r = dot_general %a, %b, batch = [w, h], [i, d] x [j, d]
        -->
    %r = reduce(multiply(broadcast %a, broadcast %b), d)

XLA lowers every batched dot_general to cuBLAS. The call is a separate kernel, and where the batch axes are not leading
XLA transposes operands and result, each in another kernel that reads and writes everything. Attention between ten
electrons (10 x 64 by 64 x 10, per walker and head) does two FLOPs per byte, where the GPU could do twelve, and fills no
tile of the library. A product and a sum join the fusions around them: bias, scale and transposition are free.

requires: both operands and the result of one real floating-point type; no explicit algorithm.
exact: reassociates the sum over the contracted axes; never less precise than the library (which may use TF32).
hopes: the launches and bytes of the transpositions around the call; the call's own, where it can join a fusion.

A contraction qualifies if it is no product with a vector (XLA does that itself), has one leading batch axis in both
operands and another after other axes in one of them, does at most ``intensity`` FLOPs per byte (per batch element, four
bytes a number), and has no more than ``longest`` elements along the free axes of either operand and along the
contracted ones: longer ones fill a tile of the library, which reads once what a fusion reads repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import lax

from fusionlab.hlo import ops
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import OpRewrite, rewrite_ops


@dataclass(frozen=True)
class ExpandSmallDots(Pass):
    """Options: ``intensity`` (FLOP/byte) and ``longest`` (elements); see the module's docstring."""

    intensity: float = 4.0
    longest: int = 64

    name: ClassVar[str] = "expand-small-dots"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every contraction that qualifies, in any block."""
        return rewrite_ops(
            program,
            self,
            ops.DOT_GENERAL,
            lambda flat: self._decide,
            setting,
            what="contractions became a product and a sum",
        )

    def _decide(self, node: Node) -> OpRewrite:
        axes = batched_axes(node)
        if min(axes.extents[:2]) == 1:
            raise Refusal(Ground.NO_GAIN, "it is a matrix times a vector: XLA makes a product and a sum of it itself")
        if axes.batch_in_front:
            raise Refusal(Ground.NO_GAIN, "its batch axes are in front: the library takes it as it is")
        if (0, 0) not in axes.batch_pairs:  # an axis of walkers could be a free one: its extent must not decide
            raise Refusal(Ground.NO_GAIN, "no batch axis is the first of both operands")
        if max(axes.extents) > self.longest:
            raise Refusal(Ground.NO_GAIN, f"it is longer than {self.longest} along an axis")
        if axes.intensity > self.intensity:
            raise Refusal(Ground.NO_GAIN, f"it does more than {self.intensity} FLOP per byte")
        return OpRewrite(product_and_sum(axes), (0, 1), axes)


def product_and_sum(axes: DotAxes) -> Callable[[Any, Any], tuple[Any]]:
    """The contraction as a callable of both operands: axes in the order batch, free left, free right, contracted."""
    (left_shape, right_shape), (free_left, free_right) = axes.shapes, axes.free
    order_left, order_right = ([*b, *f, *c] for b, f, c in zip(axes.batch, axes.free, axes.contracted, strict=True))
    n_batch, n_left, n_right = len(axes.batch_pairs), len(free_left), len(free_right)
    first_sum = n_batch + n_left + n_right
    sums = list(range(first_sum, first_sum + len(axes.contracted_pairs)))
    at_left = [*range(n_batch + n_left), *sums]
    at_right = [*range(n_batch), *range(n_batch + n_left, first_sum), *sums]
    shape = [*(left_shape[a] for a in order_left[: n_batch + n_left]), *(right_shape[a] for a in free_right)]
    shape += [left_shape[a] for a in axes.contracted[0]]

    def contracted(left: Any, right: Any) -> tuple[Any]:
        wide = lax.broadcast_in_dim(lax.transpose(left, order_left), shape, at_left)
        other = lax.broadcast_in_dim(lax.transpose(right, order_right), shape, at_right)
        return (jnp.sum(wide * other, axis=tuple(sums)),)

    return contracted


def batched_axes(node: Node) -> DotAxes:
    """The axes of ``node``, a dot_general; Refusal if no pass can rewrite it."""
    if "algorithm" in node.attributes:
        raise Refusal(Ground.ALGORITHM, "it asks for an explicit algorithm")
    kinds = {value.type.dtype for value in (*node.operands, *node.results)}
    if kinds not in ({"f32"}, {"f64"}):
        raise Refusal(Ground.ELEMENT_TYPES, "its operands and result are not of one type, f32 or f64")
    axes = DotAxes.of(node)
    if not axes.batch_pairs or not axes.contracted_pairs:
        raise Refusal(Ground.NO_GAIN, "it has no batch axes, or contracts nothing")
    return axes
