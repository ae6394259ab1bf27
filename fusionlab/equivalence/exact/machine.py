"""The arithmetic of NumPy: integers, booleans and constants in the program's own types. Arrays have an axis of draws.

Integer arithmetic is that of ``hlo.arithmetic``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.values import Array, Uncovered
from fusionlab.hlo import arithmetic

METHODS = {
    **{name: name for name in ("add", "divide", "maximum", "minimum", "multiply", "negate", "sign", "subtract")},
    **{"abs": "absolute", "and": "bitwise_and", "not": "bitwise_not", "or": "bitwise_or", "xor": "bitwise_xor"},
}
"""The methods of an arithmetic by the names of ops."""
COMMUTATIVE = ("add", "and", "maximum", "minimum", "multiply", "or", "xor")
"""The methods that may be combiners of a reduction or a scatter."""
_COMPARISONS: dict[str, Callable[[Array, Array], Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.dtype.itemsize}")


class Machine:
    """An arithmetic; the prime field and, in the tests, float64 are the others."""

    add, subtract, multiply, negate, absolute, sign = np.add, np.subtract, np.multiply, np.negative, np.abs, np.sign
    maximum, minimum, is_finite = np.maximum, np.minimum, np.isfinite
    bitwise_and, bitwise_or, bitwise_xor, bitwise_not = np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.bitwise_not

    def divide(self, x: Array, y: Array) -> Array:
        """Integer division, rounded towards zero."""
        return arithmetic.divided(x, y)

    def power(self, x: Array, y: Array) -> Array:
        """An integer power; of constants of a float type that of NumPy."""
        return arithmetic.power(x, y) if x.dtype.kind in "iu" else np.asarray(np.power(x, y))

    def compare(self, direction: str, x: Array, y: Array) -> Array:
        """Booleans; ``direction`` is StableHLO's: EQ, NE, LT, LE, GT or GE."""
        return np.asarray(_COMPARISONS[direction](x, y))

    def sum(self, x: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(x.sum(axes, dtype=x.dtype))

    def matmul(self, x: Array, y: Array) -> Array:
        """[..., m, k] @ [..., k, n] in 64 bits, truncated to the result's type."""
        return np.asarray(x.astype(np.int64) @ y.astype(np.int64))

    def key(self, x: Array) -> Array:
        """The keys of a sort: one zero, and NaN after all numbers."""
        return self.total_key(
            np.where(np.isnan(x), np.full((), np.nan, x.dtype), np.where(x == 0, np.zeros((), x.dtype), x))
        )

    def total_key(self, x: Array) -> Array:
        """Integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
        bits = np.ascontiguousarray(x).view(f"i{x.dtype.itemsize}")
        return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)

    def function(self, name: str, x: Array) -> Array:
        """The value at x of the op ``name``, without its dialect."""
        if name == "popcnt":
            return np.asarray(np.bitwise_count(_unsigned(x)))
        if name != "count_leading_zeros":
            raise Uncovered(f"{name} of integers")
        bits, left = np.zeros(x.shape, np.int64), _unsigned(x).astype(np.uint64)
        while left.any():
            bits, left = bits + (left != 0), left >> np.uint64(1)
        return np.asarray(8 * x.dtype.itemsize - bits)

    def function_of_two(self, name: str, x: Array, y: Array) -> Array:
        """``function`` of two arguments."""
        return arithmetic.remainder(x, y) if name == "remainder" else arithmetic.shifted(name, x, y)


MACHINE = Machine()
