"""Two modelled times: faster, slower, or not decidable."""

import pytest

from fusionlab.time_order import ESTIMATED_PAIR_ERROR, TimeOrder


@pytest.mark.parametrize(
    ("us", "other", "order"),
    [
        (96.0, 100.0, "faster"),
        (98.0, 100.0, "not decidable"),
        (100.0, 98.0, "not decidable"),
        (104.0, 100.0, "slower"),
        (100.0, 100.0, "not decidable"),
    ],
)
def test_less_than_the_error_of_a_pair_has_no_order(us, other, order):
    assert TimeOrder(us, other, 0.03).order == order


def test_the_larger_error_counts():
    found = TimeOrder.of(90.0, 100.0, 0.03, 0.2)
    assert (found.order, found.undecided) == (
        "not decidable",
        "not decidable by the model: 11.1% apart, 20% are needed",
    )


@pytest.mark.parametrize("errors", [(None,), (None, None), (0.03, None), (None, 0.03)])
def test_a_time_that_was_not_tested_needs_the_error_of_estimates(errors):
    found = TimeOrder.of(90.0, 100.0, *errors)
    assert (found.order, found.needed) == ("not decidable", ESTIMATED_PAIR_ERROR)
    assert TimeOrder.of(80.0, 100.0, *errors).order == "faster"


def test_two_lower_bounds_have_no_order():
    found = TimeOrder.of(1.0, 100.0, 0.2, are_bounds=True)
    assert (found.order, found.undecided) == ("not decidable", "not decidable by the model: both are lower bounds")


def test_shares_that_look_alike_have_more_digits():
    assert TimeOrder(100.0, 102.96, 0.03).undecided.endswith(": 2.96% apart, 3.00% are needed")
    assert TimeOrder(100.0, 102.9, 0.03).undecided.endswith(": 2.9% apart, 3% are needed")


def test_equal_times_have_no_order_without_an_error():
    assert TimeOrder.of(5.0, 5.0, 0.0).order == "not decidable"
    assert TimeOrder.of(5.0, 6.0, 0.0).undecided == ""


@pytest.mark.parametrize("pair", [(None, 1.0), (1.0, None), (0.0, 1.0)])
def test_without_a_time_there_is_nothing_to_compare(pair):
    assert TimeOrder.of(*pair, 0.03) is None
