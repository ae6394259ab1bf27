"""The exact verdict on an optimised function: told, kept, under a budget, and never decisive."""

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import pytest

import fusionlab
from fusionlab.equivalence import isolated
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.optimizing import rewriting
from fusionlab.passes.interface import Applied, Pass, Result
from fusionlab.subprocesses import ProcessFailed
from tests.optimizing.networks import repeated
from tests.optimizing.wrong_passes import SineToCosine, made_by

HOIST = "licm"
pytestmark = pytest.mark.usefixtures("exact_checks", "no_processes")


@dataclass(frozen=True)
class OtherConstant(Pass):
    """A constant of 1e-30 becomes another one."""

    name: ClassVar[str] = "other-constant"

    def run(self, program, setting):
        text = program.text.replace("1.000000e-30", "2.000000e-30")
        assert text != program.text
        other = Program(program.name, text.encode(), program.platform, program.provenance)
        return Result(other, (Applied(self.name, "another constant", "", self.name),))


def test_identical_is_told_first_and_remembered(tmp_path):
    for remembered in (False, True):
        function = fusionlab.optimize(repeated, HOIST, cache=tmp_path)
        function(1.0, 0.5)
        (decision,) = function.fusionlab.decisions
        assert decision.remembered == remembered
        assert decision.verdict.exact.result == "identical"
    report = function.fusionlab.report()
    assert "check: identical: all outputs equal in" in str(report)
    (program,) = report.to_json()["programs"]
    assert program["equivalence"]["exact"]["result"] == "identical"


def test_a_verdict_under_another_budget_is_not_taken(tmp_path, monkeypatch):
    """What was not covered within a second may be within twenty."""
    monkeypatch.setattr(rewriting, "compare_files", lambda *_: isolated.Identity("not-covered", 0, 0, 1.0, "late"))
    for exact_s, remembered in ((1, False), (1, True), (2, False)):
        function = fusionlab.optimize(repeated, HOIST, cache=tmp_path, exact_s=exact_s)
        function(1.0, 0.5)
        assert function.fusionlab.decisions[0].remembered == remembered


def test_what_is_not_identical_is_accepted_by_the_float_verdict_only():
    function = made_by(OtherConstant(), lambda x: jnp.sin(x) + 1e-30)
    assert function(0.5) == jnp.sin(0.5)
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None
    assert "check: accepted by the float verdict only: not-identical: output 0" in str(function.fusionlab.report())


def test_identical_is_not_accepted_where_the_float_verdict_is_another(monkeypatch):
    identity = isolated.Identity("identical", 12, 2, 1e-36)
    monkeypatch.setattr(rewriting, "compare_files", lambda *_: identity)
    function = made_by(SineToCosine())
    with pytest.warns(fusionlab.NotOptimizedWarning, match="the rewritten program is different"):
        function(1.0, 0.5)
    assert function.fusionlab.decisions[0].verdict.exact == identity


def test_a_budget_that_is_exceeded_is_told(monkeypatch):
    limits = []

    def late(function, *arguments, limit_s, memory_limited):
        limits.append(limit_s)
        raise ProcessFailed("it did not finish", None)

    monkeypatch.setattr(isolated, "call", late)
    function = fusionlab.optimize(repeated, HOIST, cache=False, check="always", exact_s=3)
    function(1.0, 0.5)
    function(1.0, 0.6)
    assert limits == [3]  # once for a program
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None
    assert decision.verdict.line.startswith("accepted by the float verdict only: not-covered: time limit")


def test_no_seconds_are_no_exact_check(monkeypatch):
    monkeypatch.setattr(rewriting, "compare_files", None)
    function = fusionlab.optimize(repeated, HOIST, cache=False, exact_s=0)
    function(1.0, 0.5)
    assert function.fusionlab.decisions[0].verdict.exact is None
    with pytest.raises(InputError, match="exact_s is a number of seconds"):
        fusionlab.optimize(repeated, HOIST, exact_s=-1)
