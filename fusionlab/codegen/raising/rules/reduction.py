"""Raising rules for reductions, windowed reductions and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import RaiseError, Rule, in_jax, integers
from fusionlab.hlo import ops
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.view import Node, Region, Value, constant_array, direction_of, keyword

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lax.add,
    "multiply": lax.mul,
    "minimum": lax.min,
    "maximum": lax.max,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
}


def combiner(region: Region) -> str:
    """The one op that a two-argument region applies (``add``), ``second`` if it returns its second, else ``custom``."""
    first, second, *more = region.arguments
    if not more and region.returns == (second,):
        return "second"
    if more or len(region.nodes) != 1 or region.returns != region.nodes[0].results:
        return "custom"
    node = region.nodes[0]
    commutes = set(node.operands) == {first, second}
    return node.op.mnemonic if commutes else "custom"


def _reduce(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    half = len(operands) // 2
    arrays, initial = operands[:half], operands[half:]
    dimensions = integers(node.attributes["dimensions"])
    name = combiner(node.regions[0]) if half == 1 else "custom"
    if name in _BINARY:
        return [in_jax(node, lax.reduce, arrays[0], initial[0], _BINARY[name], dimensions)]
    combine = raising.region(node.regions[0], environment)
    if half == 1:
        return [in_jax(node, lax.reduce, arrays[0], initial[0], lambda x, y: combine(x, y)[0], dimensions)]
    return list(in_jax(node, lax.reduce, tuple(arrays), tuple(initial), lambda x, y: combine(*x, *y), dimensions))


def _reduce_window(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if len(operands) != 2:
        raise RaiseError("windowed reduction of several operands", node)
    name = combiner(node.regions[0])
    if name not in _BINARY:
        raise RaiseError(f"windowed reduction combined by {name}", node)
    attributes = node.attributes
    rank = len(node.results[0].type.shape)
    ones = (1,) * rank
    padding = np.array(attributes["padding"]).reshape(rank, 2).tolist() if "padding" in attributes else [(0, 0)] * rank
    strides, base, window = (
        integers(attributes[name]) if name in attributes else ones
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    return [
        in_jax(
            node,
            lax.reduce_window,
            operands[0],
            operands[1],
            _BINARY[name],
            integers(attributes["window_dimensions"]),
            strides,
            [tuple(pair) for pair in padding],
            base,
            window,
        )
    ]


def _sort(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    keys = ascending_keys(node)
    results = in_jax(
        node,
        lax.sort,
        tuple(operands),
        dimension=node.attributes["dimension"].value,
        is_stable=bool(node.attributes["is_stable"].value) if "is_stable" in node.attributes else False,
        num_keys=keys,
    )
    return list(results)


_COMPARE_TYPES = {"f": ("FLOAT", None), "b": ("FLOAT", None), "i": ("SIGNED", None), "u": ("UNSIGNED", None)}
_NOT_ASCENDING = "sort with a comparator that is not ascending order of its first operands"


def ascending_keys(node: Node) -> int:
    """The number of leading operands that the comparator orders by; RaiseError unless it orders them ascending.

    Key 0 less, or key 0 equal and (key 1 less, or key 1 equal and ...), where each comparison is of the keys
    themselves or, for floats, of their canonical form in JAX (one zero, one NaN) in total order.
    """
    region = node.regions[0]
    value: Value | None = region.returns[0]
    for key, pair in enumerate(zip(region.arguments[::2], region.arguments[1::2], strict=True)):
        if _compares(value, "LT", pair):
            return key + 1
        value = _beside(_beside(value, "or", "LT", pair), "and", "EQ", pair)
    raise RaiseError(_NOT_ASCENDING, node)


def _beside(value: Value | None, name: str, direction: str, pair: tuple[Value, Value]) -> Value | None:
    """The other operand where ``value`` is the ``name`` of a comparison of ``pair`` and that operand; else None."""
    node = value.producer if value is not None else None
    if node is None or node.op.mnemonic != name:
        return None
    first, second = node.operands
    return second if _compares(first, direction, pair) else first if _compares(second, direction, pair) else None


def _compares(value: Value | None, direction: str, pair: tuple[Value, Value]) -> bool:
    node = value.producer if value is not None else None
    if node is None or node.op is not ops.COMPARE:
        return False
    if direction_of(node) != direction:
        return False
    kind = keyword(node.attributes["compare_type"]) if "compare_type" in node.attributes else None
    if kind == "TOTALORDER":
        return tuple(_canonicalised(operand) for operand in node.operands) == pair
    letter = "u" if pair[0].type.dtype == "i1" else pair[0].type.dtype[0]
    return node.operands == pair and kind in _COMPARE_TYPES.get(letter, ())


def _canonicalised(value: Value) -> Value | None:
    """The float x of ``select(x != x, nan, select(x == 0, 0, x))``, JAX's key of a sort; None for another form."""
    outer = _select(value, "NE")
    inner = _select(outer[2], "EQ") if outer is not None else None
    if outer is None or inner is None:
        return None
    (x, same), nan, _ = outer
    (y, zero), also_zero, kept = inner
    constants = [_scalar(v) for v in (nan, zero, also_zero)]
    if None in constants or not (x is same is y is kept):
        return None
    positive_zeros = all(c == 0 and not np.signbit(c) for c in constants[1:])
    return x if np.isnan(constants[0]) and positive_zeros else None


def _select(value: Value, direction: str) -> tuple[tuple[Value, ...], Value, Value] | None:
    """The two values that the condition of a select compares, and its two choices."""
    node = value.producer
    if node is None or node.op is not ops.SELECT:
        return None
    condition = node.operands[0].producer
    if condition is None or condition.op is not ops.COMPARE:
        return None
    found = direction_of(condition)
    kind = keyword(condition.attributes["compare_type"]) if "compare_type" in condition.attributes else "FLOAT"
    return (condition.operands, node.operands[1], node.operands[2]) if (found, kind) == (direction, "FLOAT") else None


def _scalar(value: Value) -> Any:
    node = value.producer
    return constant_array(node).astype(np.float64)[()] if node is not None and _is_constant(node) else None


def _is_constant(node: Node) -> bool:
    return node.op is ops.CONSTANT and node.results[0].type.dtype in FLOATS


RULES: dict[str, Rule] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
}
