"""A value keeps one slot per electron that each of its elements depends on, until an op mixes more of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from .jet_cases import FIRST, ORDER, SECOND, B, N, V, W, X, h, layer_norm, norms, pairs, residual

EACH = np.arange(N).reshape(1, N, 1)


def _electrons_then_pairs(x):
    return jnp.concatenate([h(x), h(x)[:, FIRST] * h(x)[:, SECOND]], 1)


def _of_computed_pairs(x):
    """Pairs by indices that the program computes from constants: cumulative sums, a scatter, integer divisions."""
    first, second = jnp.nonzero(jnp.triu(jnp.ones((N, N)), 1), size=N * (N - 1) // 2)
    return jnp.tanh(h(x)[:, first] - h(x)[:, second])


ONE = [
    ("layers", lambda x: residual(x, W, V, V[0]), EACH),
    ("layer-norm", lambda x: layer_norm(h(x)), EACH),
    ("softmax", lambda x: jax.nn.softmax(h(x), -1), EACH),
    ("mean", lambda x: jnp.tanh(h(x).mean(-1)), EACH[..., 0]),
    ("gather", lambda x: jnp.sin(h(x)[:, ORDER]), ORDER.reshape(1, N, 1)),
    ("reverse", lambda x: h(x)[:, ::-1].transpose(0, 2, 1), EACH[:, ::-1].reshape(1, 1, N)),
    ("slice", lambda x: h(x)[:, 1:3] * 2, EACH[:, 1:3]),
    ("one-electron", lambda x: jnp.cos(h(x)[:, 2]), np.full((1, 1), 2)),
    ("halves", lambda x: jnp.concatenate([jnp.sin(h(x)[:, 2:]), jnp.cos(h(x)[:, :2])], 1), np.roll(EACH, 2, 1)),
    ("beside-constants", lambda x: jnp.concatenate([h(x), jnp.ones((x.shape[0], 1, 5))], 1),
     np.array([0, 1, 2, 3, -1]).reshape(1, N + 1, 1)),
    ("flattened", lambda x: h(x).reshape(x.shape[0], -1), np.repeat(np.arange(N), 5)[None]),
    ("weights-per-electron", lambda x: jnp.einsum("bnf,nfg->bgn", h(x), jnp.stack([V] * N)), EACH.reshape(1, 1, N)),
    ("select", lambda x: jnp.where(h(x) > h(x)[:, ::-1], jnp.sin(h(x)), h(x) ** 2), EACH),
]  # fmt: skip

TWO = {
    "differences": pairs,
    "distances": lambda x: norms(x, True),
    "pair-layers": lambda x: jnp.tanh(pairs(x) @ W) @ V,
    "products": lambda x: h(x)[:, :, None] * h(x)[:, None],
    "quotients": lambda x: h(x)[:, :, None] / (1 + h(x)[:, None] ** 2),
    "lists": lambda x: jnp.exp(-jnp.linalg.norm(x[:, FIRST] - x[:, SECOND], axis=-1)),
    "computed-pairs": _of_computed_pairs,
    "electrons-then-pairs": _electrons_then_pairs,
    "features-then-pairs": lambda x: jnp.concatenate(
        [jnp.broadcast_to(h(x)[:, :, None], (x.shape[0], N, N, 5)), jnp.tanh(pairs(x) @ W)], -1
    ),
    "largest": lambda x: jnp.maximum(h(x)[:, :, None], h(x)[:, None]).max(-1),
}

ALL = {
    "mean-over-electrons": lambda x: h(x).mean(1),
    "sum-over-pairs": lambda x: jnp.tanh(pairs(x) @ W).sum(2),
    "mixed-by-weights": lambda x: jnp.einsum("bnf,mn->bmf", h(x), V[:, :N]),
    "quadruples": lambda x: norms(x, True)[:, :, :, None, None] * norms(x, True)[:, None, None],
    "index-from-data": lambda x: lax.dynamic_slice_in_dim(h(x), jnp.argmax(x[0, 0]), 1, 1),
}


@pytest.mark.parametrize(("function", "owner"), [pytest.param(*case[1:], id=case[0]) for case in ONE])
def test_values_of_one_electron_have_one_slot(function, owner, jets_of):
    (owners,) = jets_of(function, X).owners
    (found,) = owners
    np.testing.assert_array_equal(found, owner)
    assert found.dtype == np.int32


@pytest.mark.parametrize("name", TWO)
def test_values_of_two_electrons_have_two_slots(name, jets_of):
    (owners,) = jets_of(TWO[name], X).owners
    assert owners is not None
    assert len(owners) == 2


@pytest.mark.parametrize("name", ALL)
def test_values_of_all_electrons_are_dense(name, jets_of):
    assert jets_of(ALL[name], X).owners == [None]


def test_slots_of_one_owner_are_added_up(check_jets):
    """On the diagonal both slots of a pair are of one electron; no part of it may be lost when slots are merged."""
    first = np.arange(N)

    def function(x):
        twice = jnp.tanh(pairs(x) @ W + h(x)[:, None])[:, first, first]
        joined = jnp.concatenate([twice, h(x)], -1)
        return twice, twice + h(x), twice + twice * h(x), jnp.sin(twice), twice / (1 + twice**2), joined

    found = check_jets(function, X)
    assert [len(owners) for owners in found.owners] == [1] * 6


def test_a_part_of_fewer_electrons_drops_the_slots_of_the_others(check_jets):
    def function(x):
        joined = _electrons_then_pairs(x)
        constants = jnp.concatenate([h(x), jnp.ones((x.shape[0], 1, 5))], 1)
        return jnp.sin(joined[:, :N]), jnp.sin(joined[:, N:]), jnp.sin(constants[:, N:])

    found = check_jets(function, X)
    assert [len(owners) for owners in found.owners] == [1, 2, 0]


def test_a_value_that_does_not_depend_on_the_coordinates_has_no_slots(jets_of):
    found = jets_of(lambda x, v: (v * 2, jnp.floor(x)), X, np.ones((B, 3)))
    assert found.owners == [(), ()]
    assert not found.laplacians[1].any()


@pytest.mark.parametrize("constants", [3, 4])
def test_parts_of_a_concatenation_along_which_electrons_lie(constants, check_jets):
    """Each has three elements of every electron, and they are contracted as one beside a part without electrons, or
    with it where it is narrow."""
    weights = np.linspace(-1, 1, (6 * N + constants) * 5).reshape(6 * N + constants, 5)

    def function(x):
        walkers = len(x)
        parts = [x.reshape(walkers, -1), jnp.ones((walkers, constants)), jnp.sin(x).reshape(walkers, -1)]
        return jnp.tanh(jnp.concatenate(parts, 1) @ weights)

    check_jets(function, X)


@pytest.mark.parametrize(
    ("constants", "repeated", "products"),
    [(1, False, 1), (2, False, 2), (1, True, 2)],
    ids=["narrow", "wide", "repeated"],
)
def test_constants_of_a_concatenation_are_contracted_apart_unless_narrow(
    constants, repeated, products, check_jets, jets_of
):
    weights = np.linspace(-1, 1, (8 + constants) * 5).reshape(8 + constants, 5)

    def function(x):
        features = jnp.tanh(jnp.concatenate([x, x**2, x[..., :2] ** 3], -1))
        if repeated:
            features = jnp.broadcast_to(features.mean(1, keepdims=True), features.shape)
        return jnp.tanh(jnp.concatenate([features, jnp.ones((*x.shape[:2], constants))], -1) @ weights)

    check_jets(function, X)
    texts: list[str] = []
    jets_of(function, X, text_of=texts)
    assert texts[0].count("stablehlo.dot_general") == products


def test_a_part_that_all_walkers_share_beside_one_of_their_own(check_jets):
    shared, own = np.linspace(-1, 1, 3 * N), np.linspace(0, 1, 10).reshape(5, 2)
    weights = np.linspace(-1, 1, (3 * N + 2) * 5).reshape(3 * N + 2, 5)

    def function(x, own):
        parts = [jnp.broadcast_to(x, (5, 3 * N)), own]
        return jnp.tanh(jnp.concatenate(parts, 1) @ weights)

    check_jets(function, shared, own, walkers=False)
