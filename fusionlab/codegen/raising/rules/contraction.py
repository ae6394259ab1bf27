"""Raising rules for contractions and dense linear algebra that StableHLO has as ops."""

from __future__ import annotations

from typing import Any

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.rule import RaiseError, Rule, in_jax
from fusionlab.hlo.view import Node, keyword


def _dot_general(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if "algorithm" in node.attributes:
        raise RaiseError("dot_general with an explicit algorithm", node)
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    contracting = (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions))
    batching = (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions))
    return [
        in_jax(
            node,
            lax.dot_general,
            operands[0],
            operands[1],
            (contracting, batching),
            precision=precision_of(node),
            preferred_element_type=raising.dtype(node.results[0].type),
        )
    ]


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


def _triangular_solve(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    attributes = node.attributes
    transpose = keyword(attributes["transpose_a"])
    return [
        in_jax(
            node,
            lax.linalg.triangular_solve,
            operands[0],
            operands[1],
            left_side=attributes["left_side"].value,
            lower=attributes["lower"].value,
            transpose_a=transpose != "NO_TRANSPOSE",
            conjugate_a=transpose == "ADJOINT",
            unit_diagonal=attributes["unit_diagonal"].value,
        )
    ]


def _cholesky(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if "lower" not in node.attributes or not node.attributes["lower"].value:
        raise RaiseError("upper Cholesky factor", node)
    return [in_jax(node, lax.linalg.cholesky, operands[0], symmetrize_input=False)]


RULES: dict[str, Rule] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.triangular_solve": _triangular_solve,
}
