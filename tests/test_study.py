"""The line of a study: a pass that makes a program worse on the target is undone, and the others stay."""

import re
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

import fusionlab.study
from fusionlab.codegen.targets import load_target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import CompileError
from fusionlab.ledger.time.model import LAUNCH_US
from fusionlab.passes.interface import Applied, Declined, Figures, KernelFigures, Pass, Result
from fusionlab.study import CandidateCosts, Circumstances, Undone, study, undo_worse

PROGRAM = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def figures(launches, *, temp=100, accessed=1000, flops=10.0, us=None):
    return Figures(launches, 0, temp, flops, accessed, us)


@pytest.mark.parametrize(
    ("after", "worse"),
    [
        (figures(10), False),
        (figures(11), True),
        (figures(11, temp=99), False),
        (figures(11, accessed=999), False),
        (figures(11, flops=9.0), False),
        (figures(9, temp=200, accessed=2000), False),
    ],
)
def test_more_launches_are_worse_if_nothing_else_falls(after, worse):
    before = figures(10)
    said = after.why_worse_than(before)
    assert bool(said) == worse
    assert not worse or said == "10 launches become 11, and neither bytes, temp memory nor FLOPs fall"


def test_modelled_time_counts_instead_of_flops():
    before = figures(10, us=50.0)
    assert figures(11, flops=1.0, us=50.0).why_worse_than(before).endswith("temp memory nor modelled time fall")
    assert figures(11, us=41.0).why_worse_than(before) == ""


@pytest.mark.parametrize(
    ("us", "accessed", "error", "said"),
    [
        (98.0, 1000, 0.03, r"modelled time fall \(not decidable by the model: 2.0% apart, 3% are needed\)"),
        (96.0, 1000, 0.03, ""),
        (85.0, 1000, 0.2, r"modelled time fall \(not decidable by the model: 17.6% apart, 20% are needed\)"),
        (101.0, 999, 0.03, ""),
        (110.0, 999, 0.03, "and modelled time grows by 10%, though bytes fall"),
        (110.0, 999, 0.2, ""),
        (110.0, 999, None, ""),
        (85.0, 1000, None, r"not decidable by the model: 17.6% apart, 20% are needed"),
    ],
)
def test_time_pays_only_where_the_model_can_say_so(us, accessed, error, said):
    before = replace(figures(10, us=100.0), pair_error=error)
    found = replace(figures(11, us=us, accessed=accessed), pair_error=error).why_worse_than(before)
    assert re.search(said, found)
    assert bool(found) == bool(said)


@pytest.fixture
def costs(program_of_text, monkeypatch):
    """``costs(target, before, after, before_us, after_us)``: why the second of two programs is worse, and the programs
    whose code was read, by the first op; times are those of the code of kernels."""
    programs = [program_of_text(PROGRAM), program_of_text(PROGRAM.replace("sine", "tanh"))]

    def run(target, before, after, *times):
        read = []

        def of(_, program):
            read.append(program)
            return KernelFigures(times[program is programs[1]], 1, 1, (), pair_error=0.03)

        monkeypatch.setattr(CandidateCosts, "figures", lambda _, one: after if one is programs[1] else before)
        monkeypatch.setattr(CandidateCosts, "kernels", of)
        return CandidateCosts(Circumstances(load_target(target))).why_worse(*reversed(programs)), len(read)

    return run


def test_the_code_of_kernels_says_what_pays_for_launches(costs):
    """The roofline says the opposite."""
    assert costs("h100", figures(10, us=50.0), figures(11, us=60.0), 100.0, 90.0) == ("", 2)
    said, read = costs("h100", figures(10, us=60.0), figures(11, us=20.0), 100.0, 99.0)
    assert said.endswith("(not decidable by the model: 1.0% apart, 3% are needed)")
    assert read == 2


def test_code_is_read_only_where_launches_are_to_be_paid_for(costs):
    assert costs("h100", figures(10, us=50.0), figures(10, us=90.0), 1.0, 2.0) == ("", 0)
    assert costs("h100", figures(10, us=50.0), figures(11, us=90.0, temp=99), 1.0, 2.0) == ("", 0)


def test_a_roofline_decides_beyond_the_error_of_estimates(costs):
    """Of a target for which XLA writes no code."""
    assert costs("cpu", figures(10, us=100.0), figures(11, us=80.0), 1.0, 2.0) == ("", 0)
    said, _ = costs("cpu", figures(10, us=100.0), figures(11, us=90.0), 1.0, 2.0)
    assert said.endswith("11.1% apart, 20% are needed)")


@pytest.mark.parametrize(("model_us", "expected"), [(7.0, 7.0), (None, 2000 / 1.555e6 + 2 * LAUNCH_US)])
def test_a_launch_without_a_model_takes_its_roofline(model_us, expected):
    """2 kB at 1,555 GB/s (1.555e6 bytes/us), twice launched: it is not free."""
    row = SimpleNamespace(model_us=model_us, flops=0, tf32_flops=0, bytes=2000, dynamic_launches=2)
    assert fusionlab.study._at_least_us(row, load_target("a100")) == pytest.approx(expected, rel=1e-3)


