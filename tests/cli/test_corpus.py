"""``fusionlab corpus``: two small programs of the corpus, differences, and bad input."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from fusionlab.corpus.manifest import MANIFEST, SCHEMA, Corpus
from tests.corpus.small import write_small_corpus
from tests.optional_packages import needs_the_cuda_plugin

ROOT = Path(__file__).parents[2]
OWN = jax.__version__


@pytest.fixture
def in_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_list_names_what_is_recorded(cli, in_checkout):
    result = cli("corpus", "list", code=0)
    assert (
        result.stdout.splitlines()[0].strip()
        == f"{len(Corpus.read(ROOT / 'studies/corpus').programs)} programs in studies/corpus"
    )
    assert "a100: " in result.stdout
    assert "cholesky: no outputs: cuSOLVER's Cholesky factorisation does not run on a CPU" in result.stdout


@needs_the_cuda_plugin
@pytest.mark.slow
def test_two_programs_are_as_recorded(as_json, in_checkout):
    document = as_json("corpus", "run", "--only", "pinn", "--only", "force_field")
    assert (document["schema"], document["target"], document["jax"]) == ("fusionlab-corpus-1", "a100", OWN)
    assert [row["name"] for row in document["rows"]] == ["pinn", "force_field"]
    for row in document["rows"]:
        assert row["outputs"] == "equal"
        assert row["share_of_tolerance"] < 1
        if row["expected"] is None:
            assert row["verdict"] == "not recorded"
        else:
            assert row["verdict"] == "equal"
            assert {name: row[name] for name in row["expected"]} == row["expected"]
    assert document["wrong"] == []


@needs_the_cuda_plugin
@pytest.mark.full
def test_the_whole_corpus_is_as_recorded(as_json, in_checkout):
    assert as_json("corpus", "run", "--no-cache")["wrong"] == []


@needs_the_cuda_plugin
@pytest.mark.parametrize(
    ("compiles", "code", "said"),
    [
        ({}, 0, "nothing differs (0 with recorded launches, 1 with equal outputs)"),
        ({"a100": {OWN: {"launches": 99, "copies": 0, "temp_bytes": 0}}}, 1, "1 differ: small"),
        ({"a100": {OWN: {"reason": "no such call"}}}, 1, "1 differ: small"),
    ],
)
def test_the_end_is_by_the_difference(cli, tmp_path, compiles, code, said):
    write_small_corpus(tmp_path / "c", compiles=compiles)
    result = cli("corpus", "run", "--corpus", tmp_path / "c", "--quiet", code=code)
    assert said in result.stdout
    assert ("(was 99)" in result.stdout) == ("99" in str(compiles))


@needs_the_cuda_plugin
def test_other_outputs_end_the_run_with_1(cli, tmp_path):
    corpus = write_small_corpus(tmp_path)
    (entry,) = corpus.to_json()["programs"]
    (output,) = entry["outputs"]
    write_small_corpus(tmp_path, outputs=[{**output, "mean": output["mean"] + 1}])
    result = cli("corpus", "run", "--corpus", tmp_path, "--quiet", code=1)
    assert "different" in result.stdout


def test_an_export_is_plain_and_is_a_corpus_again(cli, tmp_path):
    corpus = write_small_corpus(tmp_path / "c")
    out = tmp_path / "out"
    for _ in range(2):  # the second replaces the first
        cli("corpus", "export", "--corpus", tmp_path / "c", "--out", out, code=0)
    assert {path.name for path in out.iterdir()} == {MANIFEST, "small.mlir", "small.mlirbc", "small.npz"}
    assert (out / "small.mlir").read_bytes() == corpus.text(corpus.programs[0])
    with np.load(out / "small.npz") as arrays:
        assert np.array_equal(arrays["0"], corpus.programs[0].inputs[0].array(0))
    assert Corpus.read(out).program(corpus.programs[0]).ops == corpus.program(corpus.programs[0]).ops


def test_an_export_replaces_no_other_folder(cli, tmp_path):
    write_small_corpus(tmp_path / "c")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    result = cli("corpus", "export", "--corpus", tmp_path / "c", "--out", other, code=2)
    assert "holds other files (notes.txt)" in result.stderr
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--only", "pin"], "unknown program 'pin'; did you mean: pinn"),
        (["run", "--corpus", "nowhere"], "nowhere/manifest.json: there is no such file; run it in a checkout"),
        (["run", "--target", "cpu"], "target cpu: the corpus is for a GPU with a spec"),
        (["run", "--jax", "0.6.2,0.8.0"], "corpus run compiles with one version at a time"),
        (["run", "--jax", "new"], "'new' is no version"),
        (["run", "--out", "x"], "--out is not an option of corpus run"),
        (["list", "--target", "a100"], "--target is not an option of corpus list"),
        (["export"], "name the folder to write with --out DIR"),
        (["make"], "'make' is not one of"),
        ([], "missing argument"),
    ],
)
def test_bad_input_ends_with_2(cli, in_checkout, words, message):
    result = cli("corpus", *words, "--quiet", code=2)
    assert message in result.stderr
    assert result.stdout == ""


def test_a_version_that_cannot_be_had_ends_with_2(cli, in_checkout, monkeypatch):
    from fusionlab.corpus import runs
    from fusionlab.versions.environments import NoEnvironment

    def made(version, progress):
        raise NoEnvironment(f"JAX {version} cannot be installed: no network")

    monkeypatch.setattr(runs, "environment", made)
    result = cli("corpus", "run", "--only", "pinn", "--jax", "0.6.2", code=2)
    assert "JAX 0.6.2 cannot be installed: no network" in result.stderr


def test_a_manifest_that_is_none(cli, tmp_path):
    (tmp_path / MANIFEST).write_text(json.dumps({"schema": SCHEMA}))
    result = cli("corpus", "list", "--corpus", tmp_path, code=2)
    assert "has no list of programs" in result.stderr
