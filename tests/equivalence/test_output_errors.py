"""Verdicts on numbers that are given here: losses of the original, signs, NaN, means, units in the last place."""

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from fusionlab.codegen.raising import RaiseError
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.output_errors import (
    Columns,
    compare_output,
    decades,
    needs_more_roundings,
    ulp_distance,
    ulp_histogram,
)
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.verdict import OutputError, Verdict
from fusionlab.errors import CompileError


def runner(values):
    """``values`` whatever the inputs are, or a function of the first of them."""
    return lambda arrays: [np.asarray(values(arrays[0]) if callable(values) else values)]


def compared(truth, original, rewritten, rewritten64=None, x=(), **more):
    """The verdict on one output at the inputs ``x``; float64 of what is rewritten is truth if it is not given."""
    wide = truth if rewritten64 is None else rewritten64
    names = ("truth", "original", "rewritten", "rewritten_float64")
    runs = dict(zip(names, map(runner, (truth, original, rewritten, wide)), strict=True))
    return compare([Sample("seed 1", (np.asarray(x),))], walkers=None, **runs, **more)


def columns(truth, original, rewritten, rewritten64=None):
    """In float64, in float32 twice, and in float64."""
    wide = truth if rewritten64 is None else rewritten64
    types = (np.float64, np.float32, np.float32, np.float64)
    return Columns(*map(np.asarray, (truth, original, rewritten, wide), types))


def in_float32(*given):
    numbers = columns(*given)
    return compared(numbers.truth, numbers.original, numbers.rewritten, numbers.rewritten_float64)


def test_an_error_is_told_with_the_value_the_originals_own_error_and_the_walker():
    """In the comparison within bounds: the element with the largest error, not that with the largest loss."""
    exact, lossy, off = [2.0, 10_000.0, 3.0], [2.0, 10_000.5, 4.0], [2.0, 10_001.0, 3.0]
    sample = Sample("near", (np.zeros(3),), typical=False, kinds=("far", "on a nucleus", "far"))
    numbers = columns(exact, lossy, off)
    verdict = compare(
        [sample],
        truth=runner(numbers.truth),
        original=runner(numbers.original),
        rewritten=runner(numbers.rewritten),
        rewritten_float64=runner(numbers.truth),
        walkers=None,
    )
    assert verdict.passed
    told = "off truth by 1 at a value of 1e+04 (near, walker 1 (on a nucleus)) where the original is off by 0.5"
    assert told in verdict.line
    assert Verdict.from_json(json.loads(json.dumps(verdict.to_json()))).line == verdict.line