@dataclass(frozen=True)
class Renaming(Pass):
    """Replace the op ``old`` by ``new``."""

    old: str = ""
    new: str = ""
    name: ClassVar[str] = "renaming"

    def run(self, program, setting):
        if f"stablehlo.{self.old} " not in program.text:
            return Result(program, (Declined(self.name, "unprofitable", "nothing", ""),))
        made = READ[0](program.text.replace(f"stablehlo.{self.old} ", f"stablehlo.{self.new} "))
        return Result(made, (Applied(self.name, "renamed", "", str(self)),))


READ = []


@pytest.fixture
def line(program_of_text, monkeypatch):
    """``line(launches, *pairs)``: ``undo_worse`` of renamings, where each op makes that many launches."""
    monkeypatch.setattr("tests.test_study.READ", [program_of_text])

    def run(launches, *pairs):
        def of(_, program):
            found = next(count for op, count in launches.items() if f"stablehlo.{op} " in program.text)
            if found is None:
                raise CompileError("no")
            return figures(found)

        monkeypatch.setattr(CandidateCosts, "figures", of)
        original = program = program_of_text(PROGRAM)
        steps = []
        for pair in pairs:
            steps.append((Renaming(*pair), Renaming(*pair).run(program, None)))
            program = steps[-1][1].program
        kept, undone = undo_worse(original, steps, Circumstances(load_target("cpu")))
        assert [pass_ for pass_, _ in kept] == [Renaming(*pair) for pair in pairs]
        op = next(op for op in launches if f"stablehlo.{op} " in kept[-1][1].program.text)
        return op, undone, [bool(result.applied) for _, result in kept]

    return run


def test_the_pass_that_is_worse_is_undone_and_those_after_it_run_again(line):
    launches = {"sine": 10, "cosine": 8, "tanh": 12, "sqrt": 7, "exponential": 13}
    pairs = ("sine", "cosine"), ("cosine", "tanh"), ("tanh", "exponential"), ("cosine", "sqrt")
    op, undone, applied = line(launches, *pairs)
    assert (op, applied) == ("sqrt", [True, False, False, True])
    assert undone == (
        Undone("renaming{old=cosine,new=tanh}", "8 launches become 12, and neither bytes, temp memory nor FLOPs fall"),
    )


def test_nothing_is_undone_where_the_whole_is_no_worse(line):
    assert line({"sine": 10, "cosine": 12, "tanh": 9}, ("sine", "cosine"), ("cosine", "tanh")) == (
        "tanh", (), [True, True]
    )  # fmt: skip
    assert line({"sine": 10}, ("cosine", "tanh")) == ("sine", (), [False])


def test_a_program_that_xla_cannot_compile_is_told_when_it_is_measured(line):
    assert line({"sine": 10, "cosine": None}, ("sine", "cosine")) == ("cosine", (), [True])


def test_a_program_between_two_that_xla_cannot_compile_ends_nothing(line):
    """Where the rest then cannot be compiled, all is undone; where it can, that is kept."""
    launches = {"sine": 10, "cosine": None, "tanh": 12, "sqrt": 8}
    op, undone, applied = line(launches, ("sine", "cosine"), ("cosine", "tanh"))
    assert (op, applied) == ("sine", [False, False])
    assert [one.reason for one in undone] == [
        "10 launches become 12, and neither bytes, temp memory nor FLOPs fall",
        "without the passes undone, XLA cannot compile the program",
    ]
    op, undone, applied = line(launches, ("sine", "cosine"), ("cosine", "sqrt"), ("sqrt", "tanh"))
    assert (op, len(undone), applied) == ("sqrt", 1, [True, True, False])


@pytest.mark.parametrize("keep_worse", [False, True])
def test_a_study_tells_what_it_undid(keep_worse, program_of_text, monkeypatch):
    monkeypatch.setattr("tests.test_study.READ", [program_of_text])
    monkeypatch.setattr(
        CandidateCosts, "figures", lambda _, program: figures(11 if "stablehlo.cosine " in program.text else 10)
    )
    if keep_worse:  # the passes of a check are read from text, and this one is in no table
        monkeypatch.setattr(fusionlab.study, "judge", lambda *_: Verdict("different"))
    given = Circumstances(load_target("cpu"), exact=False)
    found = study(program_of_text(PROGRAM), [Renaming("sine", "cosine")], given, unchecked=False, keep_worse=keep_worse)
    if keep_worse:
        assert (found.undone, found.applied, found.equivalence.verdict) == ((), True, "different")
        return
    assert not found.applied
    assert found.rewritten is found.original
    assert found.equivalence.verdict == "equal"
    [event] = found.events
    assert event.reason == "undone: 10 launches become 11, and neither bytes, temp memory nor FLOPs fall"
    assert (event.kind, event.cause) == ("unprofitable", "gain")
    assert found.to_json()["undone"] == [{"by": "renaming{old=sine,new=cosine}", "reason": event.reason[8:]}]
