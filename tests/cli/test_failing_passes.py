"""A pass that fails by itself is no success of a command: one line on stderr, exit code 1, and nothing is written."""

import json

import pytest

from fusionlab.passes.batch_replay import BatchReplay

LINE = "pass batch-replay failed: ZeroDivisionError: a bug; this is a fault of fusionlab (or of the pass)"


@pytest.fixture(autouse=True)
def broken(monkeypatch):
    def run(self, program, setting):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(BatchReplay, "run", run)


@pytest.mark.parametrize(
    "command",
    [("apply",), ("apply", "--unchecked"), ("check",), ("check", "--exact"), ("bisect",)],
    ids=lambda command: " ".join(command),
)
def test_a_failing_pass_is_exit_code_1(command, cli, replay_file, tmp_path):
    out = tmp_path / "out"
    options = () if command[0] == "check" else ("--out", out)
    result = cli(*command, replay_file, "--pass", "batch-replay", "--target", "cpu", "--quiet", *options, code=1)
    assert result.stderr.startswith(f"fusionlab: {LINE}")
    assert result.stderr.count("\n") == 1
    assert not out.exists()


def test_what_other_passes_did_is_not_written_and_nothing_is_compared(cli, replay_file, tmp_path):
    out, on_cpu = tmp_path / "out.mlir", ("--target", "cpu", "--quiet", "--json")
    pipeline = ("--pipeline", "licm,batch-replay")
    result = cli("apply", replay_file, *pipeline, *on_cpu, "--out", out, code=1)
    assert "fault" in {event["kind"] for event in json.loads(result.stdout)["events"]}
    assert LINE in result.stderr
    assert not out.exists()
    document = json.loads(cli("check", replay_file, "--pass", "batch-replay", *on_cpu).stdout)
    assert (document["verdict"], document["events"][0]["kind"]) == ("not-checked", "fault")
    assert LINE in document["reason"]


def test_the_report_of_a_study_shows_it(cli, replay_file, tmp_path):
    out = tmp_path / "study"
    result = cli("study", replay_file, "--pass", "batch-replay", "--target", "cpu", "--quiet", "-o", out, code=1)
    assert result.stderr.startswith(f"fusionlab: cpu: {LINE}")
    assert "ZeroDivisionError: a bug" in (out / "study.json").read_text()
