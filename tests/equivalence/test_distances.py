"""Units in the last place, and histograms of differences."""

import ml_dtypes
import numpy as np
import pytest

from fusionlab.equivalence.output_errors import decades, ulp_distance, ulp_histogram


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
