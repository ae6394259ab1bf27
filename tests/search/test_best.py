"""The search behind ``--pipeline best``, with figures that are given here."""

import dataclasses
import io
import json

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from rich.console import Console

from fusionlab.bytesize import ByteSize
from fusionlab.codegen.targets import load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Applied, Pass, Result, Setting, VerificationError
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.report.tables.programs import print_search
from fusionlab.search import space
from fusionlab.search.best import Goal, Search, TrialStore
from fusionlab.search.costs import Costs, TrialFailed
from tests.equivalence import mapped

MOVES = "scatter-to-gather,batch-replay,batch-replay{chunk=2},licm"
LAUNCHES = Goal("launches")


def ops_of(program):
    return [node.name for node in view_of(program.parse()).walk()]


def costs_of(program):
    """Loops cost launches, and arithmetic time; a batched loop costs memory."""
    names = ops_of(program)
    loops = names.count("stablehlo.while")
    return Costs(10 * loops + 1, 0, len(names), 100 - 40 * loops, float(len(names)), 0, 0.1)


class Measuring:
    """``costs_of``, remembering what was measured; ``refuse(program, count)`` may raise instead."""

    def __init__(self, refuse=lambda program, count: None, costs=costs_of):
        self.measured, self.refuse, self.costs = [], refuse, costs

    def __call__(self, program, seconds):
        assert seconds > 0
        self.refuse(program, len(self.measured))
        self.measured.append(content_digest(program))
        return self.costs(program)


def raising(error, when=lambda program, count: True):
    def refuse(program, count):
        if when(program, count):
            raise error

    return refuse


@pytest.fixture(scope="module")
def replay(lowered):
    def function(x, w):
        return lax.fori_loop(0, 6, lambda k, s: s + jnp.sin(x * k) @ jnp.tanh(w @ w), x)

    x = np.ones((3, 3), np.float32)
    return lowered(function, x, x)


@pytest.fixture(autouse=True)
def small_space(monkeypatch):
    monkeypatch.setattr(space, "moves", lambda: parse_pipeline(MOVES))
    monkeypatch.setattr(space, "beginnings", lambda: [parse_pipeline("scatter-to-gather,licm")])


@pytest.fixture
def run(replay, tmp_path):
    def run(goal=LAUNCHES, measure=None, fixed="", folder=tmp_path):
        passes = parse_pipeline(fixed) if fixed else ()
        store = TrialStore(folder, replay, load_target("cpu"))
        return Search(replay, passes, goal, Setting(), measure or Measuring(), store, lambda line: None).run()

    return run


@pytest.mark.parametrize(
    ("objective", "figure"),
    [("launches", "launches"), ("bytes", "bytes_accessed"), ("temp", "temp_bytes"), ("time", "model_us")],
)
def test_the_best_of_each_objective(objective, figure, run):
    found = run(Goal(objective))
    measured = [trial for trial in found.trials if trial.costs]
    assert found.complete
    assert found.best in found.front
    assert found.trials[0].pipeline == ""
    assert getattr(found.best.costs, figure) == min(getattr(trial.costs, figure) for trial in measured)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(("error", "undecided"), [(0.0, False), (9.0, True)])
def test_times_within_the_error_of_pairs_are_not_decided(error, undecided, run):

    def costs(program):
        return dataclasses.replace(costs_of(program), pair_error=error)

    found = run(Goal("time"), Measuring(costs=costs))
    named = [one.trial.pipeline for one in found.undecided]
    assert bool(named) == undecided
    assert all(one.apart <= error == one.pair_error for one in found.undecided)
    console = Console(file=io.StringIO(), width=200)
    print_search(found, console)
    best = next(line for line in console.file.getvalue().splitlines() if line.startswith("best:"))
    assert ("; not decidable by the model of time: " in best) == bool(named)
    assert run(Goal("launches"), Measuring(costs=costs)).undecided == ()
    assert [one["pipeline"] for one in found.to_json()["undecided"]] == named


