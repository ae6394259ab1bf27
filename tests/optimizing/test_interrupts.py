"""An interrupt of the first call propagates at once, and the next call is as the first."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.optimizing import rewriting
from fusionlab.optimizing.checking import Runners
from tests.optimizing.functions import decision_of

X = np.linspace(0.2, 1.4, 12, dtype=np.float32).reshape(4, 3)


def energy(x):
    gradient = jax.grad(lambda x: jnp.sum(jnp.log(x)))
    return jax.lax.fori_loop(0, 3, lambda k, sum_: sum_ + jax.jvp(gradient, (x,), (jnp.eye(3)[k],))[1][k], 0.0)


@pytest.fixture
def ended(monkeypatch):
    """Set when the process that computes the exact verdict, which takes for ever, is ended."""
    found = threading.Event()

    def compare_files(original, rewritten, limit_s, stop):
        if stop.wait(60):
            found.set()
        return Identity("not-covered", 0, 0, 1.0)

    monkeypatch.setattr(rewriting, "compare_files", compare_files)
    return found


def interrupted(*arguments, **named):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", [(Runners, "compared"), (rewriting.Future, "result")], ids=["checking", "settling"])
def test_an_interrupt_ends_the_first_call_and_the_next_decides_again(where, ended, monkeypatch, tmp_path):
    function = fusionlab.optimize(jax.vmap(energy), cache=tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(*where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            function(X)
    assert ended.wait(60)
    assert function.fusionlab.decisions == ()
    monkeypatch.setattr(rewriting, "compare_files", lambda *_: Identity("not-covered", 0, 0, 1.0))
    np.testing.assert_allclose(function(X), -(1 / X**2).sum(1), 1e-5)
    assert decision_of(function).rewritten is not None
