"""The same jets however the coordinates and walkers are laid out, and in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.laplacian.state import Options

from .conftest import Jets, assert_equal_jets
from .jet_cases import FIRST, MANY, ORDER, SECOND, B, F, N, V, W, X, attention, h, pairs


def psi(x):
    """log|psi| [B] of walkers [B, N, 3], with pairs, a mean field and determinants."""
    w, v, many = (weights.astype(x.dtype) for weights in (W, V, MANY))
    y = h(x, w) + jnp.tanh(pairs(x) @ w).sum(2)
    y = jnp.tanh(y + y[:, :2].mean(1, keepdims=True) @ v) + y
    sign, logarithm = jnp.linalg.slogdet(jnp.einsum("bnf,fdm->bdnm", y, many))
    largest = logarithm.max(-1)
    cusp = (0.5 / (1 + jnp.linalg.norm(x[:, FIRST] - x[:, SECOND], axis=-1))).sum(-1)
    return jnp.log(abs((sign * jnp.exp(logarithm - largest[:, None])).sum(-1))) + largest - cusp


MOST = 12
WALKERS = np.random.default_rng(17).standard_normal((MOST, N, 3))


@pytest.fixture(scope="module")
def expected(brute_force):
    """``expected(walkers)``: the numbers of the first ``walkers``, or of the one at an index."""
    of_all = brute_force(psi, WALKERS)

    def of_first(walkers):
        parts = (of_all.values, of_all.laplacians, of_all.rows)
        return Jets(*([array[..., :walkers] for array in part] for part in parts), [])

    return of_first


def psi_of_one(y):
    return psi(y.reshape(1, N, 3))


@pytest.mark.by_turns(4, "as-many-as-one", "vmapped", "little-memory")
@pytest.mark.parametrize(
    ("function", "x", "how"),
    [
        *(pytest.param(psi, WALKERS[:n], {}, id=f"as-many-as-{of}")
          for n, of in ((1, "one"), (N, "electrons"), (F, "features"), (MOST, "coordinates"))),
        pytest.param(lambda x: psi(x.reshape(-1, N, 3)), WALKERS[:B].reshape(B, -1), {}, id="walkers-of-coordinates"),
        pytest.param(psi, WALKERS[:B], {"options": Options(low_memory=True)}, id="little-memory"),
        pytest.param(jax.vmap(lambda y: psi(y[None])[0]), WALKERS[:B], {}, id="vmapped"),
        pytest.param(psi_of_one, WALKERS[0], {"walkers": False}, id="one-without-an-axis"),
        pytest.param(psi_of_one, WALKERS[0].reshape(-1), {"walkers": False}, id="one-of-coordinates"),
    ],
)  # fmt: skip
def test_walkers_laid_out(function, x, how, jets_of, expected):
    assert_equal_jets(jets_of(function, x, **how), expected(len(x) if how.get("walkers", True) else 1), 1e-9)


def test_a_wide_part_of_a_concatenation_contracted_apart(check_jets):
    def mixed(x):  # [B, N, 3]: a wide dense part, then two narrow ones
        y = jnp.tanh(h(x, W).sum(1, keepdims=True) + h(x, W))
        parts = [y, y[..., :2] ** 2, jnp.sin(y[..., 2:4])]
        wide = jnp.concatenate(parts, -1)
        weights = np.random.default_rng(3).standard_normal((wide.shape[-1], 5))
        return jnp.tanh(wide @ weights) + (wide @ weights)

    check_jets(mixed, WALKERS[:B], tolerance=1e-9, options=Options(low_memory=True))


def test_walkers_beside_another_batch(check_jets):
    """Walkers are not always the leading axis of what follows."""

    def function(x):
        y = jnp.moveaxis(h(x), 0, 2)  # [N, F, B]
        z = jnp.tanh(jnp.einsum("nfb,fg->gnb", y, V))
        return jnp.moveaxis(z * z[:, ::-1], 2, 0), jnp.moveaxis(z.sum(1), 1, 0)

    assert check_jets(function, X).owners[0] is not None


def test_rows_of_a_table_that_differ_between_walkers(jets_of):
    """Each walker has an order of its own, known at compile time; owners, the same for all walkers, are given up."""
    orders = np.stack([ORDER, ORDER[::-1]])

    def function(x):
        return jnp.sin(h(x)[np.arange(B)[:, None], orders]), jnp.sin(jnp.take_along_axis(h(x), orders[..., None], 1))

    found, plain = jets_of(function, X), jets_of(h, X)
    y, slopes = plain.values[0], plain.rows[0]
    value, rows = np.sin(y), np.cos(y) * slopes
    laplacian = np.cos(y) * plain.laplacians[0] - np.sin(y) * (slopes**2).sum(0)
    for made in zip(found.values, found.laplacians, found.rows, strict=True):
        for walker, order in enumerate(orders):
            for ours, theirs in zip(made, (value, laplacian, rows), strict=True):
                np.testing.assert_allclose(ours[..., walker, :, :], theirs[..., walker, order, :], rtol=1e-10)


def test_float32(jets_of, expected):
    found = jets_of(psi, WALKERS[:B].astype(np.float32))
    assert {array.dtype for part in (found.values, found.laplacians, found.rows) for array in part} == {
        np.dtype(np.float32)
    }
    assert_equal_jets(found, expected(B), 2e-4)


def test_attention_in_float32(jets_of, brute_force):
    arrays = X, W, V
    found = jets_of(attention, *(array.astype(np.float32) for array in arrays))
    assert_equal_jets(found, brute_force(attention, *arrays), 1e-4)


def test_mixed_precision(jets_of):
    """Part of the network in float32: dtypes of values and derivatives stay those of the program."""

    def function(x):
        y = h(x).astype(np.float32) @ V.astype(np.float32)
        return jnp.tanh(y), jnp.tanh(y).astype(np.float64) * x[:, :, :1]

    found = jets_of(function, X)
    assert [array.dtype for array in found.values] == [np.float32, np.float64]
    assert [array.dtype for array in found.laplacians] == [np.float32, np.float64]
