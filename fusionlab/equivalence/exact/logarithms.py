"""The one identity of functions that programs need: exp(u + log v) = exp(u) v.

log(1 + exp(x)) (softplus, logaddexp, log_sigmoid, log-sum-exp) is differentiated to exp(x - log(1 + exp(x))). A residue
that is a random function of v, by ``log``, is therefore kept with v, through sums, differences and moves; ``exp`` of
such a value takes v out of the exponent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step
from fusionlab.hlo.flat import Node

_LINEAR = ("stablehlo.add", "stablehlo.subtract", "stablehlo.negate", "stablehlo.select")
MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "broadcast_in_dim",
        "concatenate",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "pad",
        "reshape",
        "reverse",
        "slice",
        "transpose",
    )
)


def with_logarithms(node: Node, step: Step, arithmetic: Any) -> Step:
    """``step``, in which logarithms are carried along with what they are the logarithm of."""
    if node.name in ("stablehlo.log", "stablehlo.log_plus_one"):
        return _of_log(node, step, arithmetic)
    if node.name == "stablehlo.exponential":
        return _of_exponential(step, arithmetic)
    if node.name in _LINEAR:
        return _of_linear(node, step, arithmetic)
    return _of_move(step) if node.name in MOVES else step


def _of_log(node: Node, step: Step, arithmetic: Any) -> Step:
    def run(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [found] = step(operands, environment)
        x = arithmetic.embedded(operands[0].array) if isinstance(operands[0], Known) else operands[0].array
        argument = arithmetic.add(x, np.ones(1)) if node.name == "stablehlo.log_plus_one" else x
        return [Drawn(found.array, (found.array, np.broadcast_to(argument, found.array.shape)))]

    return run


def _of_exponential(step: Step, arithmetic: Any) -> Step:
    def run(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [x] = operands
        if isinstance(x, Known) or x.logarithm is None:
            return step(operands, environment)
        logarithm, argument = x.logarithm
        [rest] = step([Drawn(arithmetic.subtract(x.array, logarithm))], environment)
        return [Drawn(arithmetic.multiply(rest.array, argument))]

    return run


def _parts(held: Held, like: Array) -> tuple[Array, Array]:
    """(l, v) of ``held``: 0 and 1 where no part of it is known to be a logarithm."""
    if isinstance(held, Drawn) and held.logarithm is not None:
        return held.logarithm
    return np.zeros_like(like), np.ones_like(like)


def _has_part(held: Held) -> bool:
    return isinstance(held, Drawn) and held.logarithm is not None


def _of_linear(node: Node, step: Step, arithmetic: Any) -> Step:
    name = node.name.removeprefix("stablehlo.")

    def run(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [found] = step(operands, environment)
        if not any(map(_has_part, operands)) or isinstance(found, Known) or found.logarithm is not None:
            return [found]
        parts = [_parts(operand, found.array) for operand in operands[-2:]]
        if name == "negate":
            [(logarithm, argument)] = parts
            return [Drawn(found.array, (-logarithm, arithmetic.inverse(argument)))]
        (l0, v0), (l1, v1) = parts
        if name == "add":
            return [Drawn(found.array, (arithmetic.add(l0, l1), arithmetic.multiply(v0, v1)))]
        if name == "subtract":
            return [Drawn(found.array, (arithmetic.subtract(l0, l1), arithmetic.divide(v0, v1)))]
        predicate = operands[0].array if isinstance(operands[0], Drawn) else operands[0].array[None]
        predicate = predicate.reshape(*predicate.shape, *(1,) * (found.array.ndim - predicate.ndim))
        return [Drawn(found.array, (np.where(predicate, l0, l1), np.where(predicate, v0, v1)))]

    return run


def _of_move(step: Step) -> Step:
    def run(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [found] = step(operands, environment)
        if not any(map(_has_part, operands)) or isinstance(found, Known):
            return [found]
        moved: list[Any] = []
        for at in (0, 1):
            given = [
                Drawn(operand.logarithm[at])
                if isinstance(operand, Drawn) and operand.logarithm is not None
                else _filled(operand, float(at))
                for operand in operands
            ]
            moved.append(step(given, environment)[0].array)
        return [Drawn(found.array, (moved[0], moved[1]))]

    return run


def _filled(held: Held, number: float) -> Held:
    """``held`` with ``number`` in place of floats; indices stay."""
    if held.array.dtype.kind in "biu":
        return held
    return Drawn(np.full(held.array.shape if isinstance(held, Drawn) else (1, *held.array.shape), number))
