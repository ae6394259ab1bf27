"""Distances between the elements of two arrays of one dtype: units in the last place, and decades."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax.numpy as jnp
import numpy as np

_ULP_BINS = 66
"""Bin 0 for equal, one per power of two up to 2^64, and the last where one of two is not finite."""


def ulp_distance(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Representable numbers between elements of two floating arrays of one dtype, float64; infinite where only one of
    two is finite or both are different infinities, 0 where both are NaN."""
    if np.issubdtype(left.dtype, np.complexfloating):
        return np.asarray(np.maximum(ulp_distance(left.real, right.real), ulp_distance(left.imag, right.imag)))
    a, b = (_ordered(array) for array in (left, right))
    with np.errstate(over="ignore"):
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
        near = np.abs(np.where(distance < 2**52, a - b, 0)).astype(np.float64)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    distance = np.where(distance < 2**52, near, distance)
    return np.where(same, 0.0, np.where(np.isfinite(left) & np.isfinite(right), distance, np.inf))


def _ordered(array: np.ndarray) -> Any:
    """Bits as integers in the order of the numbers; zeros of both signs are 0."""
    bits = np.ascontiguousarray(array).view(f"int{8 * array.dtype.itemsize}").reshape(array.shape).astype(np.int64)
    lowest = -(2 ** (8 * array.dtype.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def ulp_histogram(distance: np.ndarray) -> np.ndarray:
    """Counts of ``ulp_distance`` by bins: 0, then [2^(k-1), 2^k) for k = 1 ... 64, then infinite; int64."""
    finite = distance[np.isfinite(distance)]
    bins = np.where(finite == 0, 0, np.floor(np.log2(np.maximum(finite, 1))).astype(int) + 1)
    counts = np.bincount(np.minimum(bins, _ULP_BINS - 2), minlength=_ULP_BINS).astype(np.int64)
    counts[-1] = distance.size - finite.size
    return counts


def decades(left: np.ndarray, right: np.ndarray) -> Counter[int]:
    """The number of elements that differ by 10^d to 10^(d+1), by d; equal and non-finite ones are left out."""
    wide = np.complex128 if jnp.issubdtype(left.dtype, jnp.complexfloating) else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(left.astype(wide) - right.astype(wide))
    difference = difference[np.isfinite(difference) & (difference > 0)]
    return Counter(int(d) for d in np.floor(np.log10(difference)))
