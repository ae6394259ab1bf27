"""What the model of time decides: the error of a sum of times, and of a pair of programs, by the sources of times."""

from types import SimpleNamespace

import pytest

from fusionlab.ledger.time.constants import ESTIMATED_PAIR_ERROR, PAIR_ERROR, PROGRAM_ERROR
from fusionlab.ledger.time.model import AT_LEAST, CODE, MEASURED, PRODUCT, ROOFLINE, XLA, error_of, pair_error_of

LU, SOLVE, FFT = "factorisation", "triangular-solve", "fft"


@pytest.mark.parametrize(
    ("launches", "tested"),
    [
        ([(CODE, "elementwise")], True),
        ([(CODE, "elementwise"), (PRODUCT, "gemm")], True),
        ([(CODE, "elementwise"), (ROOFLINE, LU), (ROOFLINE, SOLVE)], True),  # as in the tested programs
        ([(CODE, "elementwise"), (ROOFLINE, FFT)], False),
        ([(ROOFLINE, "elementwise")], False),
        ([(CODE, "elementwise"), (AT_LEAST, LU)], False),
        ([(CODE, "elementwise"), (XLA, "reduction")], False),
        ([(MEASURED, "elementwise")], False),
        ([(CODE, "elementwise"), ("", "elementwise")], False),
    ],
)
def test_only_times_that_were_tested_have_an_error_and_decide_at_three_percent(launches, tested):
    found = [SimpleNamespace(model_source=source, family=family) for source, family in launches]
    assert pair_error_of(found) == (PAIR_ERROR if tested else ESTIMATED_PAIR_ERROR)
    assert error_of(found) == (PROGRAM_ERROR if tested else None)
