"""Edits of an expression, one each, that change the function: what a rewriting could get wrong.

Each is a function of one place in an ``Expression`` that returns what stands there instead, or None where it does not
fit. By luck an edited expression may be the same function: the float64 evaluation of both tells.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tests.fuzzing.expressions import (
    COMPARISONS,
    VECTOR,
    Derivative,
    Expression,
    binary,
    broadcast,
    constant,
    quantified,
    replaced,
    selected,
    taken,
    transpose,
    unary,
)

Edit = Callable[[Expression, random.Random], Expression | None]

_SIMILAR = {
    "tanh": "erf", "erf": "tanh", "sin": "tan", "tan": "sin", "cos": "sin", "exp": "expm1", "expm1": "exp",
    "log": "log1p", "log1p": "log", "sqrt": "cbrt", "cbrt": "sqrt", "logistic": "tanh", "softplus": "exp",
    "rsqrt": "sqrt", "abs": "neg", "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max",
    "atan2": "div", "and": "or", "or": "and", "all": "any", "any": "all", "sum": "reduce_max", "reduce_max": "sum",
    "logsumexp": "",
}  # fmt: skip
_MIRRORED = {"GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}


def _low_digit(e: Expression, choices: random.Random) -> Expression | None:
    if e.op != "constant" or not e.detail:
        return None
    return constant(float(np.nextafter(np.float32(e.detail), np.float32(choices.choice((-1, 1)) * np.inf))), e.shape)


def _factor_of_almost_one(e: Expression, choices: random.Random) -> Expression | None:
    return None if e.is_predicate else binary("mul", e, constant(1 + 2.0 ** -choices.randint(8, 22), e.shape))


def _exchanged(e: Expression, _: random.Random) -> Expression | None:
    if e.op in ("sub", "div", "atan2"):
        return binary(e.op, e.operands[1], e.operands[0])
    if e.op == "select":
        return selected(e.operands[0], e.operands[2], e.operands[1])
    if e.op == "dot" and len(e.operands[0].shape) == 2 and e.operands[0].shape == e.operands[1].shape:
        return Expression(e.op, e.operands[::-1], e.shape, e.detail)
    return None


def _similar(e: Expression, _: random.Random) -> Expression | None:
    other = _SIMILAR.get(e.op)
    return Expression(other, e.operands, e.shape, e.detail) if other else None


def _sign(e: Expression, _: random.Random) -> Expression | None:
    return None if e.is_predicate else unary("neg", e)


def _other_exponent(e: Expression, choices: random.Random) -> Expression | None:
    if e.op == "ipow":
        return Expression(e.op, e.operands, e.shape, e.detail + 1 or 1)
    return Expression(e.op, e.operands, e.shape, e.detail + 0.5) if e.op == "power" else None


def _index(e: Expression, choices: random.Random) -> Expression | None:
    """Another place in a gather, another start of a slice, another axis, a transposition too many or too few."""
    if e.op == "take":
        places, axis = e.detail
        at, n = choices.randrange(len(places)), e.operands[0].shape[axis]
        other = (places[at] + choices.randint(1, n - 1)) % n
        return taken(e.operands[0], (*places[:at], other, *places[at + 1 :]), axis)
    if e.op == "slice":
        starts, stops = e.detail
        for axis, n in enumerate(e.operands[0].shape):
            if starts[axis] > 0 or stops[axis] < n:
                step = -1 if starts[axis] > 0 else 1
                moved = [tuple(b + step * (at == axis) for at, b in enumerate(part)) for part in (starts, stops)]
                return Expression(e.op, e.operands, e.shape, tuple(moved))
    if e.op == "rev":
        return e.operands[0]
    if e.op == "cumsum":
        return Expression("rev", (e,), e.shape, (e.detail,))
    if e.shape == (3, 3):
        return transpose(e)
    if e.op == "broadcast" and len(e.detail) == 1 and e.shape == (3, 3):
        return broadcast(e.operands[0], e.shape, (1 - e.detail[0],))
    return None


def _direction(e: Expression, _: random.Random) -> Expression | None:
    return binary(_MIRRORED[e.op], *e.operands) if e.op in COMPARISONS else None


def _dropped(e: Expression, choices: random.Random) -> Expression | None:
    if e.op in ("add", "sub", "mul", "max", "min", "and", "or"):
        return choices.choice(e.operands) if e.op != "sub" else e.operands[0]
    if e.op in ("div", "clamp", "neg", "not"):
        return e.operands[1 if e.op == "clamp" else 0]
    return choices.choice(e.operands[1:]) if e.op == "select" else None


def _bounded(e: Expression, choices: random.Random) -> Expression | None:
    if e.is_predicate:
        return None
    op, bound = choices.choice((("min", 1e3), ("min", 20.0), ("max", 1e-4), ("max", -1e3), ("max", 0.0)))
    return binary(op, e, constant(bound, e.shape))


def _variable(e: Expression, choices: random.Random) -> Expression | None:
    other = {"s": "t", "t": "s", "v": "w", "w": "v", "x": "y", "y": "x"}.get(e.detail) if e.op == "input" else None
    return Expression("input", (), e.shape, other) if other else None


def _part_of_a_reduction(e: Expression, _: random.Random) -> Expression | None:
    if e.op in ("sum", "reduce_max") and e.operands[0].shape == VECTOR:
        first = taken(e.operands[0], (0, 1), 0)
        return Expression(e.op, (first,), e.shape, e.detail)
    return None


def _trips(e: Expression, choices: random.Random) -> Expression | None:
    """A trip more or fewer, a start that is dropped, another operand held."""
    if e.op != "loop":
        return None
    (start, a, b), (kind, trips) = e.operands, e.detail
    return choices.choice((
        Expression(e.op, (start, a, b), e.shape, (kind, trips + 1)),
        Expression(e.op, (start, a, b), e.shape, (kind, trips - 1)),
        Expression(e.op, (constant(0.0, e.shape), a, b), e.shape, (kind, trips)),
        Expression(e.op, (start, b, a), e.shape, (kind, trips)),
    ))  # fmt: skip


def _order_of_derivative(e: Expression, choices: random.Random) -> Expression | None:
    """The other order, another direction at a place, or the derivative of an edited function."""
    if e.op != "derivative":
        return None
    detail: Derivative = e.detail
    kind = choices.randrange(3)
    if kind == 0:
        return Expression(e.op, e.operands, (), Derivative(detail.function, 3 - detail.order, detail.forward))
    if kind == 1:
        point, direction = e.operands
        return Expression(e.op, (direction, point), (), detail)
    function = edited(detail.function, choices, tuple(set(EDITS) - {"variable", "under a conjunction"}))[0]
    return Expression(e.op, e.operands, (), Derivative(function, detail.order, detail.forward))


def _gated(e: Expression, choices: random.Random) -> Expression | None:
    """A term where all of 3 to 72 unrelated comparisons hold, none of them, or they hold in turn."""
    if e.is_predicate:
        return None
    v, w = (Expression("input", (), VECTOR, name) for name in "vw")
    side = choices.choice((3, 9))
    if side == 3:
        left, right = v, constant(0.5, VECTOR)
    else:
        columns = broadcast(v, (3, 3), (0,)), broadcast(w, (3, 3), (1,))
        left, right = binary("add", columns[0], binary("mul", constant(2.0, (3, 3)), columns[1])), constant(0.4, (3, 3))
    compared = binary(choices.choice(tuple(COMPARISONS)), left, right)
    if choices.random() < 0.3:
        other = binary(choices.choice(("GT", "LT")), binary("mul", left, left), left)
        compared = binary("and", compared, other)
    gate = quantified("all", compared)
    if choices.random() < 0.3:
        gate = unary("not", quantified("any", compared))
    term = binary("add", e, constant(1.0, e.shape)) if choices.random() < 0.5 else unary("sin", e)
    if choices.random() < 0.3:
        yes, no = constant(1.0, ()), constant(0.0, ())
        weight = selected(gate, yes, no)
        return binary("add", e, binary("mul", broadcast(weight, e.shape, ()) if e.shape else weight, term))
    return selected(gate, term, e)


EDITS: dict[str, Edit] = {
    "last bit of a constant": _low_digit, "factor of almost one": _factor_of_almost_one,
    "operands exchanged": _exchanged, "similar op": _similar, "sign": _sign, "exponent": _other_exponent,
    "index": _index, "direction of a comparison": _direction, "dropped": _dropped, "bound": _bounded,
    "variable": _variable, "part of a reduction": _part_of_a_reduction, "loop": _trips,
    "derivative": _order_of_derivative, "under a conjunction": _gated,
}  # fmt: skip


def edited(
    expression: Expression, choices: random.Random, names: tuple[str, ...] = tuple(EDITS)
) -> tuple[Expression, str]:
    """``expression`` with one edit at one place, and its name."""
    places = list(expression.walk())
    names = tuple(sorted(names))
    while True:
        place, name = choices.choice(places), choices.choice(names)
        new = EDITS[name](place, choices)
        if new is not None and new.shape == place.shape:
            return replaced(expression, place, new), name
