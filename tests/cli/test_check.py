"""``fusionlab check``: verdicts, exit codes, and the worst walker as a file that tells the programs apart again."""

import json
import re
import shlex

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.samples import signature_samples
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.workloads import catalogue

X = np.linspace(-1.0, 1.0, 24, dtype=np.float32).reshape(2, 4, 3)


def energy(x, factor=1.0):
    return (lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k]) * factor, x[:, 0])).sum(-1)


@pytest.fixture
def files(lowered, tmp_path):
    functions = {
        "a": energy,
        "same": lambda x: energy(x) + 0.0,
        "reassociated": lambda x: jnp.sin(x).sum((1, 2)) + x[:, 0].sum(-1),
        "wrong": lambda x: energy(x, 1.001),
    }
    for name, function in functions.items():
        (tmp_path / f"{name}.mlir").write_text(lowered(function, X).text)
    return {name: tmp_path / f"{name}.mlir" for name in functions}


@pytest.mark.parametrize(
    ("other", "words", "code"),
    [("a", ("equal",), 0), ("reassociated", ("within-bound", "equal"), 0), ("wrong", ("different",), 1)],
)
def test_two_files(other, words, code, cli, files, tmp_path):
    worst = tmp_path / "worst.npz"
    result = cli("check", files["a"], files[other], "--json", "--worst", worst, "--quiet")
    document = json.loads(result.stdout)
    assert document["verdict"] in words
    assert result.exit_code == code
    (output,) = document["outputs"]
    assert set(output) >= {"name", "max_abs_error", "max_ulp", "tolerance", "ulp_histogram", "abs_histogram"}
    samples = list(signature_samples(Program.from_file(files["a"])))
    assert sum(output["ulp_histogram"]) == len(samples) * len(X)
    assert worst.exists() == (code == 1)
    assert document["worst_walker_file"] == (str(worst) if code else None)
    assert (document["worst_walker"] is None) == (code == 0)
    assert document["oracles"][0]["agrees"] is True


def test_the_worst_walker_tells_them_apart_again(cli, as_json, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path.parent / "kept"))
    first = cli("check", files["a"], files["wrong"], "--quiet", code=1)
    assert first.stdout.startswith("verdict: different; not-identical: ")
    assert first.stdout.splitlines()[1].startswith("floating point: error ")
    assert not list(tmp_path.glob("*.npz"))  # nothing is left in the folder that one stands in
    [saved] = (tmp_path.parent / "kept" / "worst-walkers").iterdir()
    found = Counterexample.load(saved)
    assert abs(found.rewritten - found.truth) > abs(found.original - found.truth)
    words = shlex.split(found.command)
    assert words[:2] == ["fusionlab", "check"]
    document = as_json(*words[1:], code=1)
    assert found.label in document["worst_walker"]
    cli("check", files["a"], files["same"], "--inputs", saved, "--quiet", code=0)


def test_a_file_of_many_walkers_is_checked_at_few_of_them(as_json, tmp_path, lowered, monkeypatch):
    """And its worst walker tells the programs apart again; ``all`` compares them at their own shapes."""
    monkeypatch.setenv("FUSIONLAB_CACHE", str(tmp_path / "kept"))
    x = jax.ShapeDtypeStruct((1, 40, 4, 3), np.float32)
    paths = [tmp_path / f"{name}.mlir" for name in ("one", "other")]
    for path, factor in zip(paths, (1.0, 1.01), strict=True):
        path.write_text(lowered(lambda x, f=factor: jnp.tanh(x).sum((2, 3)) * f, x).text)
    document = as_json("check", *paths, code=1)
    assert (document["verdict"], document["walkers"]) == ("different", 16)
    assert np.load(document["worst_walker_file"])["argument_0"].shape == (1, 16, 4, 3)
    again = as_json("check", *paths, "--inputs", document["worst_walker_file"], code=1)
    assert (again["verdict"], again["walkers"]) == ("different", 16)
    whole = as_json("check", *paths, "--check-walkers", "all", code=1)
    assert (whole["verdict"], whole["walkers"]) == ("different", None)


