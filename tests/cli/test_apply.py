"""``fusionlab apply`` on files: what is written, what is said, and the exit code."""

import json
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab import study
from fusionlab.cli.apply import no_replay
from fusionlab.equivalence.verdict import OutputError, Verdict
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.passes import batch_replay
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.workloads.catalogue import build
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions

ON_CPU = ("--target", "cpu", "--quiet")
FOOTPRINT = {
    "name", "target", "walkers", "static_launches", "dynamic_launches", "dynamic_copies", "temp_bytes",
    "argument_bytes", "flops", "bytes_accessed", "compile_s", "stablehlo_ops",
}  # fmt: skip


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.mlir"


def test_a_file_is_rewritten_checked_and_shown(cli, replay_file, out, run_raised, processes):
    result = cli("apply", replay_file, "--pass", "fuse-jvp-replay", "--out", out, *ON_CPU, code=0)
    assert result.stderr == ""
    for part in ("before", "after", "applied batch-replay: 4 trips batched at once"):
        assert part in result.stdout
    first, second = "equal|within-bound", r"identical in exact arithmetic \(chance of error < "
    assert re.search(rf"^equivalence: ({first}); {second}", result.stdout, re.MULTILINE)
    assert not any(evidence in result.stdout for evidence in ("pipeline: ", "144 draws"))
    said = cli("apply", replay_file, "--pass", "fuse-jvp-replay", "--verbose", *ON_CPU, code=0).stdout
    assert all(evidence in said for evidence in ("pipeline: fuse-jvp-replay (", "144 draws over 2 primes", "declined "))
    original, rewritten = Program.from_file(replay_file), Program.from_file(out)
    assert find_loops(view_of(rewritten.parse())) == []
    x = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(run_raised(rewritten, (x,))[0], run_raised(original, (x,))[0], rtol=1e-5)


def test_json_is_the_whole_of_stdout(as_json, replay_file):
    document = as_json("apply", replay_file, "--pipeline", "batch-replay{chunk=2}", *ON_CPU)
    assert set(document) >= {"before", "after", "pipeline", "pass_s", "events", "equivalence"}
    assert set(document["before"]) >= FOOTPRINT
    assert set(document["after"]) >= FOOTPRINT
    assert document["before"]["target"] == "cpu"
    assert document["pipeline"] == "batch-replay{chunk=2}"
    (event,) = document["events"]
    assert set(event) >= {"pass", "applied", "kind", "reason", "location"}
    assert (event["pass"], event["kind"], event["reason"]) == ("batch-replay", None, None)
    assert set(document["equivalence"]) >= {"verdict", "max_abs_error", "tolerance", "walkers"}
    assert document["equivalence"]["verdict"] in ("equal", "within-bound")


def test_a_fallback_is_told_in_the_first_line(cli, as_json, replay_file):
    asked = "apply", replay_file, "--pass", "fuse-jvp-replay"
    told = cli(*asked, code=0).stdout.splitlines()[0]
    assert told.startswith("fallback: batch-replay instead of a forward Laplacian (")
    *_, event = as_json(*asked)["events"]
    assert told == f"fallback: {event['resolved']} instead of a {event['fallback']}"
    # x[:, k] is a gather before JAX 0.10.
    assert re.search(r"; cause: form, stablehlo\.(dynamic_slice|gather) at conftest\.py:", told)


def scaled_by_weights(weights, x):
    """Each trip computes exp(weights) in the kernel that reads it: computed once, it is one launch more."""
    return jax.lax.fori_loop(0, 9, lambda i, y: jnp.sin((y[:, None] * jnp.exp(weights)).sum(0)[:4] + i), x)


