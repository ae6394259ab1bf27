"""Checks in a process of their own: whatever happens there, there is a verdict, and nothing on stderr."""

import dataclasses
import threading
import time

import numpy as np
import pytest
from jax import lax

from fusionlab import study
from fusionlab.cli.check import check_exactly_alone
from fusionlab.equivalence import isolated
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.isolated import check_files
from fusionlab.equivalence.samples import Sample
from fusionlab.errors import InputError
from fusionlab.passes.interface import Applied, Result
from fusionlab.subprocesses import ProcessFailed

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


def test_more_memory_than_the_machine_has_is_a_reason(lowered):
    def half_a_terabyte(x):
        rows = lax.broadcasted_iota(np.float32, (2**18, 2**19), 1) * x[0, 0]
        return lax.sort(rows, dimension=1)[:, 0].sum()

    program = lowered(half_a_terabyte, X)
    verdict = check_files(program, program)
    assert verdict.verdict == "not-checked"
    assert "the check failed" in verdict.reason
    assert len(verdict.reason) < 300


def test_samples_arrive_as_they_are(lowered):
    """Their names and kinds too: the worst walker is described by them."""
    program, wrong = lowered(lambda x: x * 2, X), lowered(lambda x: x * 2.5, X)
    sample = Sample("mine", (X,), typical=False, kinds=tuple(f"kind {i}" for i in range(len(X))))
    found = check_files(program, wrong, samples=[sample])
    here = check_programs(program, wrong, [sample])
    assert found.worst == here.worst
    assert found.worst.startswith("mine, walker")
    assert "(kind" in found.worst
    assert found.outputs == here.outputs


@pytest.mark.parametrize(
    ("exit_code", "said", "reason"),
    [
        (None, "", "time limit: the check did not finish within 5 s"),
        (
            1, "MemoryError: Unable to allocate 3.75 GiB",
            "memory limit: the check needs more than three quarters of the machine's memory",
        ),
        (
            1, "KeyError: 'stablehlo.unknown'",
            "a fault of the check, not of the programs (exit 1): KeyError: 'stablehlo.unknown'",
        ),
    ],
)  # fmt: skip
def test_a_limit_and_a_fault_are_told_apart(exit_code, said, reason, lowered, monkeypatch):
    def failing(function, *arguments, limit_s, memory_limited, stop):
        raise ProcessFailed(said, exit_code)

    program = lowered(lambda x: x + 1, X)
    monkeypatch.setattr(isolated, "call", failing)
    assert isolated.compare_files(program, program, 5) == Identity("not-covered", 0, 0, 1.0, reason)


def test_two_modules_are_compared(lowered):
    modules = [dataclasses.astuple(lowered(function, X)) for function in (lambda x: x + x, lambda x: 2 * x)]
    verdict = Identity(**isolated.compare(*modules))
    assert verdict.result == "identical"
    assert "all outputs of 2 walkers equal in 144 draws" in dataclasses.replace(verdict, walkers=2).line


def test_a_model_is_compared_under_the_limits_of_a_file(lowered, monkeypatch):
    """What is done before the comparison counts."""
    program = lowered(lambda x: x + 1, X)
    limits = []

    def found(source, original, result, walkers):
        time.sleep(0.01)
        return study.SmallModel(source, (program, program), "rewritten again", lambda: "")

    def compared(original, rewritten, limit_s, stop, *, began):
        limits.append((limit_s, time.monotonic() - began))
        return Identity("identical", 12, 2, 1e-36)

    monkeypatch.setattr(study, "at_walkers", found)
    monkeypatch.setattr(study, "compare_files", compared)
    given = study.Circumstances(target=None, check_time_limit_s=7.0)
    identity = study.check_exactly(object(), program, None, given)
    assert (identity.walkers, identity.reason) == (2, "rewritten again")
    [(limit_s, spent_s)] = limits
    assert limit_s == 7.0
    assert spent_s >= 0.01


def test_a_limit_counts_from_where_the_command_began(doubled):
    began = time.monotonic() - 400
    late = "did not finish within 300 s"
    assert late in isolated.compare_files(doubled, doubled, 300, began=began).reason
    assert late in check_files(doubled, doubled, time_limit_s=300, began=began).reason


def test_another_laplacian_is_refused_before_anything_is_lowered():
    with pytest.raises(InputError, match="--exact: it compares rewritings"):
        check_exactly_alone(None, (), None, study.Circumstances(target=None), None, laplacian="forward")


def test_both_checks_of_a_file_run_at_once_and_an_interrupt_ends_both(doubled, monkeypatch):
    started = threading.Barrier(2, timeout=60)
    stopped = []

    def exact(original, rewritten, limit_s, stop, *, began):
        started.wait()
        stopped.append(stop.wait(60))
        return Identity("not-covered", 0, 0, 1.0, "stopped")

    def interrupted(*_, **__):
        started.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "compare_files", exact)
    monkeypatch.setattr(study, "check", interrupted)
    result = Result(doubled, (Applied("batch-replay", "a change", "", "batch-replay"),))
    with pytest.raises(KeyboardInterrupt):
        study.judge(doubled, doubled, result, study.Circumstances(target=None))
    assert stopped == [True]
