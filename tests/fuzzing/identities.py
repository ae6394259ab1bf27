"""Rewritings of an expression that keep its value: what the exact check claims to see through, and what it does not.

Each is a function of an ``Expression`` that returns another of the same value, or None where its op is another.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzzing.expressions import (
    UNARY,
    VECTOR,
    Derivative,
    Expression,
    binary,
    broadcast,
    concatenated,
    constant,
    dot,
    quantified,
    reduction,
    replaced,
    reshaped,
    selected,
    sliced,
    taken,
    transpose,
    unary,
)

Rewrite = Callable[[Expression, random.Random], Expression | None]

_ELEMENTWISE = (*UNARY, "ipow", "power")
_TWO = ("add", "sub", "mul", "div", "atan2")
_OPPOSITE = {"GT": "LT", "LT": "GT", "GE": "LE", "LE": "GE"}
_NEGATION = {"GT": "LE", "LE": "GT", "LT": "GE", "GE": "LT"}


def add(x: Expression, y: Expression) -> Expression:
    return binary("add", x, y)


def sub(x: Expression, y: Expression) -> Expression:
    return binary("sub", x, y)


def mul(x: Expression, y: Expression) -> Expression:
    return binary("mul", x, y)


def div(x: Expression, y: Expression) -> Expression:
    return binary("div", x, y)


def neg(x: Expression) -> Expression:
    return unary("neg", x)


def one(x: Expression) -> Expression:
    return constant(1.0, x.shape)


def zero(x: Expression) -> Expression:
    return constant(0.0, x.shape)


def _commuted(e: Expression, _: random.Random) -> Expression | None:
    return binary(e.op, e.operands[1], e.operands[0]) if e.op in ("add", "mul", "max", "min", "and", "or") else None


def _associated(e: Expression, _: random.Random) -> Expression | None:
    if e.op not in ("add", "mul", "and", "or"):
        return None
    x, y = e.operands
    if y.op == e.op:
        return binary(e.op, binary(e.op, x, y.operands[0]), y.operands[1])
    if x.op == e.op:
        return binary(e.op, x.operands[0], binary(e.op, x.operands[1], y))
    return None


def _distributed(e: Expression, _: random.Random) -> Expression | None:
    if e.op not in ("mul", "div"):
        return None
    x, y = e.operands
    if x.op in ("add", "sub"):
        return binary(x.op, binary(e.op, x.operands[0], y), binary(e.op, x.operands[1], y))
    if e.op == "mul" and y.op in ("add", "sub"):
        return binary(y.op, mul(x, y.operands[0]), mul(x, y.operands[1]))
    return None


def _common_factor(e: Expression, _: random.Random) -> Expression | None:
    """x y + z = (x + z / y) y, for a y that is nowhere zero."""
    if (
        e.op not in ("add", "sub")
        or e.operands[0].op != "mul"
        or e.operands[0].operands[1].op not in ("exp", "logistic")
    ):
        return None
    x, y = e.operands[0].operands
    return mul(binary(e.op, x, div(e.operands[1], y)), y)


def _signs(e: Expression, choices: random.Random) -> Expression | None:
    if e.op == "sub":
        x, y = e.operands
        return choices.choice((add(x, neg(y)), neg(sub(y, x)), add(neg(y), x)))
    if e.op == "neg":
        x = e.operands[0]
        return choices.choice((mul(constant(-1.0, e.shape), x), sub(zero(e), x)))
    if e.op in ("mul", "div"):
        return neg(binary(e.op, neg(e.operands[0]), e.operands[1]))
    return None


def _quotient(e: Expression, _: random.Random) -> Expression | None:
    if e.op != "div":
        return None
    x, y = e.operands
    return div(x.operands[0], mul(x.operands[1], y)) if x.op == "div" else mul(x, div(one(e), y))


def _integer_power(e: Expression, _: random.Random) -> Expression | None:
    if e.op == "mul" and e.operands[0] is e.operands[1]:
        return Expression("ipow", e.operands[:1], e.shape, 2)
    if e.op != "ipow":
        return None
    x, k = e.operands[0], e.detail
    if k < 0:
        return div(one(e), Expression("ipow", (x,), e.shape, -k) if k < -1 else x)
    return mul(x, x) if k == 2 else mul(Expression("ipow", (x,), e.shape, k - 1), x)


def _rational_power(e: Expression, _: random.Random) -> Expression | None:
    """Powers of one base are added, where their sum is no integer."""
    x = e.operands[0] if e.operands else e
    if e.op == "sqrt":
        return mul(Expression("power", (x,), e.shape, 0.25), Expression("power", (x,), e.shape, 0.25))
    if e.op == "rsqrt":
        return Expression("power", (x,), e.shape, -0.5)
    if e.op == "power":
        half = Expression("power", (x,), e.shape, e.detail / 2)
        return mul(half, half)
    return None


def _reciprocal_root(e: Expression, choices: random.Random) -> Expression | None:
    if e.op == "rsqrt":
        return div(one(e), unary("sqrt", e.operands[0]))
    if e.op == "sqrt":
        return div(one(e), unary("rsqrt", e.operands[0]))
    if e.op == "div" and e.operands[1].op == "sqrt":
        return mul(e.operands[0], unary("rsqrt", e.operands[1].operands[0]))
    return None


def _parity(e: Expression, _: random.Random) -> Expression | None:
    if e.op in ("sin", "tan", "erf", "cbrt", "sign", "tanh"):
        return neg(unary(e.op, neg(e.operands[0])))
    return unary(e.op, neg(e.operands[0])) if e.op in ("cos", "abs") else None


def _negated_exponent(e: Expression, _: random.Random) -> Expression | None:
    return div(one(e), unary("exp", neg(e.operands[0]))) if e.op == "exp" else None


def _exponent_of_logarithm(e: Expression, choices: random.Random) -> Expression | None:
    """exp(u) v = exp(u + log v)."""
    if e.op == "mul" and e.operands[0].op == "exp":
        u, v = e.operands[0].operands[0], e.operands[1]
        return unary("exp", choices.choice((add(u, unary("log", v)), add(unary("log", v), u))))
    if e.op == "div" and e.operands[0].op == "exp":
        return unary("exp", sub(e.operands[0].operands[0], unary("log", e.operands[1])))
    if e.op == "exp" and e.operands[0].op in ("add", "sub") and e.operands[0].operands[1].op == "log":
        u, logarithm = e.operands[0].operands
        return binary("mul" if e.operands[0].op == "add" else "div", unary("exp", u), logarithm.operands[0])
    return None


def _by_exponent(e: Expression, choices: random.Random) -> Expression | None:
    """tanh, the logistic function, expm1 and log1p by exponents and logarithms."""
    x = e.operands[0] if e.operands else e
    if e.op == "tanh":
        power = unary("exp", add(x, x))
        twice = mul(constant(2.0, e.shape), x)
        other = sub(mul(constant(2.0, e.shape), unary("logistic", twice)), one(e))
        return choices.choice((div(sub(power, one(e)), add(power, one(e))), other))
    if e.op == "logistic":
        plain = div(one(e), add(one(e), unary("exp", neg(x))))
        return choices.choice((plain, sub(one(e), unary("logistic", neg(x)))))
    if e.op == "expm1":
        return sub(unary("exp", x), one(e))
    if e.op == "log1p":
        return unary("log", add(x, one(e)))
    return None


def _moved(e: Expression) -> Callable[[Expression], Expression] | None:
    """What moves elements as ``e`` does, of another operand of the same shape."""
    if e.op in ("transpose", "reshape", "rev", "slice", "take", "broadcast"):
        return lambda x: Expression(e.op, (x,), e.shape, e.detail)
    return None


def _function_of_moved(e: Expression, _: random.Random) -> Expression | None:
    """f(move x) = move f(x), and back; f(move x, move y) = move f(x, y)."""
    if e.op in _ELEMENTWISE:
        x = e.operands[0]
        if (move := _moved(x)) is not None:
            inner = x.operands[0]
            return move(Expression(e.op, (inner,), inner.shape, e.detail))
    if (move := _moved(e)) is not None:
        inner = e.operands[0]
        if inner.op in (*_ELEMENTWISE, *_TWO):
            return Expression(inner.op, tuple(map(move, inner.operands)), e.shape, inner.detail)
        if inner.op in ("max", "min") or (inner.op == "select" and inner.operands[0].shape == inner.shape):
            return Expression(inner.op, tuple(map(move, inner.operands)), e.shape)
        if inner.op == "constant":
            return constant(inner.detail, e.shape)
    return None


def _function_of_parts(e: Expression, _: random.Random) -> Expression | None:
    """f(concatenate(x, y)) = concatenate(f(x), f(y))."""
    if e.op in _ELEMENTWISE and e.operands[0].op == "concatenate":
        parts = [Expression(e.op, (part,), part.shape, e.detail) for part in e.operands[0].operands]
        return concatenated(parts, e.operands[0].detail)
    return None


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


def _transposed(e: Expression, choices: random.Random) -> Expression | None:
    if len(e.shape) == 2 and e.op == "dot" and e.detail == ((1,), (0,)):
        x, y = e.operands
        other = dot(y, x, 0, 1)
        return choices.choice((transpose(dot(transpose(y), transpose(x))), transpose(other)))
    if e.op == "inverse":
        return transpose(unary("inverse", transpose(e.operands[0])))
    return None


def _linear_contraction(e: Expression, _: random.Random) -> Expression | None:
    """(x + y) z = x z + y z, (c x) y = c (x y), x (y z) = (x y) z."""
    if e.op != "dot":
        return None
    x, y = e.operands
    again = lambda a, b: Expression("dot", (a, b), e.shape, e.detail)  # noqa: E731
    if x.op in ("add", "sub"):
        return binary(x.op, again(x.operands[0], y), again(x.operands[1], y))
    if y.op in ("add", "sub"):
        return binary(y.op, again(x, y.operands[0]), again(x, y.operands[1]))
    if x.op == "neg":
        return neg(again(x.operands[0], y))
    if x.op == "mul" and x.operands[0].op == "constant":
        return mul(constant(x.operands[0].detail, e.shape), again(x.operands[1], y))
    if e.detail == ((1,), (0,)) and y.op == "dot" and y.detail == ((1,), (0,)) and len(y.shape) == len(e.shape) == 2:
        return dot(dot(x, y.operands[0]), y.operands[1])
    if e.detail == ((1,), (0,)) and x.op == "dot" and x.detail == ((1,), (0,)) and len(x.shape) == 2:
        return dot(x.operands[0], dot(x.operands[1], y))
    return None


def _split_contraction(e: Expression, _: random.Random) -> Expression | None:
    """A contraction as the sum of two, or as a product and a sum."""
    if e.op != "dot":
        return None
    (left,), (right,) = e.detail
    x, y = e.operands
    n = x.shape[left]
    if len(x.shape) == len(y.shape) == 1:
        return reduction("sum", mul(x, y), (0,))
    if len(x.shape) == 2 and len(y.shape) == 1 and left == 1:
        return reduction("sum", mul(x, broadcast(y, x.shape, (1,))), (1,))
    parts = [
        Expression("dot", (sliced(x, left, a, b), sliced(y, right, a, b)), e.shape, e.detail)
        for a, b in ((0, 1), (1, n))
    ]
    return add(*parts)


def _linear_sum(e: Expression, _: random.Random) -> Expression | None:
    """Sums of sums, of products with a constant and of moves."""
    if e.op != "sum":
        return None
    x = e.operands[0]
    again = lambda a: Expression("sum", (a,), e.shape, e.detail)  # noqa: E731
    if x.op in ("add", "sub"):
        return binary(x.op, again(x.operands[0]), again(x.operands[1]))
    if x.op == "neg":
        return neg(again(x.operands[0]))
    if x.op == "mul" and x.operands[0].op == "broadcast" and x.operands[0].detail == ():
        factor = x.operands[0].operands[0]
        return mul(broadcast(factor, e.shape, ()) if e.shape else factor, again(x.operands[1]))
    if x.op == "transpose" and e.shape == ():
        return again(x.operands[0])
    if x.op == "broadcast" and x.detail == () and e.shape == ():
        count = 1.0
        for n in x.shape:
            count *= n
        return mul(constant(count, ()), x.operands[0])
    return None


def _split_sum(e: Expression, choices: random.Random) -> Expression | None:
    """A sum by axes, by parts, backwards, or as a contraction with ones."""
    if e.op != "sum":
        return None
    x = e.operands[0]
    if len(e.detail) == 2:
        first = choices.randrange(2)
        return reduction("sum", reduction("sum", x, (first,)), (0,))
    axis = e.detail[0]
    n = x.shape[axis]
    parts = [Expression("sum", (sliced(x, axis, a, b),), e.shape, e.detail) for a, b in ((0, 1), (1, n))]
    ones = dot(x, constant(1.0, (n,)), axis, 0)
    backwards = Expression("sum", (Expression("rev", (x,), x.shape, (axis,)),), e.shape, e.detail)
    return choices.choice((add(*parts), add(*parts[::-1]), ones, backwards))


def _cumulative(e: Expression, _: random.Random) -> Expression | None:
    """A cumulative sum as sums of the first elements."""
    if e.op != "cumsum":
        return None
    x, axis = e.operands[0], e.detail
    kept = tuple(n for at, n in enumerate(x.shape) if at != axis)
    wide = tuple(1 if at == axis else n for at, n in enumerate(x.shape))
    parts = []
    for stop in range(1, x.shape[axis] + 1):
        parts.append(reshaped(Expression("sum", (sliced(x, axis, 0, stop),), kept, (axis,)), wide))
    return concatenated(parts, axis)


def _branch(e: Expression, choices: random.Random) -> Expression | None:
    """The branches of a select exchanged, or an op moved into both of them."""
    if e.op == "select":
        predicate, yes, no = e.operands
        return selected(unary("not", predicate), no, yes)
    if e.op in _ELEMENTWISE and e.operands[0].op == "select":
        predicate, yes, no = e.operands[0].operands
        return selected(predicate, *(Expression(e.op, (part,), e.shape, e.detail) for part in (yes, no)))
    if e.op in _TWO and e.operands[0].op == "select":
        predicate, yes, no = e.operands[0].operands
        return selected(predicate, binary(e.op, yes, e.operands[1]), binary(e.op, no, e.operands[1]))
    if e.op in _TWO and e.operands[1].op == "select":
        predicate, yes, no = e.operands[1].operands
        return selected(predicate, binary(e.op, e.operands[0], yes), binary(e.op, e.operands[0], no))
    return None


def _comparison(e: Expression, choices: random.Random) -> Expression | None:
    """Comparisons mirrored, negated, moved by a common term; not (p and q) = not p or not q."""
    if e.op in _OPPOSITE:
        x, y = e.operands
        kind = choices.randrange(5)
        if kind == 0:
            return binary(_OPPOSITE[e.op], y, x)
        if kind == 1:
            return unary("not", binary(_NEGATION[e.op], x, y))
        if kind == 2:
            return binary(_OPPOSITE[e.op], neg(x), neg(y))
        if kind == 3:
            return binary(e.op, sub(x, y), zero(x))
        shift = choices.choice((x, y, constant(1.5, x.shape)))
        return binary(e.op, add(x, shift), add(y, shift))
    if e.op in ("and", "or"):
        return unary("not", binary({"and": "or", "or": "and"}[e.op], *(unary("not", p) for p in e.operands)))
    if e.op in ("all", "any"):
        inner = unary("not", e.operands[0])
        return unary("not", quantified({"all": "any", "any": "all"}[e.op], inner))
    return None


def _extreme(e: Expression, choices: random.Random) -> Expression | None:
    """The larger of two by a select, by the smaller of the negatives, moved by a common term; clamp by both."""
    if e.op in ("max", "min"):
        x, y = e.operands
        kind = choices.randrange(4)
        if kind == 0:
            return selected(binary("GE" if e.op == "max" else "LE", x, y), x, y)
        if kind == 1:
            return neg(binary({"max": "min", "min": "max"}[e.op], neg(x), neg(y)))
        if kind == 2:
            return add(binary(e.op, sub(x, y), zero(x)), y)
        return sub(binary(e.op, add(x, one(x)), add(y, one(y))), one(x))
    if e.op == "clamp":
        low, x, high = e.operands
        return binary("min", binary("max", x, low), high)
    if e.op == "abs":
        x = e.operands[0]
        return choices.choice((mul(unary("sign", x), x), selected(binary("LT", x, zero(x)), neg(x), x)))
    return None


def _largest_element(e: Expression, choices: random.Random) -> Expression | None:
    """The largest element as a chain of maxima, or moved by a common term."""
    if e.op != "reduce_max":
        return None
    x = e.operands[0]
    if e.shape == () and x.shape == VECTOR and choices.random() < 0.7:
        first, second, third = (reshaped(sliced(x, 0, at, at + 1), ()) for at in range(3))
        return binary("max", binary("max", first, second), third)
    return sub(Expression("reduce_max", (add(x, one(x)),), e.shape, e.detail), one(e))


def _unrolled(e: Expression, choices: random.Random) -> Expression | None:
    """A loop unrolled, or as two loops one after the other."""
    if e.op != "loop":
        return None
    start, a, b = e.operands
    kind, trips = e.detail
    if kind != "numbered" and trips > 1 and choices.random() < 0.4:
        cut = choices.randint(1, trips - 1)
        first = Expression("loop", (start, a, b), e.shape, (kind, cut))
        return Expression("loop", (first, a, b), e.shape, (kind, trips - cut))
    carried = start
    for k in range(trips):
        product = mul(carried, a)
        if kind == "recurrent":
            carried = add(unary("tanh", product), b)
        elif kind == "capped":
            carried = binary("max", product, b)
        else:
            carried = add(product, mul(b, constant(float(k), e.shape)) if kind == "numbered" else b)
    return carried


def _direction_of_derivative(e: Expression, _: random.Random) -> Expression | None:
    """Forward mode for reverse mode, of the same function rewritten no further."""
    if e.op != "derivative":
        return None
    detail: Derivative = e.detail
    return Expression(e.op, e.operands, e.shape, Derivative(detail.function, detail.order, not detail.forward))


def _rewritten_function(e: Expression, choices: random.Random) -> Expression | None:
    """A derivative of the same function in other words (of algebra alone)."""
    if e.op != "derivative":
        return None
    detail: Derivative = e.detail
    other = rewritten(detail.function, choices, 2, _SMOOTH)[0]
    return Expression(e.op, e.operands, e.shape, Derivative(other, detail.order, detail.forward))


def _derived(e: Expression, choices: random.Random) -> Expression | None:
    """The first derivative by the rule of products, of quotients, or by the chain rule of one function."""
    if e.op != "derivative" or e.detail.order != 1:
        return None
    function, (point, direction) = e.detail.function, e.operands
    again = lambda f: Expression(e.op, e.operands, (), Derivative(f, 1, e.detail.forward))  # noqa: E731
    if function.op in ("add", "sub"):
        return binary(function.op, *map(again, function.operands))
    if function.op == "input":
        return reduction("sum", direction, tuple(range(len(direction.shape)))) if direction.shape else direction
    inner = function.operands[0]
    if inner.op != "input":
        return None
    slopes: dict[str, Callable[[], Expression]] = {
        "exp": lambda: unary("exp", point),
        "log": lambda: div(one(point), point),
        "tanh": lambda: sub(one(point), mul(unary("tanh", point), unary("tanh", point))),
        "sin": lambda: unary("cos", point),
        "cos": lambda: neg(unary("sin", point)),
        "sqrt": lambda: div(constant(0.5, point.shape), unary("sqrt", point)),
        "rsqrt": lambda: div(mul(constant(-0.5, point.shape), unary("rsqrt", point)), point),
        "softplus": lambda: unary("logistic", point),
        "logistic": lambda: mul(unary("logistic", point), unary("logistic", neg(point))),
        "expm1": lambda: unary("exp", point),
        "log1p": lambda: div(one(point), add(one(point), point)),
        "ipow": lambda: mul(
            constant(float(function.detail), point.shape),
            point if function.detail == 2 else Expression("ipow", (point,), point.shape, function.detail - 1),
        ),
    }
    if function.op not in slopes:
        return None
    terms = mul(direction, slopes[function.op]())
    return reduction("sum", terms, tuple(range(len(terms.shape)))) if terms.shape else terms


IDENTITIES: dict[str, Rewrite] = {
    "commuted": _commuted, "associated": _associated, "distributed": _distributed, "common factor": _common_factor,
    "signs": _signs, "quotient": _quotient, "integer power": _integer_power, "rational power": _rational_power,
    "reciprocal root": _reciprocal_root, "odd and even functions": _parity, "exp(-x) = 1 / exp(x)": _negated_exponent,
    "exp(u + log v) = exp(u) v": _exponent_of_logarithm, "by exponents": _by_exponent,
    "elementwise and move": _function_of_moved, "elementwise and concatenate": _function_of_parts,
    "moves": _cut, "contraction transposed": _transposed, "contraction reassociated": _linear_contraction,
    "contraction split": _split_contraction, "sum of linear terms": _linear_sum, "sum split": _split_sum,
    "cumulative sum": _cumulative, "branches": _branch, "comparison": _comparison, "extreme": _extreme,
    "largest element": _largest_element, "loop unrolled": _unrolled, "forward and reverse": _direction_of_derivative,
    "derivative of a rewritten function": _rewritten_function, "derivative by rule": _derived,
}  # fmt: skip
_SMOOTH = (
    "commuted", "associated", "distributed", "signs", "quotient", "integer power", "odd and even functions",
    "elementwise and move", "by exponents", "moves",
)  # fmt: skip


def _exponent_of_sum(e: Expression, _: random.Random) -> Expression | None:
    if e.op == "exp" and e.operands[0].op in ("add", "sub"):
        x, y = e.operands[0].operands
        return binary("mul" if e.operands[0].op == "add" else "div", unary("exp", x), unary("exp", y))
    return None


def _softmax(e: Expression, _: random.Random) -> Expression | None:
    if e.op != "softmax":
        return None
    power = unary("exp", e.operands[0])
    last = len(e.shape) - 1
    return div(power, broadcast(reduction("sum", power, (last,)), e.shape, tuple(range(last))))


def _exponent_of_softplus(e: Expression, _: random.Random) -> Expression | None:
    """JAX's softplus is another function where its argument is NaN, which the field takes some points for."""
    if e.op == "exp" and e.operands[0].op == "softplus":
        return add(one(e), unary("exp", e.operands[0].operands[0]))
    return None


