"""``fusionlab apply --pipeline best`` on a file: searched, printed, applied, repeated."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.search import space

ON_CPU = ("--target", "cpu", "--objective", "launches", "--quiet")


@pytest.fixture(autouse=True)
def small_space(monkeypatch):
    monkeypatch.setattr(space, "moves", lambda: parse_pipeline("scatter-to-gather,batch-replay,batch-replay{chunk=2}"))
    monkeypatch.setattr(space, "beginnings", lambda: [parse_pipeline("layout")])


@pytest.fixture
def replay_file(lowered, tmp_path):
    """A counted sum in a file; XLA:CPU makes one kernel of the loop over fewer rows, and no pass saves launches."""
    x = np.linspace(-1.0, 1.0, 256, dtype=np.float32).reshape(64, 4)
    program = lowered(lambda x: lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x), x)
    path = tmp_path / "replay.mlir"
    path.write_text(program.text)
    return path


def test_the_best_is_applied_and_can_be_repeated(cli, replay_file, tmp_path):
    out, again = tmp_path / "best.mlir", tmp_path / "again.mlir"
    result = cli("apply", replay_file, "--pipeline", "best", "--out", out, *ON_CPU, code=0)
    assert "Pareto front: launches, bytes, temp memory, time; * least launches" in result.stdout
    assert "(the program as it is)" in result.stdout
    assert "nothing was left to try" in result.stdout
    assert 'best: --pipeline "batch-replay"' in result.stdout
    assert "applied batch-replay: 4 trips batched at once" in result.stdout
    cli("apply", replay_file, "--pipeline", "batch-replay", "--out", again, *ON_CPU[:2], code=0)
    assert again.read_text() == out.read_text()


def test_as_data(as_json, replay_file):
    found = as_json("apply", replay_file, "--pipeline", "best", "--seed", "3", *ON_CPU)["search"]
    assert (found["objective"], found["seed"], found["pipeline"]) == ("launches", 3, "batch-replay")
    assert found["complete"]
    assert {trial["pipeline"] for trial in found["trials"]} >= {"", "batch-replay", "scatter-to-gather"}
    assert all(trial["costs"]["model_us"] is None for trial in found["front"])
    second = as_json("apply", replay_file, "--pipeline", "best", *ON_CPU)["search"]
    assert all(trial["recorded"] for trial in second["trials"])
    assert second["pipeline"] == found["pipeline"]


def test_passes_in_front_of_best_are_fixed(as_json, replay_file):
    found = as_json("apply", replay_file, "--pass", "batch-replay{chunk=2}", "--pipeline", "best", *ON_CPU)["search"]
    assert all(trial["pipeline"].startswith("batch-replay{chunk=2}") for trial in found["trials"])


def test_where_nothing_is_better_nothing_is_applied(cli, recurrence_file, tmp_path):
    out = tmp_path / "out.mlir"
    result = cli("apply", recurrence_file, "--pipeline", "best", "--out", out, *ON_CPU, code=0)
    assert "best: no pass: none makes it better" in result.stdout
    assert out.read_bytes() == recurrence_file.read_bytes()
