"""Findings of a run: no search is done twice, and what is kept is kept under everything that decides it."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.replay import inventory
from fusionlab.hlo.view import view_of
from fusionlab.passes import laplacian_search
from fusionlab.passes.laplacian_search import Findings
from fusionlab.passes.sums_over_directions import NotSeen, sum_of_loop

from .laplacian_functions import X, fori
from .test_laplacian_guards import lower


@pytest.fixture
def searched(monkeypatch):
    """The sums that were searched for; of none anything is found."""
    asked = []

    def search(question):
        asked.append(question)
        raise NotSeen("it went one way")

    monkeypatch.setattr(laplacian_search, "find_laplacian", search)
    return asked


def test_a_finding_is_kept_under_everything_that_decides_it(searched):
    program = lower(jax.vmap(lambda y: fori(lambda _, z: jnp.sin(z).sum(), None, y)), X)

    def view():
        flat = view_of(program.parse())
        return sum_of_loop(flat, inventory(flat)[0])

    findings = Findings()

    def find(question, digest=program.digest):
        with pytest.raises(NotSeen, match="it went one way") as reason:
            findings.find(question, digest)
        return reason

    find(view())
    assert find(view()).value.__cause__ is None
    assert len(searched) == 1, "another view of the same"
    question = view()
    for other in (
        replace(question, initial=None),
        replace(question, initial=question.flat.arguments[0]),
        replace(question, directions=question.directions - 1),
        replace(question, before=question.before[1:]),
        replace(question, replay=None),
        replace(question, targets=question.flat.arguments),
    ):
        find(other)
    assert len(searched) == 7
    find(question, "another program")
    assert len(searched) == 8
