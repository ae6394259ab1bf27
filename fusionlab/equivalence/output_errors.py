"""The errors of one output on one sample: against truth in two precisions, against the original in units and decades.

Random parameters lead to ill-conditioned Slater matrices, where honest float32 errors reach 0.1 hartree. Because that
leaves room for a small mistake, the rewritten program is also computed in float64 (``tolerances``).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.tolerances import (
    FLOAT64_FACTOR,
    SPREAD_FACTOR,
    Pairs,
    tolerance_of,
    tolerances_in_float64,
)
from fusionlab.equivalence.verdict import OutputError

_NEAR = 0.1
"""The share of truth by which the rewritten program may be off where the original has no number (4 % was seen)."""


@dataclass(frozen=True)
class Columns:
    """One output of one sample: float64 truth, the original and the rewritten program in their own dtype and in
    float64."""

    truth: np.ndarray
    original: np.ndarray
    rewritten: np.ndarray
    rewritten_float64: np.ndarray
    nearby: Pairs = ()
    """(truth, original) at inputs, or with intermediate results, a rounding away."""
    spread_factor: float = SPREAD_FACTOR
    """The factor by which the rewritten program may be further from truth than the original, in their own dtype."""


@dataclass(frozen=True)
class WorstElement:
    """``error`` of one output, measured at the element ``at`` in its own dtype; ``index`` of the element where the
    rewritten program is furthest off in either precision; and the histogram counts of ``OutputError``."""

    error: OutputError
    index: tuple[int, ...]
    at: tuple[int, ...]
    ulps: np.ndarray = field(repr=False)
    decades: Counter[int] = field(repr=False)


def compare_output(name: str, columns: Columns, *, typical: bool) -> WorstElement:
    """The errors of one output; with ``typical`` walkers their mean is meaningful."""
    original, rewritten = columns.original, columns.rewritten
    bitwise = _same_bits(original, rewritten)
    if not jnp.issubdtype(original.dtype, np.inexact):
        wrong = _integer_distance(original, rewritten)
        error = float(np.max(wrong, initial=0.0))
        place = _place(wrong)
        found = OutputError(name, error, 0.0, error, 0.0, bitwise)
        return WorstElement(found, place, place, np.zeros(0, int), Counter())
    errors, allowed, errors64, allowed64 = _errors_and_tolerances(columns)
    own, ratio64 = _ratio(errors, allowed), _ratio(errors64, allowed64)
    ratio = np.maximum(own, ratio64)
    truth = np.where(np.isfinite(columns.truth), columns.truth, original.astype(columns.truth.dtype))
    at, at64 = _furthest(errors, allowed, own), _furthest(errors64, allowed64, ratio64)
    worst, tolerance, lost, value = (
        float(figure[at]) if figure.size else 0.0
        for figure in (errors, allowed, errors_of(original, truth, original), np.abs(truth))
    )
    worst64, tolerance64 = (float(figure[at64]) if figure.size else 0.0 for figure in (errors64, allowed64))
    ulps = ulp_distance(original, rewritten)
    most = float(np.max(ulps, initial=0.0))
    found = OutputError(
        name, worst, tolerance, worst64, tolerance64, bitwise, most, original_abs_error=lost, value=value
    )
    if typical and (mean := _mean_shift(columns)) is not None:
        found = replace(found, mean_shift=mean[0], standard_error=mean[1], mean_tolerance=mean[2])
    return WorstElement(found, _place(ratio), at, ulp_histogram(ulps), decades(original, rewritten))


def _furthest(errors: np.ndarray, allowed: np.ndarray, ratio: np.ndarray) -> tuple[int, ...]:
    """The element of the largest error if every one is within its own tolerance; else the one furthest beyond it."""
    return _place(errors if (errors <= allowed).all() else ratio)


def _ratio(errors: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(errors > 0, errors / allowed, 0.0)


def _errors_and_tolerances(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Errors and tolerances of all elements in the original's own dtype, and in float64."""
    truth, original = columns.truth, columns.original
    if _is_sign(truth, original):
        return _sign_errors(columns)
    tolerance = tolerance_of(truth, original, columns.nearby, factor=columns.spread_factor)
    allowed = np.full(truth.shape, tolerance)
    reference = np.where(np.isfinite(truth), truth, original.astype(truth.dtype))
    errors = np.where(_without_a_number(columns), 0.0, errors_of(columns.rewritten, reference, original))
    allowed64 = tolerances_in_float64(truth, original, columns.nearby)
    return errors, allowed, errors_of(columns.rewritten_float64, truth, truth), allowed64


def _without_a_number(columns: Columns) -> np.ndarray:
    """True where the original is NaN in its own dtype alone, and the rewritten program is near truth: the original has
    lost more than the rewritten program, which float64 judges there."""
    truth, original, rewritten = columns.truth, columns.original, columns.rewritten
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(rewritten.astype(truth.dtype) - truth) <= _NEAR * np.abs(truth)
    return np.asarray(np.isnan(original) & np.isfinite(truth) & near)


