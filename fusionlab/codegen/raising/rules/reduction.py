"""Raising rules for reductions, windowed reductions and sorting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule, integers
from fusionlab.hlo import ops
from fusionlab.hlo.constants import filling
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.patterns import match, number, op
from fusionlab.hlo.view import Node, Region, Value, direction_of, keyword

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


def combination(raised: RaisedOp) -> Callable[[Any, Any], Any]:
    """The function by which the region of a collective, one of scalars, combines two arrays."""
    region = raised.region()

    def elementwise(first: Any, second: Any) -> Any:
        return jax.vmap(lambda *pair: region(*pair)[0])(first.ravel(), second.ravel()).reshape(first.shape)

    return _BINARY.get(combiner(raised.node.regions[0]), elementwise)


def _reduce(raised: RaisedOp) -> list[Any]:
    half = len(raised.operands) // 2
    arrays, initial = tuple(raised.operands[:half]), tuple(raised.operands[half:])
    [dimensions] = raised.integers("dimensions")
    combine = _BINARY.get(combiner(raised.node.regions[0])) if half == 1 else None
    region = raised.region()
    if half == 1:
        return [raised.jax(lax.reduce, *arrays, *initial, combine or (lambda x, y: region(x, y)[0]), dimensions)]

    def reduce(*operands: Any) -> tuple[Any, ...]:
        return tuple(lax.reduce(operands[:half], operands[half:], lambda x, y: region(*x, *y), dimensions))

    whole = _with_slope_at_place(reduce, dimensions[0]) if is_arg_extreme(raised.node) else reduce
    return list(raised.jax(whole, *arrays, *initial))


def _with_slope_at_place(reduce: Callable[..., Any], axis: int) -> Any:
    """``reduce``, the extreme of values [..., n, ...] along ``axis`` and its place, with the derivative of the value at
    that place. JAX's own rule of a reduction takes no integers."""
    function = jax.custom_jvp(reduce)

    def slope(primals: Any, tangents: Any) -> Any:
        value, place = function(*primals)
        here = primals[1] == jnp.expand_dims(place, axis)
        moved = jnp.where(here, tangents[0], jnp.zeros_like(tangents[0])).sum(axis)
        return (value, place), (moved, np.zeros(np.shape(place), jax.dtypes.float0))

    function.defjvp(slope)
    return function


_VALUE = op("select", op("or", "exceeds", "is_nan"), "x", "y")
_PLACE = op("select", op("or", op("or", "exceeds", "is_nan"), op("and", "tied", "before")), "i", "j")
_LEAST = (("GT", -np.inf), ("LT", np.inf))


def is_arg_extreme(node: Node) -> bool:
    """True if ``node`` reduces floats and their places along one axis as ``jnp.argmax`` and ``jnp.argmin`` do.

    The resulting value is the element at the resulting place: the first of equal ones, or the first NaN.
    """
    axes, region = integers(node.attributes["dimensions"]), node.regions[0]
    if len(node.operands) != 4 or len(axes) != 1 or node.operands[0].type.dtype not in FLOATS:
        return False
    values, places, initial, _ = node.operands
    start = filling(initial)
    if start is None or not _counts_along(places, axes[0]) or not values.type.shape[axes[0]]:
        return False
    x, i, y, j = region.arguments
    found: Any = match(_VALUE, region.returns[0], {"x": x, "y": y})
    found = match(_PLACE, region.returns[1], {**found, "i": i, "j": j}) if found is not None else None
    return (
        found is not None
        and any(_compares(found["exceeds"], how, (x, y)) and bool((start == least).all()) for how, least in _LEAST)
        and _compares(found["is_nan"], "NE", (x, x))
        and _compares(found["tied"], "EQ", (x, y))
        and _compares(found["before"], "LT", (i, j))
    )


def _counts_along(value: Value, axis: int) -> bool:
    node = value.producer
    return node is not None and node.op is ops.IOTA and int(node.attributes["iota_dimension"].value) == axis


def _reduce_window(raised: RaisedOp) -> list[Any]:
    if len(raised.operands) != 2:
        raise RaiseError("windowed reduction of several operands", raised.node)
    name = combiner(raised.node.regions[0])
    if name not in _BINARY:
        raise RaiseError(f"windowed reduction combined by {name}", raised.node)
    attributes = raised.node.attributes
    [window] = raised.integers("window_dimensions")
    margins = np.array(attributes.get("padding", [(0, 0)] * len(window))).reshape(-1, 2)
    strides, base, dilations = (
        integers(attributes.get(name, (1,) * len(window)))
        for name in ("window_strides", "base_dilations", "window_dilations")
    )
    padding = [tuple(pair) for pair in margins.tolist()]
    return [raised.jax(lax.reduce_window, *raised.operands, _BINARY[name], window, strides, padding, base, dilations)]


def _sort(raised: RaisedOp) -> list[Any]:
    how = {"is_stable": raised.flag("is_stable"), "num_keys": ascending_keys(raised.node)}
    return list(
        raised.jax(lax.sort, tuple(raised.operands), dimension=raised.node.attributes["dimension"].value, **how)
    )


