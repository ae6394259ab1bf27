"""What a sum alone makes of its comparisons, each of which went both ways where it was tried: all of them together,
how many of them, products of indicators. And the same of a value and its sum alike, which is rewritten."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from .laplacian_functions import X, fori
from .test_laplacian_guards import of, psi, rewritten


def indicator(y, i):
    return jnp.where(y[i, i] > 0.9, 1.0, 0.0)


def count(y):
    return (y > 0.9).sum()


TABLE = jnp.array([0.0] * 8 + [1.0, 1.0])
RARE = {
    "all": (lambda y: jnp.where(jnp.all(y > 0.4), 1.0, 0.0), "reduce at"),
    "any": (lambda y: jnp.where(jnp.any(y > 0.0), 0.0, 1.0), "reduce at"),
    "select": (lambda y: jnp.where(jax.lax.select(y[0, 0] > 0.9, y[1, 1] > 0.9, False), 1.0, 0.0), "select at"),
    "product": (lambda y: indicator(y, 0) * indicator(y, 1), "multiply at"),
    "converted": (lambda y: (y[0, 0] > 0.9).astype(y.dtype) * (y[1, 1] > 0.9).astype(y.dtype), "multiply at"),
    "of-all": (lambda y: jnp.prod(jnp.where(y > 0.4, 1.0, 0.0)), "reduce at"),
    "contracted": (
        lambda y: jnp.where(y[0, :1] > 0.9, 1.0, 0.0) @ jnp.where(y[1, 1:2] > 0.9, 1.0, 0.0),
        "dot_general at",
    ),
    "count": (lambda y: jnp.where(count(y) >= 8, 1.0, 0.0), "compare at"),
    "equal-count": (lambda y: jnp.where(count(y) == 9, 1.0, 0.0), "compare at"),
    "sum": (lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() > 7.5, 1.0, 0.0), "compare at"),
    "equal-sum": (lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() == 9.0, 1.0, 0.0), "compare at"),
    "polynomial": (lambda y: (n := indicator(y, 0) + indicator(y, 1)) * (n - 1), "multiply at"),
    "power": (lambda y: (n := indicator(y, 0) + indicator(y, 1)) ** 2 - n, "subtract at"),
    "quotient": (lambda y: (count(y) // 8).astype(y.dtype), "divide at"),
    "excess": (lambda y: jnp.maximum(count(y) - 7, 0).astype(y.dtype), "maximum at"),
    "table": (lambda y: TABLE[count(y)], "which element"),
}


@pytest.mark.parametrize("name", RARE)
def test_what_the_sum_alone_makes_of_comparisons(name):
    gate, why = RARE[name]
    _, result = rewritten(of(lambda y: psi(None, y) + gate(y) * jnp.sin(y).sum()), X)
    assert not result.applied
    assert any(why in event.reason for event in result.events), result.events


ONE_AFTER_ANOTHER = {
    "product": lambda y: indicator(y, 0) * (indicator(y, 1) * jnp.sin(y).sum()),
    "selections": lambda y: jnp.where(y[0, 0] > 0.9, jnp.where(y[1, 1] > 0.9, jnp.sin(y).sum(), 0.0), 0.0),
    "elements": lambda y: (indicator(y, 0) * (jnp.where(y[1, 1] > 0.9, 1.0, 0.0) * jnp.sin(y))).sum(),
}


@pytest.mark.parametrize("name", ONE_AFTER_ANOTHER)
def test_a_term_behind_two_rare_gates(name):
    _, result = rewritten(of(lambda y: psi(None, y) + ONE_AFTER_ANOTHER[name](y)), X)
    assert not result.applied
    why = ("lets through what", "wherever it was tried")  # or the derivative multiplies the gates by themselves
    assert any(part in event.reason for event in result.events for part in why), result.events


QUICK = ("all", "count", "selections")
OTHERS = [name for name in (*RARE, *ONE_AFTER_ANOTHER) if name not in (*QUICK, "table")]


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)])
def test_a_value_that_makes_the_same_of_them_is_rewritten(name, run_raised):
    """But for tables: there the refusal stands, because their indices are not recognised as the same."""
    gate = RARE[name][0] if name in RARE else None
    term = ONE_AFTER_ANOTHER[name] if gate is None else lambda y: gate(y) * jnp.sin(y).sum()

    def value(_, y):
        return psi(None, y) + term(y)

    def function(x):
        return jax.vmap(lambda y: (value(None, y), fori(value, None, y)))(x)

    program, result = rewritten(function, X)
    assert result.applied, result.events
    there = np.concatenate([X, 1.5 + 0.1 * X])[: len(X)]
    for ours, theirs in zip(run_raised(result.program, [there]), run_raised(program, [there]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