def _logarithm_of_product(e: Expression, _: random.Random) -> Expression | None:
    if e.op == "log" and e.operands[0].op in ("mul", "div"):
        x, y = e.operands[0].operands
        return binary("add" if e.operands[0].op == "mul" else "sub", unary("log", x), unary("log", y))
    return None


def _scaled_extreme(e: Expression, _: random.Random) -> Expression | None:
    if e.op not in ("max", "min"):
        return None
    x, y = e.operands
    two = constant(2.0, e.shape)
    return mul(constant(0.5, e.shape), binary(e.op, mul(two, x), mul(two, y)))


def _associated_extreme(e: Expression, _: random.Random) -> Expression | None:
    if e.op in ("max", "min") and e.operands[1].op == e.op:
        x, (y, z) = e.operands[0], e.operands[1].operands
        return binary(e.op, binary(e.op, x, y), z)
    return None


def _root_of_square(e: Expression, _: random.Random) -> Expression | None:
    return unary("sqrt", mul(e.operands[0], e.operands[0])) if e.op == "abs" else None


def _squared_sine(e: Expression, _: random.Random) -> Expression | None:
    if e.op == "ipow" and e.detail == 2 and e.operands[0].op == "sin":
        cosine = unary("cos", e.operands[0].operands[0])
        return sub(one(e), mul(cosine, cosine))
    return None


def _transposed_determinant(e: Expression, _: random.Random) -> Expression | None:
    return Expression("logdet", (transpose(e.operands[0]),), ()) if e.op == "logdet" else None


UNCLAIMED: dict[str, Rewrite] = {
    "exp(a + b) = exp(a) exp(b)": _exponent_of_sum, "softmax without its maximum": _softmax,
    "exp of softplus": _exponent_of_softplus, "log(a b) = log a + log b": _logarithm_of_product, "max(2 a, 2 b) = 2 max(a, b)": _scaled_extreme,  # noqa: E501
    "max(a, max(b, c))": _associated_extreme, "|x| = sqrt(x^2)": _root_of_square,
    "sin^2 = 1 - cos^2": _squared_sine, "log|det| of the transpose": _transposed_determinant,
}  # fmt: skip
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
