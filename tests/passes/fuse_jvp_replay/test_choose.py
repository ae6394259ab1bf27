"""How fuse-jvp-replay chooses among forward Laplacians, by figures that are given here; what its choice leaves."""

from collections import Counter
from dataclasses import replace

import jax
import numpy as np
import pytest

from fusionlab.bytesize import ByteSize
from fusionlab.hlo import lowering
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.program import program_view
from fusionlab.hlo.view import view_of
from fusionlab.passes.fuse_jvp_replay import choose
from fusionlab.passes.fuse_jvp_replay.choose import FuseJvpReplay
from fusionlab.passes.interface import Declined, Figures, KernelFigures, Result, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.passes.sparsify_directions import SparsifyDirections
from fusionlab.workloads import catalogue

from ..laplacian_functions import LOOPS, WEIGHTS, X, alone, smooth

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("dense_us", "chosen", "said"),
    [
        (0.9, "collapse-replay", "by the code of kernels sparsify-directions 1.0 us, collapse-replay 0.9 us"),
        (1.02, "sparsify-directions", "not decidable by the model: 2.0% apart, 3% are needed"),
    ],
)
def test_the_code_of_kernels_decides_where_it_is_known(dense_us, chosen, said, replay):
    """The roofline prefers the sparse form by far."""

    def by_code(program):
        is_dense = program_cost(program).flops > sparse_flops
        return KernelFigures(dense_us if is_dense else 1.0, 1, 1, (), pair_error=0.03)

    sparse_flops = program_cost(SparsifyDirections().run(replay, Setting(platform="cuda")).program).flops
    result = FuseJvpReplay().run(replay, Setting(figures=figures, platform="cuda", kernels=by_code))
    (event,) = result.applied
    assert event.resolved == chosen
    assert event.what.endswith(said)
    far = Setting(
        figures=lambda one: replace(figures(one), model_us=figures(one).flops ** 9), platform="cuda", kernels=by_code
    )
    assert FuseJvpReplay().run(replay, far).applied[0].resolved == "sparsify-directions"  # the roofline is enough
    small = Setting(figures=lambda one: replace(figures(one), launch_us=1e9), platform="cuda", kernels=by_code)
    assert FuseJvpReplay().run(replay, small).applied[0].resolved == "sparsify-directions"  # launches are all there is


def test_the_only_candidate_that_fits_is_compared_with_none(replay):
    by_code = Setting(figures=lambda one: replace(figures(one), pair_error=0.03), platform="cuda")
    (event,) = FuseJvpReplay(memory_budget=ByteSize(WHOLE_BYTES - 1)).run(replay, by_code).applied
    assert event.resolved == "sparsify-directions{chunks=2}"
    assert "by the code of kernels" not in event.what


@pytest.mark.by_turns(4, "399-4")
@pytest.mark.parametrize(("budget", "parts"), [(800, 1), (799, 2), (400, 2), (399, 4), (200, 4)])
def test_within_a_budget_walkers_are_taken_in_as_few_parts_as_will_do(budget, parts, replay):
    pass_ = FuseJvpReplay(memory_budget=ByteSize(budget))
    result = pass_.run(replay, Setting(figures=figures, platform="cuda"))
    (event,) = result.applied
    assert parts_of(result.program) == parts
    assert event.resolved == ("sparsify-directions" if parts == 1 else f"sparsify-directions{{chunks={parts}}}")
    assert f"chosen within {ByteSize(budget)} from" in event.what


@pytest.mark.slow
def test_a_budget_that_nothing_fits(replay):
    setting = Setting(figures=figures, temp_bytes=lambda program: figures(program).temp_bytes, platform="cuda")
    result = FuseJvpReplay(memory_budget=ByteSize(50)).run(replay, setting)
    assert result.program is replay
    assert any("no forward Laplacian fits the budget of 50" in event.reason for event in result.events)
    assert all(isinstance(event, Declined) for event in result.events)


MIB = 2**20


@pytest.mark.by_turns(4, "True-nothing fits")
@pytest.mark.parametrize(
    ("own", "forward", "device", "parts"),
    [
        pytest.param(10, 40, None, 1, id="four times its own"),
        pytest.param(10, 41, None, 2, id="more than four times"),
        pytest.param(1, 16, None, 1, id="little in all"),
        pytest.param(100, 200, 399, 2, id="more than half of the device"),
        pytest.param(10, 161, None, None, id="nothing fits"),
    ],
)
@pytest.mark.parametrize("with_figures", [True, False])
def test_without_a_budget_memory_is_bounded_by_the_originals_and_the_devices(
    own, forward, device, parts, with_figures, replay, monkeypatch
):
    """The estimate that spares a compile is taken to be too large here."""
    monkeypatch.setattr(choose, "live_bytes", lambda region: 2**62 if region is not program_view(replay) else 1)

    def temp_bytes(program):
        return own * MIB if program is replay else forward * MIB // parts_of(program)

    def with_temp(program):
        return replace(figures(program), temp_bytes=temp_bytes(program))

    memory = None if device is None else device * MIB
    setting = Setting(temp_bytes, "cuda", with_temp if with_figures else None, memory)
    result = FuseJvpReplay().run(replay, setting)
    if parts is None:
        assert any("no forward Laplacian fits 40.0 MiB temp without --memory-budget" in e.reason for e in result.events)
    else:
        [event] = result.applied
        assert event.resolved == ("sparsify-directions" if parts == 1 else f"sparsify-directions{{chunks={parts}}}")
        assert ("MiB temp without --memory-budget" in event.what) == (parts > 1)


def test_an_estimate_spares_the_compile_where_memory_is_far_below(replay):
    def compiles(program):
        raise AssertionError("compiled")

    assert FuseJvpReplay().run(replay, Setting(compiles, "cuda")).applied


@pytest.mark.by_turns(4, "20-2")
@pytest.mark.parametrize(("slope", "chunk"), [(1, 6), (8, 3), (20, 2)])
def test_the_fallback_has_one_and_a_half_times_the_memory_of_the_replay(slope, chunk, loop_program, monkeypatch):
    """``slope`` MiB for each of six directions beside 40 MiB of the rest; the replay has one at a time."""
    monkeypatch.setattr(choose, "live_bytes", lambda region: 2**62)
    program = loop_program("jvp-in-loop")
    refused = Result(program, (Declined("sparsify-directions", "unsupported", "planted", ""),))
    monkeypatch.setattr(SparsifyDirections, "run", lambda *_: refused)

    def temp_bytes(candidate):
        trips = [loop.trips for loop in find_loops(view_of(candidate.parse()))]
        return (40 + slope * (6 // trips[0] if trips else 6)) * MIB

    result = FuseJvpReplay().run(program, Setting(temp_bytes, "cpu"))
    last = result.applied[-1]
    assert last.resolved == ("batch-replay" if chunk == 6 else f"batch-replay{{chunk={chunk}}}")
    assert temp_bytes(result.program) <= 1.5 * temp_bytes(program)
    assert "1.5 times the temp memory of the original" in last.what


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
