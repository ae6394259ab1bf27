"""Contractions over an axis along which elements belong to different electrons, with operands of every kind."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.laplacian.rules import owned_dot

from .jet_cases import B, N, V, W, X, h, pairs

UP = 3


def scores(x, y=None):
    """[B, heads, N, N], of two electrons each."""
    y = x if y is None else y
    q, k = (jnp.einsum("bnf,hfg->bhng", one, jnp.stack([V, V.T + s])) for one, s in ((h(x), 0.3), (h(y), -0.2)))
    return jnp.einsum("bhig,bhjg->bhij", q, k) / 3


def heads(x):
    """[B, heads, N, F]."""
    return jnp.einsum("bnf,hfg->bhng", h(x), jnp.stack([V.T, V]))


def mixed(weights, values):
    return jnp.einsum("bhij,bhjf->bihf", weights, values)


def softmax(s):
    e = jnp.exp(s)
    return e / e.sum(-1, keepdims=True)


def of_all(x):
    """Values [B, heads, N, F] that depend on all electrons."""
    return heads(x) * jnp.tanh(h(x).mean(1))[:, None, None]


def masked_softmax(s):
    """No electron attends to itself."""
    e = jnp.where(jnp.eye(N, dtype=bool), 0.0, jnp.exp(s))
    return e / e.sum(-1, keepdims=True)


def of_pairs(s):
    """Weights of all pairs."""
    e = jnp.exp(s)
    return e / e.sum((-2, -1), keepdims=True)


def along(x, axis, other):
    """[B, N, N, F], equal along ``other``."""
    return jnp.repeat(jnp.expand_dims(h(x), other), N, other) * (1 + axis)


def turned(a):
    return jnp.swapaxes(a, 2, 3)


def mean(x):
    return h(x).mean((1, 2))[:, None]


CASES = {
    "softmax": lambda x: mixed(softmax(scores(x)), heads(x)),
    "shifted": lambda x: mixed(jax.nn.softmax(scores(x), -1), heads(x)),
    "masked": lambda x: mixed(masked_softmax(scores(x)), heads(x)),
    "not normalised": lambda x: mixed(jnp.exp(scores(x)), heads(x)),
    "to the left": lambda x: jnp.einsum("bhjf,bhij->bhif", heads(x), softmax(scores(x))),
    "over the first index": lambda x: jnp.einsum("bhji,bhjf->bihf", softmax(scores(x)), heads(x)),
    "normalised over the other index": lambda x: mixed(turned(softmax(turned(scores(x)))), heads(x)),
    "values of all": lambda x: mixed(softmax(scores(x)), of_all(x)),
    "weights and values of all": lambda x: mixed(softmax(scores(x) + mean(x)[:, None, None]), of_all(x)),
    "values of constants": lambda x: mixed(softmax(scores(x)), jnp.ones((B, 2, N, 5))),
    "spins apart": lambda x: mixed(softmax(scores(x[:, :UP], x[:, :UP])), heads(x[:, :UP])),
    "the other spin": lambda x: mixed(softmax(scores(x[:, :UP], x[:, UP - 1 :])), heads(x[:, UP - 1 :])),
    "to one of another order": lambda x: mixed(jnp.exp(scores(x)), heads(x[:, ::-1])),
    "pairs": lambda x: jnp.einsum("bijf,bjf->bif", jnp.tanh(pairs(x) @ W), h(x)),
    "pairs of all": lambda x: jnp.einsum("bijf,bjf->bif", jnp.tanh(pairs(x) @ W), h(x) * h(x).mean(1, keepdims=True)),
    "one electron with all": lambda x: jnp.einsum("bf,bif->bi", h(x)[:, 1], h(x) * h(x).mean(1, keepdims=True)),
    "also in another way": lambda x: (mixed(a := softmax(scores(x)), heads(x)), jnp.sin(a)),
    "two axes": lambda x: jnp.einsum("bijf,bjf->bi", jnp.tanh(pairs(x) @ W), h(x)),
    "two axes of electrons": lambda x: jnp.einsum("bhij,bhij->bh", jnp.exp(scores(x)), jnp.sin(scores(x))),
    "two axes of electrons, divided": lambda x: jnp.einsum("bhij,bhij->bh", of_pairs(scores(x)), jnp.sin(scores(x))),
    "two axes of one electron each": lambda x: jnp.einsum("bijf,bijg->bfg", along(x, 2, 1), along(x, 1, 2)),
    "two values": lambda x: jnp.einsum("bhij,bhjf,bhjg->bhifg", jnp.exp(scores(x)), heads(x), heads(x)),
}  # fmt: skip


FAST = (
    "softmax", "masked", "not normalised", "over the first index", "values of all", "the other spin", "pairs of all",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(name, marks=pytest.mark.by_turns(4)) for name in CASES if name not in FAST)]
)
def test_contractions_over_electrons(name, check_jets):
    check_jets(CASES[name], X)


@pytest.mark.parametrize("name", ["softmax", "values of all", "spins apart"])
def test_nothing_dense_is_contracted(name, jets_of, monkeypatch):
    """Rows of all 3 N directions are only those of values that depend on all electrons."""
    dense = []
    plain = owned_dot._assembled

    def assembled(sides, axes, of):
        dense.append(sum(side.dense is not None for side in sides))
        return plain(sides, axes, of)

    monkeypatch.setattr(owned_dot, "_assembled", assembled)
    jets_of(CASES[name], X)
    assert dense == [int(name == "values of all")]


@pytest.mark.parametrize("stated", ["bfloat16", "float32"])
@pytest.mark.parametrize("values", [heads, of_all])
def test_jets_have_the_type_that_a_contraction_states(values, stated, jets_of):
    def function(x):
        weights, factors = (array.astype("bfloat16") for array in (jnp.exp(scores(x)), values(x)))
        return lax.dot_general(weights, factors, (((3,), (2,)), ((0, 1), (0, 1))), preferred_element_type=stated)

    found = jets_of(function, X)
    assert {array.dtype.name for array in (*found.values, *found.laplacians, *found.rows)} == {stated}


def test_letters_are_equal_where_axes_are_one():
    axes = owned_dot.Axes.of(((0,), (1,)), ((2,), (0,)), (3, 3), None, np.float32)
    assert axes.operands == ("ACB", "BAD")
    assert (axes.summed, axes.result) == ("B", "ACD")
    moved = axes.moved(np.arange(6).reshape(2, 3, 1), 0, axes.result)
    assert moved.shape == (2, 3, 1)


@dataclass(frozen=True)
class Operand:
    """exp(sum of a feature of one electron for each axis of electrons), perhaps divided by its sum over ``over``, or
    times a value of all electrons."""

    axes: str
    owned: str
    over: tuple[int, ...]
    of_all: bool
    starts: dict[str, int]

    def __call__(self, x, extents):
        total = jnp.full((len(x), *(extents[axis] for axis in self.axes)), 0.1)
        for number, axis in enumerate(self.axes):
            if axis in self.owned:
                first = self.starts[axis]
                feature = h(x)[:, first : first + extents[axis], number]
                total = total + jnp.expand_dims(feature, [1 + i for i in range(len(self.axes)) if i != number])
        e = jnp.exp(jnp.tanh(total))
        if self.over:
            e = e / e.sum([1 + axis for axis in self.over], keepdims=True)
        return e * jnp.tanh(h(x).mean((1, 2))).reshape(-1, *[1] * len(self.axes)) if self.of_all else e


def drawn(seed):
    """(contraction of two operands, a string for einsum, their axes' extents)."""
    random = np.random.default_rng(seed)
    first = {axis: int(random.choice([0, 0, 1])) for axis in "ijk"}
    extents = {**{axis: N - 1 if any(first.values()) else N for axis in "ijk"}, "f": 2}
    axes = ["".join(random.permutation(list("ijkf"))[: random.integers(1, 4)]) for _ in range(2)]
    common = str(random.choice(list("ijk")))
    axes = [one if common in one else one + common for one in axes]
    summed = {common, *(axis for axis in set(axes[0]) & set(axes[1]) if random.random() < 0.5)}
    result = "".join(axis for axis in dict.fromkeys("".join(axes)) if axis not in summed)
    operands = [
        Operand(
            one,
            "".join(axis for axis in one if axis != "f" and random.random() < 0.8),
            tuple(number for number, axis in enumerate(one) if axis in summed) if random.random() < 0.5 else (),
            bool(random.random() < 0.2),
            first,
        )
        for one in axes
    ]
    return operands, f"b{axes[0]},b{axes[1]}->b{result}", extents


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.by_turns(4)) for seed in range(3, 30))]
)
def test_random_contractions(seed, check_jets):
    operands, spec, extents = drawn(seed)
    check_jets(lambda x: jnp.einsum(spec, *(operand(x, extents) for operand in operands)), X)
