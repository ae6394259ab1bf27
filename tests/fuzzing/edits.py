"""Edits of an expression, one each, that change the function: what a rewriting could get wrong.

Each is a function of one place in an ``Expression`` that returns what stands there instead, or None where it does not
fit. By luck an edited expression may be the same function: the float64 evaluation of both tells.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.fuzzing.expressions import (
    COMPARISONS,
    VECTOR,
    Derivative,
    Expression,
    apply,
    broadcast,
    constant,
    replaced,
    taken,
    transpose,
)
from tests.fuzzing.rules import Rewrite, rule

_SIMILAR = {
    "tanh": "erf", "erf": "tanh", "sin": "tan", "tan": "sin", "cos": "sin", "exp": "expm1", "expm1": "exp",
    "log": "log1p", "log1p": "log", "sqrt": "cbrt", "cbrt": "sqrt", "logistic": "tanh", "softplus": "exp",
    "rsqrt": "sqrt", "abs": "neg", "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max",
    "atan2": "div", "and": "or", "or": "and", "all": "any", "any": "all", "sum": "reduce_max", "reduce_max": "sum",
}  # fmt: skip


def _low_digit(e: Expression, choices: random.Random) -> Expression | None:
    if not e.detail:
        return None
    return constant(float(np.nextafter(np.float32(e.detail), np.float32(choices.choice((-1, 1)) * np.inf))), e.shape)


def _similar(e: Expression, _: random.Random) -> Expression | None:
    return Expression(_SIMILAR[e.op], e.operands, e.shape, e.detail) if e.op in _SIMILAR else None


def _other_input(e: Expression, _: random.Random) -> Expression | None:
    other = {"s": "t", "t": "s", "v": "w", "w": "v", "x": "y", "y": "x"}.get(e.detail) if e.op == "input" else None
    return replace(e, detail=other) if other else None


def _dot_exchanged(e: Expression, _: random.Random, x: Expression, y: Expression) -> Expression | None:
    return e.of(y, x) if len(x.shape) == 2 and x.shape == y.shape else None


def _numeric(edit: Callable[..., Expression | None]) -> Rewrite:
    return lambda e, choices: None if e.is_predicate else edit(e, choices)


def _other_place(e: Expression, choices: random.Random, x: Expression) -> Expression | None:
    """Another place in a gather."""
    places, axis = e.detail
    at, n = choices.randrange(len(places)), x.shape[axis]
    other = (places[at] + choices.randint(1, n - 1)) % n
    return taken(x, (*places[:at], other, *places[at + 1 :]), axis)


def _other_start(e: Expression, choices: random.Random, x: Expression) -> Expression | None:
    """A slice a place before or after."""
    starts, stops = e.detail
    for axis, n in enumerate(x.shape):
        if starts[axis] > 0 or stops[axis] < n:
            step = -1 if starts[axis] > 0 else 1
            moved = [tuple(b + step * (at == axis) for at, b in enumerate(part)) for part in (starts, stops)]
            return Expression(e.op, e.operands, e.shape, tuple(moved))
    return None


_INDEX = rule("rev[a](x) -> x", "(s := cumsum[a](x)) -> rev[a,](s)", take=_other_place, slice=_other_start)


def _index(e: Expression, choices: random.Random) -> Expression | None:
    """Another place or start, another axis, a transposition too many or too few."""
    return _INDEX(e, choices) or (transpose(e) if e.shape == (3, 3) else None)


def _part_of_a_reduction(e: Expression, _: random.Random, x: Expression) -> Expression | None:
    return e.of(taken(x, (0, 1), 0)) if x.shape == VECTOR else None


def _order_of_derivative(
    e: Expression, choices: random.Random, point: Expression, direction: Expression
) -> Expression | None:
    """The other order, another direction at a place, or the derivative of an edited function."""
    detail: Derivative = e.detail
    kind = choices.randrange(3)
    if kind == 1:
        return e.of(direction, point)
    if kind == 0:
        other = replace(detail, order=3 - detail.order)
    else:
        names = tuple(set(EDITS) - {"variable", "under a conjunction"})
        other = replace(detail, function=edited(detail.function, choices, names)[0])
    return Expression(e.op, e.operands, (), other)


def _gated(e: Expression, choices: random.Random) -> Expression | None:
    """A term where all of 3 to 72 unrelated comparisons hold, none of them, or they hold in turn."""
    v, w = (Expression("input", (), VECTOR, name) for name in "vw")
    left, right = v, constant(0.5, VECTOR)
    if choices.choice((False, True)):
        rows, columns = broadcast(v, (3, 3), (0,)), broadcast(w, (3, 3), (1,))
        left, right = apply("add", rows, apply("mul", constant(2.0, (3, 3)), columns)), constant(0.4, (3, 3))
    compared = apply(choices.choice(tuple(COMPARISONS)), left, right)
    if choices.random() < 0.3:
        other = apply(choices.choice(("GT", "LT")), apply("mul", left, left), left)
        compared = apply("and", compared, other)
    gate = Expression("all", (compared,), ())
    if choices.random() < 0.3:
        gate = apply("not", Expression("any", (compared,), ()))
    term = apply("add", e, constant(1.0, e.shape)) if choices.random() < 0.5 else apply("sin", e)
    if choices.random() < 0.3:
        yes, no = constant(1.0, ()), constant(0.0, ())
        weight = apply("select", gate, yes, no)
        return apply("add", e, apply("mul", broadcast(weight, e.shape, ()) if e.shape else weight, term))
    return apply("select", gate, term, e)


EDITS: dict[str, Rewrite] = {
    "last bit of a constant": rule(constant=_low_digit),
    "factor of almost one": _numeric(
        lambda e, choices: apply("mul", e, constant(1 + 2.0 ** -choices.randint(8, 22), e.shape))
    ),
    "operands exchanged": rule(
        "x - y -> y - x", "x / y -> y / x", "atan2(x, y) -> atan2(y, x)", "select(p, x, y) -> select(p, y, x)",
        dot=_dot_exchanged,
    ),
    "similar op": _similar,
    "sign": _numeric(rule("x -> -x")),
    "exponent": rule("ipow[-1](x) -> ipow[1](x)", "ipow[k](x) -> ipow[k + 1](x)", "power[c](x) -> power[c + 0.5](x)"),
    "index": _index,
    "direction of a comparison": rule("x > y -> x < y", "x < y -> x > y", "x >= y -> x <= y", "x <= y -> x >= y"),
    "dropped": rule(
        "x - y -> x", "commutative(x, y) -> either(x, y)", "x / y -> x", "-x -> x", "~p -> p", "clamp(a, x, b) -> x",
        "select(p, x, y) -> either(x, y)",
    ),
    "bound": _numeric(
        rule("x -> either(min(x, 1e3), min(x, 20), max(x, 1e-4), max(x, -1e3), max(x, 0))")
    ),
    "variable": _other_input,
    "part of a reduction": rule(sum=_part_of_a_reduction, reduce_max=_part_of_a_reduction),
    "loop": rule(  # a trip more or fewer, a start that is dropped, another operand held
        "loop[d](x, y, z) -> either(loop[d[0], d[1] + 1](x, y, z), loop[d[0], d[1] - 1](x, y, z), loop[d](0, y, z), "
        "loop[d](x, z, y))"
    ),
    "derivative": rule(derivative=_order_of_derivative),
    "under a conjunction": _numeric(_gated),
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
