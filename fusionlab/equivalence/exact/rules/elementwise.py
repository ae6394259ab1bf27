"""Evaluation rules for elementwise ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step, Uncovered
from fusionlab.hlo.enumerations import direction_of, keyword
from fusionlab.hlo.flat import Node, Value

_COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _elementwise(native: Callable[..., Any], exact: str, known: bool = False) -> Rule:
    """``native`` on integers and booleans (and with ``known`` on constants of any type), else the method ``exact``."""

    def rule(node: Node, evaluator: Evaluator) -> Step:
        dtype = evaluator.dtype(node.results[0])
        floats = evaluator.is_float(node.operands[0])
        method = getattr(evaluator.arithmetic, exact) if floats else native

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            if (known or not floats) and all(isinstance(operand, Known) for operand in operands):
                with np.errstate(all="ignore"):
                    return [Known(np.asarray(native(*(operand.array for operand in operands))).astype(dtype))]
            arrays = [evaluator.lifted(operand, value) for operand, value in zip(operands, node.operands, strict=True)]
            with np.errstate(all="ignore"):
                found = method(*_aligned(arrays))
            return [Drawn(found if floats else np.asarray(found).astype(dtype))]

        return step

    return rule


def _aligned(arrays: Sequence[Array]) -> Sequence[Array]:
    """Scalars [draws] beside arrays [draws, ...] get axes of extent 1."""
    rank = max(array.ndim for array in arrays)
    return [a if a.ndim == rank else a.reshape(*a.shape, *(1,) * (rank - a.ndim)) for a in arrays]


def _integral(native: Callable[..., Any]) -> Rule:
    """An op of integers and booleans alone."""
    return _elementwise(native, "", known=True)


def _function(name: str) -> Rule:
    def rule(node: Node, evaluator: Evaluator) -> Step:
        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            x = evaluator.lifted(operands[0], node.operands[0])
            return [Drawn(evaluator.arithmetic.function(name, x))]

        return step

    return rule


def _function_of_two(name: str, native: Callable[..., Any]) -> Rule:
    def rule(node: Node, evaluator: Evaluator) -> Step:
        if not evaluator.is_float(node.operands[0]):
            return _integral(native)(node, evaluator)

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            x, y = (evaluator.lifted(operand, value) for operand, value in zip(operands, node.operands, strict=True))
            return [Drawn(evaluator.arithmetic.function_of_two(name, x, y))]

        return step

    return rule


def _power(node: Node, evaluator: Evaluator) -> Step:
    if not evaluator.is_float(node.operands[0]):
        return _integral(np.power)(node, evaluator)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        x = evaluator.lifted(operands[0], node.operands[0])
        exponents = _real_constants(operands[1])
        if exponents is None:
            y = evaluator.lifted(operands[1], node.operands[1])
            return [Drawn(evaluator.arithmetic.function_of_two("power", x, y))]
        found = np.zeros_like(x)
        for constant in np.unique(exponents):
            found = np.where(exponents == constant, evaluator.arithmetic.power(x, float(constant)), found)
        return [Drawn(found)]

    return step


def _real_constants(exponents: Held) -> Array | None:
    """Exponents that are constant, real and finite, as float64 [1, ...]; None for others."""
    if isinstance(exponents, Drawn):
        return None
    wide = exponents.array.astype(np.complex128)[None]
    return wide.real if np.isfinite(wide).all() and not wide.imag.any() else None


def _compare(node: Node, evaluator: Evaluator) -> Step:
    direction = direction_of(node)
    if "compare_type" in node.attributes and keyword(node.attributes["compare_type"]) == "TOTALORDER":
        raise Uncovered("a comparison in total order", node.scope)
    floats = evaluator.is_float(node.operands[0])

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if all(isinstance(operand, Known) for operand in operands):
            return [Known(np.asarray(_COMPARISONS[direction](operands[0].array, operands[1].array)))]
        x, y = _aligned(
            [evaluator.lifted(operand, value) for operand, value in zip(operands, node.operands, strict=True)]
        )
        if floats:
            return [Drawn(evaluator.arithmetic.compare(direction, x, y))]
        return [Drawn(np.asarray(_COMPARISONS[direction](x, y)))]

    return step


def _select(node: Node, evaluator: Evaluator) -> Step:
    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        predicate, on_true, on_false = operands
        if isinstance(predicate, Known):
            if predicate.array.all():
                return [on_true]
            if not predicate.array.any():
                return [on_false]
            if isinstance(on_true, Known) and isinstance(on_false, Known):
                return [Known(np.where(predicate.array, on_true.array, on_false.array).astype(on_true.array.dtype))]
        arrays = [evaluator.lifted(operand, value) for operand, value in zip(operands, node.operands, strict=True)]
        return [Drawn(np.where(*_aligned(arrays)))]

    return step


def _convert(node: Node, evaluator: Evaluator) -> Step:
    source, target = evaluator.is_float(node.operands[0]), evaluator.is_float(node.results[0])
    dtype = evaluator.dtype(node.results[0])

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [held] = operands
        if isinstance(held, Known):
            with np.errstate(all="ignore"):
                return [Known(held.array != 0 if dtype == np.bool_ else held.array.astype(dtype))]
        if source and target:  # rounding is not seen
            real = np.iscomplexobj(held.array) and dtype.kind != "c"
            return [Drawn(np.array(held.array.real))] if real else [held]
        if source:
            if dtype == np.bool_:
                return [Drawn(held.array != 0)]
            return [Drawn(evaluator.arithmetic.integers_of(held.array, dtype))]
        if target:
            return [Drawn(evaluator.arithmetic.of_integers(held.array))]
        return [Drawn(held.array != 0 if dtype == np.bool_ else held.array.astype(dtype))]

    return step


def _bitcast(node: Node, evaluator: Evaluator) -> Step:
    source, target = evaluator.is_float(node.operands[0]), evaluator.is_float(node.results[0])
    dtype = evaluator.dtype(node.results[0])

    if len(node.operands[0].type.shape) != len(node.results[0].type.shape) and (source or target):
        return evaluator.uninterpreted(node)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [held] = operands
        shape = node.results[0].type.shape
        if isinstance(held, Known):
            return [Known(np.ascontiguousarray(held.array).view(dtype).reshape(shape))]
        if source:  # a sign bit by the order, and bits that are a random function of the magnitude
            arithmetic = evaluator.arithmetic
            bits = arithmetic.function("bits", arithmetic.absolute(held.array)).astype(np.int64) & 0x7FFFFF
            sign = (arithmetic.sign(held.array) < 0).astype(np.uint64) << np.uint64(8 * dtype.itemsize - 1)
            return [Drawn((bits.astype(np.uint64) | sign).astype(f"u{dtype.itemsize}").view(dtype))]
        if target:
            return [Drawn(evaluator.arithmetic.function("of bits", evaluator.arithmetic.of_integers(held.array)))]
        return [Drawn(np.ascontiguousarray(held.array).view(dtype).reshape(len(held.array), *shape))]

    return step


def _is_finite(node: Node, evaluator: Evaluator) -> Step:
    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [held] = operands
        if isinstance(held, Known):
            return [Known(np.isfinite(held.array))]
        return [Drawn(evaluator.arithmetic.is_finite(held.array))]

    return step


def _complex(node: Node, evaluator: Evaluator) -> Step:
    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        real, imaginary = (evaluator.lifted(o, v) for o, v in zip(operands, node.operands, strict=True))
        return [Drawn(real + 1j * imaginary)]

    return step


def _part(name: str) -> Rule:
    def rule(node: Node, evaluator: Evaluator) -> Step:
        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            return [Drawn(np.array(getattr(evaluator.lifted(operands[0], node.operands[0]), name)))]

        return step

    return rule


def _square(node: Node, evaluator: Evaluator) -> Step:
    twice = _of_operands(node, (node.operands[0], node.operands[0]))
    multiply = _elementwise(np.multiply, "multiply", known=True)(twice, evaluator)
    return lambda operands, environment: multiply([operands[0], operands[0]], environment)


def _clamped(low: Array, x: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _clamp(node: Node, evaluator: Evaluator) -> Step:
    maximum = _elementwise(np.maximum, "maximum", known=True)
    minimum = _elementwise(np.minimum, "minimum", known=True)
    low, x, high = node.operands
    lower = maximum(_of_operands(node, (x, low)), evaluator)
    upper = minimum(_of_operands(node, (x, high)), evaluator)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        return upper([*lower([operands[1], operands[0]], environment), operands[2]], environment)

    return step


def _of_operands(node: Node, operands: tuple[Value, ...]) -> Node:
    """``node`` with other operands, for a rule that is a composition of two."""
    copy = Node(node.id, node.operation, node.name, operands, node.callers, node.function, node.module)
    copy.results = node.results
    return copy


def _unchanged(node: Node, evaluator: Evaluator) -> Step:
    return lambda operands, environment: list(operands)


def _divided(x: Array, y: Array) -> Array:
    """Integers divided towards zero; -1 for a division by zero, as StableHLO's interpreter and XLA:CPU return."""
    divisor = np.where(y == 0, 1, y)
    quotient = np.abs(x) // np.abs(divisor) * np.sign(x) * np.sign(divisor) if x.dtype.kind == "i" else x // divisor
    return np.where(y == 0, -1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max, quotient)


