"""How the ops of StableHLO behave under differentiation, as literal tables."""

from __future__ import annotations

from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.hlo.view import Node


def _ops(dialect: str, names: str) -> frozenset[str]:
    return frozenset(f"{dialect}.{name}" for name in names.split())


SMOOTH_UNARY = _ops(
    "stablehlo", "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
) | _ops("chlo", "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh square")
"""Elementwise functions of one operand with a second derivative."""

PIECEWISE_LINEAR = _ops("stablehlo", "abs clamp maximum minimum select reduce_precision")
"""Elementwise ops whose second derivative is zero wherever they have one."""

AFFINE = _ops("stablehlo", "add subtract negate convert")
"""Elementwise ops that are affine in all operands together."""

CHEAP = AFFINE | PIECEWISE_LINEAR | _ops("stablehlo", "multiply")
"""Elementwise ops that cost less than writing their result and reading it again."""

ELEMENTWISE = SMOOTH_UNARY | PIECEWISE_LINEAR | AFFINE | _ops("stablehlo", "multiply divide power atan2")
"""Elementwise ops with a derivative."""

FLAT = _ops(
    "stablehlo",
    "and ceil compare count_leading_zeros floor is_finite not or popcnt round_nearest_afz round_nearest_even "
    "shift_left shift_right_arithmetic shift_right_logical sign xor iota constant",
)
"""Ops whose derivative is zero wherever they have one, or whose results have none."""

MOVES = _ops(
    "stablehlo",
    "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather pad reshape reverse slice transpose",
)
"""Ops that only move elements, linear in their floating-point operands."""

REPEATS = _ops("stablehlo", "broadcast_in_dim reshape transpose")
"""Moves of one operand that may repeat elements."""

LINEAR = _ops("stablehlo", "dynamic_update_slice pad scatter reduce_window sort")
"""Ops that JAX differentiates as a whole, affine in their floating-point operands if what they combine by is."""


def linear(node: Node) -> bool:
    """Whether ``node`` is affine, piecewise at most, in all its floating-point operands together."""
    if node.name in ("stablehlo.scatter", "stablehlo.reduce_window"):
        return combiner(node.regions[0]) in ("add", "second", "minimum", "maximum")
    return node.name in LINEAR


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that a ``stablehlo.reduce`` sums over."""
    return integers(node.attributes["dimensions"])
