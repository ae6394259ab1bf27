"""Medians and ratios of medians with their confidence intervals, by the bootstrap (Efron 1979), seeded.

No normal distribution is assumed: run times have a floor and a long tail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

RESAMPLES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A figure with the bounds of its 95 % confidence interval, in its own unit."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)

    def show(self, digits: int = 2) -> str:
        """``0.21 [0.20, 0.23]``."""
        return f"{self.value:,.{digits}f} [{self.low:,.{digits}f}, {self.high:,.{digits}f}]"


def median(samples: Sequence[float]) -> Interval:
    """The median of ``samples``. ValueError: there are none."""
    return _interval(float(np.median(_some(samples))), np.median(_resampled(samples, 0), axis=1))


def ratio_of_medians(samples: Sequence[float], reference: Sequence[float], *, paired: bool) -> Interval:
    """The median of ``samples`` over that of ``reference``.

    ``paired``: sample i of both was taken in one round of interleaved runs, and the rounds are drawn together, so that
    what slowed a round down on both sides does not widen the interval.
    """
    value = float(np.median(_some(samples)) / np.median(_some(reference)))
    if paired and len(samples) == len(reference):
        drawn = _draws(len(samples), 0)
        above, below = (np.asarray(array, float)[drawn] for array in (samples, reference))
    else:
        above, below = _resampled(samples, 0), _resampled(reference, 1)
    return _interval(value, np.median(above, axis=1) / np.median(below, axis=1))


def _interval(value: float, drawn: np.ndarray) -> Interval:
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))


def _resampled(samples: Sequence[float], seed: int) -> np.ndarray:
    drawn: np.ndarray = np.asarray(samples, float)[_draws(len(samples), seed)]
    return drawn


def _draws(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))


def _some(samples: Sequence[float]) -> Sequence[float]:
    if not len(samples):
        raise ValueError("no samples: there is no median")
    return samples
