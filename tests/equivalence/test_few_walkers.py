"""Programs at fewer walkers: the same function of each, or no other number of walkers at all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.identity import compare_functions
from fusionlab.equivalence.few_walkers import narrow
from fusionlab.hlo.view import view_of

WALKERS, N, F = 7, 4, 5
X = jax.ShapeDtypeStruct((WALKERS, N, 3), np.float32)
W = np.linspace(-1.0, 1.0, 3 * F, dtype=np.float32).reshape(3, F)
OF_WALKERS = np.arange(WALKERS, dtype=np.float32)


def layer(x):
    return jnp.tanh(x @ W)


def determinant(x):
    return jnp.linalg.slogdet(layer(x)[..., :N] + jnp.eye(N))[1]


ALIKE = {
    "layers": lambda x: layer(x) @ W.T,
    "reduced": lambda x: layer(x).max((1, 2)),
    "other-layout": lambda x: jnp.moveaxis(jnp.moveaxis(layer(x), 0, 2) * 2.0, 2, 0),
    "pairs": lambda x: jnp.linalg.norm(x[:, :, None] - x[:, None] + 1, axis=-1),
    "pair-list": lambda x: x[:, np.array([0, 0, 1])] - x[:, np.array([1, 2, 3])],
    "scattered": lambda x: layer(x).at[:, np.array([1, 3])].add(jnp.cos(layer(x)[:, :2])),
    "chosen-by-walker": lambda x: jnp.take_along_axis(layer(x), jnp.argmax(layer(x), 1, keepdims=True), 1),
    "sorted-and-reversed": lambda x: jnp.sort(x, 1)[:, ::-1],
    "joined": lambda x: jnp.concatenate([jnp.pad(x, ((0, 0), (1, 0), (0, 0))), x], 1),
    "diagonal": lambda x: jax.vmap(lambda y: jnp.diagonal(y @ y.T))(x),
    "determinants": determinant,
    "loop": lambda x: lax.fori_loop(0, 3, lambda k, y: jnp.sin(y) * k + lax.dynamic_slice_in_dim(y, k, 1, 1), x),
    "branches": lambda x: lax.cond(W.sum() < 1.0, jnp.sin, jnp.cos, x),
    "barrier": lambda x: lax.optimization_barrier((x, jnp.sin(x)))[1],
    "equal-constants": lambda x: x + np.broadcast_to(np.arange(3, dtype=np.float32), x.shape),
}
MIXED = {
    "mean": lambda x: layer(x) - layer(x).mean(0),
    "scalar": lambda x: layer(x).sum(),
    "between-walkers": lambda x: jnp.einsum("bnc,anc->ba", x, x),
    "contracted": lambda x: jnp.einsum("bnc,anc,an->bc", x, x, x[..., 0]),
    "exchanged": lambda x: x[::-1],
    "rolled": lambda x: jnp.roll(x, 1, 0),
    "shifted": lambda x: jnp.pad(x, ((1, 0), (0, 0), (0, 0)))[:-1] * x,
    "sorted": lambda x: jnp.sort(x, 0),
    "summed-up": lambda x: jnp.cumsum(x, 0),
    "one-for-all": lambda x: x * x[:1],
    "one-changed": lambda x: x.at[3].set(1.0),
    "added-elsewhere": lambda x: x.at[jnp.int32(x[:, 0, 0])].add(x),
    "numbered": lambda x: x * jnp.arange(WALKERS, dtype=np.float32)[:, None, None],
    "constants": lambda x: x * OF_WALKERS[:, None, None],
    "a-table": lambda x: x * jnp.concatenate([jnp.ones(1), OF_WALKERS])[1:, None, None],
    "looked-up": lambda x: x[jnp.argsort(x[:, 0, 0])],
    "until-all-are-done": lambda x: lax.while_loop(lambda y: (y < 5.0).any(), lambda y: y + 1.0, x),
}


def each(cases):
    return pytest.mark.parametrize("function", [pytest.param(function, id=name) for name, function in cases.items()])


@each(ALIKE)
def test_walkers_that_are_treated_alike(function, lowered):
    """The view at 2 walkers is the program that is lowered at 2."""
    few = view_of(lowered(function, jax.ShapeDtypeStruct((2, N, 3), np.float32)).parse())
    view = view_of(lowered(function, X).parse())
    assert narrow([view])
    assert [value.type.shape[0] for value in (*view.arguments, *view.returns)] == [2, 2]
    assert compare_functions(few, view).result == "identical"


@each(MIXED)
def test_walkers_that_are_not(function, lowered):
    view = view_of(lowered(function, X).parse())
    assert not narrow([view])
    assert view.arguments[0].type.shape == X.shape


def test_two_programs_are_narrowed_together_or_not_at_all(lowered):
    weights = jax.ShapeDtypeStruct((WALKERS, 3), np.float32)
    views = [view_of(lowered(f, X, weights).parse()) for f in (lambda x, w: x @ w.T, lambda x, w: x * w[:, None])]
    assert not narrow(views)
    assert all(view.arguments[0].type.shape == X.shape for view in views)
    alike = [view_of(lowered(f, X).parse()) for f in (jnp.sin, jnp.cos)]
    assert narrow(alike)
    assert not narrow(alike)  # as few as asked for


def test_a_difference_is_seen_at_few_walkers(lowered):
    views = [view_of(lowered(lambda x, f=f: layer(x).sum((1, 2)) * f, X).parse()) for f in (1.0, 1.0000001)]
    assert narrow(views)
    verdict = compare_functions(*views)
    assert verdict.result == "not-identical"
    assert "test_few_walkers.py" in verdict.first_difference