def test_inputs_fit_what_the_check_of_a_rewriting_compared(cli, as_json, tmp_path, lowered):
    """At all walkers, or at few; those of another program are refused."""
    replay = tmp_path / "replay.mlir"
    replay.write_text(lowered(energy, jax.ShapeDtypeStruct((40, 4, 3), np.float32)).text)
    arguments = ("check", replay, "--pass", "batch-replay", "--target", "cpu", "--inputs", tmp_path / "worst.npz")
    for count, walkers in ((40, None), (16, 16)):
        x = np.ones((count, 4, 3), np.float32)
        Counterexample("given", (x,), 0, (0,), 0.0, 0.0, 0.0).save(tmp_path / "worst.npz")
        document = as_json(*arguments)
        assert document["verdict"] in ("equal", "within-bound")
        assert document["walkers"] == walkers
    Counterexample("given", (x[:7],), 0, (0,), 0.0, 0.0, 0.0).save(tmp_path / "worst.npz")
    assert "--inputs: inputs of another program: they are float32[7, 4, 3]" in cli(*arguments, code=2).stderr


def test_inputs_are_of_the_program_also_where_no_pass_applies(cli, files, tmp_path):
    np.savez(tmp_path / "two.npz", X, X)
    np.savez(tmp_path / "one.npz", X)
    words = ("check", files["reassociated"], "--pass", "batch-replay", "--target", "cpu", "--quiet", "--inputs")
    assert "--inputs: inputs of another program: they are float32" in cli(*words, tmp_path / "two.npz", code=2).stderr
    assert "no pass applied" in cli(*words, tmp_path / "one.npz", code=0).stdout


def test_a_file_and_passes(as_json, files, processes):
    document = as_json("check", files["a"], "--pass", "batch-replay", "--target", "cpu")
    assert document["pipeline"] == "batch-replay"
    assert "applied" in document["events"][0]


MODEL = ("--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--target", "cpu")


@pytest.mark.slow
def test_a_model_and_another_laplacian(as_json):
    document = as_json("check", *MODEL, "--walkers", "7", "--check-walkers", "7", "--against-laplacian", "forward")
    assert (document["walkers"], document["verdict"]) == (7, "within-bound")
    assert document["oracles"][0]["agrees"] is True
    assert abs(document["outputs"][0]["mean_shift"]) < document["outputs"][0]["standard_error"]


def test_what_could_not_be_checked_is_no_yes(cli, files):
    result = cli("check", files["a"], files["a"], "--check-time-limit", "0.1", "--quiet", code=1)
    assert "floating point: not-checked: the check did not finish within 0.1 s" in result.stdout


@pytest.mark.slow
def test_a_model_beside_a_file_that_cannot_be_run_or_never_ends(cli, as_json, tmp_path):
    """In a process of its own, as two files are: its samples go there."""
    workload = catalogue.build("ferminet", "LiH", program="log-psi", walkers=2, size="tiny")
    text, path = lower(workload, "cpu").text, tmp_path / "theirs.mlir"
    words = ("check", *MODEL, "--walkers", "2", "--program", "log-psi", path, "--quiet")
    opaque = re.sub(
        r"stablehlo.tanh (%\w+) : (tensor<\S+>)", r"stablehlo.custom_call @theirs(\1) : (\2) -> \2", text, count=1
    )
    for content, limit, said in ((opaque, "300", "custom call @theirs is opaque"), (text, "0.1", "did not finish")):
        path.write_text(content)
        result = cli(*words, "--check-time-limit", limit, code=1)
        assert all(part in result.stdout for part in ("not-checked", said)), result.stdout
    path.write_text(text.replace("stablehlo.tanh", "stablehlo.sine", 1))
    wrong = as_json(*words, "--worst", tmp_path / "worst.npz", code=1)
    label = Counterexample.load(tmp_path / "worst.npz").label
    assert label.endswith(("parameters", "walkers"))  # the model's samples, not those of a signature
    assert wrong["worst_walker"].startswith(f"{label}, walker ")
