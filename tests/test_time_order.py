"""Two modelled times: faster, slower, or not decidable."""

import pytest

from fusionlab.time_order import TimeOrder


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
    assert TimeOrder.of(90.0, 100.0, 0.03, None).order == "faster"


def test_equal_times_have_no_order_without_an_error():
    assert TimeOrder.of(5.0, 5.0).order == "not decidable"
    assert TimeOrder.of(5.0, 6.0).undecided == ""


@pytest.mark.parametrize("pair", [(None, 1.0), (1.0, None), (0.0, 1.0)])
def test_without_a_time_there_is_nothing_to_compare(pair):
    assert TimeOrder.of(*pair, 0.03) is None
