"""Raising rules for elementwise ops (stablehlo and chlo)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives

from fusionlab.codegen.raising.rules.rule import RaisedOp, Rule, plain
from fusionlab.hlo.view import direction_of, keyword

_COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}
_IN_TOTAL_ORDER = {
    "EQ": lambda x, y: primitives.eq_to_p.bind(x, y),
    "NE": lambda x, y: ~primitives.eq_to_p.bind(x, y),
    "LT": lambda x, y: primitives.lt_to_p.bind(x, y),
    "LE": lambda x, y: primitives.le_to_p.bind(x, y),
    "GT": lambda x, y: primitives.lt_to_p.bind(y, x),
    "GE": lambda x, y: primitives.le_to_p.bind(y, x),
}
"""Comparisons in which -NaN < -inf < ... < -0 < 0 < ... < inf < NaN, as in ``jnp.searchsorted``."""


def _compare(op: RaisedOp) -> list[Any]:
    total = "compare_type" in op.node.attributes and keyword(op.node.attributes["compare_type"]) == "TOTALORDER"
    return [op.jax((_IN_TOTAL_ORDER if total else _COMPARISONS)[direction_of(op.node)], *op.operands)]


def _convert(op: RaisedOp) -> list[Any]:
    """Of a complex number its real part, if the result is not complex."""
    [x] = op.operands
    if np.iscomplexobj(x) and not np.issubdtype(op.dtype, np.complexfloating):
        x = op.jax(lax.real, x)
    return [op.jax(lax.convert_element_type, x, op.dtype)]


def _bitcast(op: RaisedOp) -> list[Any]:
    """Bits are those of the declared types, also when the raised program computes in wider ones."""
    narrow = type(op.raising)(widen=False)
    bits = op.jax(lax.convert_element_type, op.operands[0], narrow.dtype(op.node.operands[0].type))
    cast = op.jax(lax.bitcast_convert_type, bits, narrow.dtype(op.node.results[0].type))
    return [op.jax(lax.convert_element_type, cast, op.dtype)]


def _select(op: RaisedOp) -> list[Any]:
    predicate, on_true, on_false = op.operands
    if np.ndim(predicate) == 0 and np.ndim(on_true) > 0:
        predicate = op.jax(jnp.broadcast_to, predicate, np.shape(on_true))
    return [op.jax(lax.select, predicate, on_true, on_false)]


def _reduce_precision(op: RaisedOp) -> list[Any]:
    if op.raising.widen:
        return [op.operands[0]]
    bits = (int(op.node.attributes[name]) for name in ("exponent_bits", "mantissa_bits"))
    return [op.jax(lax.reduce_precision, op.operands[0], *bits)]


def _power(op: RaisedOp) -> list[Any]:
    """A power with a constant integer exponent keeps JAX's integer_pow rule, which is exact at zero and negatives."""
    base, exponent = op.operands
    if isinstance(exponent, np.ndarray) and np.isrealobj(exponent) and len(found := np.unique(exponent)) == 1:
        whole = float(found[0])
        if whole.is_integer() and abs(whole) <= 8:
            return [op.jax(lax.integer_pow, base, int(whole))]
    return [op.jax(lax.pow, base, exponent)]


RULES: dict[str, Rule] = {
    "stablehlo.abs": plain(lax.abs),
    "stablehlo.add": plain(lax.add),
    "stablehlo.and": plain(lax.bitwise_and),
    "stablehlo.atan2": plain(lax.atan2),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.cbrt": plain(lax.cbrt),
    "stablehlo.ceil": plain(lax.ceil),
    "stablehlo.clamp": plain(lax.clamp),
    "stablehlo.compare": _compare,
    "stablehlo.complex": plain(lax.complex),
    "stablehlo.convert": _convert,
    "stablehlo.cosine": plain(lax.cos),
    "stablehlo.count_leading_zeros": plain(lax.clz),
    "stablehlo.divide": plain(lax.div),
    "stablehlo.exponential": plain(lax.exp),
    "stablehlo.exponential_minus_one": plain(lax.expm1),
    "stablehlo.floor": plain(lax.floor),
    "stablehlo.imag": plain(lax.imag),
    "stablehlo.is_finite": plain(lax.is_finite),
    "stablehlo.log": plain(lax.log),
    "stablehlo.log_plus_one": plain(lax.log1p),
    "stablehlo.logistic": plain(lax.logistic),
    "stablehlo.maximum": plain(lax.max),
    "stablehlo.minimum": plain(lax.min),
    "stablehlo.multiply": plain(lax.mul),
    "stablehlo.negate": plain(lax.neg),
    "stablehlo.not": plain(lax.bitwise_not),
    "stablehlo.or": plain(lax.bitwise_or),
    "stablehlo.popcnt": plain(lax.population_count),
    "stablehlo.power": _power,
    "stablehlo.real": plain(lax.real),
    "stablehlo.reduce_precision": _reduce_precision,
    "stablehlo.remainder": plain(lax.rem),
    "stablehlo.round_nearest_afz": plain(lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO)),
    "stablehlo.round_nearest_even": plain(lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
    "stablehlo.rsqrt": plain(lax.rsqrt),
    "stablehlo.select": _select,
    "stablehlo.shift_left": plain(lax.shift_left),
    "stablehlo.shift_right_arithmetic": plain(lax.shift_right_arithmetic),
    "stablehlo.shift_right_logical": plain(lax.shift_right_logical),
    "stablehlo.sign": plain(lax.sign),
    "stablehlo.sine": plain(lax.sin),
    "stablehlo.sqrt": plain(lax.sqrt),
    "stablehlo.subtract": plain(lax.sub),
    "stablehlo.tan": plain(lax.tan),
    "stablehlo.tanh": plain(lax.tanh),
    "stablehlo.xor": plain(lax.bitwise_xor),
    "chlo.acos": plain(lax.acos),
    "chlo.acosh": plain(lax.acosh),
    "chlo.asin": plain(lax.asin),
    "chlo.asinh": plain(lax.asinh),
    "chlo.atan": plain(lax.atan),
    "chlo.atanh": plain(lax.atanh),
    "chlo.bessel_i1e": plain(lax.bessel_i1e),
    "chlo.cosh": plain(lax.cosh),
    "chlo.digamma": plain(lax.digamma),
    "chlo.erf": plain(lax.erf),
    "chlo.erf_inv": plain(lax.erf_inv),
    "chlo.erfc": plain(lax.erfc),
    "chlo.lgamma": plain(lax.lgamma),
    "chlo.polygamma": plain(lax.polygamma),
    "chlo.zeta": plain(lax.zeta),
    "chlo.next_after": plain(lax.nextafter),
    "chlo.sinh": plain(lax.sinh),
    "chlo.square": plain(lax.square),
    "chlo.tan": plain(lax.tan),
}
