"""How the ops of StableHLO behave under differentiation, as literal tables."""

from __future__ import annotations

from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.hlo.flat import Node

_PREFIX = "stablehlo."

SMOOTH_UNARY = frozenset(
    [
        *(
            _PREFIX + name
            for name in (
                "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
            ).split()
        ),
        *(
            "chlo." + name
            for name in (
                "acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh square"
            ).split()
        ),
    ]
)
"""Elementwise functions of one operand with a second derivative."""

PIECEWISE_LINEAR = frozenset(_PREFIX + name for name in "abs clamp maximum minimum select reduce_precision".split())
"""Elementwise ops whose second derivative is zero wherever they have one."""

AFFINE = frozenset(_PREFIX + name for name in "add subtract negate convert".split())
"""Elementwise ops that are affine in all operands together."""

ELEMENTWISE = (
    SMOOTH_UNARY
    | PIECEWISE_LINEAR
    | AFFINE
    | frozenset(_PREFIX + name for name in "multiply divide power atan2".split())
)
"""Elementwise ops with a derivative."""

FLAT = frozenset(
    _PREFIX + name
    for name in (
        "and ceil compare count_leading_zeros floor is_finite not or popcnt round_nearest_afz round_nearest_even "
        "shift_left shift_right_arithmetic shift_right_logical sign xor iota constant"
    ).split()
)
"""Ops whose derivative is zero wherever they have one, or whose results have none."""

MOVES = frozenset(
    _PREFIX + name
    for name in (
        "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather pad reshape reverse slice transpose"
    ).split()
)
"""Ops that only move elements, linear in their floating-point operands."""

REPEATS = frozenset(_PREFIX + name for name in "broadcast_in_dim reshape transpose".split())
"""Moves of one operand that may repeat elements."""

LINEAR = frozenset(_PREFIX + name for name in "dynamic_update_slice pad scatter reduce_window sort".split())
"""Ops that JAX differentiates as a whole, affine in their floating-point operands if what they combine by is."""

FLOATS = ("f16", "bf16", "f32", "f64")


def differentiable(node: Node) -> bool:
    """Whether a derivative may pass through ``node``."""
    return node.name not in FLAT


def linear(node: Node) -> bool:
    """Whether ``node`` is affine, piecewise at most, in all its floating-point operands together."""
    if node.name in ("stablehlo.scatter", "stablehlo.reduce_window"):
        return combiner(node.regions[0]) in ("add", "second", "minimum", "maximum")
    return node.name in LINEAR


def reduced_axes(node: Node) -> tuple[int, ...]:
    """The axes that a ``stablehlo.reduce`` sums over."""
    return integers(node.attributes["dimensions"])
