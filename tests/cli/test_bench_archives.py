"""Archives of everything that is made without the device: read back as they were written, and refused if damaged."""

import hashlib
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fusionlab.bench import compilation
from fusionlab.bench.prepared import Preparation, is_prepared, truth_of
from fusionlab.codegen.cache import RECORD_FORMAT
from fusionlab.codegen.compile import compile_program
from fusionlab.equivalence.samples import Sample
from fusionlab.errors import InputError
from tests.optional_packages import needs_the_cuda_plugin

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
    assert document["prepared_with"]["versions"]["jax"].startswith("jax ")
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


@pytest.mark.slow
@needs_the_cuda_plugin
def test_a_model_is_prepared_and_compiled_for_an_absent_gpu(cli, as_json, tmp_path):
    path = tmp_path / "tiny.zip"
    cli("bench", *TINY, "--device", "h100", "--against", "none", "--prepare", path)
    found = Preparation.load(path)
    assert [one.name for one in found.variants] == ["replay", "fused"]
    assert found.platform == "cuda"
    assert found.log_psi["directions"] == 12
    assert "f64" in found.truth.text
    assert "prepared for cuda, but target cpu is cpu" in cli("bench", path, "--device", "cpu", code=2).stderr
    again = tmp_path / "compiled.zip"
    assert "prepared for cuda" in cli("bench", path, "--device", "cpu", "--prepare", again, code=2).stderr
    cli("bench", path, "--device", "h100", "--prepare", again, "--repeats", 3, code=2)
    assert not again.exists()
    document = as_json("bench", path, "--device", "h100", "--prepare", again, "--jobs", 2)
    assert (document["executables"], document["failures"]) == (5, [])  # with and without CUDA graphs, and the truth
    executables = Preparation.load(again).executables.values()
    assert all(one.serialized and one.record["thunk_sequence"] for one in executables)


@pytest.mark.parametrize(
    "words",
    [
        ("--pass", "batch-replay"), ("--also", "licm"), ("--against", "folx"), ("--check-only",), ("--walkers", 7),
        ("--model", "ferminet"), ("--seed", 3), ("--memory-budget", "1GiB"), ("--check-walkers", 2),
    ],
)  # fmt: skip
def test_an_archive_takes_no_other_variants(archive, cli, words):
    refused = cli("bench", archive, "--device", "cpu", *words, code=2)
    assert f"is only compiled and timed: leave {words[0]} out" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--repeats", 3), "leave --repeats out"),
        (("--check-only",), "name one of them"),
        (("--counters",), "--counters"),
    ],
)
def test_what_only_prepares_takes_no_options_of_timing(cli, tmp_path, replay_file, words, message):
    path = tmp_path / "none.zip"
    refused = cli("bench", replay_file, "--pass", "batch-replay", "--device", "cpu", "--prepare", path, *words, code=2)
    assert message in refused.stderr
    assert not path.exists()


def test_the_seed_of_an_archive_is_that_of_its_inputs(cli, as_json, tmp_path, replay_file):
    path = tmp_path / "seed.zip"
    cli("bench", replay_file, "--pass", "batch-replay", "--device", "cpu", "--seed", 5, "--prepare", path)
    assert as_json("bench", path, *SHORT, "--records", "none")["protocol"]["seed"] == 5


@pytest.fixture
def compiled(archive, as_json, tmp_path):
    path = tmp_path / "compiled.zip"
    document = as_json("bench", archive, "--device", "cpu", "--jobs", 2, "--prepare", path)
    assert (document["executables"], document["failures"]) == (3, [])  # two variants and the truth
    return path


@pytest.fixture
def compiles(monkeypatch):
    """The names of the programs that are compiled, not loaded."""
    names = []

    def compile_for(program, *arguments, **how):
        names.append(program.name)
        return compile_program(program, *arguments, **how)

    monkeypatch.setattr(compilation, "compile_program", compile_for)
    return names


def test_what_was_compiled_ahead_of_time_is_loaded_and_not_compiled(
    compiled, cli, as_json, compiles, monkeypatch, tmp_path
):
    document = as_json("bench", compiled, *SHORT, "--records", "none")
    assert (compiles, document["failures"]) == ([], [])
    assert all(one["device_check"]["verdict"] in ("equal", "within-bound") for one in document["variants"])
    assert all(one["dynamic_launches"] > 0 and one["compile_s"] > 0 for one in document["variants"])
    assert all(one["compiled_ahead"] for one in document["variants"])
    again = tmp_path / "again.zip"
    Preparation.load(compiled).save(again)
    assert Preparation.load(again).executables == Preparation.load(compiled).executables
    monkeypatch.setattr(compilation, "versions", lambda: "jax 99")
    result = cli("bench", compiled, *SHORT, "--records", "none")
    assert "jax 99, these options are not the archive's): original, fused, original\n" in result.stderr
    assert len(compiles) == 3


