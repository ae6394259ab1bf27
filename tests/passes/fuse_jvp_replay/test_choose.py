"""How fuse-jvp-replay chooses among forward Laplacians, by figures that are given here; what its choice leaves."""

from collections import Counter

import jax
import numpy as np
import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.hlo import lowering
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.fuse_jvp_replay.choose import FuseJvpReplay
from fusionlab.passes.interface import Declined, Figures, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from workloads import catalogue

from ..laplacian_functions import LOOPS, WEIGHTS, X, alone, smooth

FOUR = np.concatenate([X, X[:1] + 0.5])
WHOLE_BYTES = 800


@pytest.fixture(scope="module")
def replay(lowered):
    with jax.enable_x64(True):
        return lowered(alone(smooth, LOOPS["fori"]), WEIGHTS, FOUR, platform="cuda")


def parts_of(program):
    trips = [loop.trips for loop in find_loops(view_of(program.parse())) if loop.trips in (2, 4)]
    return trips[0] if trips else 1


def figures(program):
    """Temp bytes fall with the parts that walkers are taken in; time is FLOPs."""
    flops = program_cost(program).flops
    return Figures(10 * parts_of(program), 0, WHOLE_BYTES // parts_of(program), flops, 1, flops)


def test_the_least_time_is_chosen_and_all_candidates_are_told(replay):
    result = FuseJvpReplay().run(replay, Setting(figures=figures, platform="cuda"))
    (event,) = result.applied
    assert event.resolved == "sparsify-directions"
    assert "chosen from sparsify-directions: 10 launches" in event.what
    assert "; collapse-replay: 10 launches" in event.what


def test_time_may_prefer_all_directions(replay):
    """Where sparse directions cost more, the dense form is taken."""

    def dense_is_cheap(program):
        found = figures(program)
        return Figures(1, 0, found.temp_bytes, found.flops, 1, 1e6 - found.flops)

    result = FuseJvpReplay().run(replay, Setting(figures=dense_is_cheap, platform="cuda"))
    assert result.applied[0].resolved == "collapse-replay"


@pytest.mark.parametrize(("budget", "parts"), [(800, 1), (799, 2), (400, 2), (399, 4), (200, 4)])
def test_within_a_budget_walkers_are_taken_in_as_few_parts_as_will_do(budget, parts, replay):
    pass_ = FuseJvpReplay(memory_budget=ByteSize(budget))
    result = pass_.run(replay, Setting(figures=figures, platform="cuda"))
    (event,) = result.applied
    assert parts_of(result.program) == parts
    assert event.resolved == ("sparsify-directions" if parts == 1 else f"sparsify-directions{{chunks={parts}}}")
    assert f"chosen within {ByteSize(budget)} from" in event.what


def test_a_budget_that_nothing_fits(replay):
    setting = Setting(figures=figures, temp_bytes=lambda program: figures(program).temp_bytes, platform="cuda")
    result = FuseJvpReplay(memory_budget=ByteSize(50)).run(replay, setting)
    assert result.program is replay
    assert any("no forward Laplacian fits the budget of 50" in event.reason for event in result.events)
    assert all(isinstance(event, Declined) for event in result.events)


def test_what_cannot_be_compiled_is_said_without_a_budget(replay):
    result = FuseJvpReplay().run(replay, Setting(figures=lambda program: None, platform="cuda"))
    declined = [event.reason for event in result.events if isinstance(event, Declined)]
    assert any("no forward Laplacian could be compiled for its figures" in reason for reason in declined)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paulinet", "ferminet"])
def test_dead_work_is_gone(name):
    """One LU with its two solves, no contraction twice, and no reverse pass: the gradient comes with the Laplacian."""
    workload = catalogue.build(name, "LiH", walkers=4, size="tiny", laplacian="replay")
    program = lowering.lower(workload, "cuda")
    rewritten = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting(platform="cuda")).program
    nodes = [node for node in view_of(rewritten.parse()).walk() if node.name != "stablehlo.constant"]
    calls = Counter(str(node.attributes["call_target_name"].value) for node in nodes if "custom_call" in node.name)
    assert calls["cusolver_getrf_ffi"] == 1
    solves = sum(node.name == "stablehlo.triangular_solve" for node in nodes)
    assert solves + sum(count for call, count in calls.items() if "trsm" in call) == 2
    gemms = Counter(
        (node.operands, tuple(map(str, node.attributes.items())))
        for node in nodes
        if node.name == "stablehlo.dot_general"
    )
    assert max(gemms.values()) == 1
    assert [node for node in nodes if "transpose(jvp" in node.scope] == []
