"""Run times of programs side by side, and their medians with confidence intervals.

Runs are interleaved, so that whatever slows the machine down slows all of them. Intervals are by the bootstrap (Efron
1979), seeded: no normal distribution is assumed, because run times have a floor and a long tail.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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

    def show(self, digits: int = 2) -> str:
        """``0.21 [0.20, 0.23]``."""
        return f"{self.value:,.{digits}f} [{self.low:,.{digits}f}, {self.high:,.{digits}f}]"


def median(samples: Sequence[float]) -> Interval:
    """The median of ``samples``. ValueError: there are none."""
    return _interval(np.median, samples)


def ratio_of_medians(samples: Sequence[float], reference: Sequence[float], *, paired: bool) -> Interval:
    """The median of ``samples`` over that of ``reference``.

    ``paired``: sample i of both was taken in one round of interleaved runs, and the rounds are drawn together, so that
    what slowed a round down on both sides does not widen the interval.
    """

    def ratio(above: np.ndarray, below: np.ndarray, axis: int = -1) -> Any:
        return np.median(above, axis=axis) / np.median(below, axis=axis)

    return _interval(ratio, samples, reference, paired=paired and len(samples) == len(reference))


def _interval(statistic: Callable[..., Any], *given: Sequence[float], paired: bool = False) -> Interval:
    from scipy.stats import bootstrap  # here: it takes a second to import

    if not all(map(len, given)):
        raise ValueError("no samples: there is no median")
    drawn = [list(samples) * (2 if len(samples) == 1 else 1) for samples in given]  # SciPy asks for two or more
    options = {"n_resamples": RESAMPLES, "confidence_level": LEVEL, "method": "percentile", "random_state": 0}
    found = bootstrap(drawn, statistic, paired=paired, vectorized=True, **options).confidence_interval
    return Interval(float(statistic(*map(np.asarray, given))), float(found.low), float(found.high))


WARM_UP = 2


def interleaved(runs: Mapping[str, Callable[[], None]], repeats: int) -> dict[str, list[float]]:
    """Microseconds of ``repeats`` runs of each, one run of each per round; WARM_UP rounds before are not kept.

    Every call waits for the device. Rounds start with different programs, so that none always follows the same.
    """
    names = list(runs)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(WARM_UP + repeats):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            started = time.perf_counter_ns()
            runs[name]()
            if turn >= WARM_UP:
                samples[name].append((time.perf_counter_ns() - started) / 1e3)
    return samples
