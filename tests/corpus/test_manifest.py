"""The manifest and the files beside it: what is read, and what is refused."""

import json
import math

import pytest

from fusionlab.corpus.manifest import MANIFEST, SCHEMA, TEXT, Corpus, ExpectedCompile, packed
from fusionlab.errors import InputError
from tests.corpus.small import write_small_corpus

SPEC = {"name": "x", "shape": [8, 8], "dtype": "float32", "draw": "normal", "low": 0.0, "high": 1.0}


def test_a_corpus_is_read_as_it_was_written(tmp_path):
    compiles = {
        "a100": {"0.10.2": {"launches": 2, "copies": 0, "temp_bytes": 256}, "0.6.2": {"reason": "unknown call"}}
    }
    corpus = write_small_corpus(tmp_path, compiles=compiles)
    (one,) = corpus.programs
    assert one.expected_of("a100", "0.10.2") == ExpectedCompile({"launches": 2, "copies": 0, "temp_bytes": 256})
    assert one.expected_of("a100", "0.6.2") == ExpectedCompile(reason="unknown call")
    assert one.expected_of("a100", "0.9.2") is None
    assert one.expected_of("h100", "0.10.2") is None
    assert json.loads(json.dumps(corpus.to_json())) == json.loads((tmp_path / MANIFEST).read_text())
    assert corpus.program(one).name == "small"


def test_a_name_that_is_not_there(tmp_path):
    corpus = write_small_corpus(tmp_path)
    assert corpus.select([]) == corpus.programs
    with pytest.raises(InputError, match="unknown program 'smal'; did you mean: small"):
        corpus.select(["smal"])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"name": "../x"}, "program 0: .* is no name of a program"),
        ({"name": None}, "program 0"),
        ({"inputs": [{"name": "x"}]}, "program 0: .*KeyError"),
        ({"outputs": [1]}, "program 0"),
        ({"compiles": {"a100": {"0.10.2": {"launches": 2}}}}, "program 0: .*copies"),
        ({"compiles": []}, "program 0"),
        ({"compiles": {"a100": {"0.10.2": {"launches": math.inf, "copies": 0, "temp_bytes": 0}}}}, "OverflowError"),
        ({"about": "\x1b[2J"}, "is not printable text"),
        ({"licence": "\ud800"}, "is not printable text"),
        ({"group": ["other"]}, "is not printable text"),
        ({"compiles": {"a100\n": {}}}, "is not printable text"),
        ({"stablehlo_ops": math.inf}, "program 0: .*OverflowError"),
        ({"inputs": [{**SPEC, "shape": [math.inf]}]}, "program 0: .*shape"),
        ({"inputs": [{**SPEC, "shape": [-1]}]}, "program 0: .*shape"),
        ({"inputs": [{**SPEC, "shape": [10**13]}]}, "program 0: .*more than"),
        ({"inputs": [{**SPEC, "draw": "uniform", "low": 1, "high": 0}]}, "program 0: .*the least below the most"),
        ({"inputs": [{**SPEC, "high": math.inf}]}, "program 0: .*finite"),
    ],
)
def test_an_entry_of_another_form_is_named(tmp_path, changed, message):
    with pytest.raises(InputError, match=message):
        write_small_corpus(tmp_path, **changed)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([{**SPEC, "shape": [5]}], r"argument 0 is float32 \[8, 8\]; the manifest says float32 \[5\]"),
        ([{**SPEC, "dtype": "float64"}], r"argument 0 is float32 .* says float64"),
        ([], "takes 1 argument, and the manifest has 0"),
        ([SPEC, SPEC], "takes 1 argument, and the manifest has 2"),
    ],
)
def test_a_program_of_other_inputs_is_named(tmp_path, inputs, message):
    corpus = write_small_corpus(tmp_path, inputs=inputs)
    with pytest.raises(InputError, match=message):
        corpus.program(corpus.programs[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (json.dumps({"schema": SCHEMA, "licence": [1], "programs": []}), "field licence is not text"),
        ("[]", f"schema {SCHEMA}"),
        ('{"schema": "other-1"}', f"schema {SCHEMA}"),
        (json.dumps({"schema": SCHEMA}), "has no list of programs"),
    ],
)
def test_a_file_that_is_no_manifest(tmp_path, content, message):
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(InputError, match=message):
        Corpus.read(tmp_path)


def test_a_program_that_is_there_twice(tmp_path):
    write_small_corpus(tmp_path)
    document = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps({**document, "programs": document["programs"] * 2}))
    with pytest.raises(InputError, match="small is there twice"):
        Corpus.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"plain", "not a gzip file"),
        (packed(b"x" * 1000)[:-9], "its end is missing"),
        (packed(b"module {}"), "not the text of the manifest"),
    ],
)
def test_a_damaged_text_is_named(tmp_path, content, message):
    corpus = write_small_corpus(tmp_path)
    path = tmp_path / f"small{TEXT}"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        corpus.program(corpus.programs[0])
