"""Where the ops of StableHLO have branches, as one literal table: every op that can be raised is in it.

Two programs that agree at random points agree everywhere their ops are analytic and their questions are answered alike.
So an op is analytic, or its answers are followed (``branch_questions``), or a sum that uses it where its value does not
is refused. What is not in the table is refused, too.
"""

from __future__ import annotations

from typing import Literal

from fusionlab.hlo.flat import Node, Value

Kind = Literal["analytic", "root", "move", "sided", "question", "whole", "reduction", "ordering", "step", "control"]


def _ops(kind: Kind, stablehlo: str, chlo: str = "") -> dict[str, Kind]:
    names = [f"stablehlo.{name}" for name in stablehlo.split()] + [f"chlo.{name}" for name in chlo.split()]
    return dict.fromkeys(names, kind)


KINDS: dict[str, Kind] = {
    **_ops(
        "analytic",
        "add complex constant convert cosine divide dot_general exponential exponential_minus_one imag iota logistic "
        "multiply negate optimization_barrier real sine subtract tan tanh triangular_solve",
        "asinh atan bessel_i1e cosh digamma erf erfc sinh square",
    ),
    # Analytic between their branch points, but the root of a square is an absolute value.
    **_ops("root", "cbrt cholesky log log_plus_one power rsqrt sqrt", "acos acosh asin atanh erf_inv lgamma"),
    **_ops(
        "move",
        "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice gather pad reshape reverse slice transpose",
    ),
    # One of two analytic functions of floats; of answers, an answer.
    **_ops("sided", "abs clamp maximum minimum select"),
    **_ops("question", "compare sign"),
    # Of bits and whole numbers.
    **_ops(
        "whole",
        "and count_leading_zeros not or popcnt shift_left shift_right_arithmetic shift_right_logical xor",
    ),
    # By addition and multiplication analytic, by others not.
    **_ops("reduction", "reduce reduce_window scatter", "scan"),
    # What comes out depends on the order of what goes in; of a factorisation, its exchanges of rows.
    **_ops("ordering", "custom_call sort"),
    # Steps and jumps where no comparison says so.
    **_ops(
        "step",
        "atan2 bitcast_convert ceil floor is_finite reduce_precision remainder round_nearest_afz round_nearest_even",
        "next_after",
    ),
    **_ops("control", "case if while"),
    "sdy.sharding_constraint": "analytic",
}


def kind_of(name: str) -> Kind:
    """What kind of op ``name`` is; one that is not known is a step."""
    return KINDS.get(name, "step")


def is_step(node: Node) -> bool:
    """Whether ``node`` jumps, or makes whole numbers of floats; what is not floating-point has no steps."""
    if node.name == "stablehlo.convert":
        return of_floats(node.operands[0]) and not of_floats(node.results[0])
    return kind_of(node.name) == "step" and any(map(of_floats, (*node.operands, *node.results)))


def of_floats(value: Value) -> bool:
    """Whether it is an array of real or complex floating-point numbers of any width."""
    return value.type.dtype.startswith(("f", "bf", "complex"))
