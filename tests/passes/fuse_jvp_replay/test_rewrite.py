"""Passes that are tried on one program share its view, and identify each sum of it once."""

import math
import re

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo import lowering
from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.fuse_jvp_replay import sites
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.fuse_jvp_replay.sites import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.sparsify_directions import SparsifyDirections
from fusionlab.passes.transpose_replay import TransposeReplay
from fusionlab.workloads.catalogue import build

from ..laplacian_assertions import lower
from ..laplacian_functions import X, fori

REASON = "it is one of a kind"


@pytest.fixture
def searched(monkeypatch):
    """The places for which a decision was sought; none is found."""
    found = []

    def search(flat, places, *_):
        found.append(tuple(places))
        raise Refusal(Ground.TIES, REASON, is_final=True)

    monkeypatch.setattr(sites, "derivation", search)
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
    setting = Setting()
    for one in (SparsifyDirections(), CollapseReplay(), SparsifyDirections(chunks=3), TransposeReplay()):
        result = one.run(program, setting)
        assert [event.reason for event in result.events] == [REASON]
    assert len(searched) == 1
    SparsifyDirections().run(other, setting)
    assert len(searched) == 2, "another program"
    SparsifyDirections().run(program, Setting())
    assert len(searched) == 3, "another run"


def test_loops_with_as_many_directions_are_decided_together(searched):
    def two(y):
        return fori(lambda _, z: jnp.sin(z).sum(), None, y), fori(lambda _, z: jnp.cos(z).sum(), None, y)

    result = SparsifyDirections().run(lower(jax.vmap(two), X), Setting())
    assert [len([place for place in places if place.loop is not None]) for places in searched] == [2]
    assert [event.reason for event in result.events] == [REASON] * 2


def test_a_reason_that_is_kept_holds_nothing_of_the_search(searched):
    [site] = view_of(program_of(jnp.sin), Setting()).sites
    for _ in range(2):
        with pytest.raises(Refusal, match=REASON) as reason:
            site.decision(math.inf)
        assert reason.value.__cause__ is None
        assert reason.value.__context__ is None
    assert len(searched) == 1


def test_of_many_programs_the_last_are_kept(searched, monkeypatch):
    monkeypatch.setattr(sites, "_MOST_VIEWS", 2)
    setting = Setting()
    programs = [program_of(function) for function in (jnp.sin, jnp.cos, jnp.tanh)]
    first, second = (view_of(program, setting) for program in programs[:2])
    assert view_of(programs[0], setting) is first
    view_of(programs[2], setting)
    assert len(setting.findings[sites.View]) == 2
    assert view_of(programs[0], setting) is first
    assert view_of(programs[1], setting) is not second


@pytest.mark.slow
def test_what_a_rewriting_made_is_not_searched(monkeypatch):
    """The sums over an identity of the reverse pass, by the electrons of the second layer."""
    extents = []
    decided = sites.derivation

    def seen(flat, places, extent, deadline):
        extents.append(extent)
        return decided(flat, places, extent, deadline)

    monkeypatch.setattr(sites, "derivation", seen)
    source = build("ferminet", "LiH", walkers=2, size="tiny")
    program = lowering.lower(source, "cpu")
    result = TransposeReplay().run(program, Setting())
    assert result.applied
    assert extents == [12], "as in the program before"
    assert {site.extent for site in sites.View(result.program).sites} == {3, 4, 12}


def test_products_are_sought_and_compared_in_one_program_where_no_maximum_is_held_constant(monkeypatch):
    made = []
    lowered = ProductTrial._lowered
    monkeypatch.setattr(ProductTrial, "_lowered", lambda trial, *of: made.append(of) or lowered(trial, *of))
    value = lambda y: (jnp.tanh(y) ** 2).sum()  # noqa: E731
    function = jax.vmap(lambda y: (value(y), fori(lambda _, z: value(z), None, y)))
    assert SparsifyDirections().run(lower(function, X), Setting()).applied
    assert len(made) == 1
