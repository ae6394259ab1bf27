"""Prime fields with NaN: one in which random values pass for NaN and infinity, and one in which 1 / 0 is NaN.

No residue is NaN: the branch that a program selects where a value is not finite is never taken in ``PrimeField``. And
at exactly tied inputs programs divide by zero, and select another value; elsewhere a residue of zero is a coincidence,
and the field's 1 / 0 = 0 as good as any number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.values import Array

_POLES = frozenset(("log", "rsqrt", "digamma", "lgamma"))
"""Functions that are not finite at zero."""


class FieldWithGuards(PrimeField):
    """As PrimeField; in draws of odd seeds, random thirds of the values pass for NaN and for infinity."""

    def is_nan(self, x: Array) -> Array:
        return super().is_nan(x) | self._passes("is nan", x)

    def is_infinite(self, x: Array) -> Array:
        return super().is_infinite(x) | self._passes("is infinite", np.abs(x))

    def _passes(self, name: str, x: Array) -> Array:
        share = np.array([0.35 if seed % 2 else 0.0 for seed in self.seeds]).reshape(-1, *(1,) * (x.ndim - 1))
        return np.asarray(np.abs(self.function(name, x)) < share * self.half)


class FieldWithUndefined(PrimeField):
    """As PrimeField; NaN propagates as in floating point: through all but selections and comparisons."""

    def inverse(self, x: Array) -> Array:
        found = super().inverse(x)
        return np.where(x == 0, np.nan, found)

    def function(self, name: str, x: Array) -> Array:
        found = super().function(name, x)
        return np.where(x == 0, np.nan, found) if name in _POLES else found

    def power(self, x: Array, exponent: float) -> Array:
        found = super().power(x, exponent)
        return np.where(x == 0, np.nan, found) if exponent < 0 else found

    def is_nan(self, x: Array) -> Array:
        return np.isnan(x)

    def _looked_up(self, table: Callable[[Array], Array], x: Array) -> Array:
        undefined = np.isnan(x)
        if not undefined.any():
            return super()._looked_up(table, x)
        found = super()._looked_up(table, np.where(undefined, 0.0, x))
        found[np.broadcast_to(undefined, found.shape)] = np.nan
        return found


TIES = ("small integers", "zeros among them", "equal halves", "every other argument zero")
"""The kind of tie in the arguments of each draw."""


def tied(number: int, array: Array) -> Array:
    """The argument ``number`` [draws, ...], tied in another way in each of the draws ``TIES``."""
    if array.dtype.kind not in "fc":
        return array
    array = array.copy()
    array[0] = array[0].real % 3 - 1
    array[1] = np.where(array[1].real % 2 == 0, 0, array[1])
    flat = array[2].reshape(-1)
    flat[flat.size - flat.size // 2 :] = flat[: flat.size // 2]
    array[2] = flat.reshape(array[2].shape)
    array[3] = array[3] if number % 2 else 0
    return array