def _remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, x, np.fmod(x, np.where(y == 0, 1, y)))


def _either(native: Callable[..., Any], logical: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: logical(x, y) if x.dtype == np.bool_ else native(x, y)


def _shift(x: Array, y: Array, function: Callable[..., Any], beyond: Any) -> Array:
    bits = 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < bits)
    shifted = function(x, np.where(inside, y, 0).astype(x.dtype))
    return np.asarray(np.where(inside, shifted, beyond), x.dtype)


def _shift_right_logical(x: Array, y: Array) -> Array:
    unsigned = x.view(f"u{x.dtype.itemsize}")
    return _shift(unsigned, y.view(unsigned.dtype), np.right_shift, 0).view(x.dtype)


def _population(x: Array) -> Array:
    return np.asarray(np.bitwise_count(x.view(f"u{x.dtype.itemsize}")), x.dtype)


def _leading_zeros(x: Array) -> Array:
    left = x.view(f"u{x.dtype.itemsize}").astype(np.uint64)
    found = np.full(x.shape, 8 * x.dtype.itemsize)
    while left.any():
        found = found - (left != 0)
        left = left >> np.uint64(1)
    return found.astype(x.dtype)


_FUNCTIONS = (
    "stablehlo.cbrt",
    "stablehlo.ceil",
    "stablehlo.cosine",
    "stablehlo.exponential",
    "stablehlo.exponential_minus_one",
    "stablehlo.floor",
    "stablehlo.log",
    "stablehlo.log_plus_one",
    "stablehlo.logistic",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.rsqrt",
    "stablehlo.sine",
    "stablehlo.sqrt",
    "stablehlo.tan",
    "stablehlo.tanh",
    "chlo.acos",
    "chlo.acosh",
    "chlo.asin",
    "chlo.asinh",
    "chlo.atan",
    "chlo.atanh",
    "chlo.bessel_i1e",
    "chlo.cosh",
    "chlo.digamma",
    "chlo.erf",
    "chlo.erf_inv",
    "chlo.erfc",
    "chlo.lgamma",
    "chlo.sinh",
)

