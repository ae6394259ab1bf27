"""The arithmetic of float64: true functions and comparisons, by which the rules of evaluation are tested."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

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

    def integral(self, name: str, x: Array) -> Array:
        return np.asarray(np.trunc(x)) if name == "remainder" else self.function(name, x)

    def function(self, name: str, x: Array) -> Array:
        return np.asarray(_FUNCTIONS[name](x) if name in _FUNCTIONS else getattr(np, name)(x))

    def function_of_two(self, name: str, x: Array, y: Array) -> Array:
        if name in ("polygamma", "zeta"):
            return np.asarray(getattr(special, name)(x, y))
        renamed = {"next_after": "nextafter", "remainder": "fmod"}
        return np.asarray(getattr(np, renamed.get(name, name))(x, y))


_FUNCTIONS: dict[str, Any] = {
    "bessel_i1e": special.i1e,
    "cosine": np.cos,
    "digamma": special.digamma,
    "erf": special.erf,
    "erf_inv": special.erfinv,
    "erfc": special.erfc,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "lgamma": special.gammaln,
    "log_plus_one": np.log1p,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "round_nearest_afz": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "round_nearest_even": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
}
"""The functions that NumPy has under another name, or not."""
