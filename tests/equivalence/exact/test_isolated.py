"""The exact comparison in a process of its own: limits and faults are verdicts, never exceptions."""

import dataclasses

import jax
import numpy as np
import pytest

from fusionlab import study
from fusionlab.cli.check import check_exactly_alone
from fusionlab.equivalence import isolated
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.errors import InputError
from fusionlab.subprocesses import ProcessFailed

MATRIX = jax.ShapeDtypeStruct((3, 3), np.float32)


def failing(exit_code):
    def run(function, *arguments, limit_s, memory_limited):
        raise ProcessFailed("KeyError: 'stablehlo.unknown'", exit_code)

    return run


@pytest.mark.parametrize(
    ("exit_code", "reason"),
    [
        (None, "time limit: the check did not finish within 5 s"),
        (1, "a fault of the check, not of the programs (exit 1): KeyError: 'stablehlo.unknown'"),
    ],
)
def test_a_limit_and_a_fault_are_told_apart(exit_code, reason, lowered, monkeypatch):
    program = lowered(lambda x: x + 1, MATRIX)
    monkeypatch.setattr(isolated, "call", failing(exit_code))
    assert isolated.compare_files(program, program, 5) == Identity("not-covered", 0, 0, 1.0, reason)


def test_two_modules_are_compared(lowered):
    modules = [dataclasses.astuple(lowered(function, MATRIX)) for function in (lambda x: x + x, lambda x: 2 * x)]
    verdict = Identity(**isolated.compare(*modules))
    assert verdict.result == "identical"
    assert "all outputs of 2 walkers equal in 144 draws" in dataclasses.replace(verdict, walkers=2).line


def test_a_model_is_compared_under_the_limits_of_a_file(lowered, monkeypatch):
    program = lowered(lambda x: x + 1, MATRIX)
    limits = []

    class Model:
        def rebuild(self, walkers):
            return self

    def compared(original, rewritten, limit_s):
        limits.append(limit_s)
        return Identity("identical", 12, 2, 1e-36)

    monkeypatch.setattr(study, "_rewritten_again", lambda *given: (program, program))
    monkeypatch.setattr(study, "compare_files", compared)
    given = study.Circumstances(target=None, check_time_limit_s=7.0)
    assert study.check_exactly(Model(), program, None, given).walkers == 2
    assert limits == [7.0]


def test_another_laplacian_is_refused_before_anything_is_lowered():
    with pytest.raises(InputError, match="--exact: it compares rewritings"):
        check_exactly_alone(None, (), None, study.Circumstances(target=None), None, laplacian="forward")