@needs_the_cuda_plugin
def test_a_pass_that_makes_launches_grow_is_undone_and_that_is_the_first_line(cli, lowered, tmp_path, out):
    path = tmp_path / "scaled.mlir"
    path.write_text(lowered(scaled_by_weights, np.ones((4, 8), np.float32), np.ones(4, np.float32)).text)
    asked = ("apply", path, "--pass", "licm", "--target", "a100", "--out", out, "--quiet")
    result = cli(*asked, code=0)
    launches = re.match(r"undone: licm: (\d+) launches become (\d+), and neither bytes, temp memory nor", result.stdout)
    assert int(launches[2]) > int(launches[1])
    assert "--keep-worse keeps it" in result.stdout.splitlines()[0]
    assert "\nnothing applied: licm: undone: " in result.stdout
    assert out.read_bytes() == path.read_bytes()
    assert result.stderr == "fusionlab: nothing was applied, the output equals the input\n"
    cli(*asked, "--require-applied", code=1)
    kept = cli(*asked, "--keep-worse", "--json", code=0)
    document = json.loads(kept.stdout)
    assert document["undone"] == []
    assert document["after"]["dynamic_launches"] > document["before"]["dynamic_launches"]
    assert out.read_bytes() != path.read_bytes()


def test_where_nothing_applies_the_output_is_the_input_and_the_reason_is_told(cli, recurrence_file, replay_file, out):
    arguments = ("--pass", "batch-replay", "--out", out, *ON_CPU)
    result = cli("apply", recurrence_file, *arguments, code=0)
    assert out.read_bytes() == recurrence_file.read_bytes()
    assert result.stderr == "fusionlab: nothing was applied, the output equals the input\n"
    why = "; instead: let a trip only add to a sum"
    reason, equal = result.stdout.splitlines()
    assert reason.startswith("nothing applied: batch-replay: carried value")
    assert why in reason  # once: stderr does not repeat it
    assert equal == "equivalence: equal: no pass applied: the program is unchanged"
    assert why in cli("check", recurrence_file, "--pass", "batch-replay", *ON_CPU, code=0).stdout
    out.unlink()
    result = cli("apply", recurrence_file, *arguments, "--require-applied", "--json", code=1)
    assert out.read_bytes() == recurrence_file.read_bytes()
    document = json.loads(result.stdout)
    assert result.stderr.startswith(
        "fusionlab: nothing was applied, the output equals the input: batch-replay: carried value"
    )
    assert why in result.stderr
    (event,) = document["events"]
    assert event["kind"] == "unsafe"
    assert event["declined"] == event["reason"] != ""
    assert event["cause"] == "form"
    assert event["op"].startswith("stablehlo.multiply at conftest.py:")
    assert document["equivalence"]["verdict"] == "equal"
    cli("apply", replay_file, *arguments, "--require-applied", code=0)


def test_a_different_program_is_not_written(cli, monkeypatch, replay_file, out):
    infinite = OutputError("output 0", float("inf"), 0.5, float("inf"), 1e-9, False)
    wrong = Verdict("different", (infinite,), None, worst="seed 2, walker 1, output 0: error inf")
    monkeypatch.setattr(study, "check", lambda *_, **__: wrong)
    result = cli("apply", replay_file, "--pass", "batch-replay", "--out", out, "--json", "--unchecked", *ON_CPU, code=1)
    assert not out.exists()
    assert "walker 1" in result.stderr
    document = json.loads(result.stdout)
    assert document["after"] is None
    assert document["equivalence"]["max_abs_error"] == "inf"


def test_an_unchecked_program_is_written_only_when_asked(cli, replay_file, out):
    words = ("apply", replay_file, "--pass", "batch-replay", "--check-time-limit", "0.1", "--out", out, *ON_CPU)
    refused = cli(*words, code=1)
    assert not out.exists()
    assert "the check did not finish within 0.1 s" in refused.stdout
    assert "--unchecked" in refused.stderr
    cli(*words, "--unchecked", code=0)
    assert out.exists()


