import math
from types import SimpleNamespace

import pytest

from fusionlab.equivalence.verdict import OutputError, Verdict
from fusionlab.report.tables import describe_verdict


def errors(name, error, tolerance=1.0):
    return OutputError(name, error, tolerance, 0.0, 1e-9, False)


def described(*outputs):
    return describe_verdict(SimpleNamespace(equivalence=Verdict("within-bound", outputs, 16)))


def test_of_many_outputs_those_nearest_to_their_tolerance_are_told():
    text = described(*(errors(f"output {i}", 0.01 * (i % 7)) for i in range(10)))
    assert [f"output {i}:" in text for i in range(10)] == [i in (3, 4, 5, 6) for i in range(10)]
    assert text.endswith("6 other outputs are further from their tolerance")


def test_of_few_outputs_all_are_told():
    text = described(errors("output 0", 0.0), errors("output 1", 0.5))
    assert "output 0:" in text
    assert "output 1:" in text
    assert "other outputs" not in text


@pytest.mark.parametrize(
    ("error", "used"),
    [
        (errors("a", 0.25), 0.25),
        (errors("a", 0.0, 0.0), 0.0),
        (errors("a", 1e-30, 0.0), math.inf),
        (errors("a", math.nan), math.inf),
        (OutputError("a", 0.0, 1.0, 3.0, 2.0, False), 1.5),
        (OutputError("a", 0.0, 1.0, 0.0, 2.0, False, mean_shift=-3.0, mean_tolerance=1.0), 3.0),
    ],
)
def test_how_much_of_a_tolerance_an_error_takes(error, used):
    assert error.used == used
