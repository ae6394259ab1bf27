"""Weights of second derivatives and squares, solved modulo three primes."""

from fractions import Fraction

import numpy as np
import pytest

from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.passes.fuse_jvp_replay.combinations import (
    PRIMES,
    SURPLUS,
    Combination,
    may_be_combinations,
    rational,
    solved,
)

K = 5
FLOAT = Fraction(float(np.float32(1836.152673)))


def samples(second, squares, count=2 * K + SURPLUS, off=0):
    """(targets, second derivatives, rows) of random samples; ``off`` is added to the first target."""
    found = {}
    for p in primes(PRIMES):
        field, random = PrimeField(p, (0,)), np.random.default_rng(p)
        laps, rows = (random.integers(-field.half, field.half, (count, K)).astype(float) for _ in range(2))
        a, b = Combination(second, squares, 0).residues(p)
        targets = field.add(field.matmul(laps, a.T), field.matmul(field.multiply(rows, rows), b.T))
        targets[0] = field.add(targets[0], np.full(1, float(off)))
        found[p] = targets, laps, rows
    return found


NONE = (Fraction(0),) * K


@pytest.mark.parametrize(
    ("second", "squares"),
    [
        ((tuple(Fraction(1, 1 + k) for k in range(K)),), (NONE,)),
        (((FLOAT, 1 / FLOAT, Fraction(0), Fraction(-1, 2), Fraction(3)),), ((Fraction(1),) * K,)),
        (tuple(tuple(Fraction(int(k == c)) for k in range(K)) for c in range(K)), (NONE,) * K),
    ],
    ids=["thirds", "floats-and-reciprocals", "diagonal"],
)
def test_weights_are_found(second, squares):
    assert solved(samples(second, squares), 1) == Combination(second, squares, 1)


def test_what_is_no_combination_has_no_weights():
    weights = (tuple(Fraction(k) for k in range(K)),)
    assert solved(samples(weights, (NONE,), off=1), None) is None


def test_as_many_samples_as_weights_show_nothing():
    weights = (tuple(Fraction(k) for k in range(K)),)
    assert solved(samples(weights, (NONE,), 2 * K), None) is None


def test_a_weight_that_is_no_small_fraction_is_none():
    weights = ((Fraction(2**40 + 15, 2**39 + 7), *NONE[1:]),)
    assert solved(samples(weights, (NONE,)), None) is None


def test_parts_are_the_coordinates_of_equal_weight():
    second = ((Fraction(2), Fraction(1), Fraction(0), Fraction(2), Fraction(1)),)
    parts = list(Combination(second, (NONE,), None).parts())
    assert parts == [(0, Fraction(2), [0, 3]), (0, Fraction(1), [1, 4])]


def test_multiples_of_weights():
    second = (tuple(Fraction(k) for k in range(K)),)
    halves = (tuple(Fraction(k, 2) for k in range(K)),)
    weights = second[0]
    assert Combination(halves, second, None).multiples_of(weights) == (Fraction(1, 2), Fraction(1))
    assert Combination(halves, (NONE,), None).multiples_of(weights) == (Fraction(1, 2), Fraction(0))
    assert Combination(((*NONE[1:], Fraction(1)),), (NONE,), None).multiples_of(weights) is None
    assert Combination(second, (NONE,), 1).multiples_of(weights) is None


def test_residues_of_which_one_is_zero_are_no_fraction():
    """Such a number is no multiple of all primes, and has no inverse."""
    first, *others = primes(PRIMES)
    assert rational({first: 0} | {p: p // 3 for p in others}) is None


def _term(second, rows, p, k, a, b):
    return (a * second[:, k] + b * rows[:, k] ** 2) % p


@pytest.mark.parametrize(
    ("changed", "fits"),
    [
        (lambda terms, p: terms, True),
        (lambda terms, p: -terms, True),
        (lambda terms, p: terms + 1, False),
        (lambda terms, p: terms * np.array([[1], [-1], [1], [1], [1], [1]]), False),
        (lambda terms, p: terms * np.array([[1, 1]] * 5 + [[1, -1]]), False),
        (lambda terms, p: terms[:, :1] + terms[:, 1:], False),
        (lambda terms, p: 0 * terms, True),
    ],
    ids=["same", "negated", "and-one", "sign-of-a-sample", "sign-of-one-term", "of-two-coordinates", "none"],
)
def test_a_term_of_one_coordinate(changed, fits):
    [p], random = primes(1), np.random.default_rng(4)
    second, rows = (random.integers(-(2**19), 2**19, (6, K)) for _ in range(2))
    second[:, 0] = rows[:, 0] = 0  # a coordinate without derivatives fits nothing else
    rows[:, 3] = 0
    terms = np.stack([_term(second, rows, p, 2, 3, -5), _term(second, rows, p, 3, 7, 2)], 1)
    found = (array.astype(float) for array in (changed(terms, p), second, rows))
    assert may_be_combinations(p, *found) is fits
