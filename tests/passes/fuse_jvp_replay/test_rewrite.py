"""Passes that are tried on one program share its view, and identify each sum of it once."""

import re

import jax
import jax.numpy as jnp
import pytest

from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.fuse_jvp_replay import candidates
from fusionlab.passes.fuse_jvp_replay.recognise import UncoveredMatch
from fusionlab.passes.fuse_jvp_replay.rewrite import Findings
from fusionlab.passes.interface import Setting
from fusionlab.passes.refusals import Ground
from fusionlab.passes.sparsify_directions import SparsifyDirections

from ..laplacian_assertions import lower
from ..laplacian_functions import X, fori

REASON = "it is one of a kind"


@pytest.fixture
def searched(monkeypatch):
    """The candidates that were searched for; of none anything is found."""
    found = []

    def search(candidate, **_):
        found.append(candidate)
        raise UncoveredMatch(Ground.TIES, REASON)

    monkeypatch.setattr(candidates, "find_laplacian", search)
    return found


def program_of(function):
    return lower(jax.vmap(lambda y: fori(lambda _, z: function(z).sum(), None, y)), X)


def test_a_token_beside_a_replay_is_no_fault(program_of_text):
    """It has no type of an array."""
    program = lower(jax.vmap(lambda y: fori(lambda _, z: jnp.sin(z).sum(), None, y) + jnp.sin(y).sum()), X)
    line = "    %token = stablehlo.create_token : !stablehlo.token\n"
    text = re.sub(r"(func.func public @main\([^\n]*\n)", rf"\1{line}", program.text, count=1)
    assert line in text
    assert SparsifyDirections().run(program_of_text(text), Setting()).applied


def test_several_passes_identify_a_sum_once(searched):
    program, other = program_of(jnp.sin), program_of(jnp.cos)
    findings = Findings()
    for one in (SparsifyDirections(), CollapseReplay(), SparsifyDirections(chunks=3)):
        result = one.rewrite(program, Setting(), findings)
        assert [event.reason for event in result.events] == [REASON]
    assert len(searched) == 1
    SparsifyDirections().rewrite(other, Setting(), findings)
    assert len(searched) == 2, "another program"
    SparsifyDirections().rewrite(program, Setting(), Findings())
    assert len(searched) == 3, "another run"


def test_every_sum_of_a_program_is_identified_for_itself(searched):
    def two(y):
        return fori(lambda _, z: jnp.sin(z).sum(), None, y), fori(lambda _, z: jnp.cos(z).sum(), None, y)

    SparsifyDirections().rewrite(lower(jax.vmap(two), X), Setting(), Findings())
    assert len(searched) == len(set(searched)) == 2


def test_a_reason_that_is_kept_holds_nothing_of_the_search(searched):
    [site] = Findings().of(program_of(jnp.sin)).sites
    for _ in range(2):
        with pytest.raises(UncoveredMatch, match=REASON) as reason:
            site.identified()
        assert reason.value.__cause__ is None
        assert reason.value.__context__ is None
    assert len(searched) == 1