SIGNS, ONE_WRONG, EXACT = [1.0, -1.0, 1.0, -1.0], [1.0, -1.0, -1.0, -1.0], [1.0, 2.0, 3.0]
OVERFLOWN = [1.5, 1e39], [1.5, np.inf]
"""Where the original overflows in float32 and truth does not, the rewritten program may as well."""
LOST = [1.0, 2.0], [1.0, np.nan]
"""Where the original has no number in float32 and truth has one, float64 judges what is near truth."""
RIGHT = {
    "the original loses as much": (EXACT, [1.0, 2.1, 3.0], [1.3, 2.0, 3.0]),
    "a rounding": (EXACT, EXACT, [1.0, 2.0, 3.0000002]),
    "signs": (SIGNS, SIGNS, SIGNS),
    "a sign that the original has wrong too": (SIGNS, ONE_WRONG, ONE_WRONG),
    "a sign that the original has wrong": (SIGNS, ONE_WRONG, SIGNS),
    "a sum that happens to be whole": ([1.0] * 3, [1.0] * 3, [1, 1, 1.0000001], [1, 1, 1.0000000000000002]),
    "NaN": ([1.0, np.nan], [1.0, np.nan], [1.0, np.nan]),
    "overflown": (*OVERFLOWN, [1.5, np.inf]),
    "NaN in float32 alone, then near truth": (*LOST, [1.0, 2.1]),
}
WRONG = {
    "more than the original loses": (EXACT, EXACT, [1.3, 2.0, 3.0]),
    "below a rounding, in float64": ([1.0, 2.0], [1.001, 2.0], [1.0, 2.0], [1.0, 2.0000001]),
    "a sign": (SIGNS, SIGNS, [1.0, -1.0, 1.0, 1.0]),
    "another sign than the original has wrong": (SIGNS, ONE_WRONG, [1.0, 1.0, -1.0, -1.0]),
    "a sign in float64": (SIGNS, SIGNS, SIGNS, [1.0, -1.0, 1.0, 1.0]),
    "half a sign": (SIGNS, ONE_WRONG, [1.0, -1.0, 0.5, -1.0]),
    "no sign": (SIGNS, SIGNS, [1.0, -1.0, 1.0, np.nan]),
    "the sign of a sum that happens to be whole": ([1.0] * 3, [1.0] * 3, [1.0, 1.0, -1.0]),
    "never finite but here": ([np.nan, np.inf], [np.nan, np.inf], [1.0, np.inf]),
    **{f"NaN in float32 alone, then {wrong}": (*LOST, [1.0, wrong]) for wrong in (np.inf, 2.5, 1e30)},
    "a sign that is NaN in float32 alone": ([1.0, -1.0], [1.0, np.nan], [1.0, 1.0]),
    "NaN in float32 alone, and wrong in float64": (*LOST, [1.0, 2.0], [1.0, 2.1]),
    **{f"infinite, then {wrong}": ([1, np.inf], [1, np.inf], [1, wrong]) for wrong in (7, -np.inf, np.nan)},
    **{f"overflown, then {wrong}": (*OVERFLOWN, [1.5, wrong]) for wrong in (np.nan, -np.inf, 3.0)},
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_passes(name):
    assert in_float32(*RIGHT[name]).passed


@pytest.mark.parametrize("name", WRONG)
def test_what_is_different(name):
    verdict = in_float32(*WRONG[name])
    assert verdict.verdict == "different"
    assert name != "below a rounding, in float64" or "walker 1" in verdict.worst


def test_the_tolerance_is_what_the_original_loses():
    (output,) = in_float32(*RIGHT["the original loses as much"]).outputs
    np.testing.assert_allclose(output.tolerance, 0.4, rtol=1e-5)


def test_an_output_that_is_never_finite_is_no_evidence():
    verdict = in_float32(*[[np.nan, np.inf]] * 3)
    assert (verdict.verdict, verdict.reason) == ("not-checked", "no input gave a finite value in output 0")
    assert not verdict.passed


@pytest.mark.parametrize(
    ("dtype", "left", "right"),
    [("int64", 2**60, 2**60 + 1), ("uint64", 2**64 - 1, 2**64 - 2), ("int64", -(2**63), 2**63 - 1), ("uint8", 0, 1)],
)
def test_whole_numbers_are_not_rounded_before_they_are_compared(dtype, left, right):
    verdict = compared(*(np.array([5, value], dtype) for value in (left, left, right, right)))
    assert verdict.verdict == "different"
    assert "walker 1" in verdict.worst
    assert verdict.outputs[0].max_abs_error == float(abs(left - right))


@pytest.mark.parametrize("replaced", [True, False])
def test_arguments_at_which_the_original_has_no_digit_are_replaced(replaced):
    """At 7 the original is off by 1e30 of 1e3 in float32, where a right rewriting may well overflow."""

    def at(wild, dtype):
        return runner(lambda x: np.asarray([wild if x[0] == 7 else 2.0], dtype))

    mild = Sample("mild", (np.array([1.0]),))
    verdict = compare(
        [Sample("wild", (np.array([7.0]),), milder=(lambda: mild) if replaced else None), mild],
        truth=at(1e3, "f8"),
        original=at(1e30, "f4"),
        rewritten=at(np.nan, "f4"),
        rewritten_float64=at(5.0, "f8"),
        walkers=None,
    )
    assert verdict.verdict == ("equal" if replaced else "different")


def test_a_wrong_truth_does_not_widen_the_tolerance():
    right, wrong = np.float32([1.0, 2.0]), np.float32([1.0, 7.0])
    for raised, word in ((right, "equal"), (right + np.float32(2e-7), "equal"), (wrong, "not-checked")):
        verdict = compared(raised.astype(np.float64), right, right, raised=runner(raised))
        assert verdict.verdict == word


def test_a_verdict_goes_to_json_and_back():
    output = OutputError("output 0", float("inf"), 0.5, float("nan"), 1e-9, False)
    verdict = Verdict("different", (output,), 16, "seed 1, walker 3", "")
    document = json.loads(json.dumps(verdict.to_json(), allow_nan=False))
    assert repr(Verdict.from_json(document)) == repr(verdict)
    assert set(document) >= {"verdict", "max_abs_error", "tolerance", "walkers"}


def test_the_mean_may_shift_by_its_error():
    truth = 10 + np.random.default_rng(0).standard_normal(4000)
    original = truth.astype(np.float32)
    original[7] += 100  # one walker where the original is far off, so that each may be off by 400
    biased = columns(truth, original, original + np.float32(0.5))
    found, edges = (compare_output("output 0", biased, typical=typical).error for typical in (True, False))
    assert found.max_abs_error < found.tolerance
    assert found.mean_shift == pytest.approx(0.5, abs=1e-3)
    assert found.standard_error == pytest.approx(np.std(original) / 4000**0.5, rel=1e-2)
    assert found.mean_shifted
    assert not found.passed
    assert edges.mean_shift is None
    assert edges.passed
    verdict = in_float32(biased.truth, biased.original, biased.rewritten)
    assert verdict.verdict == "different"
    assert "the mean shifts by 0.5" in verdict.worst


def test_a_walker_and_its_copy_have_no_error_of_their_mean():
    """Two electrons exchanged: the energies are the same, and their spread of zero says nothing."""
    twice = np.full(2, -8.0)
    found = compare_output("output 0", columns(twice, twice, twice + 3e-6), typical=True).error
    assert found.mean_shift is None


def test_one_lucky_evaluation_is_not_what_the_original_loses():
    lucky = columns([1.0, 2.5], [1.0, 2.5], [1.0, 2.5001])
    assert needs_more_roundings(lucky)
    other = columns([1.0, 2.5], [1.0, 2.5001], [1.0, 2.5])
    assert compare_output("output 0", lucky, typical=False).error.passed is False
    more = replace(lucky, nearby=((other.truth, other.original),))
    assert compare_output("output 0", more, typical=False).error.passed
    assert not needs_more_roundings(columns([1.0, 2.5], [1.0, 2.5], [1.0, 2.5001], [1.0, 2.5001]))
    assert not needs_more_roundings(columns([1.0, 2.5], [1.0, 2.5], [1.0, np.nan]))


def test_more_roundings_do_not_help_what_is_wrong():
    """A rewritten program that is wrong at other roundings too; the original never loses as much."""
    x = np.linspace(1.0, 2.0, 8, dtype=np.float32)
    verdict = compared(lambda x: x.astype(np.float64), lambda x: x, lambda x: x * np.float32(1.001), x=x)
    assert verdict.verdict == "different"
    found = verdict.counterexample
    assert (found.output, found.index, found.original) == (0, (7,), 2.0)
    assert found.rewritten == pytest.approx(2.002)


def test_what_a_float64_program_loses_by_cancellation_shows_where_it_is_rounded_otherwise():
    """At inputs rounded otherwise it loses the same, so that nothing moves."""
    truth = np.array([205.0, 1.0])
    off = truth + np.array([2.8e-10, 0.0])

    def verdict(rewritten, moved):
        rounded = None if moved is None else lambda: lambda arrays, seed: [truth + np.array([moved, 0.0])]
        return compared(truth, truth, rewritten, rewritten, rounded=rounded).verdict

    assert verdict(off, None) == "different"
    assert verdict(off, 0.0) == "different"
    assert verdict(off, 1e-11) == "within-bound"
    assert verdict(off[::-1] - truth[::-1] + truth, 1e-11) == "different"
    assert verdict(truth * (1 + 1e-6), 1e-11) == "different"


@pytest.mark.parametrize("failure", [RaiseError("it has no counterpart"), CompileError("it does not compile")])
def test_roundings_that_cannot_be_computed_are_no_verdict(failure):
    def fails():
        raise failure

    def verdict(factor):
        x = np.linspace(1.0, 2.0, 8)
        return compared(lambda x: x, lambda x: x, lambda x: x * factor, lambda x: x * factor, x=x, rounded=fails)

    assert verdict(1 + 1e-9).verdict == "different"
    assert verdict(1 + 1e-13).passed


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_neighbours_are_one_apart(dtype):
    numbers = np.array([0.0, 1.0, -1.0, 3.5, -1e-3], dtype)
    integer = f"int{8 * np.dtype(dtype).itemsize}"
    neighbours = (numbers.view(integer) + np.array(1, integer)).view(dtype)
    np.testing.assert_array_equal(ulp_distance(numbers, neighbours), np.ones(5))
    np.testing.assert_array_equal(ulp_distance(numbers, numbers), np.zeros(5))


@pytest.mark.parametrize(
    ("left", "right", "distance"),
    [
        (np.float32([0.0]), np.float32([-0.0]), 0),
        (np.float32([1e-45]), np.float32([-1e-45]), 2),
        (np.array([1.0]), np.array([-1.0]), 2 * np.float64(1.0).view(np.int64)),
        (np.float32([np.nan, np.inf, np.inf, 1, np.nan]), np.float32([np.nan, np.inf, -np.inf, np.inf, 1]),
         [0, 0, np.inf, np.inf, np.inf]),
        (np.complex64([1 + 1j]), np.complex64([1 + (1 + 2**-22) * 1j]), 2),
    ],
    ids=["zeros", "through zero", "both signs", "not finite", "the worse part of complex numbers"],
)  # fmt: skip
def test_distances_in_units_in_the_last_place(left, right, distance):
    np.testing.assert_array_equal(ulp_distance(left, right), distance)


def test_histograms_count_every_element():
    counts = ulp_histogram(np.array([0, 1, 2, 3, 4, 7, 8, 2.0**60, np.inf, 2.0**64]))
    assert counts.sum() == 10
    assert list(counts[:5]) == [1, 1, 2, 2, 1]
    assert (counts[61], counts[64], counts[65]) == (1, 1, 1)
    differences = np.array([0.0, 2e-3, 9.9e-3, 0.5, np.nan])
    assert decades(differences, np.zeros(5)) == {-3: 2, -1: 1}
