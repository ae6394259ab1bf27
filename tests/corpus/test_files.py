"""``studies/corpus``: the manifest against its files."""

import re
from pathlib import Path

import pytest

from fusionlab.corpus.manifest import ARTIFACT, MANIFEST, TEXT, Corpus
from fusionlab.hlo.program import Program

FOLDER = Path(__file__).parents[2] / "studies" / "corpus"
CORPUS = Corpus.read(FOLDER)
NAMES = [one.name for one in CORPUS.programs]
OWN_SOURCES = {"fusionlab", "tests", "examples", "benchmarks"}
MOST_BYTES = 20 * 2**20
MOST_FAST_OPS = 150
"""A program of more ops takes seconds to read in a process of its own."""


def test_every_file_is_of_a_program_and_all_are_small_enough():
    found = {path.name for path in FOLDER.iterdir()}
    assert found == {MANIFEST, *(f"{name}{suffix}" for name in NAMES for suffix in (TEXT, ARTIFACT))}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < MOST_BYTES


def test_what_the_corpus_holds():
    groups = [one.group for one in CORPUS.programs]
    assert groups.count("other") == 10
    assert groups.count("energy") == 10
    assert groups.count("regression") == 4
    assert groups.count("nnvmc") == 14
    assert len(groups) == 38  # docs/corpus.md and docs/features.md
    assert "Apache-2.0" in CORPUS.head["licence"]
    assert [one.name for one in CORPUS.programs if one.outputs is None and not one.why_no_outputs] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_that_of_the_manifest_without_paths_of_a_machine(name):
    text = CORPUS.text(*CORPUS.select([name])).decode()
    assert 'loc("/' not in text
    assert "sdy.sharding_rule" not in text


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_names_the_project_whose_code_was_traced(name):
    (one,) = CORPUS.select([name])
    others = set(re.findall(r'loc\("(\w+)/[^"]*\.py"', CORPUS.text(one).decode())) - OWN_SOURCES - {"numpy"}
    assert others == ({"folx"} if one.licence == "Apache-2.0; traced through folx (MIT)" else set())
    assert one.licence.startswith("Apache-2.0")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one.name, marks=[] if one.ops <= MOST_FAST_OPS else [pytest.mark.full]) for one in CORPUS.programs],
)
def test_text_and_artifact_are_programs_of_the_inputs_of_the_manifest(name):
    (one,) = CORPUS.select([name])
    program = CORPUS.program(one)
    artifact = Program.of_foreign_bytes(CORPUS.artifact(one), FOLDER / f"{name}{ARTIFACT}")
    assert (artifact.inputs, artifact.outputs) == (program.inputs, program.outputs)
    assert program.ops == one.ops
    assert [type_.shape for type_ in program.inputs] == [spec.shape for spec in one.inputs]
    if one.outputs is not None:
        assert [type_.shape for type_ in program.outputs] == [digest.shape for digest in one.outputs]
