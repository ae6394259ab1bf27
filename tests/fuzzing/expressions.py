"""Random expressions over a few arrays, of which a rewriting keeps the value or an edit changes it.

An ``Expression`` is an immutable tree whose shared parts are one object; ``evaluate`` makes JAX operations of it. The
shapes are few, so that operands are found for every op: scalars, three, two by three and three by three.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Shape = tuple[int, ...]

SCALAR, VECTOR, TALL, WIDE, SQUARE = (), (3,), (3, 2), (2, 3), (3, 3)
INPUTS: dict[str, Shape] = {"s": SCALAR, "t": SCALAR, "v": VECTOR, "w": VECTOR, "x": WIDE, "y": WIDE, "m": SQUARE}


@dataclass(frozen=True, eq=False)
class Expression:
    """``op`` of ``operands``, an array of ``shape``; ``detail`` is what the op says beside its operands."""

    op: str
    operands: tuple[Expression, ...]
    shape: Shape
    detail: Any = None

    def __repr__(self) -> str:
        detail = "" if self.detail is None else f"[{self.detail}]"
        return f"{self.op}{detail}({', '.join(map(repr, self.operands))})" if self.operands else f"{self.op}{detail}"

    def of(self, *operands: Expression) -> Expression:
        """The same op, of the same shape, of other ``operands``."""
        return Expression(self.op, operands, self.shape, self.detail)

    @property
    def is_predicate(self) -> bool:
        return self.op in PREDICATES or (self.op in MOVES and self.operands[0].is_predicate)

    def walk(self) -> Iterator[Expression]:
        """Every expression in it, once each, operands first; not those of a derivative's function."""
        seen: set[int] = set()

        def visit(expression: Expression) -> Iterator[Expression]:
            if id(expression) not in seen:
                seen.add(id(expression))
                for operand in expression.operands:
                    yield from visit(operand)
                yield expression

        return visit(self)


def replaced(expression: Expression, old: Expression, new: Expression) -> Expression:
    """``expression`` with ``new`` wherever it has ``old``; what is shared stays shared."""
    made: dict[int, Expression] = {id(old): new}

    def visit(one: Expression) -> Expression:
        found = made.get(id(one))
        if found is None:
            operands = tuple(map(visit, one.operands))
            same = all(a is b for a, b in zip(operands, one.operands, strict=True))
            found = made[id(one)] = one if same else Expression(one.op, operands, one.shape, one.detail)
        return found

    return visit(expression)


LOOPS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "affine": lambda c, a, b, k: c * a + b,
    "numbered": lambda c, a, b, k: c * a + b * lax.convert_element_type(k, np.float32),
    "recurrent": lambda c, a, b, k: lax.tanh(c * a) + b,
    "capped": lambda c, a, b, k: lax.max(c * a, b),
}


@dataclass(frozen=True, eq=False)
class Derivative:
    """A derivative of the sum of ``function`` of the input ``hole`` along one direction: the first or the second."""

    function: Expression
    order: int
    forward: bool

    def __repr__(self) -> str:
        return f"{'forward' if self.forward else 'reverse'} {self.order} of {self.function}"


