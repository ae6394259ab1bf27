"""Inputs by rule, and outputs by digest: what a program computes, without files of data.

Input number i is drawn from ``numpy.random.RandomState(i)``, whose stream NumPy keeps for all times (NEP 19). A digest
has the mean and the root mean square of an output and a few of its elements; each of them moves by at most the largest
error of an element, so that one tolerance holds for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusionlab.hlo.ops import NUMPY

DRAWS = ("normal", "uniform", "integers")
MOST_VALUES = 16
_MOST_ELEMENTS = 2**27
"""Of an array: 1 GiB of the float64 numbers that are drawn."""
_MOST_AXES = 32
_MOST_INTEGER = 2**63
_DTYPES = frozenset(map(str, NUMPY.values()))
_ROUNDING = 1e-9
"""The relative difference of two sums of the same elements in another order."""


@dataclass(frozen=True)
class InputSpec:
    """An input of ``shape`` and ``dtype`` with its draw and two parameters: ``normal`` (mean, deviation), ``uniform``
    (least, most) or ``integers`` (least, and the one above the most)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    draw: str
    low: float
    high: float

    def array(self, number: int) -> np.ndarray:
        """The values of input ``number``."""
        random = np.random.RandomState(number)
        if self.draw == "integers":
            return np.asarray(random.randint(int(self.low), int(self.high), self.shape, np.int64)).astype(self.dtype)
        if self.draw == "uniform":
            return np.asarray(random.uniform(self.low, self.high, self.shape)).astype(self.dtype)
        return np.asarray(self.low + self.high * random.standard_normal(self.shape)).astype(self.dtype)

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> InputSpec:
        """An entry of the manifest; KeyError, TypeError, ValueError or OverflowError for anything else."""
        if found["draw"] not in DRAWS:
            raise ValueError(f"draw {found['draw']!r}: none of {', '.join(DRAWS)}")
        low, high = float(found["low"]), float(found["high"])
        _require_draw(found["draw"], low, high)
        shape, dtype = _shape(found["shape"]), _dtype(found["dtype"])
        return InputSpec(str(found["name"]), shape, dtype, found["draw"], low, high)


@dataclass(frozen=True)
class OutputDigest:
    """The reference of an output: ``values`` are its elements ``at`` these positions of the flat array (of complex
    numbers the real and imaginary parts in turn); an element may be off by ``tolerance`` (0: integers are exact)."""

    shape: tuple[int, ...]
    dtype: str
    tolerance: float
    mean: float
    rms: float
    at: tuple[int, ...]
    values: tuple[float, ...]

    @staticmethod
    def of(truth: np.ndarray, dtype: str, tolerance: float) -> OutputDigest:
        """The digest of ``truth``, which a program computes in ``dtype``."""
        flat = _flat(truth)
        count = min(flat.size, MOST_VALUES)
        at = tuple(int(one) for one in np.linspace(0, flat.size - 1, count).round()) if count else ()
        mean, rms = _moments(flat)
        return OutputDigest(truth.shape, dtype, tolerance, mean, rms, at, tuple(map(float, flat[list(at)])))

    def error(self, found: np.ndarray) -> float:
        """The largest difference of ``found`` from the digest; infinite for another type, shape, or non-finite one."""
        if found.shape != self.shape or str(found.dtype) != self.dtype:
            return math.inf
        flat = _flat(found)
        mean, rms = _moments(flat)
        pairs = [(mean, self.mean), (rms, self.rms), *zip(flat[list(self.at)], self.values, strict=True)]
        errors = [abs(one - other) for one, other in pairs]
        return float(max(errors)) if np.isfinite(errors).all() else math.inf

    def share(self, found: np.ndarray) -> float:
        """The error as a share of what is allowed: the tolerance, and the rounding of sums in another order."""
        error, allowed = self.error(found), self.tolerance + _ROUNDING * max(abs(self.mean), self.rms)
        return error / allowed if allowed else math.inf * error if error else 0.0

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> OutputDigest:
        """An entry of the manifest; KeyError, TypeError, ValueError or OverflowError for anything else."""
        at, values = tuple(map(int, found["at"])), tuple(map(float, found["values"]))
        shape, dtype = _shape(found["shape"]), _dtype(found["dtype"])
        count = math.prod(shape) * (2 if np.issubdtype(dtype, np.complexfloating) else 1)
        if len(at) != len(values) or any(not 0 <= one < count for one in at):
            raise ValueError("an output has other positions than values")
        tolerance, mean, rms = (float(found[name]) for name in ("tolerance", "mean", "rms"))
        if not 0 <= tolerance < math.inf or not np.isfinite([mean, rms, *values]).all():
            raise ValueError("a figure of an output is not finite, or its tolerance is negative")
        return OutputDigest(shape, dtype, tolerance, mean, rms, at, values)


def _shape(found: Any) -> tuple[int, ...]:
    if not isinstance(found, list) or len(found) > _MOST_AXES or any(type(one) is not int or one < 0 for one in found):
        raise ValueError(f"shape {found!r:.80}: no list of at most {_MOST_AXES} sizes")
    if math.prod(max(size, 1) for size in found) > _MOST_ELEMENTS:
        raise ValueError(f"shape {found!r:.80}: more than {_MOST_ELEMENTS:,} elements")
    return tuple(found)


def _dtype(found: Any) -> str:
    if found not in _DTYPES:
        raise ValueError(f"dtype {found!r:.80}: none of {', '.join(sorted(_DTYPES))}")
    return str(found)


def _require_draw(draw: str, low: float, high: float) -> None:
    """ValueError unless NumPy can draw by these parameters."""
    if draw == "normal":
        if not (math.isfinite(low) and 0 <= high < math.inf):
            raise ValueError(f"normal, mean {low} and deviation {high}: finite, and no negative deviation")
    elif not (low < high and math.isfinite(high - low)):
        raise ValueError(f"{draw} from {low} to {high}: finite, and the least below the most")
    elif draw == "integers" and not all(end.is_integer() and abs(end) <= _MOST_INTEGER for end in (low, high)):
        raise ValueError(f"integers from {low} to {high}: the bounds must be int64")


def _flat(array: np.ndarray) -> np.ndarray:
    """The elements in float64; of complex ones real and imaginary parts in turn."""
    if np.iscomplexobj(array):
        return np.ascontiguousarray(array, np.complex128).ravel().view(np.float64)
    return np.asarray(array, np.float64).ravel()


def _moments(flat: np.ndarray) -> tuple[float, float]:
    if not flat.size:
        return 0.0, 0.0
    return float(flat.mean()), float(np.sqrt((flat**2).mean()))
