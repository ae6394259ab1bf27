"""Raising rules for reductions, windowed reductions and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jax import lax

from fusionlab.codegen.raising_rules.rule import RaiseError, Rule, integers, keyword
from fusionlab.hlo.flat import Node, Region

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
    return node.name.removeprefix("stablehlo.") if commutes else "custom"


def _reduce(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    half = len(operands) // 2
    arrays, initial = operands[:half], operands[half:]
    dimensions = integers(node.attributes["dimensions"])
    name = combiner(node.regions[0]) if half == 1 else "custom"
    if name in _BINARY:
        return [lax.reduce(arrays[0], initial[0], _BINARY[name], dimensions)]
    combine = raising.region(node.regions[0], environment)
    if half == 1:
        return [lax.reduce(arrays[0], initial[0], lambda x, y: combine(x, y)[0], dimensions)]
    return list(lax.reduce(tuple(arrays), tuple(initial), lambda x, y: combine(*x, *y), dimensions))


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
        lax.reduce_window(
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
    keys = _ascending_keys(node)
    results = lax.sort(
        tuple(operands),
        dimension=node.attributes["dimension"].value,
        is_stable=bool(node.attributes["is_stable"].value) if "is_stable" in node.attributes else False,
        num_keys=keys,
    )
    return list(results)


_COMPARATOR_OPS = {"compare", "select", "constant", "and", "or", "not", "bitcast_convert", "convert", "is_finite"}


def _ascending_keys(node: Node) -> int:
    """How many leading operands the comparator orders by; RaiseError unless it is an ascending comparison of them."""
    region = node.regions[0]
    used = {value for inner in region.walk() for value in inner.operands}
    pairs = [(a in used, b in used) for a, b in zip(region.arguments[::2], region.arguments[1::2], strict=True)]
    keys = sum(left and right for left, right in pairs)
    in_front = all(left and right for left, right in pairs[:keys]) and not any(x or y for x, y in pairs[keys:])
    names = {inner.name.removeprefix("stablehlo.") for inner in region.walk()}
    directions = {
        keyword(inner.attributes["comparison_direction"])
        for inner in region.walk()
        if inner.name == "stablehlo.compare"
    }
    if not keys or not in_front or not names <= _COMPARATOR_OPS or "LT" not in directions or directions & {"GT", "GE"}:
        raise RaiseError("sort with a comparator that is not ascending order of its first operands", node)
    last = [inner for inner in region.nodes if inner.name == "stablehlo.compare" and inner.operands]
    if not any(_ascends(inner, region) for inner in last):
        raise RaiseError("sort with a comparator that is not ascending order of its first operands", node)
    return keys


def _ascends(compare: Node, region: Region) -> bool:
    """Whether ``compare`` is LT with something of the left argument on its left side."""
    if keyword(compare.attributes["comparison_direction"]) != "LT":
        return False
    lefts, rights = set(region.arguments[::2]), set(region.arguments[1::2])
    return bool(_roots(compare.operands[0]) & lefts) and bool(_roots(compare.operands[1]) & rights)


def _roots(value: Any) -> set[Any]:
    if value.producer is None:
        return {value}
    return {root for operand in value.producer.operands for root in _roots(operand)}


RULES: dict[str, Rule] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
}