def _derivative(detail: Derivative, point: Any, direction: Any) -> Any:
    def total(x: Any) -> Any:
        return evaluate(detail.function, lambda _: x).sum()

    def along(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: jax.jvp(function, (x,), (direction,))[1]

    if detail.order == 1:
        return along(total)(point) if detail.forward else (jax.grad(total)(point) * direction).sum()
    if detail.forward:
        return (along(jax.grad(total))(point) * direction).sum()
    return (jax.grad(lambda x: (jax.grad(total)(x) * direction).sum())(point) * direction).sum()


UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lax.neg, "exp": lax.exp, "log": lax.log, "tanh": lax.tanh, "sin": lax.sin, "cos": lax.cos, "erf": lax.erf,
    "sqrt": lax.sqrt, "rsqrt": lax.rsqrt, "logistic": lax.logistic, "expm1": lax.expm1, "log1p": lax.log1p,
    "cbrt": lax.cbrt, "tan": lax.tan, "abs": lax.abs, "sign": lax.sign, "softplus": jax.nn.softplus,
    "floor": lax.floor,
}  # fmt: skip
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "max": lax.max, "min": lax.min,
    "atan2": lax.atan2,
}  # fmt: skip
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {"GT": lax.gt, "LT": lax.lt, "GE": lax.ge, "LE": lax.le}
CONNECTIVES: dict[str, Callable[..., Any]] = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "not": lax.bitwise_not,
}  # fmt: skip
PREDICATES = frozenset((*COMPARISONS, *CONNECTIVES, "all", "any"))
MOVES = ("broadcast", "concatenate", "rev", "slice", "take", "transpose")
_DETAILED: dict[str, Callable[..., Any]] = {
    "constant": lambda e: lax.full(e.shape, np.float32(e.detail)),
    "broadcast": lambda e, x: lax.broadcast_in_dim(x, e.shape, e.detail),
    "ipow": lambda e, x: lax.integer_pow(x, e.detail),
    "power": lambda e, x: lax.pow(x, np.float32(e.detail)),
    "transpose": lambda e, x: lax.transpose(x, e.detail),
    "reshape": lambda e, x: lax.reshape(x, e.detail),
    "rev": lambda e, x: lax.rev(x, e.detail),
    "slice": lambda e, x: lax.slice(x, *e.detail),
    "concatenate": lambda e, *xs: lax.concatenate(xs, e.detail),
    "take": lambda e, x: jnp.take(x, np.array(e.detail[0]), e.detail[1], mode="clip"),
    "sum": lambda e, x: lax.reduce_sum_p.bind(x, axes=e.detail, out_sharding=None),
    "reduce_max": lambda e, x: lax.reduce_max_p.bind(x, axes=e.detail, out_sharding=None),
    "cumsum": lambda e, x: lax.cumsum(x, e.detail),
    "dot": lambda e, x, y: lax.dot_general(x, y, (e.detail, ((), ()))),
    "loop": lambda e, start, a, b: lax.fori_loop(
        0, e.detail[1], lambda k, c: LOOPS[e.detail[0]](c, a, b, k), start
    ),
    "derivative": lambda e, point, direction: _derivative(e.detail, point, direction),
}  # fmt: skip
_PLAIN: dict[str, Callable[..., Any]] = {
    **UNARY, **BINARY, **COMPARISONS, **CONNECTIVES,
    "select": lax.select, "clamp": lax.clamp,
    "all": lambda p: lax.reduce_and(p, range(p.ndim)), "any": lambda p: lax.reduce_or(p, range(p.ndim)),
    "logsumexp": lambda x: jax.nn.logsumexp(x, -1), "softmax": lambda x: jax.nn.softmax(x, -1),
    "inverse": jnp.linalg.inv, "logdet": lambda x: jnp.linalg.slogdet(x)[1],
}  # fmt: skip


def evaluate(expression: Expression, given: Callable[[str], Any]) -> Any:
    """The array of ``expression``; ``given`` returns an input by name."""
    made: dict[int, Any] = {}
    for one in expression.walk():
        arrays = [made[id(operand)] for operand in one.operands]
        if one.op == "input":
            made[id(one)] = given(one.detail)
        elif one.op in _PLAIN:
            made[id(one)] = _PLAIN[one.op](*arrays)
        else:
            made[id(one)] = _DETAILED[one.op](one, *arrays)
    return made[id(expression)]


# Makers of expressions, with their shapes.


def constant(value: float, shape: Shape) -> Expression:
    return Expression("constant", (), shape, value)


def apply(op: str, *operands: Expression) -> Expression:
    """An op of elements, whose shape is that of its last operand."""
    return Expression(op, operands, operands[-1].shape)


def transpose(x: Expression) -> Expression:
    return Expression("transpose", (x,), x.shape[::-1], (1, 0))


def broadcast(x: Expression, shape: Shape, axes: tuple[int, ...]) -> Expression:
    return Expression("broadcast", (x,), shape, axes)


def reduction(op: str, x: Expression, axes: tuple[int, ...]) -> Expression:
    return Expression(op, (x,), tuple(n for axis, n in enumerate(x.shape) if axis not in axes), axes)


def dot(x: Expression, y: Expression, left: int = -1, right: int = 0) -> Expression:
    left, right = left % len(x.shape), right % len(y.shape)
    free = [n for axis, n in enumerate(x.shape) if axis != left] + [
        n for axis, n in enumerate(y.shape) if axis != right
    ]
    return Expression("dot", (x, y), tuple(free), ((left,), (right,)))


def sliced(x: Expression, axis: int, start: int, stop: int) -> Expression:
    starts = tuple(start if at == axis else 0 for at in range(len(x.shape)))
    stops = tuple(stop if at == axis else n for at, n in enumerate(x.shape))
    return Expression("slice", (x,), tuple(b - a for a, b in zip(starts, stops, strict=True)), (starts, stops))


def concatenated(parts: Sequence[Expression], axis: int) -> Expression:
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return Expression("concatenate", tuple(parts), tuple(shape), axis)


