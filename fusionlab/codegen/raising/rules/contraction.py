"""Raising rules for contractions and dense linear algebra that StableHLO has as ops."""

from __future__ import annotations

from typing import Any

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule
from fusionlab.hlo.view import Node, keyword


def _dot_general(op: RaisedOp) -> list[Any]:
    if "algorithm" in op.node.attributes:
        raise RaiseError("dot_general with an explicit algorithm", op.node)
    numbers = stablehlo.DotDimensionNumbers(op.node.attributes["dot_dimension_numbers"])
    contracting = (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions))
    batching = (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions))
    types = {"precision": precision_of(op.node), "preferred_element_type": op.dtype}
    return [op.jax(lax.dot_general, *op.operands, (contracting, batching), **types)]


def precision_of(node: Node) -> tuple[lax.Precision, ...] | None:
    """The precision of a contraction per operand; None (no or an empty ``precision_config``): the library's choice."""
    precision = node.attributes.get("precision_config") or ()
    return tuple(lax.Precision[keyword(entry)] for entry in precision) or None


def strictest_precision(node: Node) -> lax.Precision:
    """The precision in which XLA computes a ``dot_general``: the higher of its operands' two."""
    return max(precision_of(node) or (lax.Precision.DEFAULT,), key=lambda precision: precision.value)


def laxest_precision(node: Node) -> lax.Precision:
    """The lower of the precisions of a contraction's two operands; the library's own choice counts as DEFAULT."""
    return min(precision_of(node) or (lax.Precision.DEFAULT,), key=lambda precision: precision.value)


def solved(op: RaisedOp, transpose: str, *, left_side: bool, lower: bool, unit_diagonal: bool) -> list[Any]:
    """A triangular solve; of ``transpose`` the first letter decides: Not, Transposed or its Conjugate or Adjoint."""
    how = {"transpose_a": transpose[0] != "N", "conjugate_a": transpose[0] in "AC"}
    how |= {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    return [op.jax(lax.linalg.triangular_solve, *op.operands[:2], **how)]


def _triangular_solve(op: RaisedOp) -> list[Any]:
    flags = {name: op.flag(name) for name in ("left_side", "lower", "unit_diagonal")}
    return solved(op, keyword(op.node.attributes["transpose_a"]), **flags)


def _cholesky(op: RaisedOp) -> list[Any]:
    if not op.flag("lower"):
        raise RaiseError("upper Cholesky factor", op.node)
    return [op.jax(lax.linalg.cholesky, op.operands[0], symmetrize_input=False)]


RULES: dict[str, Rule] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.triangular_solve": _triangular_solve,
}
