"""Raising rules for elementwise ops (stablehlo and chlo)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import RaiseError, Rule, in_jax
from fusionlab.hlo.view import Node, direction_of, keyword

_COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}


def _unary(function: Callable[[Any], Any]) -> Rule:
    return lambda node, operands, raising, environment: [in_jax(node, function, operands[0])]


def _binary(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda node, operands, raising, environment: [in_jax(node, function, operands[0], operands[1])]


def _compare(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if "compare_type" in node.attributes and keyword(node.attributes["compare_type"]) == "TOTALORDER":
        raise RaiseError("total-order comparison of floats outside a sort", node)
    return [in_jax(node, _COMPARISONS[direction_of(node)], operands[0], operands[1])]


def _convert(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [in_jax(node, lax.convert_element_type, operands[0], raising.dtype(node.results[0].type))]


def _bitcast(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    """Bits are those of the declared types, also when the raised program computes in wider ones."""
    source, target = node.operands[0].type, node.results[0].type
    narrow = type(raising)(widen=False)
    bits = in_jax(node, lax.convert_element_type, operands[0], narrow.dtype(source))
    cast = in_jax(node, lax.bitcast_convert_type, bits, narrow.dtype(target))
    return [in_jax(node, lax.convert_element_type, cast, raising.dtype(target))]


def _select(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    predicate, on_true, on_false = operands
    if np.ndim(predicate) == 0 and np.ndim(on_true) > 0:
        predicate = in_jax(node, jnp.broadcast_to, predicate, np.shape(on_true))
    return [in_jax(node, lax.select, predicate, on_true, on_false)]


def _clamp(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [in_jax(node, lax.clamp, *operands)]


def _reduce_precision(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if raising.widen:
        return [operands[0]]
    attributes = node.attributes
    exponent, mantissa = int(attributes["exponent_bits"]), int(attributes["mantissa_bits"])
    return [in_jax(node, lax.reduce_precision, operands[0], exponent, mantissa)]


def _power(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    """A power with a constant integer exponent keeps JAX's integer_pow rule, which is exact at zero and negatives."""
    base, exponent = operands
    if (
        isinstance(exponent, np.ndarray)
        and exponent.size
        and np.isrealobj(exponent)
        and (exponent == exponent.flat[0]).all()
    ):
        whole = float(exponent.flat[0])
        if whole.is_integer() and abs(whole) <= 8:
            return [in_jax(node, lax.integer_pow, base, int(whole))]
    return [in_jax(node, lax.pow, base, exponent)]


RULES: dict[str, Rule] = {
    "stablehlo.abs": _unary(lax.abs),
    "stablehlo.add": _binary(lax.add),
    "stablehlo.and": _binary(lax.bitwise_and),
    "stablehlo.atan2": _binary(lax.atan2),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.cbrt": _unary(lax.cbrt),
    "stablehlo.ceil": _unary(lax.ceil),
    "stablehlo.clamp": _clamp,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _binary(lax.complex),
    "stablehlo.convert": _convert,
    "stablehlo.cosine": _unary(lax.cos),
    "stablehlo.count_leading_zeros": _unary(lax.clz),
    "stablehlo.divide": _binary(lax.div),
    "stablehlo.exponential": _unary(lax.exp),
    "stablehlo.exponential_minus_one": _unary(lax.expm1),
    "stablehlo.floor": _unary(lax.floor),
    "stablehlo.imag": _unary(lax.imag),
    "stablehlo.is_finite": _unary(lax.is_finite),
    "stablehlo.log": _unary(lax.log),
    "stablehlo.log_plus_one": _unary(lax.log1p),
    "stablehlo.logistic": _unary(lax.logistic),
    "stablehlo.maximum": _binary(lax.max),
    "stablehlo.minimum": _binary(lax.min),
    "stablehlo.multiply": _binary(lax.mul),
    "stablehlo.negate": _unary(lax.neg),
    "stablehlo.not": _unary(lax.bitwise_not),
    "stablehlo.or": _binary(lax.bitwise_or),
    "stablehlo.popcnt": _unary(lax.population_count),
    "stablehlo.power": _power,
    "stablehlo.real": _unary(lax.real),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.remainder": _binary(lax.rem),
    "stablehlo.round_nearest_afz": _unary(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
    "stablehlo.round_nearest_even": _unary(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "stablehlo.rsqrt": _unary(lax.rsqrt),
    "stablehlo.select": _select,
    "stablehlo.shift_left": _binary(lax.shift_left),
    "stablehlo.shift_right_arithmetic": _binary(lax.shift_right_arithmetic),
    "stablehlo.shift_right_logical": _binary(lax.shift_right_logical),
    "stablehlo.sign": _unary(lax.sign),
    "stablehlo.sine": _unary(lax.sin),
    "stablehlo.sqrt": _unary(lax.sqrt),
    "stablehlo.subtract": _binary(lax.sub),
    "stablehlo.tan": _unary(lax.tan),
    "stablehlo.tanh": _unary(lax.tanh),
    "stablehlo.xor": _binary(lax.bitwise_xor),
    "chlo.acos": _unary(lax.acos),
    "chlo.acosh": _unary(lax.acosh),
    "chlo.asin": _unary(lax.asin),
    "chlo.asinh": _unary(lax.asinh),
    "chlo.atan": _unary(lax.atan),
    "chlo.atanh": _unary(lax.atanh),
    "chlo.bessel_i1e": _unary(lax.bessel_i1e),
    "chlo.cosh": _unary(lax.cosh),
    "chlo.digamma": _unary(lax.digamma),
    "chlo.erf": _unary(lax.erf),
    "chlo.erf_inv": _unary(lax.erf_inv),
    "chlo.erfc": _unary(lax.erfc),
    "chlo.lgamma": _unary(lax.lgamma),
    "chlo.next_after": _binary(lax.nextafter),
    "chlo.sinh": _unary(lax.sinh),
    "chlo.square": _unary(jax.lax.square),
}