RULES: dict[str, Rule] = {
    **{name: _function(name.partition(".")[2]) for name in _FUNCTIONS},
    "stablehlo.abs": _elementwise(np.abs, "absolute", known=True),
    "stablehlo.add": _elementwise(_either(np.add, np.logical_or), "add", known=True),
    "stablehlo.and": _integral(np.bitwise_and),
    "stablehlo.atan2": _function_of_two("atan2", np.arctan2),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _complex,
    "stablehlo.convert": _convert,
    "stablehlo.count_leading_zeros": _integral(_leading_zeros),
    "stablehlo.divide": _elementwise(_divided, "divide"),
    "stablehlo.imag": _part("imag"),
    "stablehlo.is_finite": _is_finite,
    "stablehlo.maximum": _elementwise(np.maximum, "maximum", known=True),
    "stablehlo.minimum": _elementwise(np.minimum, "minimum", known=True),
    "stablehlo.multiply": _elementwise(_either(np.multiply, np.logical_and), "multiply", known=True),
    "stablehlo.negate": _elementwise(np.negative, "negate", known=True),
    "stablehlo.not": _integral(np.bitwise_not),
    "stablehlo.optimization_barrier": _unchanged,
    "stablehlo.or": _integral(np.bitwise_or),
    "stablehlo.popcnt": _integral(_population),
    "stablehlo.power": _power,
    "stablehlo.real": _part("real"),
    "stablehlo.reduce_precision": _unchanged,
    "stablehlo.remainder": _function_of_two("remainder", _remainder),
    "stablehlo.select": _select,
    "stablehlo.shift_left": _integral(lambda x, y: _shift(x, y, np.left_shift, 0)),
    "stablehlo.shift_right_arithmetic": _integral(lambda x, y: _shift(x, y, np.right_shift, np.where(x < 0, -1, 0))),
    "stablehlo.shift_right_logical": _integral(_shift_right_logical),
    "stablehlo.sign": _elementwise(np.sign, "sign", known=True),
    "stablehlo.subtract": _elementwise(np.subtract, "subtract", known=True),
    "stablehlo.xor": _integral(np.bitwise_xor),
    "chlo.next_after": _function_of_two("next_after", np.nextafter),
    "chlo.square": _square,
    "sdy.sharding_constraint": _unchanged,
}