def _top_k(raised: RaisedOp) -> list[Any]:
    return list(raised.jax(lax.top_k, raised.operands[0], int(raised.node.attributes["k"].value)))


_COMPARE_TYPES = {"f": ("FLOAT", None), "b": ("FLOAT", None), "i": ("SIGNED", None), "u": ("UNSIGNED", None)}
_NOT_ASCENDING = "sort with a comparator that is not ascending order of its first operands"


@dataclass(frozen=True)
class SortKey:
    """How one operand of a sort is ordered; ``total``: in total order of its bits (-0 before 0, NaN by its sign)."""

    descending: bool = False
    total: bool = False


def ascending_keys(node: Node) -> int:
    """The number of leading operands that the comparator orders by; RaiseError unless it orders them ascending."""
    keys = sort_keys(node)
    if keys is None or any(key != SortKey() for key in keys):
        raise RaiseError(_NOT_ASCENDING, node)
    return len(keys)


def sort_keys(node: Node) -> tuple[SortKey, ...] | None:
    """The order of the leading operands of a sort by its comparator; None for one of another form.

    Key 0 before, or key 0 equal and (key 1 before, or key 1 equal and ...), where each comparison is of the keys
    themselves or, for floats, of their canonical form in JAX (one zero, one NaN) in total order.
    """
    region, keys = node.regions[0], list[SortKey]()
    value: Value | None = region.returns[0]
    for pair in zip(region.arguments[::2], region.arguments[1::2], strict=True):
        if (key := _strict(value, pair)) is not None:
            return (*keys, key)
        for first, second in _operand_pairs(value, "or"):
            if (key := _strict(first, pair)) is None:
                continue
            same = ("EQ", SortKey(total=key.total))
            rest = [other for one, other in _operand_pairs(second, "and") if _order_of(one, pair) == same]
            if rest:
                keys.append(key)
                value = rest[0]
                break
        else:
            return None
    return None


def _operand_pairs(value: Value | None, name: str) -> list[tuple[Value, Value]]:
    """The two operands of an ``and`` or ``or``, in either order; none for another op."""
    node = value.producer if value is not None else None
    if node is None or node.op.mnemonic != name:
        return []
    first, second = node.operands
    return [(first, second), (second, first)]


def _strict(value: Value | None, pair: tuple[Value, Value]) -> SortKey | None:
    """The order in which ``value`` says that the first of ``pair`` is before the second; None if it says another."""
    direction, key = _order_of(value, pair) or ("", SortKey())
    return {"LT": key, "GT": replace(key, descending=True)}.get(direction)


def _order_of(value: Value | None, pair: tuple[Value, Value]) -> tuple[str, SortKey] | None:
    """The direction in which ``value`` compares ``pair``, and their ascending order; None if it is no comparison of
    them."""
    node = value.producer if value is not None else None
    if node is None or node.op is not ops.COMPARE:
        return None
    kind, direction = _compare_type(node), direction_of(node)
    operands: tuple[Any, ...] = node.operands
    is_total = kind == "TOTALORDER"
    if is_total and all(found := [_canonicalised(operand) for operand in operands]):
        operands, is_total = tuple(found), False
    elif not is_total:
        letter = "u" if pair[0].type.dtype == "i1" else pair[0].type.dtype[0]
        if kind not in _COMPARE_TYPES.get(letter, ()):
            return None
    if operands == pair[::-1]:
        direction = direction.translate(_SWAPPED)
    elif operands != pair:
        return None
    return direction, SortKey(total=is_total)


_SWAPPED = str.maketrans("LG", "GL")


def _compares(value: Value | None, direction: str, pair: tuple[Value, Value]) -> bool:
    return _order_of(value, pair) == (direction, SortKey())


def _compare_type(node: Node) -> str | None:
    return keyword(node.attributes["compare_type"]) if "compare_type" in node.attributes else None


_ONE_ZERO = op("select", op("compare", "x", 0.0), number("zero"), "x")
_CANONICAL = op("select", op("compare", "x", "x"), "nan", _ONE_ZERO)


def _canonicalised(value: Value) -> Any:
    """The float x of ``select(x != x, nan, select(x == 0, 0, x))``, JAX's key of a sort; None for another form."""
    found = match(_CANONICAL, value)
    if found is None or value.producer is None:
        return None
    differs, nan, rest = value.producer.operands
    is_zero = rest.producer.operands[0] if rest.producer is not None else differs
    outer, inner = differs.producer, is_zero.producer
    if outer is None or inner is None or "TOTALORDER" in (_compare_type(outer), _compare_type(inner)):
        return None
    if (direction_of(outer), direction_of(inner)) != ("NE", "EQ") or not is_nan(nan):
        return None
    return found["x"] if found["zero"] == 0 and not np.signbit(found["zero"]) else None


def is_nan(value: Value) -> bool:
    """True if ``value`` is a constant of NaNs."""
    array = filling(value)
    return array is not None and bool(np.isnan(array).all())


RULES: dict[str, Rule] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
}