def taken(x: Expression, places: tuple[int, ...], axis: int) -> Expression:
    shape = list(x.shape)
    shape[axis] = len(places)
    return Expression("take", (x,), tuple(shape), (places, axis))


def reshaped(x: Expression, shape: Shape) -> Expression:
    return Expression("reshape", (x,), shape, shape)


_SMOOTH = ("exp", "log", "tanh", "sin", "cos", "erf", "sqrt", "rsqrt", "logistic", "softplus", "log1p", "expm1", "neg")
_CONSTANTS = tuple(k / 8 for k in (-20, -12, -9, -4, -3, 1, 2, 3, 4, 5, 7, 9, 10, 12, 17, 24))
"""Few bits each, so that sums and products of some of them are exact in float32."""


class Generator:
    """Random expressions; all of its choices are from ``random``."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self._made: dict[Shape, list[Expression]] = {}
        self._inputs = {name: Expression("input", (), shape, name) for name, shape in INPUTS.items()}

    def constant(self, shape: Shape) -> Expression:
        return constant(self.random.choice(_CONSTANTS), shape)

    def leaf(self, shape: Shape) -> Expression:
        fitting = [one for one in self._inputs.values() if one.shape == shape]
        if fitting and self.random.random() < 0.8:
            return self.random.choice(fitting)
        if shape and self.random.random() < 0.5:
            if shape == TALL:
                return transpose(self.leaf(WIDE))
            scalar = self.random.choice((self._inputs["s"], self._inputs["t"]))
            return broadcast(scalar, shape, ()) if len(shape) < 2 else broadcast(self.leaf(shape[1:]), shape, (1,))
        return self.constant(shape)

    def expression(self, shape: Shape, depth: int) -> Expression:
        """An expression of ``shape``; sometimes one made before, so that parts are shared."""
        known = self._made.setdefault(shape, [])
        if known and self.random.random() < 0.15:
            return self.random.choice(known)
        made = self.leaf(shape) if depth <= 0 else self._of_kind(shape, depth - 1)
        known.append(made)
        return made

    def _two(self, shape: Shape, depth: int) -> tuple[Expression, Expression]:
        """Two expressions; mostly not the same one."""
        first, second = self.expression(shape, depth), self.expression(shape, depth)
        for _ in range(4):
            if first is second:
                second = self.expression(shape, depth)
        return first, second

    def predicate(self, shape: Shape, depth: int) -> Expression:
        kind = self.random.random()
        if depth > 0 and kind < 0.2:
            op = self.random.choice(("and", "or"))
            return Expression(op, (self.predicate(shape, depth - 1), self.predicate(shape, depth - 1)), shape)
        if kind < 0.3:
            return Expression("not", (self.predicate(shape, 0),), shape)
        if kind < 0.45 and shape == ():
            return Expression(self.random.choice(("all", "any")), (self.predicate(VECTOR, 0),), ())
        op = self.random.choice(tuple(COMPARISONS))
        return Expression(op, self._two(shape, depth - 1), shape)

    def _of_kind(self, shape: Shape, depth: int) -> Expression:
        makers = [self._arithmetic] * 5 + [self._function] * 4 + [self._branch] * 2 + [self._power, self._loop]
        makers += [self._contraction] * 3 if len(shape) == 2 else [self._reduction] * 4
        makers += [self._move] * 2 if shape else [self._scalar]
        return self.random.choice(makers)(shape, depth)

    def _arithmetic(self, shape: Shape, depth: int) -> Expression:
        op = self.random.choice(("add", "add", "sub", "sub", "mul", "mul", "mul", "div", "atan2"))
        return apply(op, *self._two(shape, depth))

    def _function(self, shape: Shape, depth: int) -> Expression:
        x = self.expression(shape, depth)
        if shape and self.random.random() < 0.1:
            return apply("softmax", x)
        if self.random.random() < 0.1:  # exp(u + log v)
            return apply("exp", apply("add", x, apply("log", self.expression(shape, depth - 1))))
        return apply(self.random.choice(tuple(UNARY)), x)

    def _power(self, shape: Shape, depth: int) -> Expression:
        x = self.expression(shape, depth)
        if self.random.random() < 0.6:
            return Expression("ipow", (x,), shape, self.random.choice((-2, -1, 2, 3, 4)))
        return Expression("power", (x,), shape, self.random.choice((-1.5, -0.75, 0.25, 0.75, 1.5, 2.5)))

    def _branch(self, shape: Shape, depth: int) -> Expression:
        kind, x = self.random.random(), self.expression(shape, depth)
        if kind < 0.4:
            return apply(self.random.choice(("max", "min")), *self._two(shape, depth))
        if kind < 0.5:
            low, high = sorted(self.random.sample(_CONSTANTS, 2))
            return Expression("clamp", (constant(low, shape), x, constant(high, shape)), shape)
        predicate = self.predicate(self.random.choice((shape, ())), depth)
        return apply("select", predicate, x, self.expression(shape, depth))

    def _loop(self, shape: Shape, depth: int) -> Expression:
        operands = tuple(self.expression(shape, min(depth, 1)) for _ in range(3))
        return Expression("loop", operands, shape, (self.random.choice(tuple(LOOPS)), self.random.randint(1, 4)))

    def _contraction(self, shape: Shape, depth: int) -> Expression:
        inner = self.random.choice((2, 3))
        x, y = self.expression((shape[0], inner), depth), self.expression((inner, shape[1]), depth)
        return dot(x, y)

    def _reduction(self, shape: Shape, depth: int) -> Expression:
        kind = self.random.random()
        if shape == ():
            if kind < 0.25:
                return dot(self.expression(VECTOR, depth), self.expression(VECTOR, depth))
            given = self.random.choice((VECTOR, WIDE))
            x = self.expression(given, depth)
            if kind < 0.35 and given == VECTOR:
                return Expression("logsumexp", (x,), ())
            return reduction(self.random.choice(("sum", "sum", "reduce_max")), x, tuple(range(len(given))))
        if shape != VECTOR:
            return self._function(shape, depth)
        if kind < 0.3:
            return dot(self.expression(SQUARE, depth), self.expression(VECTOR, depth))
        if kind < 0.4:
            return Expression("logsumexp", (self.expression(SQUARE, depth),), VECTOR)
        return reduction(self.random.choice(("sum", "sum", "reduce_max")), self.expression(WIDE, depth), (0,))

    def _scalar(self, shape: Shape, depth: int) -> Expression:
        kind = self.random.random()
        if kind < 0.1:
            return Expression("logdet", (self.expression(SQUARE, depth),), ())
        if kind < 0.4:
            return reshaped(sliced(self.expression(VECTOR, depth), 0, 1, 2), ())
        return self.derivative(depth)

    def derivative(self, depth: int) -> Expression:
        """A derivative, along a direction, of a function of one input."""
        name = self.random.choice(("s", "v", "x"))
        inner = Generator(self.random)
        inner._inputs = {name: inner._inputs[name]}
        function = inner.smooth(INPUTS[name], 3)
        detail = Derivative(function, self.random.choice((1, 1, 2)), self.random.random() < 0.5)
        operands = self.expression(INPUTS[name], depth - 1), self.expression(INPUTS[name], depth - 1)
        return Expression("derivative", operands, (), detail)

    def smooth(self, shape: Shape, depth: int) -> Expression:
        """A function of its inputs that has derivatives."""
        if depth <= 0:
            return next(iter(self._inputs.values()))
        kind, x = self.random.random(), self.smooth(shape, depth - 1)
        if kind < 0.45:
            return apply(self.random.choice(_SMOOTH), x)
        if kind < 0.55 and shape:
            return apply("softmax", x)
        if kind < 0.6:
            return apply("max", x, self.constant(shape))
        if kind < 0.7:
            return Expression("ipow", (x,), shape, self.random.choice((2, 3)))
        return apply(self.random.choice(("add", "mul", "mul", "sub", "div")), x, self.smooth(shape, depth - 1))

    def _move(self, shape: Shape, depth: int) -> Expression:
        kind, axis = self.random.random(), self.random.randrange(len(shape))
        n = shape[axis]
        if kind < 0.25 and len(shape) == 2:
            return transpose(self.expression(shape[::-1], depth))
        if kind < 0.4:
            return Expression("rev", (self.expression(shape, depth),), shape, (axis,))
        if kind < 0.55:
            return taken(self.expression(shape, depth), tuple(self.random.randrange(n) for _ in range(n)), axis)
        if kind < 0.65:
            return Expression("cumsum", (self.expression(shape, depth),), shape, axis)
        if kind < 0.8:
            cut = self.random.randint(1, n - 1)
            whole = self.expression(shape, depth), self.expression(shape, depth)
            return concatenated([sliced(whole[0], axis, 0, cut), sliced(whole[1], axis, cut, n)], axis)
        if shape == SQUARE and kind < 0.85:
            return Expression("inverse", (self.expression(SQUARE, depth - 1),), SQUARE)
        if len(shape) == 2:
            other = shape[1:] if axis == 0 else shape[:1]
            return broadcast(self.expression(other, depth), shape, (1 - axis,)) if other == VECTOR else self.leaf(shape)
        return broadcast(self.expression((), depth), shape, ())
