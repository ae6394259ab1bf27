"""What one output's errors are: units in the last place, signs, patterns of NaN, means, the loss of the original."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from fusionlab.codegen.raising import RaiseError
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.output_errors import (
    Columns,
    compare_output,
    decades,
    needs_more_roundings,
    ulp_distance,
    ulp_histogram,
)
from fusionlab.equivalence.samples import Sample
from fusionlab.errors import CompileError

from .compared import compared


def columns(truth, original, rewritten, rewritten64=None):
    truth = np.asarray(truth, np.float64)
    wide = truth if rewritten64 is None else np.asarray(rewritten64, np.float64)
    return Columns(truth, np.asarray(original, np.float32), np.asarray(rewritten, np.float32), wide)


def passed(*given, typical=True):
    return compare_output("output 0", columns(*given), typical=typical).error.passed


def test_a_sign_is_right_or_wrong():
    truth = [1.0, -1.0, 1.0, -1.0]
    assert passed(truth, truth, truth)
    assert not passed(truth, truth, [1.0, -1.0, 1.0, 1.0])
    # Where the original itself is wrong, the rewritten program may be; elsewhere that allows nothing.
    assert passed(truth, [1.0, -1.0, -1.0, -1.0], [1.0, -1.0, -1.0, -1.0])
    assert passed(truth, [1.0, -1.0, -1.0, -1.0], truth)
    assert not passed(truth, [1.0, -1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0])
    assert not passed(truth, truth, truth, [1.0, -1.0, 1.0, 1.0])
    assert not passed(truth, [1.0, -1.0, -1.0, -1.0], [1.0, -1.0, 0.5, -1.0])
    assert not passed(truth, truth, [1.0, -1.0, 1.0, np.nan])


def test_a_sum_that_happens_to_be_whole_is_no_sign():
    assert passed(np.ones(3), np.ones(3), np.float32([1.0, 1.0, 1.0000001]), [1.0, 1.0, 1.0000000000000002])
    assert not passed(np.ones(3), np.ones(3), [1.0, 1.0, -1.0])


@pytest.mark.parametrize("wrong", [np.nan, -np.inf, 3.0])
def test_a_pattern_is_that_of_the_original(wrong):
    truth, overflown = [1.5, 1e39], [1.5, np.inf]
    assert passed(truth, overflown, overflown)
    assert not passed(truth, overflown, [1.5, wrong])


def test_the_mean_may_shift_by_its_error():
    random = np.random.default_rng(0)
    truth = 10 + random.standard_normal(4000)
    original = truth.astype(np.float32)
    original[7] += 100  # one walker where the original is far off, so that each may be off by 400
    biased = original + np.float32(0.5)
    found = compare_output("output 0", columns(truth, original, biased), typical=True).error
    assert found.max_abs_error < found.tolerance
    assert found.mean_shift == pytest.approx(0.5, abs=1e-3)
    assert found.standard_error == pytest.approx(np.std(original) / 4000**0.5, rel=1e-2)
    assert found.mean_shifted
    assert not found.passed
    edges = compare_output("output 0", columns(truth, original, biased), typical=False).error
    assert edges.mean_shift is None
    assert edges.passed


def test_a_walker_and_its_copy_have_no_error_of_their_mean():
    """Two electrons exchanged: the energies are the same, and their spread of zero says nothing."""
    truth = np.full(2, -8.0)
    original = truth.astype(np.float32)
    found = compare_output("output 0", columns(truth, original, original + np.float32(3e-6)), typical=True).error
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
    assert (found.output, found.index) == (0, (7,))
    assert found.original == 2.0
    assert found.rewritten == pytest.approx(2.002)


def test_the_worst_walker_of_a_mean_that_shifted_is_described():
    truth = np.linspace(5.0, 6.0, 64)
    original = truth.astype(np.float32)
    original[3] += 50
    verdict = compared(truth, original, original + np.float32(20))
    assert verdict.verdict == "different"
    assert "the mean shifts by 20" in verdict.worst


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_float64_program_may_lose_what_its_narrow_parts_lose(dtype, lowered):
    """Truth computes them in float64; what is wrong there still shows, and so does a part that is newly narrow."""

    def function(x, factor=1.0, narrow=dtype, order=1):
        hidden = jnp.tanh(x).astype(narrow)[:, ::order]
        return (hidden * hidden).sum(1).astype(x.dtype) * factor

    def energy(dtype):
        return lambda x: (jnp.tanh(x).astype(dtype) ** 2).sum(1).astype(x.dtype)

    with jax.enable_x64(True):
        rows = jax.ShapeDtypeStruct((16, 32), "float64")
        original, other, wrong = (
            lowered(given, rows)
            for given in (function, lambda x: function(x, order=-1), lambda x: function(x, factor=1 + 1e-11))
        )
        wide, narrowed = lowered(energy("float64"), rows), lowered(energy(dtype), rows)
    assert check_programs(original, original).verdict == "equal"
    assert check_programs(original, other).passed
    assert check_programs(original, wrong).verdict == "different"
    assert check_programs(wide, narrowed).verdict == "different"


def test_an_ill_conditioned_walker_allows_no_narrowed_part_at_the_others(lowered):
    """In float32 (1e5 + x) - 1e5 loses a hundredth of the first row, which allows 1e-7 there and nowhere else."""

    def function(narrow):
        def values(x):
            hidden = jnp.tanh(x[:, 0])
            return (hidden.astype(narrow).astype(x.dtype) + x[:, 1]) - x[:, 1]

        return values

    rows = np.zeros((8, 2))
    rows[:, 0] = np.linspace(0.3, 0.7, 8)
    rows[0, 1] = 1e5
    with jax.enable_x64(True):
        wide, narrow = (
            lowered(function(dtype), jax.ShapeDtypeStruct(rows.shape, "float64")) for dtype in ("float64", "float32")
        )
    assert check_programs(wide, narrow, [Sample("seed 1", (rows,))]).verdict == "different"


def in_float64(rewritten, narrowed):
    truth = np.linspace(1.0, 2.0, 8)
    nearby = ((truth, truth),)
    return compare_output(
        "output 0", Columns(truth, truth, rewritten(truth), rewritten(truth), nearby, narrowed(truth)), typical=False
    ).error


@pytest.mark.parametrize(("row", "right"), [(0, True), (1, False)])
def test_what_float32_loses_is_allowed_at_the_walker_that_loses_it(row, right):
    narrowed = np.linspace(1.0, 2.0, 8).astype(np.float32)
    narrowed[0] += np.float32(0.01)
    found = in_float64(lambda truth: truth + 5e-8 * (np.arange(8) == row), lambda truth: narrowed)
    assert found.passed is right


@pytest.mark.parametrize("failure", [RaiseError("it has no counterpart"), CompileError("it does not compile")])
def test_a_run_in_float32_that_fails_is_no_verdict(failure):
    x = np.linspace(1.0, 2.0, 8)

    def fails():
        raise failure

    def verdict(factor):
        return compared(lambda x: x, lambda x: x, lambda x: x * factor, lambda x: x * factor, x=x, narrowed=fails)

    assert verdict(1 + 1e-9).verdict == "different"
    assert verdict(1 + 1e-13).passed


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_neighbours_are_one_apart(dtype):
    numbers = np.array([0.0, 1.0, -1.0, 3.5, -1e-3], dtype)
    one = np.array(1, np.int16 if np.dtype(dtype).itemsize == 2 else f"int{8 * np.dtype(dtype).itemsize}")
    neighbours = (numbers.view(one.dtype) + one).view(dtype)
    np.testing.assert_array_equal(ulp_distance(numbers, neighbours), np.ones(5))
    np.testing.assert_array_equal(ulp_distance(numbers, numbers), np.zeros(5))


def test_zeros_are_equal_and_numbers_of_both_signs_are_counted_through_zero():
    smallest = np.float32(1e-45)
    assert ulp_distance(np.float32([0.0]), np.float32([-0.0])) == 0
    assert ulp_distance(np.array([smallest]), np.array([-smallest])) == 2
    assert ulp_distance(np.array([1.0]), np.array([-1.0])) == 2 * np.float64(1.0).view(np.int64)


def test_what_is_not_finite_is_infinitely_far_unless_it_is_the_same():
    left = np.float32([np.nan, np.inf, np.inf, 1.0, np.nan])
    right = np.float32([np.nan, np.inf, -np.inf, np.inf, 1.0])
    np.testing.assert_array_equal(ulp_distance(left, right), [0, 0, np.inf, np.inf, np.inf])


def test_complex_numbers_take_the_worse_part():
    left = np.array([1 + 1j], np.complex64)
    right = left + np.complex64(2**-22 * 1j)
    assert ulp_distance(left, right) == 2


def test_histograms_count_every_element():
    counts = ulp_histogram(np.array([0, 1, 2, 3, 4, 7, 8, 2.0**60, np.inf, 2.0**64]))
    assert counts.sum() == 10
    assert list(counts[:5]) == [1, 1, 2, 2, 1]
    assert (counts[61], counts[64], counts[65]) == (1, 1, 1)
    differences = np.array([0.0, 2e-3, 9.9e-3, 0.5, np.nan])
    assert decades(differences, np.zeros(5)) == {-3: 2, -1: 1}