def needs_more_roundings(columns: Columns) -> bool:
    """True if more evaluations of the original could excuse the rewritten program, for which one is not enough.

    One evaluation is a poor estimate of the original's loss at an ill-conditioned walker (two correct programs were
    seen to differ tenfold there), and none of the loss of a float64 original. Then ``nearby`` should be passed. Nothing
    excuses an error in float64 larger than the original's float32 loss at its worst walker.
    """
    if not jnp.issubdtype(columns.truth.dtype, jnp.inexact) or not columns.truth.size:
        return False
    errors, allowed, errors64, allowed64 = _errors_and_tolerances(columns)
    if not (np.isfinite(errors).all() and np.isfinite(errors64).all()) or not allowed.any():
        return False
    if (errors <= allowed).all() and (errors64 <= allowed64).all():
        return False
    original = columns.original
    if jnp.finfo(original.dtype).eps <= np.finfo(np.float64).eps:
        return True
    return bool(
        errors64.max() <= allowed.max() * FLOAT64_FACTOR * np.finfo(np.float64).eps / jnp.finfo(original.dtype).eps
    )


def _same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """True if two arrays are the same, including the signs of their zeros; all NaNs are equal."""
    if left.dtype != right.dtype or not np.array_equal(left, right, equal_nan=left.dtype.kind in "fc"):
        return False
    if np.issubdtype(left.dtype, np.complexfloating):
        return _same_bits(left.real, right.real) and _same_bits(left.imag, right.imag)
    if not jnp.issubdtype(left.dtype, np.floating):
        return True
    return bool(((np.signbit(left) == np.signbit(right)) | np.isnan(left)).all())


def _is_sign(truth: np.ndarray, original: np.ndarray) -> bool:
    """True if an output is a sign (of psi): every element -1, 0 or 1, and some of them -1.

    An output of only 0 and 1 may be a sum that happens to be, and is rounded.
    """
    both = np.concatenate([truth.ravel(), original.astype(truth.dtype).ravel()])
    return bool(np.isin(both, (-1.0, 0.0, 1.0)).all() and (both == -1.0).any())


def _sign_errors(columns: Columns) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A sign is right or wrong: it is truth's in float64, and the original's wherever that is truth's.

    The original's loss would allow 2 x SPREAD_FACTOR as soon as it has one sign wrong.
    """
    truth = columns.truth
    right = columns.original.astype(truth.dtype) == truth
    rewritten = columns.rewritten.astype(truth.dtype)
    off = np.where(right | ~np.isin(rewritten, (-1.0, 0.0, 1.0)), np.abs(rewritten - truth), 0.0)
    errors = np.where(np.isnan(off), np.inf, off)
    errors64 = errors_of(columns.rewritten_float64, truth, truth)
    return errors, np.zeros(truth.shape), errors64, np.zeros(truth.shape)


_FEWEST_FOR_A_MEAN = 4
"""A quarter of the walkers, at least one, are copies with electrons exchanged: of two walkers one, and the error of
their mean is zero whatever the output's variance is."""


def _mean_shift(columns: Columns) -> tuple[float, float, float] | None:
    """(shift of the mean over walkers, its Monte-Carlo error, its tolerance) of one real number per walker."""
    truth, original, rewritten = columns.truth, columns.original, columns.rewritten
    if truth.ndim != 1 or not np.issubdtype(truth.dtype, np.floating):
        return None
    finite = np.isfinite(truth) & np.isfinite(original) & np.isfinite(rewritten)
    if finite.sum() < _FEWEST_FOR_A_MEAN:
        return None
    kept, ours, theirs = (np.asarray(array, np.float64)[finite] for array in (truth, original, rewritten))
    with np.errstate(over="ignore", invalid="ignore"):
        standard_error = float(np.std(ours, ddof=1) / np.sqrt(len(ours)))
        lost = float(np.mean(np.abs(ours - kept)))
        scale = float(jnp.finfo(original.dtype).eps) * float(np.mean(np.abs(kept)))
        shift = float(np.mean(theirs - ours))
    figures = shift, standard_error, max(standard_error, SPREAD_FACTOR * (lost + scale))
    return figures if np.isfinite(figures).all() else None


def agrees(truth: np.ndarray, original: np.ndarray, raised: np.ndarray, nearby: Pairs = ()) -> bool:
    """True if ``original`` (run by XLA) is ``raised`` within the tolerance that follows from the loss of ``raised``.

    The loss of ``original`` would not do: where raising is wrong, it is as far from truth as from ``raised``.
    """
    if not jnp.issubdtype(original.dtype, np.inexact):
        return bool(np.array_equal(original, raised))
    wide = raised.astype(truth.dtype)
    return bool(np.all(errors_of(original, wide, wide) <= tolerance_of(truth, raised, nearby)))


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
