"""Terms behind several comparisons, which no random point shows: conjunctions, counts, products of indicators. In the
sum alone they are seen, and in a value and its sum alike they are rewritten."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..laplacian_functions import X, fori
from .test_guards import of, psi, rewritten


def indicator(y, i):
    return jnp.where(y[i, i] > 0.9, 1.0, 0.0)


def count(y):
    return (y > 0.9).sum()


TABLE = np.array([0.0] * 8 + [1.0, 1.0])
RARE = {
    "all": lambda y: jnp.where(jnp.all(y > 0.4), 1.0, 0.0),
    "any": lambda y: jnp.where(jnp.any(y > 0.0), 0.0, 1.0),
    "select": lambda y: jnp.where(jax.lax.select(y[0, 0] > 0.9, y[1, 1] > 0.9, False), 1.0, 0.0),
    "product": lambda y: indicator(y, 0) * indicator(y, 1),
    "converted": lambda y: (y[0, 0] > 0.9).astype(y.dtype) * (y[1, 1] > 0.9).astype(y.dtype),
    "of-all": lambda y: jnp.prod(jnp.where(y > 0.4, 1.0, 0.0)),
    "contracted": lambda y: jnp.where(y[0, :1] > 0.9, 1.0, 0.0) @ jnp.where(y[1, 1:2] > 0.9, 1.0, 0.0),
    "count": lambda y: jnp.where(count(y) >= 8, 1.0, 0.0),
    "equal-count": lambda y: jnp.where(count(y) == 9, 1.0, 0.0),
    "sum": lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() > 7.5, 1.0, 0.0),
    "equal-sum": lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() == 9.0, 1.0, 0.0),
    "polynomial": lambda y: (n := indicator(y, 0) + indicator(y, 1)) * (n - 1),
    "power": lambda y: (n := indicator(y, 0) + indicator(y, 1)) ** 2 - n,
    "quotient": lambda y: (count(y) // 8).astype(y.dtype),
    "excess": lambda y: jnp.maximum(count(y) - 7, 0).astype(y.dtype),
    "table": lambda y: jnp.asarray(TABLE)[count(y)],
}


ONE_AFTER_ANOTHER = {
    "product": lambda y: indicator(y, 0) * (indicator(y, 1) * jnp.sin(y).sum()),
    "selections": lambda y: jnp.where(y[0, 0] > 0.9, jnp.where(y[1, 1] > 0.9, jnp.sin(y).sum(), 0.0), 0.0),
    "elements": lambda y: (indicator(y, 0) * (jnp.where(y[1, 1] > 0.9, 1.0, 0.0) * jnp.sin(y))).sum(),
}


QUICK = ("all", "count", "selections")
OTHERS = [name for name in (*RARE, *ONE_AFTER_ANOTHER) if name not in QUICK]
CASES = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]


def term_of(name):
    if name in RARE:
        return lambda y: RARE[name](y) * jnp.sin(y).sum()
    return ONE_AFTER_ANOTHER[name]


@pytest.mark.parametrize("name", CASES)
def test_a_term_of_the_sum_alone(name):
    _, result = rewritten(of(lambda y: psi(None, y) + term_of(name)(y)), X)
    assert not result.applied
    assert any("none has the Laplacian" in event.reason for event in result.events), result.events


@pytest.mark.parametrize("name", CASES)
def test_a_value_that_makes_the_same_of_them_is_rewritten(name, run_raised):
    def value(_, y):
        return psi(None, y) + term_of(name)(y)

    def function(x):
        return jax.vmap(lambda y: (value(None, y), fori(value, None, y)))(x)

    program, result = rewritten(function, X)
    assert result.applied, result.events
    there = np.concatenate([X, 1.5 + 0.1 * X])[: len(X)]
    for ours, theirs in zip(run_raised(result.program, [there]), run_raised(program, [there]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
