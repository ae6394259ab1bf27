"""Archives of everything that is made without the device: read back as they were written, and refused if damaged."""

import json
import zipfile

import numpy as np
import pytest

from fusionlab.bench.prepared import Preparation, is_prepared, truth_of
from fusionlab.equivalence.samples import Sample
from fusionlab.errors import InputError

TINY = ("--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--walkers", 2, "--check-walkers", 2)
SHORT = ("--device", "cpu", "--runs", 3, "--repeats", 2)


@pytest.fixture
def archive(cli, tmp_path, replay_file):
    path = tmp_path / "replay.zip"
    cli("bench", replay_file, "--pass", "batch-replay", "--device", "cpu", "--prepare", path)
    return path


def test_an_archive_is_measured_as_what_it_was_made_of(archive, as_json, tmp_path):
    document = as_json("bench", archive, *SHORT, "--records", tmp_path / "records")
    original, fused = document["variants"]
    assert (original["name"], fused["name"], fused["pipeline"]) == ("original", "fused", "batch-replay")
    assert document["pipeline"] == "batch-replay"
    assert document["prepared_with"].startswith("jax ")
    assert fused["device_check"]["verdict"] in ("equal", "within-bound")
    assert document["workload"]["file"].endswith(".mlir")


def test_what_is_read_is_what_was_written(archive, tmp_path):
    found = Preparation.load(archive)
    found.save(tmp_path / "again.zip")
    again = Preparation.load(tmp_path / "again.zip")
    assert [one.program.digest for one in again.variants] == [one.program.digest for one in found.variants]
    assert again.truth.digest == found.truth.digest
    assert [one.verdict for one in again.variants] == [one.verdict for one in found.variants]
    for ours, theirs in zip(again.sample.arrays, found.sample.arrays, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_model_is_prepared_for_an_absent_gpu(cli, tmp_path):
    path = tmp_path / "tiny.zip"
    cli("bench", *TINY, "--device", "h100", "--against", "none", "--prepare", path)
    found = Preparation.load(path)
    assert [one.name for one in found.variants] == ["replay", "fused"]
    assert found.platform == "cuda"
    assert found.log_psi["directions"] == 12
    assert "f64" in found.truth.text
    assert "prepared for cuda, but target cpu is cpu" in cli("bench", path, "--device", "cpu", code=2).stderr


@pytest.mark.parametrize(
    "words", [("--pass", "batch-replay"), ("--also", "licm"), ("--against", "folx"), ("--check-only",)]
)
def test_an_archive_takes_no_other_variants(archive, cli, words):
    refused = cli("bench", archive, "--device", "cpu", *words, code=2)
    assert "has its variants, shown equal: it is only timed" in refused.stderr


def rewritten(path, name, content):
    with zipfile.ZipFile(path) as file:
        members = {each: file.read(each) for each in file.namelist()}
    members = {**members, name: content(members[name])}
    with zipfile.ZipFile(path, "w") as file:
        for each, text in members.items():
            if text is not None:
                file.writestr(each, text)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("prepared.json", lambda text: None, "no archive of `fusionlab bench --prepare`"),
        ("prepared.json", lambda text: b"{", "no archive of `fusionlab bench --prepare`"),
        ("prepared.json", lambda text: b"[]", "no archive of `fusionlab bench --prepare`"),
        ("prepared.json", lambda text: json.dumps({**json.loads(text), "format": "other"}).encode(),
         "its format is 'other'"),
        ("prepared.json", lambda text: json.dumps({**json.loads(text), "variants": [{}]}).encode(),
         "no archive of `fusionlab bench --prepare`"),
        ("variant-1.mlirbc", lambda text: text[:40], "replay.zip"),
        ("inputs.npz", lambda text: text[:40], "no archive of `fusionlab bench --prepare`"),
    ],
)  # fmt: skip
def test_a_damaged_archive_is_refused(archive, cli, name, content, message):
    rewritten(archive, name, content)
    assert is_prepared(str(archive))
    refused = cli("bench", archive, "--device", "cpu", code=2)
    assert message in refused.stderr
    with pytest.raises(InputError, match=r"replay\.zip"):
        Preparation.load(archive)


def test_the_truth_of_a_file_is_its_function_in_float64(lowered):
    import jax.numpy as jnp

    x = np.linspace(0, 1, 4, dtype=np.float32)
    program = lowered(lambda x: jnp.sin(x), x)
    assert "tensor<4xf64>" in truth_of(program, program, Sample("", (x,)), "cpu").text
