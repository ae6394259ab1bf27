"""A check in a process of its own: whatever happens there, there is a verdict, and nothing on stderr."""

import numpy as np
import pytest

from fusionlab.equivalence import isolated
from fusionlab.equivalence.isolated import check_files

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture(scope="module")
def doubled(lowered):
    return lowered(lambda x: x * 2, X)


def test_verdicts_come_back(doubled, lowered, capfd):
    assert check_files(doubled, lowered(lambda x: x + x, X)).verdict == "equal"
    different = check_files(doubled, lowered(lambda x: x * 2.5, X))
    assert different.verdict == "different"
    assert "walker" in different.worst
    assert capfd.readouterr().err == ""


def test_a_time_limit_is_a_reason(doubled):
    verdict = check_files(doubled, doubled, time_limit_s=0.2)
    assert (verdict.verdict, verdict.outputs) == ("not-checked", ())
    assert "did not finish within 0.2 s" in verdict.reason
    assert not verdict.passed


def test_a_memory_limit_is_a_reason(doubled, monkeypatch):
    monkeypatch.setattr(isolated, "_three_quarters_of_memory", lambda: 200 * 2**20)
    verdict = check_files(doubled, doubled)
    assert verdict.verdict == "not-checked"
    assert "the check failed" in verdict.reason


def test_what_cannot_be_raised_is_a_reason(program_of_text):
    program = program_of_text(
        "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        "%0 = stablehlo.custom_call @their_kernel(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
        "return %0 : tensor<3xf32>\n}\n"
    )
    verdict = check_files(program, program)
    assert verdict.verdict == "not-checked"
    assert "custom call @their_kernel is opaque" in verdict.reason
