"""Verdicts by content: what counts, what does not, and what is not kept."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.verdict import Verdict
from fusionlab.equivalence.verdict_store import CHECKING, VerdictStore
from fusionlab.workloads.catalogue import build
from tests.test_imports import ROOT, imported

X = np.ones(3, np.float32)


@pytest.fixture
def store(tmp_path):
    return VerdictStore(tmp_path / "verdicts")


def test_a_verdict_is_found_again_by_the_programs(store, lowered):
    first, second = lowered(jnp.sin, X), lowered(lambda x: jnp.sin(x) * 1, X)
    key = store.key(first, (second,))
    assert store.load(key) is None
    exact = Identity("not-covered", 6, 1, 1.0, "custom call @theirs has no rule", walkers=2)
    store.store(key, Verdict("within-bound", walkers=2, exact=exact))
    assert store.load(key) == Verdict("within-bound", walkers=2, exact=exact)
    assert store.key(first, (first,)) != key
    assert store.key(second, (first,)) != key


def test_where_the_sources_lie_does_not_count(store, program_of_text):
    text = 'func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{ return %a : tensor<3xf32> }} loc("{}":1:1)'
    here, there = (program_of_text(text.format(path)) for path in ("/here/f.py", "/there/f.py"))
    assert here.digest != there.digest
    assert store.key(here, (here,)) == store.key(there, (there,))


def test_a_recipe_is_the_workload_and_what_is_done_to_it(store):
    workload, again = (build("ferminet", "LiH", walkers=2, size="tiny") for _ in range(2))
    key = store.recipe(workload, "peer folx", "cpu")
    assert key == store.recipe(again, "peer folx", "cpu")
    changes = ({"walkers": 3}, {"dtype": "float64"}, {"size": "full"}, {"laplacian": "scan"}, {"spin": 2})
    others = [store.recipe(workload.rebuild(**change), "peer folx", "cpu") for change in changes]
    others += [store.recipe(workload, "peer vmap", "cpu"), store.recipe(workload, "peer folx", "cuda")]
    assert len({key, *others}) == 8


@pytest.mark.parametrize("word", ["different", "not-checked"])
def test_only_equality_is_kept(store, word):
    store.store("key", Verdict(word))
    assert store.load("key") is None
    assert not store.folder.exists()


def test_a_broken_file_is_no_verdict(store):
    store.store("key", Verdict("equal"))
    (store.folder / "key.json").write_text("{")
    assert store.load("key") is None


def test_a_folder_that_cannot_be_made_costs_a_check_and_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = VerdictStore(tmp_path / "file")
    store.store("key", Verdict("equal"))
    assert store.load("key") is None


def test_every_source_that_a_check_runs_counts():
    """But for the leaves of the project, which read, write and start processes."""
    waiting, seen = [ROOT / "fusionlab/equivalence/check.py"], set()
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            named = [ROOT / name.replace(".", "/") for name in imported(path, types=False)]  # and names in them
            places = [place for name in named for place in (name, name.parent)]
            files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
            waiting += filter(Path.is_file, files)
    package = ROOT / "fusionlab"
    run = {path for path in seen if path.relative_to(package).parts[0] in ("hlo", "codegen", "equivalence")}
    for known in ("hlo/view.py", "codegen/cpu_options.py", "codegen/targets/__init__.py", "equivalence/oracle.py"):
        assert package / known in run
    counted = [package / name for name in CHECKING]
    assert not [path for path in run if not any(path.is_relative_to(one) for one in counted)]
