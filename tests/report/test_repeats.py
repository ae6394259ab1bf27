"""What repeats is told by name and by content."""

import pytest

from fusionlab.report.repeats import Scope, find_repeats


def scope(ops=10, **families):
    return Scope({"add": ops}, families or {"gemm": 2, "elementwise": ops})


def test_three_identical_layers_are_one():
    (found,) = find_repeats({"layer_0": scope(), "layer_1": scope(), "layer_2": scope()})
    assert found.names == ("layer_0", "layer_1", "layer_2")
    assert (found.title, found.identical) == ("layer 0 to 2", True)


def test_a_last_layer_that_does_less_is_alike():
    (found,) = find_repeats({"layer_0": scope(10), "layer_1": scope(6)})
    assert not found.identical


@pytest.mark.parametrize(
    "scopes",
    [
        {"layer_0": scope(), "layer_1": scope(gemm=0, elementwise=10)},  # no product in one of them
        {"layer_0": scope(10), "layer_1": scope(21)},  # more than twice as large
        {"layer_0": scope(), "head_0": scope()},  # other names
        {"layer": scope(), "readout": scope()},
    ],
)
def test_others_are_left_alone(scopes):
    assert find_repeats(scopes) == []


def test_numbers_with_gaps_are_listed():
    (found,) = find_repeats({"block3": scope(), "block1": scope()})
    assert found.title == "block 1, 3"
    assert found.names == ("block1", "block3")
