"""``fusionlab models``: the list, its StableHLO ops and where they come from, and what cannot be made."""

import importlib.util
import json
import re

import jax
import pytest

from fusionlab.cli.models import count_ops, stored_counts
from fusionlab.errors import InputError
from fusionlab.workloads.catalogue import ANSATZE, PROGRAMS, build
from fusionlab.workloads.molecules import MOLECULES

WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nH 0 -0.7572 -0.4692\n"
of_this_jax = pytest.mark.skipif(
    stored_counts().jax_version != jax.__version__, reason="the stored ops were counted under another JAX"
)


@pytest.fixture
def water(tmp_path):
    path = tmp_path / "water.xyz"
    path.write_text(WATER)
    return path


@pytest.fixture
def no_deepqmc(monkeypatch):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "deepqmc" else find_spec(name, *a)
    )


def test_every_program_of_the_catalogue_has_a_stored_count():
    ops = stored_counts().ops
    assert {name: {molecule: set(of) for molecule, of in by.items()} for name, by in ops.items()} == {
        name: {molecule: set(PROGRAMS) for molecule in MOLECULES} for name in ANSATZE
    }
    assert all(count > 50 for by in ops.values() for of in by.values() for count in of.values())


LOWERED = [
    pytest.param(name, molecule, marks=pytest.mark.slow if (name, molecule) == ("ferminet", "LiH") else tier)
    for name in ("ferminet", "paulinet", "psiformer", "orbformer", "orbformer-flash")
    for molecule in MOLECULES
    for tier in (pytest.mark.by_turns(3) if molecule == "LiH" else pytest.mark.full,)
]


@of_this_jax
@pytest.mark.parametrize(("name", "molecule"), LOWERED)
def test_stored_counts_are_those_of_programs_lowered_now(name, molecule):
    jax.clear_caches()  # what other tests traced must not be found again: it may differ by an op
    assert count_ops(name, molecule) == stored_counts().of(name, molecule)


def test_the_list(as_json, no_deepqmc):
    listed = as_json("models")
    assert {(entry["name"], entry["molecule"]) for entry in listed} == {(n, m) for n in ANSATZE for m in MOLECULES}
    for entry in listed:
        if entry["name"].startswith("deepqmc:"):
            assert "pip install 'fusionlab[deepqmc]'" in entry["missing"]
        else:
            assert entry["stablehlo_ops"] == stored_counts().of(entry["name"], entry["molecule"])
            assert entry["stablehlo_ops_jax"] == stored_counts().jax_version


def test_the_table_says_under_which_jax_ops_were_counted(cli):
    result = cli("models", "--model", "paulinet")
    assert f"JAX {stored_counts().jax_version}" in result.stdout
    row = re.search(r"paulinet +CH4 .*", result.stdout)[0]
    assert [int(word.replace(",", "")) for word in row.split()[2:]] == [
        10, 230_799, *stored_counts().of("paulinet", "CH4").values(),
    ]  # fmt: skip


def test_a_model_that_cannot_be_made_says_why(cli, no_deepqmc):
    with pytest.raises(InputError, match=r"pip install 'fusionlab\[deepqmc\]'"):
        build("deepqmc:paulinet")
    result = cli("models", "--molecule", "LiH", "--charge", "1", code=0)
    assert re.search(
        r"not available: orbformer LiH, orbformer-flash LiH: .*must be neutral, not of charge 1", result.stdout
    )
    assert re.search(r"not available: deepqmc:paulinet LiH, .*pip install 'fusionlab\[deepqmc\]'", result.stdout)
    assert re.search(r"^ *paulinet +LiH +3 ", result.stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_molecule_of_the_users_own_is_counted_when_it_is_named_with_a_model(cli, as_json, water):
    result = cli("models", "--model", "ferminet", "--molecule", water, "--spin", "2", "--json")
    (entry,) = json.loads(result.stdout)
    assert (entry["molecule"], entry["electrons"]) == ("water", 10)
    assert entry["stablehlo_ops"]["log-psi"] > 100
    assert entry["stablehlo_ops_jax"] == jax.__version__
    assert "lowering ferminet" in result.stderr
    listed = as_json("models", "--molecule", water)
    assert {entry["stablehlo_ops"] for entry in listed} == {None}


def test_a_charge_and_spin_that_are_the_molecules_own_change_nothing(cli):
    given = cli("models", "--model", "ferminet", "--molecule", "LiH", "--charge", "0", "--spin", "0", "--json")
    assert "lowering" not in given.stderr
    (entry,) = json.loads(given.stdout)
    assert entry["stablehlo_ops"] == stored_counts().of("ferminet", "LiH")


@pytest.mark.slow
def test_recounting(as_json):
    (entry,) = as_json("models", "--model", "ferminet", "--molecule", "LiH", "--ops")
    assert entry["stablehlo_ops"] == count_ops("ferminet", "LiH")
    assert entry["stablehlo_ops_jax"] == jax.__version__
