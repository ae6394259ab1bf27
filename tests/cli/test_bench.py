"""``fusionlab bench``: a file and a tiny model end to end on the CPU; what fails is said and ends nothing."""

import pytest

from fusionlab.bench import variants
from fusionlab.equivalence.verdict import Verdict
from fusionlab.measure.peers import PEERS, Peer, peers_of
from fusionlab.measure.records import read_records
from fusionlab.study import SmallModel
from fusionlab.workloads.catalogue import build

TINY = ("--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--walkers", 2, "--check-walkers", 2)
SHORT = ("--device", "cpu", "--runs", 3, "--repeats", 2)


@pytest.fixture
def bench(as_json, tmp_path):
    """``bench(*words, code=0)``: the document of a short run that is recorded."""
    return lambda *words, **given: as_json("bench", *words, *SHORT, "--records", tmp_path / "records", **given)


def test_a_file_beside_its_rewriting(bench, tmp_path, replay_file):
    document = bench(replay_file, "--pass", "batch-replay")
    original, fused = document["variants"]
    assert (original["name"], fused["name"], fused["pipeline"]) == ("original", "fused", "batch-replay")
    assert original["ratio_to_first"] == 1.0
    assert fused["verdict"] in ("equal", "within-bound")
    assert fused["device_check"]["verdict"] in ("equal", "within-bound")
    for one in (original, fused):
        assert len(one["samples_us"]) == 2
        assert len(one["device_time"]["sum_us"]) == 2
        assert one["device_time"]["launches"] > 0
        assert one["kernels"]["rows"]
        assert one["median_us"] > 0
        assert one["peak_bytes"] is None  # the CPU's allocator does not say
        assert one["assigned_bytes"] > 0
    (record,) = read_records([tmp_path / "records"])
    assert record["variants"] == document["variants"]
    assert record["commit"]
    assert record["versions"]["jax"].startswith("jax ")


def test_a_file_in_which_nothing_applies_is_timed_alone_and_exits_1(bench, recurrence_file):
    document = bench(recurrence_file, "--pass", "batch-replay", "--against", "folx", code=1)
    assert [one["name"] for one in document["variants"]] == ["original"]
    assert [(one["name"], one["step"]) for one in document["failures"]] == [("fused", "rewrite"), ("folx", "lower")]


@pytest.mark.slow
def test_a_model_is_its_replay_beside_its_rewriting_and_a_peer_that_cannot_do_it(bench, as_json, monkeypatch):
    document = bench(*TINY, "--against", "jet")
    assert [one["name"] for one in document["variants"]] == ["replay", "fused"]
    replay, fused = document["variants"]
    assert fused["equivalence"]["walkers"] == document["workload"]["walkers"] == 2
    assert fused["dynamic_launches"] < replay["dynamic_launches"]
    families = {row[fused["kernels"]["columns"].index("family")] for row in fused["kernels"]["rows"]}
    assert {"gemm", "elementwise"} <= families
    assert fused["kernels_joined"] > 0.9
    log_psi = document["log_psi"]
    assert log_psi["directions"] == 12
    assert log_psi["flops"] < fused["flops"] < replay["flops"]
    assert 0 < log_psi["bytes_accessed"] < fused["bytes_accessed"]
    assert fused["energy_j"] is None
    reason = "jax.experimental.jet has no rule for tile"
    assert document["failures"] == [{"name": "jet", "step": "lower", "reason": reason}]

    def asked(*_, **__):
        raise AssertionError("a verdict that was reached is not reached again")

    monkeypatch.setattr(SmallModel, "verdict", asked)
    document = as_json("bench", *TINY, *SHORT, "--against", "none", "--check-only", "--records", "none")
    assert document["variants"] == []
    assert [one["verdict"] for one in document["checked"]] == ["equal", "within-bound"]


@pytest.mark.slow
def test_what_is_different_gets_no_figures(bench, monkeypatch):
    monkeypatch.setattr(SmallModel, "verdict", lambda *_, **__: Verdict("different", worst="walker 1"))
    document = bench(*TINY, "--against", "none", "--check-only", code=1)
    assert [one["name"] for one in document["checked"]] == ["replay"]
    assert document["failures"][0]["reason"] == "different: walker 1"


def test_peers_by_name():
    assert list(peers_of("vmap, folx,vmap")) == ["vmap", "folx"]
    assert peers_of("none") == {}
    assert PEERS["replay"] == Peer("the loop over 3N directions, as DeepQMC writes it", "replay")


@pytest.mark.parametrize("laplacian", ["replay", "vmap"])
def test_a_reference_that_is_a_peer_has_its_name(laplacian):
    workload = build("ferminet", "LiH", walkers=2, size="tiny", laplacian=laplacian)
    assert variants.reference_name(workload) == laplacian


@pytest.mark.slow
def test_verdicts_are_reached_ahead_of_time_for_an_absent_target_and_nothing_is_timed_there(as_json, cli):
    words = ("bench", *TINY, "--device", "h100", "--against", "none", "--records", "none")
    document = as_json(*words, "--check-only")
    assert [one["name"] for one in document["checked"]] == ["replay", "fused"]
    assert (document["device"]["name"], document["device"]["platform"]) == ("h100", "cuda")
    refused = cli(*words, code=2)
    assert "target h100 is not attached: nothing can be timed there" in refused.stderr


def test_another_pipeline_is_timed_beside(bench, replay_file):
    document = bench(replay_file, "--pass", "batch-replay", "--also", "fuse-jvp-replay")
    assert [one["name"] for one in document["variants"]] == ["original", "fused", "fuse-jvp-replay"]