def test_a_wrong_pass_is_caught_by_the_real_check(cli, monkeypatch, replay_file, out):
    """A pass that loses the last trip: counting the launches of its result would look splendid."""
    right = batch_replay.batched_loop
    monkeypatch.setattr(
        batch_replay,
        "batched_loop",
        lambda trips, chunk: right(replace(trips, loop=replace(trips.loop, trips=trips.loop.trips - 1)), chunk - 1),
    )
    result = cli("apply", replay_file, "--pass", "batch-replay", "--out", out, *ON_CPU, code=1)
    assert not out.exists()
    assert "different and was not written" in result.stderr
    assert re.search("equivalence: different; not-identical: .*\nfloating point.*; worst: .*walker", result.stdout)


def test_the_diff_of_each_pass(cli, as_json, replay_file):
    arguments = ("--pipeline", "scatter-to-gather,batch-replay", *ON_CPU)
    assert "diff " not in cli("apply", replay_file, *arguments).stdout
    result = cli("apply", replay_file, *arguments, "--diff", code=0)
    for part in ("diff scatter-to-gather: nothing changed", "diff batch-replay: ops: ", "    - ", "    + ", "while["):
        assert part in result.stdout
    document = as_json("apply", replay_file, *arguments, "--diff-lines", "0")
    assert [one["pass"] for one in document["diff"]] == ["scatter-to-gather", "batch-replay"]
    first, second = document["diff"]
    assert first["hunks"] == []
    assert second["removed"] == sum(len(hunk["removed"]) for hunk in second["hunks"]) > 0


def test_passes_compose_one_by_one_or_as_a_pipeline(as_json, replay_file):
    one_by_one = ("--pass", "licm", "--pass", "batch-replay{chunk=2}")
    at_once = ("--pipeline", "licm,batch-replay{chunk=2}")
    both = ("--pass", "licm", "--pipeline", "batch-replay{chunk=2}")
    documents = [as_json("apply", replay_file, *given, *ON_CPU) for given in (one_by_one, at_once, both)]
    assert {document["pipeline"] for document in documents} == {at_once[1]}
    assert documents[0]["events"] == documents[1]["events"] == documents[2]["events"]


def test_where_sparsity_is_lost_is_a_line_and_with_verbose_the_advice(cli, as_json, pooled_file):
    asked = ("apply", pooled_file, "--pass", "sparsify-directions", "--no-exact", *ON_CPU)
    said = cli(*asked, code=0).stdout
    lost = r"^sparsity: lost at reduce \(conftest\.py:\d+\): 3 directions become 12, \d+% of the work of directions"
    assert re.search(lost, said, re.MULTILINE)
    assert "instead:" not in said
    assert "instead: apply layers and activations per electron" in cli(*asked, "--verbose", code=0).stdout
    [event] = as_json(*asked)["events"]
    [one, *_] = sorted(event["sparsity"]["lost"], key=lambda one: -one["share"])
    assert (one["op"], one["mixing"], one["directions_before"], one["directions_after"]) == (
        "reduce",
        "reduction",
        3,
        12,
    )
    assert one["model_us"] is None  # the CPU has no spec


def test_what_is_no_forward_laplacian_has_no_sparsity(cli, as_json, replay_file):
    asked = ("apply", replay_file, "--pass", "batch-replay", *ON_CPU)
    assert "sparsity" not in cli(*asked, code=0).stdout
    assert [event["sparsity"] for event in as_json(*asked)["events"]] == [None]


@pytest.mark.parametrize(
    ("laplacian", "pipeline", "said"),
    [
        (None, "sparsify-directions", "orbformer has a forward Laplacian already (--laplacian forward)"),
        ("forward-sparse", "licm,fuse-jvp-replay", "(--laplacian forward-sparse); for a replay,"),
        (None, "licm", ""),
        ("replay", "sparsify-directions", ""),
    ],
)
def test_a_model_with_a_forward_laplacian_is_said_to_have_no_replay(laplacian, pipeline, said):
    model = build("orbformer", "LiH", size="tiny", walkers=2, laplacian=laplacian)
    advice = no_replay(model, parse_pipeline(pipeline))
    assert said in advice
    assert bool(said) == bool(advice)
