"""What the model of time decides: the error of a sum of times, and of a pair of programs, by the sources of times."""

from types import SimpleNamespace

import pytest

from fusionlab.ledger.time.constants import PAIR_ERROR, PROGRAM_ERROR
from fusionlab.ledger.time.model import AT_LEAST, CODE, MEASURED, PRODUCT, ROOFLINE, XLA, error_of, pair_error_of
from fusionlab.time_order import ESTIMATED_PAIR_ERROR

LU, SOLVE, FFT = "factorisation", "triangular-solve", "fft"


def _site(source, family, us, launches=1):
    return SimpleNamespace(model_source=source, family=family, model_us=us * launches, dynamic_launches=launches)


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
    found = [_site(source, family, 100.0) for source, family in launches]
    assert pair_error_of(found) == (PAIR_ERROR if tested else ESTIMATED_PAIR_ERROR)
    assert error_of(found) == (PROGRAM_ERROR if tested else None)


@pytest.mark.parametrize(
    ("source", "family", "us", "tested"),
    [
        (CODE, "elementwise", 4.9, False),
        (CODE, "elementwise", 5.1, True),
        (PRODUCT, "gemm", 5.9, False),
        (PRODUCT, "gemm", 6.1, True),
        (ROOFLINE, LU, 1.9, False),
        (ROOFLINE, LU, 2.1, True),
    ],
)
def test_where_launching_is_more_than_half_of_the_time_no_error_is_claimed(source, family, us, tested):
    found = [_site(source, family, us, 40)]
    assert error_of(found) == (PROGRAM_ERROR if tested else None)
    assert pair_error_of(found) == (PAIR_ERROR if tested else ESTIMATED_PAIR_ERROR)
