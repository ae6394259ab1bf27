"""The main job: PauliNet's replay on CH4, 1024 walkers, becomes a handful of launches on an A100 that is not there."""

import re

import pytest

from fusionlab import study
from fusionlab.bytesize import ByteSize
from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.targets import load_target
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.sparsify_directions import SparsifyDirections
from fusionlab.workloads import catalogue
from tests.compiled import cache_with_shared_compiles
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = [needs_the_cuda_plugin, pytest.mark.slow]
BUDGET = ByteSize.parse("2GiB")


@pytest.fixture(scope="session")
def given(tmp_path_factory):
    return study.Circumstances(
        load_target("a100"), cache=CompileCache(cache_with_shared_compiles(tmp_path_factory.mktemp("own")))
    )


@pytest.fixture(scope="session")
def paulinet():
    return catalogue.build("paulinet", "CH4", walkers=1024)


@pytest.fixture(scope="session")
def original(paulinet, given):
    return study.lower(paulinet, given)


@pytest.fixture(scope="session")
def batched(original, given):
    return study.rewrite(original, (LoopInvariantCodeMotion(), BatchReplay()), given)[0]


@pytest.fixture(scope="session")
def bounded(original, given):
    return study.rewrite(original, (LoopInvariantCodeMotion(), BatchReplay(memory_budget=BUDGET)), given)[0]


def test_the_replay_is_thousands_of_launches(paulinet, original, given):
    found = study.measure(paulinet, original, given)
    assert 5_800 <= found.dynamic_launches <= 6_500
    assert found.static_launches < found.dynamic_launches / 10
    assert 0.8 * 2**30 < found.temp_bytes < 1.0 * 2**30
    assert (found.walkers, found.target) == (1024, "a100")


def test_its_forward_laplacian_has_fewer_launches_and_needs_less_memory(paulinet, original, given):
    result, _ = study.rewrite(original, (SparsifyDirections(),), given)
    (event,) = result.applied
    assert event.what.startswith("30 trips are the Laplacian of")
    (psi_per_direction,) = re.findall(r"; the program: (\d\.\d\d) psi per direction in FLOPs$", event.what)
    assert float(psi_per_direction) <= 0.62
    assert find_loops(view_of(result.program.parse())) == []
    found = study.measure(paulinet, result.program, given)
    assert found.dynamic_launches <= 200
    assert found.temp_bytes <= 850 * 2**20


def test_batched_it_is_a_handful(paulinet, original, batched, given):
    found = study.measure(paulinet, batched.program, given)
    assert found.dynamic_launches <= 370
    assert found.dynamic_launches == found.static_launches
    assert find_loops(view_of(batched.program.parse())) == []
    hoisted, event = batched.applied
    assert hoisted.pass_name == "licm"
    assert event.what.startswith("30 trips batched at once")
    assert batched.program.inputs == original.inputs


def test_within_a_memory_budget_it_says_its_chunk(paulinet, bounded, given):
    found = study.measure(paulinet, bounded.program, given)
    assert found.temp_bytes <= BUDGET
    event = bounded.applied[-1]
    chunk = int(event.resolved.partition("chunk=")[2].rstrip("}"))
    assert 1 < chunk < 30
    assert f"in chunks of {chunk}" in event.what
    assert "budget of 2GiB" in event.what
    (loop,) = find_loops(view_of(bounded.program.parse()))
    assert loop.trips * chunk == 30
    assert 370 < found.dynamic_launches < 5_800 / 4  # what is outside the loop is launched once, whatever the chunk


@pytest.mark.parametrize("name", ["batched", "bounded"])
@pytest.mark.parametrize("pass_", [BatchReplay(), LoopInvariantCodeMotion()], ids=["batch-replay", "licm"])
def test_a_second_run_changes_nothing(name, pass_, given, request):
    program = request.getfixturevalue(name).program
    again, _ = study.rewrite(program, (pass_,), given)
    assert again.program is program, again.applied
