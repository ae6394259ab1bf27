"""Rewritings of an expression that keep its value: what the exact check claims to see through, and what it does not.

Each is a function of an ``Expression`` that returns another of the same value, or None where its form is another.
"""

from __future__ import annotations

import random
from itertools import accumulate
from math import prod

from tests.fuzzing.expressions import (
    VECTOR,
    Derivative,
    Expression,
    apply,
    broadcast,
    concatenated,
    constant,
    dot,
    reduction,
    replaced,
    reshaped,
    sliced,
    taken,
    transpose,
)
from tests.fuzzing.rules import CLASSES, Rewrite, filled, rule, side

_MOVES = ("transpose", "reshape", "rev", "slice", "take", "broadcast")
_ONES, _TWOS = CLASSES["one"], CLASSES["two"]


def _function_of_moved(e: Expression, _: random.Random) -> Expression | None:
    """f(move x) = move f(x), and back; f(move x, move y) = move f(x, y)."""
    inner = e.operands[0] if e.operands else e
    if e.op in _ONES and inner.op in _MOVES:
        (x,) = inner.operands
        return inner.of(Expression(e.op, (x,), x.shape, e.detail))
    if e.op not in _MOVES:
        return None
    if inner.op in (*_ONES, *_TWOS, "max", "min") or (inner.op == "select" and inner.operands[0].shape == inner.shape):
        return Expression(inner.op, tuple(map(e.of, inner.operands)), e.shape, inner.detail)
    return constant(inner.detail, e.shape) if inner.op == "constant" else None


def _function_of_parts(e: Expression, _: random.Random) -> Expression | None:
    """f(concatenate(x, y)) = concatenate(f(x), f(y))."""
    if e.op not in _ONES or e.operands[0].op != "concatenate":
        return None
    parts = [Expression(e.op, (part,), part.shape, e.detail) for part in e.operands[0].operands]
    return concatenated(parts, e.operands[0].detail)


def _cut(e: Expression, choices: random.Random) -> Expression | None:
    """x = concatenate(x[:n], x[n:]), or in reverse twice, or taken by its own indices."""
    if not e.shape or e.is_predicate:
        return None
    axis = choices.randrange(len(e.shape))
    n = e.shape[axis]
    if n < 2:
        return None
    cut = choices.randint(1, n - 1)
    reverse = Expression("rev", (Expression("rev", (e,), e.shape, (axis,)),), e.shape, (axis,))
    parts = concatenated([sliced(e, axis, 0, cut), sliced(e, axis, cut, n)], axis)
    return choices.choice((parts, reverse, taken(e, tuple(range(n)), axis)))


_MATRIX_PRODUCT = ((1,), (0,))


def _transposed(e: Expression, choices: random.Random, x: Expression, y: Expression) -> Expression | None:
    if len(e.shape) != 2 or e.detail != _MATRIX_PRODUCT:
        return None
    return transpose(choices.choice((dot(transpose(y), transpose(x)), dot(y, x, 0, 1))))


def _reassociated(e: Expression, _: random.Random, x: Expression, y: Expression) -> Expression | None:
    """x (y z) = (x y) z, and back."""
    if e.detail != _MATRIX_PRODUCT:
        return None
    if y.op == "dot" and y.detail == _MATRIX_PRODUCT and len(y.shape) == len(e.shape) == 2:
        return dot(dot(x, y.operands[0]), y.operands[1])
    if x.op == "dot" and x.detail == _MATRIX_PRODUCT and len(x.shape) == 2:
        return dot(x.operands[0], dot(x.operands[1], y))
    return None


def _split_contraction(e: Expression, _: random.Random, x: Expression, y: Expression) -> Expression | None:
    """A contraction as the sum of two, or as a product and a sum."""
    (left,), (right,) = e.detail
    if len(x.shape) == len(y.shape) == 1:
        return reduction("sum", apply("mul", x, y), (0,))
    if len(x.shape) == 2 and len(y.shape) == 1 and left == 1:
        return reduction("sum", apply("mul", x, broadcast(y, x.shape, (1,))), (1,))
    if x.shape[left] == 1:
        return None
    parts = [e.of(sliced(x, left, a, b), sliced(y, right, a, b)) for a, b in ((0, 1), (1, x.shape[left]))]
    return apply("add", *parts)


