"""Identification within its limits of time and memory, with a refusal in one line beyond them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.hlo.view import view_of
from fusionlab.passes.fuse_jvp_replay import identify

from ..laplacian_functions import X, fori
from .test_guards import psi, rewritten


def function(x):
    return jax.vmap(lambda y: (psi(None, y), fori(psi, None, y)))(x)


@pytest.fixture
def evaluated(monkeypatch):
    """The number of draws of every evaluation, and the estimate of the elements that one of them holds."""
    draws, sizes = [], []
    outputs, estimate = Evaluator.outputs, identify.elements_at_once

    def counted(evaluator, lowered, arguments):
        draws.append(len(evaluator.arithmetic.seeds))
        return outputs(evaluator, lowered, arguments)

    def noted(lowered):
        sizes.append(estimate(lowered))
        return sizes[-1]

    monkeypatch.setattr(Evaluator, "outputs", counted)
    monkeypatch.setattr(identify, "elements_at_once", noted)
    return draws, sizes


def test_fewer_draws_at_a_time_where_memory_is_short(evaluated, monkeypatch):
    draws, sizes = evaluated
    _, whole = rewritten(function, X)
    assert max(draws) == 4
    monkeypatch.setattr(identify, "AT_ONCE", max(sizes))
    draws.clear()
    _, result = rewritten(function, X)
    assert set(draws) == {1}
    assert result.applied == whole.applied


def test_a_hidden_term_is_seen_in_single_draws(monkeypatch, evaluated):
    draws, sizes = evaluated

    def hidden(x):
        term = lambda y: jnp.where(jnp.all(y > 0.4), 1.0, 0.0) * jnp.sin(y).sum()  # noqa: E731
        return jax.vmap(lambda y: (psi(None, y), fori(lambda _, z: psi(None, z) + term(z), None, y)))(x)

    rewritten(hidden, X)
    monkeypatch.setattr(identify, "AT_ONCE", max(sizes))
    draws.clear()
    assert not rewritten(hidden, X)[1].applied
    assert set(draws) == {1}


def out_of_memory(*_):
    raise MemoryError


@pytest.mark.parametrize(
    ("owner", "name", "limit", "why"),
    [
        pytest.param(identify, "MOST_ELEMENTS", 1000, "the loop is too large to be identified", id="elements"),
        pytest.param(identify, "MOST_SECONDS", -1.0, "the loop was not identified within -1 s", id="seconds"),
        pytest.param(Evaluator, "outputs", out_of_memory, "the loop needs more memory", id="memory"),
    ],
)
def test_beyond_a_limit_it_is_declined_in_one_line(owner, name, limit, why, monkeypatch):
    monkeypatch.setattr(owner, name, limit)
    program, result = rewritten(function, X)
    assert not result.applied
    assert result.program is program
    [event] = result.events
    assert event.reason.startswith(why)
    assert "\n" not in event.reason


def test_elements_that_are_alive_together(lowered):
    """A product of [4, 8] is alive with its operand, then with its sum; what is dead is not counted."""

    def chain(x):
        return jnp.tanh(jnp.sin(jnp.exp(x))).sum()

    flat = view_of(lowered(chain, np.zeros((4, 8), np.float32)).parse())
    assert 64 <= identify.elements_at_once(flat) <= 66