def test_what_does_not_load_is_compiled_and_said(compiled, cli, compiles):
    with zipfile.ZipFile(compiled) as file:
        name = next(each for each in file.namelist() if each.endswith(".bin"))
    digest = hashlib.sha256(b"no executable").hexdigest()
    rewritten(compiled, name, lambda content: b"no executable")
    rewritten(compiled, name.replace(".bin", ".json"), edited(sha256=digest))
    others = [each for each in Preparation.load(compiled).executables if each not in name]
    rewritten(compiled, f"compiled/{others[0]}.json", edited(optimized_hlo="no module"))
    result = cli("bench", compiled, *SHORT, "--records", "none")
    assert result.stderr.count("ahead of time does not load: ") == 2
    assert len(compiles) == 2


def test_executables_are_those_of_the_flags(compiled, cli, compiles, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    assert "these options are not the archive's" in cli("bench", compiled, *SHORT, "--records", "none").stderr
    assert len(compiles) == 3


MEMORY = {"argument_bytes": 1, "output_bytes": 1, "temp_bytes": 1, "alias_bytes": 0}


def test_damaged_records_of_compiles_are_refused(compiled, cli):
    with zipfile.ZipFile(compiled) as file:
        name = next(each for each in file.namelist() if each.startswith("compiled/") and each.endswith(".json"))
    whole = compiled.read_bytes()
    for content in (
        lambda text: None, lambda text: b"{}", edited(memory={"temp_bytes": 1}),
        edited(memory={**MEMORY, "temp_bytes": "1"}), edited(memory={**MEMORY, "temp_bytes": -1}),
        edited(compile_s="long"), edited(compile_s=-1.0), edited(format=RECORD_FORMAT + 1),
        edited(options={"xla_dump_to": ["x"]}), edited(options={"xla_dump_to": None}), edited(sha256="0"),
    ):  # fmt: skip
        compiled.write_bytes(whole)
        rewritten(compiled, name, content)
        assert "no archive of `fusionlab bench --prepare`" in cli("bench", compiled, "--device", "cpu", code=2).stderr
    with zipfile.ZipFile(compiled) as file:
        first, second, _ = (each for each in file.namelist() if each.endswith(".bin"))
        other = file.read(second)
    compiled.write_bytes(whole)
    rewritten(compiled, first, lambda content: other)
    assert "is another one" in cli("bench", compiled, "--device", "cpu", code=2).stderr


def test_a_title_is_no_path(archive, as_json, tmp_path):
    def renamed(text):
        document = json.loads(text)
        document["workload"]["title"] = "../evil"
        return json.dumps(document).encode()

    rewritten(archive, "prepared.json", renamed)
    document = as_json("bench", archive, *SHORT, "--records", tmp_path / "records")
    assert Path(document["path"]).parent == tmp_path / "records"


def rewritten(path, name, content):
    with zipfile.ZipFile(path) as file:
        members = {each: file.read(each) for each in file.namelist()}
    members = {**members, name: content(members[name])}
    with zipfile.ZipFile(path, "w") as file:
        for each, text in members.items():
            if text is not None:
                file.writestr(each, text)


def edited(**fields):
    return lambda text: json.dumps({**json.loads(text), **fields}).encode()


def arrays(*given):
    file = io.BytesIO()
    np.savez(file, *given)
    return file.getvalue()


def test_flipped_bytes_are_refused(archive, cli):
    content = bytearray(archive.read_bytes())
    content[200:260] = bytes(255 - byte for byte in content[200:260])
    archive.write_bytes(content)
    assert "no archive of `fusionlab bench --prepare`" in cli("bench", archive, "--device", "cpu", code=2).stderr


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
        ("inputs.npz", lambda text: b"", "no archive of `fusionlab bench --prepare`"),
        ("prepared.json", edited(variants=[]), "it has no variants"),
        ("prepared.json", edited(programs=[]), "no archive of `fusionlab bench --prepare`"),
        ("prepared.json", edited(workload="x"), "its field workload is 'x'"),
        ("prepared.json", edited(workload={}), "it lacks 'title'"),
        ("prepared.json", lambda text: text.replace(b'"within-bound"', b'"different"'), "not shown equal: different"),
        ("prepared.json", lambda text: text.replace(b'"name": "fused"', b'"name": "original"'), "two of one name"),
        ("prepared.json", lambda text: text.replace(b'"lower_s": ', b'"lower_s": "slow", "_": '), "its field lower_s"),
        ("prepared.json", lambda text: b"[" * 100_000, "no archive of `fusionlab bench --prepare`"),
        ("inputs.npz", lambda text: arrays(np.zeros(2)), "takes other arguments than its inputs"),
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
