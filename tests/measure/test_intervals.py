"""Medians and ratios with bootstrap intervals."""

import numpy as np
import pytest

from fusionlab.measure.intervals import Interval, median, ratio_of_medians


def test_the_interval_holds_the_median_and_narrows_with_samples():
    random = np.random.default_rng(0)
    few, many = (median(10 + random.standard_normal(count)) for count in (10, 1000))
    assert few.low <= few.value <= few.high
    assert many.low < 10.1
    assert many.high > 9.9
    assert many.high - many.low < (few.high - few.low) / 3


def test_it_is_the_same_every_time():
    samples = [3.0, 1.0, 2.0, 5.0]
    assert median(samples) == median(samples)
    assert median([7.0]) == Interval(7.0, 7.0, 7.0)


def test_a_slow_round_does_not_widen_a_paired_ratio():
    slow = np.array([1.0, 1.0, 5.0, 1.0, 9.0, 1.0, 1.0, 3.0])
    paired = ratio_of_medians(list(2 * slow), list(slow), paired=True)
    assert (paired.value, paired.low, paired.high) == (2.0, 2.0, 2.0)
    alone = ratio_of_medians(list(2 * slow), list(slow), paired=False)
    assert alone.low < 2.0 < alone.high


def test_no_samples_have_no_median():
    with pytest.raises(ValueError, match="no samples"):
        median([])