def _sum_of_moved(e: Expression, _: random.Random, x: Expression) -> Expression | None:
    if x.op == "mul" and x.operands[0].op == "broadcast" and x.operands[0].detail == ():
        (factor,) = x.operands[0].operands
        return apply("mul", broadcast(factor, e.shape, ()) if e.shape else factor, e.of(x.operands[1]))
    if x.op == "transpose" and e.shape == ():
        return e.of(*x.operands)
    if x.op == "broadcast" and x.detail == () and e.shape == ():
        return apply("mul", constant(float(prod(x.shape)), ()), *x.operands)
    return None


def _split_sum(e: Expression, choices: random.Random, x: Expression) -> Expression | None:
    """A sum by axes, by parts, backwards, or as a contraction with ones."""
    if len(e.detail) == 2:
        return reduction("sum", reduction("sum", x, (choices.randrange(2),)), (0,))
    (axis,) = e.detail
    n = x.shape[axis]
    ones = dot(x, constant(1.0, (n,)), axis, 0)
    backwards = e.of(Expression("rev", (x,), x.shape, (axis,)))
    if n == 1:
        return choices.choice((ones, backwards))
    first, rest = e.of(sliced(x, axis, 0, 1)), e.of(sliced(x, axis, 1, n))
    return choices.choice((apply("add", first, rest), apply("add", rest, first), ones, backwards))


def _cumulative(e: Expression, _: random.Random, x: Expression) -> Expression | None:
    """A cumulative sum as sums of the first elements."""
    axis = e.detail
    wide = tuple(1 if at == axis else n for at, n in enumerate(x.shape))
    sums = [reduction("sum", sliced(x, axis, 0, stop), (axis,)) for stop in range(1, x.shape[axis] + 1)]
    return concatenated([reshaped(one, wide) for one in sums], axis)


def _largest_element(e: Expression, choices: random.Random, x: Expression) -> Expression | None:
    """The largest element as a chain of maxima, or moved by a common term."""
    if e.shape == () and x.shape == VECTOR and choices.random() < 0.7:
        elements = (reshaped(sliced(x, 0, at, at + 1), ()) for at in range(3))
        return list(accumulate(elements, lambda a, b: apply("max", a, b)))[-1]
    return apply("sub", e.of(apply("add", x, constant(1.0, x.shape))), constant(1.0, e.shape))


_TRIPS = {"recurrent": side("tanh(c * a) + b"), "capped": side("max(c * a, b)"), "affine": side("c * a + b")}


def _unrolled(
    e: Expression, choices: random.Random, start: Expression, a: Expression, b: Expression
) -> Expression | None:
    """A loop unrolled, or as two loops one after the other."""
    kind, trips = e.detail
    if kind != "numbered" and trips > 1 and choices.random() < 0.4:
        cut = choices.randint(1, trips - 1)
        first = Expression("loop", (start, a, b), e.shape, (kind, cut))
        return Expression("loop", (first, a, b), e.shape, (kind, trips - cut))
    carried = start
    for k in range(trips):
        trip = side(f"c * a + b * {k}") if kind == "numbered" else _TRIPS[kind]
        carried = filled(trip, {"c": carried, "a": a, "b": b}, e.shape, choices)
    return carried


def _other_mode(e: Expression, _: random.Random, *operands: Expression) -> Expression | None:
    """Forward mode for reverse mode, of the same function rewritten no further."""
    detail: Derivative = e.detail
    return Expression(e.op, operands, e.shape, Derivative(detail.function, detail.order, not detail.forward))


def _rewritten_function(e: Expression, choices: random.Random, *operands: Expression) -> Expression | None:
    """A derivative of the same function in other words (of algebra alone)."""
    detail: Derivative = e.detail
    other = rewritten(detail.function, choices, 2, _SMOOTH)[0]
    return Expression(e.op, operands, e.shape, Derivative(other, detail.order, detail.forward))


_SLOPES = {
    "exp": "exp(x)", "log": "1 / x", "tanh": "1 - tanh(x) * tanh(x)", "sin": "cos(x)", "cos": "-sin(x)",
    "sqrt": "0.5 / sqrt(x)", "rsqrt": "-0.5 * rsqrt(x) / x", "softplus": "logistic(x)",
    "logistic": "logistic(x) * logistic(-x)", "expm1": "exp(x)", "log1p": "1 / (1 + x)",
    "ipow2": "2 * x", "ipow3": "3 * ipow[2](x)",
}  # fmt: skip


