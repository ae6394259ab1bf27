"""Whether arrays that two programs gave at a few walkers are the same: a Laplacian up to a factor, a gradient."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

TOLERANCE = 1e-6
_TYPICAL = 1e-10
"""Relative differences allowed at any walker (some are ill-conditioned) and at most walkers."""


def common_factor(targets: np.ndarray, laps: np.ndarray) -> float | None:
    """The one c with ``targets`` = c ``laps`` everywhere; None when there is none, or nothing to compare."""
    finite = np.isfinite(targets)
    if not (np.isfinite(laps) == finite).all() or finite.mean() < 0.5:
        return None
    targets, laps = targets[finite], laps[finite]
    if not (np.abs(laps) > 0).any():
        return None
    factor = float(np.dot(targets, laps) / np.dot(laps, laps))
    whole = round(factor * 64) / 64
    factor = whole if whole and abs(factor - whole) < 1e-6 * abs(whole) else factor
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = np.where(targets == factor * laps, 0.0, np.abs(targets / (factor * laps) - 1))
    if factor == 0 or not errors.max() <= TOLERANCE or np.median(errors) > _TYPICAL:
        return None
    return factor


def are_derivatives(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> bool:
    """Whether in each pair (gradient, rows) the gradient [walkers, ...] is what ``rows`` [coordinates, walkers] say."""
    for given, rows in pairs:
        if given.size != rows.size:  # as many as walkers and coordinates, but of something else
            return False
        expected = np.moveaxis(rows, 0, -1).reshape(given.shape)
        size = np.abs(expected).max()
        if not np.allclose(given, expected, rtol=TOLERANCE, atol=TOLERANCE * size):
            return False
        if not np.median(np.abs(given - expected)) <= _TYPICAL * size:
            return False
    return True
