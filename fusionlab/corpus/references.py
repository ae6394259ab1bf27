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

DRAWS = ("normal", "uniform", "integers")
MOST_VALUES = 16
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
        """An entry of the manifest; KeyError, TypeError or ValueError for anything else."""
        np.dtype(found["dtype"])
        if found["draw"] not in DRAWS:
            raise ValueError(f"draw {found['draw']!r}: none of {', '.join(DRAWS)}")
        shape = tuple(map(int, found["shape"]))
        numbers = float(found["low"]), float(found["high"])
        return InputSpec(str(found["name"]), shape, str(found["dtype"]), str(found["draw"]), *numbers)


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
        """An entry of the manifest; KeyError, TypeError or ValueError for anything else."""
        at, values = tuple(map(int, found["at"])), tuple(map(float, found["values"]))
        shape = tuple(map(int, found["shape"]))
        count = math.prod(shape) * (2 if np.issubdtype(found["dtype"], np.complexfloating) else 1)
        if len(at) != len(values) or any(not 0 <= one < count for one in at):
            raise ValueError("an output has other positions than values")
        tolerance, mean, rms = (float(found[name]) for name in ("tolerance", "mean", "rms"))
        return OutputDigest(shape, str(found["dtype"]), tolerance, mean, rms, at, values)


def _flat(array: np.ndarray) -> np.ndarray:
    """The elements in float64; of complex ones real and imaginary parts in turn."""
    if np.iscomplexobj(array):
        return np.ascontiguousarray(array, np.complex128).ravel().view(np.float64)
    return np.asarray(array, np.float64).ravel()


def _moments(flat: np.ndarray) -> tuple[float, float]:
    if not flat.size:
        return 0.0, 0.0
    return float(flat.mean()), float(np.sqrt((flat**2).mean()))
