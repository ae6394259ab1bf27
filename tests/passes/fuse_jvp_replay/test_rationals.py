"""Rational weights from their residues modulo three primes."""

from fractions import Fraction

import numpy as np
import pytest

from fusionlab.equivalence.exact.field import primes
from fusionlab.passes.fuse_jvp_replay.rationals import rational, small_fraction

FLOAT = Fraction(float(np.float32(1836.152673)))


def residues(number):
    return {p: number.numerator * pow(number.denominator, -1, p) % p for p in primes(3)}


@pytest.mark.parametrize("number", [Fraction(1, 3), Fraction(-7, 5), Fraction(0), FLOAT, 1 / FLOAT, Fraction(2**20, 3)])
def test_numbers_are_found(number):
    assert rational(residues(number)) == number


def test_what_is_no_small_or_binary_fraction_is_none():
    assert rational(residues(Fraction(2**40 + 15, 2**39 + 7))) is None


def test_residues_of_which_one_is_zero_are_no_fraction():
    """Such a number is no multiple of all primes, and has no inverse."""
    first, *others = primes(3)
    assert rational({first: 0} | {p: p // 3 for p in others}) is None


@pytest.mark.parametrize(("number", "found"), [(Fraction(-3, 8), -0.375), (Fraction(1, 3), None), (Fraction(65), None)])
def test_small_fractions(number, found):
    assert small_fraction(residues(number)) == found
