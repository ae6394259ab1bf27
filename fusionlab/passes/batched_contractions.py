"""Contractions that passes take from the library: batched ones of one real type."""

from __future__ import annotations

from fusionlab.hlo.contractions import Axes
from fusionlab.hlo.flat import Node
from fusionlab.passes.loop_rewrite import Refusal


def batched_axes(node: Node) -> Axes | Refusal:
    """The axes of ``node``, a dot_general; or why it is none that a pass could write in another way."""
    if "algorithm" in node.attributes:
        return Refusal("unsupported", "it asks for an explicit algorithm")
    kinds = {value.type.dtype for value in (*node.operands, *node.results)}
    if kinds not in ({"f32"}, {"f64"}):
        return Refusal("unsupported", "its operands and result are not of one type, f32 or f64")
    axes = Axes.of(node)
    if not axes.batch or not axes.contracted:
        return Refusal("unprofitable", "it has no batch axes, or contracts nothing")
    return axes
