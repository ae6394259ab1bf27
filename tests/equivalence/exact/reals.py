"""The arithmetic of float64: true functions and comparisons, by which the rules of evaluation are tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from fusionlab.equivalence.exact.machine import Machine
from fusionlab.equivalence.exact.values import Array


class Reals(Machine):
    """The operations of ``PrimeField`` on float64 (and complex128) numbers; one draw."""

    divide, inverse, pivot_size = np.divide, np.reciprocal, np.abs

    def matmul(self, x: Array, y: Array) -> Array:
        return np.asarray(x @ y)

    def embedded(self, x: Array) -> Array:
        return np.asarray(x, np.complex128 if np.iscomplexobj(x) else np.float64)[None]

    def of_integers(self, x: Array) -> Array:
        return np.asarray(x, np.float64)

    def integers_of(self, x: Array, dtype: Any) -> Array:
        return x.astype(dtype)

    def function(self, name: str, x: Array) -> Array:
        return np.asarray(_FUNCTIONS[name](x))

    def function_of_two(self, name: str, x: Array, y: Array) -> Array:
        return np.asarray(_OF_TWO[name](x, y))


_FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "bessel_i1e": scipy.special.i1e,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "cosh": np.cosh,
    "cosine": np.cos,
    "digamma": scipy.special.digamma,
    "erf": scipy.special.erf,
    "erf_inv": scipy.special.erfinv,
    "erfc": scipy.special.erfc,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "floor": np.floor,
    "lgamma": scipy.special.gammaln,
    "log": np.log,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "round_nearest_afz": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "round_nearest_even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
_OF_TWO: dict[str, Callable[[Array, Array], Any]] = {
    "atan2": np.arctan2,
    "next_after": np.nextafter,
    "power": np.power,
    "remainder": np.fmod,
}
