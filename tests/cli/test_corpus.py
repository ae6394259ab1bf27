"""``fusionlab corpus``: two small programs of the corpus, differences, and bad input."""

import json
import math
from pathlib import Path

import jax
import numpy as np
import pytest

from fusionlab.corpus.manifest import ARTIFACT, MANIFEST, SCHEMA, TEXT, Corpus, ExpectedCompile, packed
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
    assert document["outputs_jax"] == OWN
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
        ({"a100": {OWN: {"launches": 99, "copies": 0, "temp_bytes": 0}}}, 1, "1 differs: small"),
        ({"a100": {OWN: {"reason": "no such call"}}}, 1, "1 differs: small"),
    ],
)
def test_the_end_is_by_the_difference(cli, tmp_path, compiles, code, said):
    write_small_corpus(tmp_path / "c", compiles=compiles)
    result = cli("corpus", "run", "--corpus", tmp_path / "c", "--quiet", code=code)
    assert said in result.stdout
    assert f"1 program on a100, JAX {OWN} (outputs: JAX {OWN}): " in result.stdout
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
        result = cli("corpus", "export", "--corpus", tmp_path / "c", "--out", out, code=0)
        assert "written: 4 files of 1 program in" in result.stdout
    assert {path.name for path in out.iterdir()} == {MANIFEST, "small.mlir", "small.mlirbc", "small.npz"}
    assert (out / "small.mlir").read_bytes() == corpus.text(corpus.programs[0])
    with np.load(out / "small.npz") as arrays:
        assert np.array_equal(arrays["0"], corpus.programs[0].inputs[0].array(0))
    assert Corpus.read(out).program(corpus.programs[0]).ops == corpus.program(corpus.programs[0]).ops


def test_an_export_of_a_manifest_with_a_format_can_be_replaced(cli, tmp_path):
    write_small_corpus(tmp_path / "c")
    path = tmp_path / "c" / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": "other-1"}))
    for _ in range(2):
        cli("corpus", "export", "--corpus", tmp_path / "c", "--out", tmp_path / "out", code=0)
    cli("corpus", "export", "--corpus", tmp_path / "out", "--out", tmp_path / "again", code=0)


def test_an_export_does_not_replace_the_corpus_that_it_reads(cli, tmp_path):
    write_small_corpus(tmp_path / "c")
    out = tmp_path / "ex"
    cli("corpus", "export", "--corpus", tmp_path / "c", "--out", out, code=0)
    names = {path.name for path in out.iterdir()}
    result = cli("corpus", "export", "--corpus", out, "--out", out / ".." / "ex", "--only", "small", code=2)
    assert "is the corpus itself" in result.stderr
    assert {path.name for path in out.iterdir()} == names


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


def with_a_second(folder):
    """The small corpus in ``folder`` with ``second``, the same program."""
    write_small_corpus(folder)
    path = folder / MANIFEST
    document = json.loads(path.read_text())
    (entry,) = document["programs"]
    path.write_text(json.dumps({**document, "programs": [entry, {**entry, "name": "second"}]}))
    for suffix in (TEXT, ARTIFACT):
        (folder / f"second{suffix}").write_bytes((folder / f"small{suffix}").read_bytes())


def test_a_damaged_file_is_known_before_the_first_program(cli, tmp_path):
    with_a_second(tmp_path)
    (tmp_path / f"second{TEXT}").write_bytes(packed(b"module {}"))
    result = cli("corpus", "run", "--corpus", tmp_path, code=2)
    assert "second.mlir.gz: not the text of the manifest" in result.stderr
    assert "compile: small" not in result.stderr


@needs_the_cuda_plugin
def test_rows_are_printed_as_they_finish(cli, tmp_path, monkeypatch):
    from fusionlab.corpus import runs

    with_a_second(tmp_path)
    outputs = runs.outputs_of

    def interrupted(program, one):
        if one.name == "second":
            raise KeyboardInterrupt
        return outputs(program, one)

    monkeypatch.setattr(runs, "outputs_of", interrupted)
    result = cli("corpus", "run", "--corpus", tmp_path, "--quiet", code=130)
    head, row = result.stdout.splitlines()
    assert head.split() == ["program", "launches", "copies", "temp", "compile", "outputs"]
    assert row.startswith("small ")
    assert row.endswith(" equal")


def test_a_manifest_of_other_inputs_ends_the_run_with_2(cli, tmp_path):
    write_small_corpus(tmp_path, inputs=[])
    result = cli("corpus", "run", "--corpus", tmp_path, "--quiet", code=2)
    assert "takes 1 argument, and the manifest has 0" in result.stderr


INPUT = {"name": "x", "shape": [8, 8], "dtype": "float32", "draw": "uniform", "low": 0.0, "high": 1.0}


@pytest.mark.parametrize("action", [("list",), ("run",), ("export", "--out", "out")])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"low": 1.0}, "the least below the most"),
        ({"high": math.inf}, "finite"),
        ({"shape": [-1]}, "no list of at most 32 sizes"),
        ({"shape": [10**13]}, "more than 134,217,728 elements"),
    ],
)
def test_a_bad_input_of_a_manifest_ends_every_action_with_2(cli, tmp_path, action, changed, message):
    write_small_corpus(tmp_path / "c")
    path = tmp_path / "c" / MANIFEST
    document = json.loads(path.read_text())
    document["programs"][0]["inputs"] = [{**INPUT, **changed}]
    path.write_text(json.dumps(document))
    result = cli("corpus", *action, "--corpus", tmp_path / "c", code=2)
    assert message in result.stderr
    assert result.stdout == ""
    assert not Path("out").exists()


def test_a_run_names_both_versions(as_json, cli, tmp_path, monkeypatch):
    from fusionlab.corpus import runs
    from fusionlab.versions.environments import JaxEnvironment

    found = ExpectedCompile({"launches": 2, "copies": 0, "temp_bytes": 256})
    monkeypatch.setattr(runs, "environment", lambda version, progress: JaxEnvironment(version, tmp_path))
    monkeypatch.setattr(runs, "compiled_counts", lambda *given, **options: found)
    write_small_corpus(tmp_path / "c")
    words = ("corpus", "run", "--corpus", tmp_path / "c", "--jax", "0.6.2")
    assert f"1 program on a100, JAX 0.6.2 (outputs: JAX {OWN}): nothing differs" in cli(*words, code=0).stdout
    document = as_json(*words)
    assert (document["jax"], document["outputs_jax"]) == ("0.6.2", OWN)


def test_a_list_of_one_says_a_foreign_licence(cli, tmp_path):
    write_small_corpus(tmp_path, licence="MIT")
    result = cli("corpus", "list", "--corpus", tmp_path, code=0)
    assert "1 program in" in result.stdout
    assert "small: licence: MIT" in result.stdout


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
