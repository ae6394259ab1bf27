"""Raising rules for reductions, windowed reductions and sorting."""

from __future__ import annotations

import itertools
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
_NOT_ASCENDING = "sort with a comparator that is not ascending order of its first operands"


def _ascending_keys(node: Node) -> int:
    """How many leading operands the comparator orders by; RaiseError unless it is an ascending comparison of them.

    The comparator is taken as a truth function of ``a_i LT b_i`` and ``a_i EQ b_i`` and compared with the
    lexicographic order for every outcome of the keys.
    """
    region = node.regions[0]
    atoms: dict[Node, tuple[str, int]] = {}
    for inner in region.walk():
        if inner.name == "stablehlo.compare":
            direction, key = keyword(inner.attributes["comparison_direction"]), _compared_key(inner, region)
            if key is not None:
                atoms[inner] = (direction, key)
            elif direction not in ("EQ", "NE"):  # those put zeros and NaNs in one form, an argument against a constant
                raise RaiseError(_NOT_ASCENDING, node)
    names = {inner.name.removeprefix("stablehlo.") for inner in region.walk()}
    keys = 1 + max((key for _, key in atoms.values()), default=-1)
    if (
        not keys
        or not names <= _COMPARATOR_OPS
        or not all(
            _truth(region.returns[0], atoms, outcomes) is _less(outcomes)
            for outcomes in itertools.product(("LT", "EQ", "GT"), repeat=keys)
        )
    ):
        raise RaiseError(_NOT_ASCENDING, node)
    return keys


def _less(outcomes: tuple[str, ...]) -> bool:
    return next((outcome for outcome in outcomes if outcome != "EQ"), "EQ") == "LT"


def _truth(value: Any, atoms: dict[Node, tuple[str, int]], outcomes: tuple[str, ...]) -> bool | None:
    """The value of a boolean of the comparator when key i compares as ``outcomes[i]``; None when that is not known."""
    node = value.producer
    if node in atoms:
        direction, key = atoms[node]
        return direction == outcomes[key] if direction in ("LT", "EQ", "GT") else None
    if node is None or node.name not in ("stablehlo.and", "stablehlo.or", "stablehlo.not"):
        return None
    operands = [_truth(operand, atoms, outcomes) for operand in node.operands]
    if None in operands:
        return None
    if node.name == "stablehlo.not":
        return not operands[0]
    return all(operands) if node.name == "stablehlo.and" else any(operands)


def _compared_key(compare: Node, region: Region) -> int | None:
    """The i for which ``compare`` has the left element of operand i on its left and the right one on its right."""
    left, right = (_roots(value) for value in compare.operands)
    pairs = list(zip(region.arguments[::2], region.arguments[1::2], strict=True))
    return next((i for i, (a, b) in enumerate(pairs) if left == {a} and right == {b}), None)


def _roots(value: Any) -> set[Any]:
    if value.producer is None:
        return {value}
    return {root for operand in value.producer.operands for root in _roots(operand)}


RULES: dict[str, Rule] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
}
