"""Rational numbers from their residues modulo a few primes, and arrays of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

_DENOMINATORS, _SMALL_NUMERATOR = (1, 2, 4, 8, 16), 64
"""The denominators and the largest numerator of a small fraction."""
_MOST_NUMERATOR, _MOST_MANTISSA, _MOST_SHIFT = 2**20, 2**25, 48
"""Limits of numerators and denominators, and of the integers m and e where a weight is the binary fraction m 2**-e."""


def rational(residues: Mapping[int, int]) -> Fraction | None:
    """The fraction with these residues by prime whose numerator and denominator are small, or that is a binary fraction
    or the reciprocal of one; of the product of three primes, few residues are."""
    modulus, residue = 1, 0
    for p, own in residues.items():  # the Chinese remainder theorem
        residue += modulus * ((own - residue) * pow(modulus, -1, p) % p)
        modulus *= p
    before, now, s, t = modulus, residue, 0, 1  # the continued fraction of residue / modulus, up to a small remainder
    while now > _MOST_NUMERATOR:
        quotient = before // now
        before, now, s, t = now, before - quotient * now, t, s - quotient * t
    if 0 < abs(t) <= _MOST_NUMERATOR:
        return Fraction(now, t)
    if (binary := _binary(residue, modulus)) is not None or math.gcd(residue, modulus) > 1:
        return binary
    return _reciprocal(_binary(pow(residue, -1, modulus), modulus))


def _binary(residue: int, modulus: int) -> Fraction | None:
    """m 2**-e with the residue, of the fewest bits e."""
    for shift in range(_MOST_SHIFT):
        mantissa = (residue * 2**shift + modulus // 2) % modulus - modulus // 2
        if abs(mantissa) <= _MOST_MANTISSA:
            return Fraction(mantissa, 2**shift)
    return None


def _reciprocal(found: Fraction | None) -> Fraction | None:
    return None if found is None else 1 / found


def small_fraction(residues: Mapping[int, int]) -> float | None:
    """The fraction of small integers with these residues by prime; None if there is none."""
    for denominator in _DENOMINATORS:
        found = {(residue * denominator + p // 2) % p - p // 2 for p, residue in residues.items()}
        if len(found) == 1 and abs(numerator := found.pop()) <= _SMALL_NUMERATOR:
            return numerator / denominator
    return None
