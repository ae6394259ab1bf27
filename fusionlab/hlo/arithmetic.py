"""Integer and boolean arithmetic, and conversions, of NumPy arrays as XLA:CPU computes them.

This is the one owner of these meanings: the exact check, constant folding and raising read them here. Where XLA
computes an op in one way at run time and folds constants in another, ``NoOneMeaning`` names it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

MOST_EXPONENT = 63
"""The largest exponent of an integer power: XLA takes others modulo 64 at run time, and as they are in folding."""


class NoOneMeaning(Exception):
    """XLA and StableHLO's specification, or XLA at run time and in folding, differ for these operands."""


def added(x: Array, y: Array) -> Array:
    """x + y; of booleans OR. NoOneMeaning where both are true: XLA's folding computes XOR."""
    if x.dtype == np.bool_ and np.logical_and(x, y).any():
        raise NoOneMeaning("an add of i1, which XLA runs as OR and folds as XOR")
    return np.asarray(np.add(x, y))


def divided(x: Array, y: Array) -> Array:
    """The integral quotient, towards zero; by zero -1, or the largest unsigned number."""
    if x.dtype.kind != "i":
        return np.where(y == 0, np.iinfo(x.dtype).max, x // np.where(y == 0, 1, y)).astype(x.dtype)
    divisor = np.where((y == 0) | (y == -1), 1, y)
    quotient = x // divisor
    quotient = quotient + ((x - quotient * divisor != 0) & ((x < 0) != (divisor < 0)))
    return np.where(y == 0, -1, np.where(y == -1, np.negative(x), quotient)).astype(x.dtype)


def remainder(x: Array, y: Array) -> Array:
    """The rest of ``divided``, of the sign of x; by zero x."""
    divisor = np.where((y == 0) | (y == -1), 1, y) if x.dtype.kind == "i" else np.where(y == 0, 1, y)
    return np.where(y == 0, x, np.fmod(x, divisor)).astype(x.dtype)


def power(x: Array, y: Array) -> Array:
    """x to the power y, wrapped; NoOneMeaning for an exponent outside 0 to ``MOST_EXPONENT``."""
    if ((y < 0) | (y > MOST_EXPONENT)).any():
        raise NoOneMeaning(f"an integer power with an exponent outside 0 to {MOST_EXPONENT}")
    return np.asarray(np.power(x, y))


def shifted(name: str, x: Array, y: Array) -> Array:
    """``shift_left``, ``shift_right_logical`` or ``shift_right_arithmetic``, which repeats the highest bit of unsigned
    integers too; by as many bits as x has or more, or by a negative number, all bits are shifted out."""
    kind, bits = x.dtype.itemsize, 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < bits)
    by = np.where(inside, y, 0).astype(f"u{kind}")
    if name == "shift_right_arithmetic":
        signed = x.view(f"i{kind}")
        moved = np.where(inside, signed >> by.view(f"i{kind}"), np.where(signed < 0, -1, 0))
        return moved.astype(f"i{kind}").view(x.dtype)
    unsigned = x.view(f"u{kind}")
    moved = unsigned << by if name == "shift_left" else unsigned >> by
    return np.where(inside, moved, 0).astype(f"u{kind}").view(x.dtype)


def converted(x: Array, dtype: np.dtype[Any]) -> Array:
    """x in another type: of complex numbers the real part, floats to the nearest integer of ``dtype`` towards zero,
    NaN to 0, and integers wrapped; true for all but zero."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        x = x.real
    if dtype == np.bool_:
        return np.asarray(x != 0)
    if dtype.kind not in "iu" or x.dtype.kind in "iub":
        return x.astype(dtype)
    limits, wide = np.iinfo(dtype), np.trunc(np.where(np.isnan(x), 0, x).astype(np.float64))
    inside = (wide >= limits.min) & (wide < 2.0**limits.bits if limits.min == 0 else wide < 2.0 ** (limits.bits - 1))
    outside = np.where(wide < 0, limits.min, limits.max).astype(dtype)
    return np.where(inside, np.where(inside, wide, 0).astype(dtype), outside)
