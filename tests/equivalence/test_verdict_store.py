"""Verdicts by content: what counts, what does not, and what is not kept."""

import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.verdict import Verdict
from fusionlab.equivalence.verdict_store import VerdictStore

X = np.ones(3, np.float32)


@pytest.fixture
def store(tmp_path):
    return VerdictStore(tmp_path / "verdicts")


def test_a_verdict_is_found_again_by_the_programs(store, lowered):
    first, second = lowered(jnp.sin, X), lowered(lambda x: jnp.sin(x) * 1, X)
    key = store.key(first, (second,))
    assert store.load(key) is None
    store.store(key, Verdict("within-bound", walkers=2))
    assert store.load(key) == Verdict("within-bound", walkers=2)
    assert store.key(first, (first,)) != key
    assert store.key(second, (first,)) != key


def test_where_the_sources_lie_does_not_count(store, program_of_text):
    text = 'func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {{ return %a : tensor<3xf32> }} loc("{}":1:1)'
    here, there = (program_of_text(text.format(path)) for path in ("/here/f.py", "/there/f.py"))
    assert here.digest != there.digest
    assert store.key(here, (here,)) == store.key(there, (there,))


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