def _derived(e: Expression, choices: random.Random, point: Expression, direction: Expression) -> Expression | None:
    """The first derivative by the rule of products, of quotients, or by the chain rule of one function."""
    function: Expression = e.detail.function
    if e.detail.order != 1:
        return None
    if function.op in ("add", "sub"):
        parts = (Derivative(part, 1, e.detail.forward) for part in function.operands)
        return apply(function.op, *(Expression(e.op, e.operands, (), part) for part in parts))
    terms = direction
    if function.op != "input":
        slope = _SLOPES.get(f"{function.op}{function.detail or ''}")
        if slope is None or function.operands[0].op != "input":
            return None
        terms = apply("mul", direction, filled(side(slope), {"x": point}, point.shape, choices))
    return reduction("sum", terms, tuple(range(len(terms.shape)))) if terms.shape else terms


IDENTITIES: dict[str, Rewrite] = {
    "commuted": rule("commutative(x, y) -> commutative(y, x)"),
    "associated": rule(
        "associative(x, associative(y, z)) -> associative(associative(x, y), z)",
        "associative(associative(x, y), z) -> associative(x, associative(y, z))",
    ),
    "distributed": rule(
        "scaled(linear(x, y), z) -> linear(scaled(x, z), scaled(y, z))", "z * linear(x, y) -> linear(z * x, z * y)"
    ),
    "common factor": rule("linear(x * (y := positive(u)), z) -> linear(x, z / y) * y"),  # y is nowhere zero
    "signs": rule(
        "x - y -> either(x + -y, -(y - x), -y + x)", "-x -> either(-1 * x, 0 - x)", "scaled(x, y) -> -scaled(-x, y)"
    ),
    "quotient": rule("x / y / z -> x / (y * z)", "x / y -> x * (1 / y)"),
    "integer power": rule(
        "x * x -> ipow[2](x)", "ipow[2](x) -> x * x", "ipow[-1](x) -> 1 / x", "ipow[-2](x) -> 1 / ipow[2](x)",
        "ipow[k](x) -> ipow[k - 1](x) * x",
    ),
    "rational power": rule(  # powers of one base are added, where their sum is no integer
        "sqrt(x) -> power[0.25](x) * power[0.25](x)", "rsqrt(x) -> power[-0.5](x)",
        "power[c](x) -> (half := power[c / 2](x)) * half",
    ),
    "reciprocal root": rule("rsqrt(x) -> 1 / sqrt(x)", "sqrt(x) -> 1 / rsqrt(x)", "x / sqrt(y) -> x * rsqrt(y)"),
    "odd and even functions": rule("odd(x) -> -odd(-x)", "even(x) -> even(-x)"),
    "exp(-x) = 1 / exp(x)": rule("exp(x) -> 1 / exp(-x)"),
    "exp(u + log v) = exp(u) v": rule(
        "exp(u) * v -> exp(either(u + log(v), log(v) + u))", "exp(u) / v -> exp(u - log(v))",
        "exp(u + log(v)) -> exp(u) * v", "exp(u - log(v)) -> exp(u) / v",
    ),
    "by exponents": rule(
        "tanh(x) -> either(((p := exp(x + x)) - 1) / (p + 1), 2 * logistic(2 * x) - 1)",
        "logistic(x) -> either(1 / (1 + exp(-x)), 1 - logistic(-x))",
        "expm1(x) -> exp(x) - 1", "log1p(x) -> log(x + 1)",
    ),
    "elementwise and move": _function_of_moved,
    "elementwise and concatenate": _function_of_parts,
    "moves": _cut,
    "contraction transposed": rule("inverse(x) -> transpose(inverse(transpose(x)))", dot=_transposed),
    "contraction reassociated": rule(
        "dot[a](linear(x, y), z) -> linear(dot[a](x, z), dot[a](y, z))",
        "dot[a](z, linear(x, y)) -> linear(dot[a](z, x), dot[a](z, y))",
        "dot[a](-x, y) -> -dot[a](x, y)", "dot[a](constant[c]() * x, y) -> constant[c]() * dot[a](x, y)",
        dot=_reassociated,
    ),
    "contraction split": rule(dot=_split_contraction),
    "sum of linear terms": rule(
        "sum[a](linear(x, y)) -> linear(sum[a](x), sum[a](y))", "sum[a](-x) -> -sum[a](x)", sum=_sum_of_moved
    ),
    "sum split": rule(sum=_split_sum),
    "cumulative sum": rule(cumsum=_cumulative),
    "branches": rule(
        "select(p, x, y) -> select(~p, y, x)",
        "one[k](select(p, x, y)) -> select(p, one[k](x), one[k](y))",
        "two(select(p, x, y), z) -> select(p, two(x, z), two(y, z))",
        "two(z, select(p, x, y)) -> select(p, two(z, x), two(z, y))",
    ),
    "comparison": rule(
        "x > y -> either(y < x, ~(x <= y), -x < -y, x - y > 0, x + (z := either(x, y, 1.5)) > y + z)",
        "x < y -> either(y > x, ~(x >= y), -x > -y, x - y < 0, x + (z := either(x, y, 1.5)) < y + z)",
        "x >= y -> either(y <= x, ~(x < y), -x <= -y, x - y >= 0, x + (z := either(x, y, 1.5)) >= y + z)",
        "x <= y -> either(y >= x, ~(x > y), -x >= -y, x - y <= 0, x + (z := either(x, y, 1.5)) <= y + z)",
        "p & q -> ~(~p | ~q)", "p | q -> ~(~p & ~q)", "all(p) -> ~any(~p)", "any(p) -> ~all(~p)",
    ),
    "extreme": rule(
        "max(x, y) -> either(select(x >= y, x, y), -min(-x, -y), max(x - y, 0) + y, max(x + 1, y + 1) - 1)",
        "min(x, y) -> either(select(x <= y, x, y), -max(-x, -y), min(x - y, 0) + y, min(x + 1, y + 1) - 1)",
        "clamp(low, x, high) -> min(max(x, low), high)", "abs(x) -> either(sign(x) * x, select(x < 0, -x, x))",
    ),
    "largest element": rule(reduce_max=_largest_element),
    "loop unrolled": rule(loop=_unrolled),
    "forward and reverse": rule(derivative=_other_mode),
    "derivative of a rewritten function": rule(derivative=_rewritten_function),
    "derivative by rule": rule(derivative=_derived),
}  # fmt: skip
_SMOOTH = (
    "commuted", "associated", "distributed", "signs", "quotient", "integer power", "odd and even functions",
    "elementwise and move", "by exponents", "moves",
)  # fmt: skip


