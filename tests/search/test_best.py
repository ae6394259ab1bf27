"""The search behind ``--pipeline best``, with figures that are given here."""

import dataclasses
import json

import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.codegen.targets import load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.diff.numbering import content_digest
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Applied, Pass, Result, Setting, VerificationError
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.search import space
from fusionlab.search.best import Goal, search
from fusionlab.search.costs import Costs, TrialFailed
from fusionlab.search.trials import TrialStore

MOVES = "scatter-to-gather,batch-replay,batch-replay{chunk=2},licm"


def ops_of(program):
    return [node.name for node in view_of(program.parse()).walk()]


def costs_of(program):
    """Loops cost launches, and arithmetic time; a batched loop costs memory."""
    names = ops_of(program)
    loops = names.count("stablehlo.while")
    return Costs(10 * loops + 1, 0, len(names), 100 - 40 * loops, float(len(names)), 0, 0.1)


class Measuring:
    """``costs_of``, remembering what was measured; ``fails`` says of which programs it cannot be."""

    def __init__(self, fails=lambda program: False, costs=costs_of):
        self.measured, self.fails, self.costs = [], fails, costs

    def __call__(self, program, seconds):
        assert seconds > 0
        self.measured.append(content_digest(program))
        if self.fails(program):
            raise TrialFailed("XLA gave up")
        return self.costs(program)


@pytest.fixture(scope="module")
def replay(lowered):
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

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
    def run(goal=Goal("launches"), measure=None, fixed="", folder=tmp_path):  # noqa: B008  # a frozen value
        passes = parse_pipeline(fixed) if fixed else ()
        store = TrialStore(folder, replay, load_target("cpu"))
        measure = measure or Measuring()
        return search(replay, passes, goal, Setting(), measure, store, lambda line: None)

    return run


def test_the_best_and_the_front(run, replay):
    found = run()
    assert found.complete
    assert "batch-replay" in found.best.pipeline
    assert found.best in found.front
    rewritten = run_pipeline(replay, parse_pipeline(found.best.pipeline), Setting()).program
    assert found.best.costs == costs_of(rewritten)
    assert "stablehlo.while" not in ops_of(rewritten)
    assert found.trials[0].pipeline == ""
    assert min(trial.costs.launches for trial in found.trials if trial.costs) == found.best.costs.launches
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("objective", ["launches", "bytes", "temp", "time"])
def test_each_objective_has_its_own_best(objective, run):
    found = run(Goal(objective))
    figure = {"launches": "launches", "bytes": "bytes_accessed", "temp": "temp_bytes", "time": "model_us"}[objective]
    measured = [trial for trial in found.trials if trial.costs]
    assert getattr(found.best.costs, figure) == min(getattr(trial.costs, figure) for trial in measured)


def test_a_memory_budget_leaves_out_what_is_beyond(run):
    found = run(Goal("launches", ByteSize(60)))
    assert found.best.costs.temp_bytes <= 60
    assert all(trial.costs.temp_bytes <= 60 for trial in found.front)
    assert found.best.costs.launches > run().best.costs.launches


def test_a_budget_that_nothing_fits(run):
    with pytest.raises(InputError, match=r"none of \d+ programs fits the memory budget of 1B; the smallest needs 60B"):
        run(Goal("launches", ByteSize(1)))


def test_nothing_is_compiled_twice(run):
    measure = Measuring()
    found = run(measure=measure)
    assert len(measure.measured) == len(set(measure.measured)) == found.count("measured")
    same = [trial for trial in found.trials if trial.status == "same"]
    by_pipeline = {trial.pipeline: trial for trial in found.trials}
    assert all(by_pipeline[trial.reason].content == trial.content for trial in same)


def test_a_pass_that_applies_nothing_is_not_compiled(run):
    found = run()
    nothing = [trial for trial in found.trials if trial.status == "nothing"]
    assert any(trial.pipeline == "scatter-to-gather" for trial in nothing)
    assert not any("scatter-to-gather" in trial.pipeline for trial in found.trials if trial.costs)


def test_what_fails_is_told_and_the_search_goes_on(run):
    found = run(measure=Measuring(fails=lambda program: "stablehlo.while" not in ops_of(program)))
    failed = [trial for trial in found.trials if trial.status == "failed"]
    assert failed
    assert {trial.reason for trial in failed} == {"XLA gave up"}
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


def test_a_program_that_cannot_be_measured_at_all(run):
    with pytest.raises(CompileError, match="nothing to compare with: XLA gave up"):
        run(measure=Measuring(fails=lambda program: True))


def test_no_model_of_time(run):
    no_time = Measuring(costs=lambda program: dataclasses.replace(costs_of(program), model_us=None))
    with pytest.raises(InputError, match="objective time: this target has no model of time; say --objective launches"):
        run(Goal("time"), measure=no_time)


def test_a_search_goes_on_where_it_was_stopped(run):
    """Of a search that ends after three programs, the next one measures only the others."""

    class Stopped(Exception):
        pass

    class ThreeOnly(Measuring):
        def __call__(self, program, seconds):
            if len(self.measured) == 3:
                raise Stopped
            return super().__call__(program, seconds)

    first, second, third = ThreeOnly(), Measuring(), Measuring()
    with pytest.raises(Stopped):
        run(measure=first)
    whole = run(measure=second)
    assert set(first.measured).isdisjoint(second.measured)
    assert sum(trial.recorded for trial in whole.trials) >= 3
    assert run(measure=third).front == whole.front
    assert third.measured == []


def test_another_seed_finds_the_same(run, tmp_path):
    one, other = (run(Goal("launches", seed=seed), folder=tmp_path / str(seed)) for seed in (1, 2))
    assert one.best.costs == other.best.costs
    again = run(Goal("launches", seed=1), folder=tmp_path / "again")
    assert [trial.pipeline for trial in again.trials] == [trial.pipeline for trial in one.trials]


def test_without_time_the_program_stays_as_it_is(run):
    measure = Measuring()
    found = run(Goal("launches", time_limit_s=1e-9), measure=measure)
    assert len(measure.measured) == 1
    assert not found.complete
    assert found.best.pipeline == ""
    assert [trial.pipeline for trial in found.trials] == [""]


def test_what_had_too_little_time_is_tried_again(run):
    class TooSlow(Measuring):
        def __call__(self, program, seconds):
            if self.measured:
                raise TrialFailed("the time was up", may_do_later=True)
            return super().__call__(program, seconds)

    first = run(measure=TooSlow())
    assert first.count("unfinished") > 0
    assert run().count("unfinished") == 0


def test_passes_that_are_fixed_come_first(run):
    found = run(fixed="licm")
    assert all(trial.pipeline.startswith("licm") for trial in found.trials)
    assert found.best.pipeline.startswith("licm,batch-replay")


def test_records_that_cannot_be_read_are_made_again(run, tmp_path):
    run()
    for path in tmp_path.rglob("*.json"):
        path.write_text("{")
    measure = Measuring()
    assert run(measure=measure).complete
    assert measure.measured


def test_another_program_has_its_own_records(replay, tmp_path):
    store = TrialStore(tmp_path, replay, load_target("cpu"))
    other = TrialStore(tmp_path, replay, load_target("a100"))
    trial = search(replay, (), Goal("launches"), Setting(), Measuring(), store, lambda line: None).trials[0]
    assert store.load("") == trial
    assert other.load("") is None
    assert TrialStore(None, replay, load_target("cpu")).load("") is None


def test_a_pass_that_only_moves_ops_about_is_the_same_program(run, replay, monkeypatch):
    """Two pipelines that meet in one program: it is compiled for the first."""

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
