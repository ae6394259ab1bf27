"""No file, however damaged, ends or stops fusionlab: a few of each kind, and what the long runs have found."""

from pathlib import Path

import pytest

from fusionlab.errors import InputError
from fusionlab.hlo.optimised.saved import load_saved
from fusionlab.hlo.sandbox import client
from tests.fuzzing import corpus
from tests.fuzzing.parsers import FINDING, READ, REFUSED, outcome
from tests.hlo.optimised.test_parser import TEXT

CASES = Path(__file__).with_name("cases")
SINE = """func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %x : tensor<4xf32> loc("NAME")
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    corpus.write(folder, every=12)
    return corpus.load(folder)


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_a_damaged_file_is_read_or_refused(kind, corpora, tmp_path):
    found = [
        (seed, *outcome(kind, corpus.mutated(kind, seed, corpora), tmp_path / "damaged"))
        for seed in range(10 if kind == "rewritten-text" else 40)
    ]
    assert [one for one in found if one[1] == FINDING] == []
    assert REFUSED in {what for _, what, _ in found}


@pytest.mark.parametrize("kind", corpus.KINDS)
def test_a_file_that_is_not_damaged_is_read(kind, corpora, tmp_path):
    for content in corpora[corpus.KINDS[kind].form][:3]:
        assert outcome(kind, content, tmp_path / "whole") == (READ, "")


def test_a_seed_is_one_damage(corpora):
    for kind in corpus.KINDS:
        files = [corpus.mutated(kind, seed, corpora) for seed in (3, 3, 4)]
        assert files[0] == files[1] != files[2]


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("aborts_bytecode.mlirbc", "MLIR's reader ends with SIGABRT"),
        ("aborts_portable_artifact.mlirbc", "MLIR's reader ends with SIGABRT"),
        ("hangs_bytecode.mlirbc", "MLIR did not read it within 1 s"),
    ],
)
def test_a_reader_that_dies_or_hangs_is_one_line(name, cause, cli, monkeypatch, tmp_path):
    if name.startswith("hangs"):
        monkeypatch.setattr(client, "TIME_LIMIT_S", 1.0)
    result = cli("replays", CASES / name, "--quiet")
    assert (result.exit_code, result.stderr) == (
        2,
        f"fusionlab: {CASES / name}: not a valid StableHLO module: {cause}\n",
    )
    good = tmp_path / "good.mlir"
    good.write_text(SINE)
    monkeypatch.undo()
    assert load_saved(good).name == "good"


def test_a_name_that_is_no_text(tmp_path):
    """The bindings end the process when they are asked for it."""
    path = tmp_path / "named.mlir"
    path.write_text(SINE.replace("NAME", r"\FF\FE"))
    with pytest.raises(InputError, match="MLIR's reader ends with SIGABRT"):
        load_saved(path)


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("HloModule jit_f,", "HloModule ,", "line 1, column 1: not HLO text: expected HEADER"),
        ("parameter(0)\n  %constant", "parameter()\n  %constant", "%p.0 of %fused_tanh: parameter() has no number"),
        ("parameter(0)\n  %constant", "parameter(3)\n  %constant", "parameters of %fused_tanh are not numbered from 0"),
        ("%constant.2 = f32[2]", "%constant.2 = i1[2]", "unknown HLO element type 'i1'"),
        ("%constant.2 = f32[2]", f"%constant.2 = f32[{'9' * 400}]", "more bytes than any memory holds"),
        ("%constant.2 = f32[2]", f"%constant.2 = {'(' * 999}f32[2]{')' * 999}", "a shape that nests deeper than 32"),
        ("tanh(%p.0)", "tanh(%p.9)", "%tanh.1 of %fused_tanh reads %p.9, which is not there"),
        ("tanh(%p.0)", "tanh(%tanh.1)", "%tanh.1 of %fused_tanh reads %tanh.1 before it is computed"),
        ("fusion(%lt)", "fusion()", "%loop_tanh_fusion of %body gives 0 operands to a fusion of 1 parameters"),
        (", condition=%condition", "", "is a while whose condition names no computation"),
        ("body=%body,", "body=%main,", "%main calls itself"),
        ('"n":"30"', '"n":"?"', "a known_trip_count of '?'"),
        ("get-tuple-element(%carry), index=1", "get-tuple-element(), index=1", "is a get-tuple-element of 0 operands"),
    ],
)  # fmt: skip
def test_damaged_hlo_text_says_where(old, new, cause, tmp_path):
    assert TEXT.count(old) >= 1
    path = tmp_path / "damaged.hlo"
    path.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_saved(path)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)
