"""The session: its order, its limits, what it does after a failure, and one of a tiny size end to end."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from fusionlab.measure import session
from fusionlab.measure.session import Child, Finished

ROOT = Path(__file__).parents[2]


def test_what_is_worth_most_comes_first():
    names = [job.name for job in session.jobs(("paulinet", "ferminet"), ("CH4", "LiH"), 1024)]
    assert names == [
        "paulinet-CH4-local-energy-w1024",
        "ferminet-CH4-local-energy-w1024",
        "paulinet-CH4-inference-step-w1024",
        "ferminet-CH4-inference-step-w1024",
        "paulinet-LiH-local-energy-w1024",
        "ferminet-LiH-local-energy-w1024",
        *(f"{model}-CH4-local-energy-w{n}" for n in (256, 512, 2048, 4096) for model in ("paulinet", "ferminet")),
    ]
    assert [job.walkers for job in session.jobs(("ferminet",), ("LiH",), 2, ("walkers",))] == [1, 4, 8]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """``run(answer, *words)``: the calls that a session made of which every child gives ``answer(arguments)``."""

    def session_of(answer, *words, models="ferminet,paulinet", stages="energies", code=0):
        calls = session_of.calls = []

        def child(arguments, *_):
            calls.append(arguments)
            given = answer(arguments)
            if "--prepare" in arguments and given.document:
                Path(arguments[arguments.index("--prepare") + 1]).touch()
            return SimpleNamespace(wait=lambda: given)

        monkeypatch.setattr(session, "Child", child)
        monkeypatch.setattr(session.subprocess, "run", lambda *_, **__: None)
        given = ["--out", str(tmp_path), "--models", models, "--stages", stages, *map(str, words)]
        assert session.main(given) == code
        return [
            f"prepare {call[call.index('--model') + 1]}"
            if "--prepare" in call
            else f"measure {Path(call[1]).stem.rpartition('-')[0]}"
            for call in calls
        ]

    return session_of


def measured(path="records/x.json"):
    variants = [{"name": "replay"}]
    return Finished({"checked": variants, "variants": variants, "failures": [], "path": path}, "", 1.0)


FERMINET, PAULINET = "ferminet-CH4-local-energy-w1024", "paulinet-CH4-local-energy-w1024"


def test_preparations_come_before_measurements_and_nothing_is_done_twice(run, tmp_path):
    assert run(lambda words: measured()) == [
        "prepare ferminet", "prepare paulinet", f"measure {FERMINET}", f"measure {PAULINET}",
    ]  # fmt: skip
    state = json.loads((tmp_path / "session.json").read_text())["jobs"]
    assert {job["state"] for job in state.values()} == {"done"}
    assert {job["record"] for job in state.values()} == {"x.json"}
    assert run(lambda words: measured()) == []


def test_all_peers_are_asked_in_the_first_stage_only(run):
    run(lambda words: measured(), "--molecules", "CH4,LiH", stages="energies,inference,molecules", models="ferminet")
    of = {(c[c.index("--molecule") + 1], c[c.index("--program") + 1]): c for c in run.calls if "--prepare" in c}
    assert "folx,folx-sparse" in of["LiH", "local-energy"]
    assert "folx,folx-sparse" in of["CH4", "inference-step"]
    assert "--against" not in of["CH4", "local-energy"]


def test_a_failure_is_noted_and_the_next_one_goes_on(run, tmp_path):
    def answer(words):
        if "--prepare" not in words and FERMINET in words[1]:
            return Finished(None, "exit 134: Aborted", 2.0)
        return measured()

    assert run(answer)[-2:] == [f"measure {FERMINET}", f"measure {PAULINET}"]
    state = json.loads((tmp_path / "session.json").read_text())["jobs"]
    assert state[FERMINET]["reason"] == "exit 134: Aborted"
    assert run(answer) == []
    assert run(lambda words: measured(), "--retry") == ["prepare ferminet", f"measure {FERMINET}"]


def test_what_was_prepared_before_for_an_absent_device_is_only_measured(run, tmp_path, capsys):
    also = ("--also", "fuse-jvp-replay,layout")
    words = ("--prepare-only", "--device", "h100", *also)
    assert run(lambda words: measured(), *words) == ["prepare ferminet", "prepare paulinet"]
    assert "2 prepared, 0 not" in capsys.readouterr().err
    assert all("h100" in call and "fuse-jvp-replay,layout" in call for call in run.calls)
    assert run(lambda words: measured(), "--no-autotune", *also) == [f"measure {FERMINET}", f"measure {PAULINET}"]
    assert all("--no-autotune" in call and "h100" not in call for call in run.calls)


def test_what_was_prepared_with_other_options_is_prepared_again(run):
    run(lambda words: measured(), "--prepare-only", "--tiny", models="ferminet")
    assert run(lambda words: measured(), models="ferminet") == ["prepare ferminet", f"measure {FERMINET}"]


def test_time_that_ends_before_anything_is_prepared_is_said(run, capsys):
    assert run(lambda words: measured(), "--time-limit", 0.2, code=1) == []
    assert "the time limit is reached; call again" in capsys.readouterr().err


def test_what_cannot_be_shown_equal_is_not_measured(run):
    def answer(words):
        return Finished(None, "exit 1: different", 1.0) if "ferminet" in words else measured()

    assert run(answer) == ["prepare ferminet", "prepare paulinet", f"measure {PAULINET}"]


def test_peers_are_measured_where_the_rewriting_is_left_out(run, tmp_path):
    def answer(words):
        return dataclasses.replace(measured(), problem="exit 1: fused, check: different")

    assert run(answer, models="ferminet") == ["prepare ferminet", f"measure {FERMINET}"]
    (job,) = json.loads((tmp_path / "session.json").read_text())["jobs"].values()
    assert (job["state"], job["reason"]) == ("done", "exit 1: fused, check: different")


def test_a_job_that_the_limit_cut_short_stays_open(run, tmp_path):
    def answer(words):
        time.sleep(0.05)
        return Finished(None, "not finished within 1 s", 1.0, timed_out=True)

    run(answer, "--time-limit", 20.05 / 60, models="ferminet", code=1)
    path = tmp_path / "session.json"
    assert not path.exists() or json.loads(path.read_text())["jobs"] == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--stages", "energy"), "unknown stage 'energy'"),
        (("--walkers", "0"), "--walkers must be at least 1, not 0"),
        (("--jobs", "0"), "--jobs must be at least 1, not 0"),
        (("--runs", "1"), "--runs must be at least 2, not 1"),
        (("--time-limit", "nan"), "--time-limit must be between 0 and"),
        (("--job-limit", "-1"), "--job-limit must be between 0 and"),
        (("--models", "ferminet,"), "--models needs names"),
        (("--device", "h100"), "--device h100: nothing can be timed there; say --prepare-only"),
        (("--device", "nonsense", "--prepare-only"), "unknown target 'nonsense'"),
    ],
)
def test_wrong_options(tmp_path, capsys, words, message):
    assert session.main(["--out", str(tmp_path / "new"), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', '{"jobs": []}', '{"jobs": {"a": 1}}'])
def test_a_file_that_no_session_wrote_is_left_as_it_is(tmp_path, capsys, text):
    (tmp_path / "session.json").write_text(text)
    assert session.main(["--out", str(tmp_path)]) == 2
    assert "session.json: " in capsys.readouterr().err
    assert (tmp_path / "session.json").read_text() == text


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_session_that_is_killed_leaves_nothing_running(tmp_path, number):
    words = ["--out", str(tmp_path), "--device", "cpu", "--stages", "energies", "--models", "ferminet"]
    command = [sys.executable, "-m", "fusionlab.measure.session", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUSIONLAB_CACHE": str(tmp_path / "cache")}
    started = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    log = tmp_path / "logs" / "ferminet-CH4-local-energy-w1024.prepare.log"
    assert within(60, log.exists)
    assert within(60, lambda: children(started.pid))
    (child,) = children(started.pid)
    started.send_signal(number)
    started.wait(60)
    assert within(30, lambda: not is_alive(child))
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [log.name]


def within(seconds, true):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


def children(parent):
    return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_child_takes_no_module_from_the_folder_it_is_started_in(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('taken')")
    monkeypatch.chdir(tmp_path)
    assert Child(["passes"], tmp_path / "a.log", 60.0).wait().problem == ""


def test_a_child_that_takes_too_long_is_ended(tmp_path):
    started = time.monotonic()
    finished = Child(["passes"], tmp_path / "a.log", 0.01).wait()
    assert finished.timed_out
    assert finished.document is None
    assert time.monotonic() - started < 30
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]


def test_a_child_says_why_it_failed(tmp_path):
    finished = Child(["bench", "--model", "no-such-model", "--device", "cpu"], tmp_path / "a.log", 120.0).wait()
    assert finished.problem.startswith("exit 2: fusionlab: unknown model 'no-such-model'")


@pytest.mark.slow  # two processes that lower, check, compile and run
def test_a_tiny_session(tmp_path):
    words = ["--out", tmp_path, "--device", "cpu", "--tiny", "--walkers", 2, "--models", "ferminet"]
    words += ["--molecules", "LiH", "--stages", "energies", "--against", "jet", "--runs", 2, "--repeats", 2]
    command = [sys.executable, "-m", "fusionlab.measure.session", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FUSIONLAB_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (job,) = json.loads((tmp_path / "session.json").read_text())["jobs"].values()
    assert job["variants"] == ["replay", "fused"]
    assert "jet" in job["not_measured"][0]
    assert (tmp_path / "records" / job["record"]).exists()
    assert "fused / it" in done.stdout
