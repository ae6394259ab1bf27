"""Predicates that few points fulfil, of integers that are made of data: what they choose is compared all the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.oracle import program_runner

from ..laplacian_assertions import assert_rewritten, in_their_precision, rewritten

_random = np.random.default_rng(5)
W = _random.standard_normal((3, 5))
LIMITS = _random.standard_normal((6, 3))
BITS = 2.0 ** np.arange(18).reshape(6, 3)
X = _random.standard_normal((4, 3))
X[0] = 1.2345, *X[0, 1:]
CODE = float(np.sum(BITS * (X[0] > LIMITS)))
"""Of the first walker alone."""


def psi(y):
    return jnp.log(jnp.cosh(jnp.tanh(y @ W) @ jnp.ones(5))) + (jnp.sin(y) ** 2).sum()


def cell(y):
    return jnp.floor(1e3 * y[0]) == 1234


def cell_of_integers(y):
    return lax.stop_gradient(1e3 * y[0]).astype(jnp.int32) == 1234


def code(y):
    return jnp.sum(jnp.where(y > LIMITS, BITS, 0.0)) == CODE


def code_of_integers(y):
    return jnp.sum((y > LIMITS) * BITS.astype(np.int32)) == int(CODE)


RARE = {"cell": cell, "cell of integers": cell_of_integers, "code": code, "code of integers": code_of_integers}


def summed(of, weight=lambda y: 1.0):
    """The value, and its second derivatives weighed."""

    def one(y):
        h, e = jax.linearize(jax.grad(of), y)[1], jnp.eye(3)
        return of(y), lax.fori_loop(0, 3, lambda k, s: s + weight(y) * h(e[k])[k], 0.0)

    return jax.vmap(one)


def weighed(rare):
    """Another weight, by a predicate that the value has, too."""
    return summed(lambda y: psi(y) + jnp.where(rare(y), 1.0, 0.0), lambda y: jnp.where(rare(y), 2.0, 1.0))


def with_a_rule(rare):
    """Another derivative."""
    f = jax.custom_jvp(lambda y: psi(y) + jnp.where(rare(y), 1.0, 0.0))
    f.defjvp(lambda p, t: (f(*p), jax.jvp(psi, p, t)[1] * jnp.where(rare(*p), 2.0, 1.0)))
    return summed(f)


def shifted(rare):
    """A maximum that the value depends on where the predicate holds, and nowhere else."""

    def of(y):
        h = jnp.sin(y) * W[:, 0]
        m = h.max()
        return m + jnp.log(jnp.exp(h - m).sum()) + jnp.where(rare(y), m**2, 0.0)

    return summed(of)


PLANTED = {"weight": weighed, "rule": with_a_rule, "maximum": shifted}


@pytest.mark.parametrize("rare", RARE)
@pytest.mark.parametrize("name", PLANTED)
def test_what_a_rare_predicate_chooses(name, rare):
    function = PLANTED[name](RARE[rare])
    program, result = rewritten(function, X, keep_unused=True)
    assert bool(result.applied) == (name != "rule"), "a derivative of one's own is no Laplacian of the value"
    if not result.applied:
        return
    with in_their_precision((X,)):
        expected, found = (program_runner(each)([X]) for each in (program, result.program))
    for right, ours in zip(expected, found, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rare", RARE)
def test_a_value_that_such_a_predicate_chooses(rare, run_raised):
    assert_rewritten(run_raised, summed(lambda y: jnp.where(RARE[rare](y), jnp.sin(y).prod(), psi(y))), X)