def _softmax(e: Expression, _: random.Random, x: Expression) -> Expression | None:
    power, last = apply("exp", x), len(e.shape) - 1
    return apply("div", power, broadcast(reduction("sum", power, (last,)), e.shape, tuple(range(last))))


UNCLAIMED: dict[str, Rewrite] = {
    "exp(a + b) = exp(a) exp(b)": rule("exp(x + y) -> exp(x) * exp(y)", "exp(x - y) -> exp(x) / exp(y)"),
    "softmax without its maximum": rule(softmax=_softmax),
    # JAX's softplus is another function where its argument is NaN, which the field takes some points for.
    "exp of softplus": rule("exp(softplus(x)) -> 1 + exp(x)"),
    "log(a b) = log a + log b": rule("log(x * y) -> log(x) + log(y)", "log(x / y) -> log(x) - log(y)"),
    "max(2 a, 2 b) = 2 max(a, b)": rule("extreme(x, y) -> 0.5 * extreme((two := 2) * x, two * y)"),
    "max(a, max(b, c))": rule("extreme(x, extreme(y, z)) -> extreme(extreme(x, y), z)"),
    "|x| = sqrt(x^2)": rule("abs(x) -> sqrt(x * x)"),
    "sin^2 = 1 - cos^2": rule("ipow[2](sin(x)) -> 1 - (c := cos(x)) * c"),
    "log|det| of the transpose": rule("logdet(x) -> logdet(transpose(x))"),
}
"""True of real numbers; the field has other values, and may say that the programs differ."""


def rewritten(
    expression: Expression, choices: random.Random, count: int, names: tuple[str, ...] = tuple(IDENTITIES)
) -> tuple[Expression, list[str]]:
    """``expression`` rewritten up to ``count`` times, by any of the identities ``names``, and those that were used."""
    used: list[str] = []
    known = {**IDENTITIES, **UNCLAIMED}
    for _ in range(count):
        places = list(expression.walk())
        for _ in range(60):
            place, name = choices.choice(places), choices.choice(names)
            new = known[name](place, choices)
            if new is not None:
                assert new.shape == place.shape, (name, place, new)
                expression = replaced(expression, place, new)
                used.append(name)
                break
    return expression, used
