"""A prime field in which what is undefined stays so: 1 / 0 is NaN, and so is what is computed from it.

For exactly tied inputs, at which programs divide by zero and select what they return instead. Elsewhere a residue of
zero is a coincidence, and the field's 1 / 0 = 0 as good as any number.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.values import Array

_POLES = frozenset(("log", "rsqrt", "digamma", "lgamma"))
"""Functions that are not finite at zero."""


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

    def is_infinite(self, x: Array) -> Array:
        return np.asarray(np.abs(x) == self.infinity)

    def _looked_up(self, table: Callable[[Array], Array], x: Array) -> Array:
        undefined = np.isnan(x)
        if not undefined.any():
            return super()._looked_up(table, x)
        found = super()._looked_up(table, np.where(undefined, 0.0, x))
        found[np.broadcast_to(undefined, found.shape)] = np.nan
        return found