def test_the_looser_of_two_programs_sets_what_is_needed(run):
    """The best, with its loop, is known to 3 %, the others to 900 %."""

    def costs(program):
        found = costs_of(program)
        return dataclasses.replace(found, pair_error=0.03 if "stablehlo.while" in ops_of(program) else 9.0)

    found = run(Goal("time"), Measuring(costs=costs))
    assert found.best.costs.pair_error == 0.03
    needed = [one.pair_error for one in found.undecided]
    assert 9.0 in needed
    assert needed == [one.trial.costs.pair_error for one in found.undecided]
    assert [one["pair_error"] for one in found.to_json()["undecided"]] == needed
    console = Console(file=io.StringIO(), width=200)
    print_search(found, console)
    assert f"{needed[0]:.0%} are needed" in console.file.getvalue()


def test_each_program_is_compiled_once_and_none_where_nothing_applies(run, replay):
    measure = Measuring()
    found = run(measure=measure)
    assert "batch-replay" in found.best.pipeline
    rewritten = run_pipeline(replay, parse_pipeline(found.best.pipeline), Setting()).program
    assert found.best.costs == costs_of(rewritten)
    assert "stablehlo.while" not in ops_of(rewritten)
    assert len(measure.measured) == len(set(measure.measured)) == found.count("measured")
    by_pipeline = {trial.pipeline: trial for trial in found.trials}
    same = [trial for trial in found.trials if trial.status == "same"]
    assert all(by_pipeline[trial.reason].content == trial.content for trial in same)
    assert by_pipeline["scatter-to-gather"].status == "nothing"
    assert not any("scatter-to-gather" in trial.pipeline for trial in found.trials if trial.costs)


def test_a_memory_budget_leaves_out_what_is_beyond(run):
    found = run(Goal("launches", ByteSize(60)))
    assert all(trial.costs.temp_bytes <= 60 for trial in (found.best, *found.front))
    assert found.best.costs.launches > run().best.costs.launches


XLA_GAVE_UP = TrialFailed("XLA gave up")


def test_what_fails_is_told_and_the_search_goes_on(run):
    without_loop = raising(XLA_GAVE_UP, lambda program, _: "stablehlo.while" not in ops_of(program))
    found = run(measure=Measuring(without_loop))
    assert {trial.reason for trial in found.trials if trial.status == "failed"} == {"XLA gave up"}
    assert found.complete
    assert found.best.status == "measured"


@dataclasses.dataclass(frozen=True)
class Broken(Pass):
    """A pass that breaks wherever a loop is."""

    name = "broken"

    def run(self, program, setting):
        raise VerificationError("pass broken produced an invalid module")


def test_a_pass_that_breaks_does_not_end_the_search(run, monkeypatch):
    monkeypatch.setattr(space, "moves", lambda: (Broken(), *parse_pipeline(MOVES)))
    found = run()
    failed = {trial.pipeline: trial.reason for trial in found.trials if trial.status == "failed"}
    assert failed["broken"] == "VerificationError: pass broken produced an invalid module"
    assert found.complete
    assert "batch-replay" in found.best.pipeline


def no_time(program):
    return dataclasses.replace(costs_of(program), model_us=None)


@pytest.mark.parametrize(
    ("goal", "measure", "error", "message"),
    [
        (LAUNCHES, Measuring(raising(XLA_GAVE_UP)), CompileError, "nothing to compare with: XLA gave up"),
        (
            Goal("time"), Measuring(costs=no_time), InputError,
            "objective time: this target has no model of time; say --objective launches",
        ),
        (
            Goal("launches", ByteSize(1)), Measuring(), InputError,
            r"none of \d+ programs fits the memory budget of 1B; the smallest needs 60B",
        ),
    ],
    ids=["nothing can be measured", "no model of time", "nothing fits"],
)  # fmt: skip
def test_what_ends_a_search_is_told(run, goal, measure, error, message):
    with pytest.raises(error, match=message):
        run(goal, measure)


