"""Replays of another function than the value in places that random points miss, by what hides the difference."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.hlo import lowering
from fusionlab.passes.interface import Setting
from fusionlab.passes.sparsify_directions import SparsifyDirections
from workloads.catalogue import build

from ..laplacian_functions import X, fori
from .test_guards import of, psi, rewritten

stopped = lax.stop_gradient


def wave(y):
    return jnp.sin(y).sum()


def rare(y):
    return jnp.where(y.ravel() > 0.4, 1.0, 0.0)


HIDDEN = {
    "product-of-maxima": lambda y: stopped(jnp.maximum(y[0, 0] - 0.9, 0) * jnp.maximum(y[1, 1] - 0.9, 0)),
    "product-of-signs": lambda y: (1 + jnp.sign(y[0, 0] - 0.9)) * (1 + jnp.sign(y[1, 1] - 0.9)),
    "mask-of-indices": lambda y: jnp.prod(jnp.where(jnp.arange(9) < 8, rare(y), 1.0)),
    "triangle": lambda y: jnp.prod(jnp.where(jnp.triu(jnp.ones((3, 3), bool)), rare(y).reshape(3, 3), 1.0)),
    "mask-that-is-scattered": lambda y: jnp.prod(1 - (1 - rare(y)) * jnp.ones(9).at[3].set(1.0)),
    "sorted": lambda y: jnp.sort(rare(y))[0],
    "scattered": lambda y: jnp.ones(2).at[jnp.array([0] * 8 + [1])].multiply(rare(y))[0],
    "shifted": lambda y: ((y > 0.9).sum() >> 3).astype(y.dtype),
    "determinant": lambda y: jnp.linalg.det(jnp.diag(jnp.where(jnp.diagonal(y) > 0.9, 1.0, 0.0))),
    "loop": lambda y: lax.fori_loop(0, 9, lambda i, c: c * rare(y)[i], 1.0),
    "scan": lambda y: lax.scan(lambda c, v: (c * v, None), 1.0, rare(y))[0],
    "equal-to-the-largest": lambda y: jnp.where(
        jnp.max(jnp.concatenate([y.ravel(), jnp.array([5.0])])) == y[0, 0], 1.0, 0.0
    ),
    "equal-to-the-larger": lambda y: jnp.where(jnp.maximum(y[0, 0], 5.0) == y[0, 0], 1.0, 0.0),
    "sign-bit": lambda y: jnp.where(jnp.signbit(5 - y[0, 0]), 1.0, 0.0),
    "no-number": lambda y: jnp.where(jnp.prod(rare(y)) / jnp.prod(rare(y)) == 1.0, 1.0, 0.0),
    "angle": lambda y: jnp.arctan2(0.0, 5 - y[0, 0]),
    "integral-part": lambda y: jnp.where((100 * y[0, 0]).astype(jnp.int32) == 137, 1.0, 0.0),
    "floor": lambda y: jnp.where(jnp.floor(y[0, 0]) == 1.0, 1.0, 0.0),
    "periodic-cell": lambda y: jnp.where(jnp.round(y[0, 0] / 4) == 1.0, 1.0, 0.0),
    "two-counts": lambda y: jnp.where((y > 0).sum() + (y > 1).sum() == 7, 1.0, 0.0),
    "order": lambda y: jnp.where((jnp.argsort(y.ravel()) == jnp.arange(9)).all(), 1.0, 0.0),
    "precision": lambda y: 1e3 * (lax.reduce_precision(y[0, 0], 8, 7) - y[0, 0]),
}
QUICK = (
    "product-of-maxima",
    "triangle",
    "sorted",
    "loop",
    "equal-to-the-larger",
    "sign-bit",
    "angle",
    "floor",
    "two-counts",
)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in HIDDEN]
)
def test_a_term_that_no_random_point_shows(name):
    _, result = rewritten(of(lambda y: psi(None, y) + HIDDEN[name](y) * wave(y)), X)
    assert not result.applied, result.events


SHARED = {
    "all": lambda y: jnp.where(jnp.all(y > 0.4), 1.0, 0.0),
    "product": lambda y: jnp.prod(rare(y)),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_rare_predicate_that_the_value_shares(name):
    """Behind it the replay has another function; of the same function it is rewritten (test_combined_predicates)."""

    def function(x):
        return jax.vmap(
            lambda y: (
                psi(None, y) + SHARED[name](y) * wave(y),
                fori(lambda _, z: psi(None, z) + SHARED[name](z) * jnp.cos(2 * z).sum(), None, y),
            )
        )(x)

    _, result = rewritten(function, X)
    assert not result.applied, result.events


def smoothstep(y):
    t = jnp.clip((y + 0.5) / 1.5, 0, 1)
    return (t * t * (3 - 2 * t)).sum()


KEPT = {
    "cubes-of-relu": lambda y: (jax.nn.relu(1.8 - y) ** 3).sum(),
    "maximum": lambda y: (jnp.maximum(y, 0.2) ** 2).sum(),
    "absolute-value": lambda y: (jnp.abs(y) * y).sum(),
    "clip": lambda y: jnp.sin(2 * jnp.clip(y, -1, 1)).sum(),
    "smoothstep": smoothstep,
    "logarithm-of-a-sum": lambda y: jnp.logaddexp(y, 2 * y[::-1]).sum() + jax.nn.softplus(y).sum(),
    "hypotenuse": lambda y: jnp.hypot(y, y[::-1]).sum(),
    "logsumexp-with-signs": lambda y: jax.scipy.special.logsumexp(y, b=y[::-1], axis=-1, return_sign=True)[0].sum(),
    "hard-tanh": lambda y: jnp.sin(jax.nn.hard_tanh(y)).sum(),
}
KEPT_QUICK = ("maximum", "smoothstep", "logarithm-of-a-sum")


@pytest.mark.parametrize(
    "name", [name if name in KEPT_QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KEPT]
)
def test_predicates_that_a_value_and_its_replay_share_are_rewritten(name):
    def value(_, y):
        return psi(None, y) + KEPT[name](y)

    _, result = rewritten(lambda x: jax.vmap(lambda y: (value(None, y), fori(value, None, y)))(x), X)
    assert result.applied, result.events


@pytest.mark.parametrize(
    "name", [pytest.param("orbformer", marks=pytest.mark.slow), pytest.param("psiformer", marks=pytest.mark.full)]
)
def test_predicates_of_a_network_are_those_of_its_replay(name):
    workload = build(name, "LiH", laplacian="replay", walkers=4, size="tiny", dtype="float32")
    result = SparsifyDirections().run(lowering.lower(workload, "cuda"), Setting(platform="cuda"))
    assert result.applied, result.events
