"""The errors of one output on one sample: against truth in two precisions, against the original in units and decades.

The tolerance in float32 is a small multiple of what the *original* loses to float32 on the same inputs: random
parameters give ill-conditioned Slater matrices, where honest errors reach 0.1 hartree. Because that leaves room for a
small mistake, the rewritten program is also computed in float64, where the tolerance shrinks by the ratio of the two
machine epsilons.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.distances import decades, ulp_distance, ulp_histogram
from fusionlab.equivalence.verdict import OutputError

SPREAD_FACTOR = 4.0
"""The rewritten program may be this many times further from truth than the original is at its worst walker."""
FLOAT64_FACTOR = 1000.0
"""Room over (eps64 / eps32) x the float32 tolerance: float64 rounding of a reassociated sum, not of a mistake."""


@dataclass(frozen=True)
class Columns:
    """One output of one sample: float64 truth, the original and the rewritten program in their own dtype and in
    float64."""

    truth: np.ndarray
    original: np.ndarray
    rewritten: np.ndarray
    rewritten_float64: np.ndarray
    nearby: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    """(truth, original) at inputs a rounding away."""


@dataclass(frozen=True)
class Found:
    """``error`` of one output, ``index`` of the element where the rewritten program is furthest off, and counts for the
    histograms of ``OutputError``."""

    error: OutputError
    index: tuple[int, ...]
    ulps: np.ndarray = field(repr=False)
    decades: Counter[int] = field(repr=False)


def compare_output(name: str, columns: Columns, *, typical: bool) -> Found:
    """The errors of one output; ``typical`` says that its walkers are, so that their mean means something."""
    original, rewritten = columns.original, columns.rewritten
    bitwise = original.dtype == rewritten.dtype and np.array_equal(original, rewritten, equal_nan=True)
    if not jnp.issubdtype(original.dtype, np.inexact):
        wrong = _integer_distance(original, rewritten)
        error = float(np.max(wrong, initial=0.0))
        return Found(OutputError(name, error, 0.0, error, 0.0, bitwise), _place(wrong), np.zeros(0, int), Counter())
    errors, tolerance, errors64, tolerance64 = _errors_and_tolerances(columns)
    ratio = np.maximum(errors / (tolerance or 1.0), errors64 / (tolerance64 or 1.0))
    worst, worst64 = float(np.max(errors, initial=0.0)), float(np.max(errors64, initial=0.0))
    ulps = ulp_distance(original, rewritten)
    most = float(np.max(ulps, initial=0.0))
    found = OutputError(name, worst, tolerance, worst64, tolerance64, bitwise, most)
    if typical and (mean := _mean_shift(columns)) is not None:
        found = replace(found, mean_shift=mean[0], standard_error=mean[1], mean_tolerance=mean[2])
    return Found(found, _place(ratio), ulp_histogram(ulps), decades(original, rewritten))


def _errors_and_tolerances(columns: Columns) -> tuple[np.ndarray, float, np.ndarray, float]:
    truth, original = columns.truth, columns.original
    if _is_sign(truth, original):
        return _sign_errors(columns)
    tolerance = max(tolerance_of(*pair) for pair in ((truth, original), *columns.nearby))
    epsilon, epsilon64 = float(jnp.finfo(original.dtype).eps), float(np.finfo(np.float64).eps)
    tolerance64 = tolerance_of(truth, original)
    tolerance64 *= FLOAT64_FACTOR * (epsilon64 / epsilon) if epsilon > epsilon64 else 1.0
    errors = errors_of(columns.rewritten, truth, original)
    return errors, tolerance, errors_of(columns.rewritten_float64, truth, truth), tolerance64


def needs_more_roundings(columns: Columns) -> bool:
    """Whether the rewritten program is right in float64 and further off in its own dtype than the original was.

    One evaluation says little of what the original may lose at an ill-conditioned walker: two correct programs were
    seen to differ tenfold there. Then ``nearby`` should be given.
    """
    if not np.issubdtype(columns.truth.dtype, np.inexact) or not columns.truth.size:
        return False
    errors, tolerance, errors64, tolerance64 = _errors_and_tolerances(columns)
    return bool(np.isfinite(errors).all() and errors.max() > tolerance > 0 and errors64.max() <= tolerance64)


def _is_sign(truth: np.ndarray, original: np.ndarray) -> bool:
    """Whether an output is a sign (of psi): every element -1, 0 or 1, and some of them -1.

    What is 0 or 1 throughout may be a sum that happens to be, and is rounded.
    """
    both = np.concatenate([truth.ravel(), original.astype(truth.dtype).ravel()])
    return bool(np.isin(both, (-1.0, 0.0, 1.0)).all() and (both == -1.0).any())


def _sign_errors(columns: Columns) -> tuple[np.ndarray, float, np.ndarray, float]:
    """A sign is right or wrong: it is truth's in float64, and the original's wherever that is truth's.

    What the original loses would allow 2 x SPREAD_FACTOR as soon as it has one sign wrong.
    """
    truth = columns.truth
    right = columns.original.astype(truth.dtype) == truth
    rewritten = columns.rewritten.astype(truth.dtype)
    off = np.where(right | ~np.isin(rewritten, (-1.0, 0.0, 1.0)), np.abs(rewritten - truth), 0.0)
    errors = np.where(np.isnan(off), np.inf, off)
    errors64 = errors_of(columns.rewritten_float64, truth, truth)
    return errors, 0.0, errors64, 0.0


def _mean_shift(columns: Columns) -> tuple[float, float, float] | None:
    """(shift of the mean over walkers, its Monte-Carlo error, what it may be) of outputs with a real number each."""
    truth, original, rewritten = columns.truth, columns.original, columns.rewritten
    if truth.ndim != 1 or not np.issubdtype(truth.dtype, np.floating):
        return None
    finite = np.isfinite(truth) & np.isfinite(original) & np.isfinite(rewritten)
    if finite.sum() < 2:
        return None
    kept, ours, theirs = (np.asarray(array, np.float64)[finite] for array in (truth, original, rewritten))
    with np.errstate(over="ignore", invalid="ignore"):
        standard_error = float(np.std(ours, ddof=1) / np.sqrt(len(ours)))
        lost = float(np.mean(np.abs(ours - kept)))
        scale = float(jnp.finfo(original.dtype).eps) * float(np.mean(np.abs(kept)))
        shift = float(np.mean(theirs - ours))
    figures = shift, standard_error, max(standard_error, SPREAD_FACTOR * (lost + scale))
    return figures if np.isfinite(figures).all() else None


def tolerance_of(truth: np.ndarray, original: np.ndarray) -> float:
    """What ``original`` loses against truth, with room; for a float64 original, which is its own truth, a rounding."""
    finite = np.isfinite(truth) & np.isfinite(original)
    scale = float(np.max(np.abs(truth), where=np.isfinite(truth), initial=0.0))
    epsilon = float(jnp.finfo(original.dtype).eps)
    if epsilon <= np.finfo(np.float64).eps:
        return FLOAT64_FACTOR * epsilon * scale
    with np.errstate(invalid="ignore"):  # inf - inf
        spread = float(np.max(np.abs(original - truth), where=finite, initial=0.0))
    return SPREAD_FACTOR * (spread + epsilon * scale)


def agrees(truth: np.ndarray, original: np.ndarray, raised: np.ndarray) -> bool:
    """Whether ``original`` (run by XLA) is ``raised`` within the tolerance that follows from what ``raised`` loses.

    What ``original`` loses would not do: where raising is wrong, it is as far from truth as from ``raised``.
    """
    if not jnp.issubdtype(original.dtype, np.inexact):
        return bool(np.array_equal(original, raised))
    wide = raised.astype(truth.dtype)
    return bool(np.all(errors_of(original, wide, wide) <= tolerance_of(truth, raised)))


def _integer_distance(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """|left - right| of integers or booleans as float64, zero only where they are equal."""
    wide = np.uint64 if jnp.issubdtype(left.dtype, np.unsignedinteger) else np.int64
    a, b = left.astype(wide).view(np.uint64), right.astype(wide).view(np.uint64)
    return np.where(left > right, a - b, b - a).astype(np.float64)


def errors_of(values: np.ndarray, truth: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """|values - truth|; infinite where ``values`` is finite and ``pattern`` is not, or the other way round.

    Where ``pattern`` is not finite, ``values`` must be the very infinity (or NaN) that it is.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values.astype(truth.dtype) - truth)
    error = np.where(np.isfinite(values) & np.isfinite(truth), error, 0.0)
    same = np.where(
        np.isfinite(truth) & np.isfinite(pattern),
        np.isfinite(values),
        (values == pattern) | (np.isnan(values) & np.isnan(pattern)) | (np.isfinite(values) & np.isfinite(pattern)),
    )
    return np.where(same, error, np.inf)


def _place(error: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(np.argmax(error), error.shape)) if error.size else ()