def test_a_search_goes_on_where_it_was_stopped(run):
    """Of a search that ends after three programs, the next one measures only the others."""

    class Stopped(Exception):
        pass

    first, second, third = Measuring(raising(Stopped, lambda _, count: count == 3)), Measuring(), Measuring()
    with pytest.raises(Stopped):
        run(measure=first)
    whole = run(measure=second)
    assert set(first.measured).isdisjoint(second.measured)
    assert sum(trial.recorded for trial in whole.trials) >= 3
    assert run(measure=third).front == whole.front
    assert third.measured == []


def test_another_seed_finds_the_same_in_another_order(run, tmp_path):
    one, other, again = (run(Goal("launches", seed=seed), folder=tmp_path / name) for seed, name in
                         ((1, "one"), (2, "other"), (1, "again")))  # fmt: skip
    assert one.best.costs == other.best.costs
    assert [trial.pipeline for trial in again.trials] == [trial.pipeline for trial in one.trials]


def test_without_time_the_program_stays_as_it_is(run):
    measure = Measuring()
    found = run(Goal("launches", time_limit_s=1e-9), measure)
    assert len(measure.measured) == 1
    assert not found.complete
    assert [trial.pipeline for trial in found.trials] == [found.best.pipeline] == [""]


def test_what_had_too_little_time_is_tried_again(run):
    too_slow = raising(TrialFailed("the time was up", may_do_later=True), lambda _, count: count > 0)
    assert run(measure=Measuring(too_slow)).count("unfinished") > 0
    assert run().count("unfinished") == 0


def test_passes_that_are_fixed_come_first(run):
    found = run(fixed="licm")
    assert all(trial.pipeline.startswith("licm") for trial in found.trials)
    assert found.best.pipeline.startswith("licm,batch-replay")


def test_records_are_of_one_program_and_target_and_made_again_where_they_cannot_be_read(run, replay, tmp_path):
    first = run().trials[0]
    assert TrialStore(tmp_path, replay, load_target("cpu")).load("") == first
    assert TrialStore(tmp_path, replay, load_target("a100")).load("") is None
    assert TrialStore(None, replay, load_target("cpu")).load("") is None
    for path in tmp_path.rglob("*.json"):
        path.write_text("{")
    measure = Measuring()
    assert run(measure=measure).complete
    assert measure.measured


def test_two_pipelines_that_meet_in_one_program_are_compiled_once(run, monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class HoistUnderAnotherName(Pass):
        name = "hoist-under-another-name"

        def run(self, program, setting):
            result = LoopInvariantCodeMotion().run(program, setting)
            event = Applied(self.name, "hoisted", "", self.name)
            return Result(result.program, (event,) if result.applied else result.events)

    monkeypatch.setattr(space, "moves", lambda: (HoistUnderAnotherName(), LoopInvariantCodeMotion()))
    monkeypatch.setattr(space, "beginnings", lambda: [])
    found = run()
    statuses = sorted(trial.status for trial in found.trials if trial.pipeline.count(",") == 0 and trial.pipeline)
    assert statuses == ["measured", "same"]


def test_the_functions_between_collectives_are_searched(tmp_path, monkeypatch):
    monkeypatch.setattr(space, "moves", tuple)
    monkeypatch.setattr(space, "beginnings", lambda: [parse_pipeline("fuse-jvp-replay")])
    program = mapped.lowered(mapped.clipped)
    store = TrialStore(None, program, load_target("cpu"))
    measure, [pass_] = Measuring(), parse_pipeline("fuse-jvp-replay")
    Search(program, (), LAUNCHES, Setting(), measure, store, lambda line: None).run()
    applied = run_pipeline(program, (pass_,), Setting()).program
    assert measure.measured == [content_digest(program), content_digest(applied)]
