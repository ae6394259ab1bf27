"""Layers: real-space features number by number, and the fused attention kernel against NumPy and its plain twin."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.workloads.layers.flash_attention import attention_twin, flash_attention, fused_attention
from fusionlab.workloads.layers.vector_features import nuclear_pair_features, vector_features


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_features_in_their_order():
    d, p = np.array([0.3, -0.4, 1.2]), np.array([5.0, 7.0])
    r = 1.3
    decays = [math.exp(-r), 3 * math.exp(-3 * r)]
    steps = [sigmoid(2 - r) / 2, sigmoid(4 - r) / 4]
    expected = [*decays, *steps]
    for factor in (*decays, *steps):
        expected += list(d * factor)
    for factor in (*steps, *decays):
        expected += list(p * factor)
    features = vector_features(jnp.asarray(d), scales=(1, 3), shifts=(2, 4), projected=jnp.asarray(p))
    np.testing.assert_allclose(features, expected, rtol=1e-5)


def test_pair_features_point_from_receiver_to_sender():
    features = nuclear_pair_features(jnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    assert features.shape == (2, 2, 16)
    assert float(features[1, 0, 6]) == pytest.approx(2 * math.exp(-2), rel=1e-5)
    assert float(features[0, 1, 6]) == pytest.approx(-2 * math.exp(-2), rel=1e-5)


HEADS, WIDTH = 2, 16


def arguments(electrons, dtype, masked=0, batch=()):
    random = np.random.default_rng(electrons)
    rows = (*batch, electrons, HEADS, WIDTH)
    query, key, value = (random.normal(size=rows).astype(dtype) for _ in range(3))
    bias = random.normal(size=(*batch, electrons, HEADS, electrons)).astype(dtype)
    return query, key, value, bias, np.arange(electrons) < electrons - masked


def by_numpy(query, key, value, bias, mask):
    """Masked attention of one walker by loops, in float64; rows of masked electrons are zero."""
    out = np.zeros(value.shape)
    for head in range(query.shape[1]):
        for i in np.flatnonzero(mask):
            logits = np.array([query[i, head] @ key[j, head] + bias[i, head, j] for j in np.flatnonzero(mask)])
            weights = np.exp(logits - logits.max())
            out[i, head] = (weights / weights.sum()) @ value[np.flatnonzero(mask), head]
    return out


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float64", 1e-13)])
@pytest.mark.parametrize(("electrons", "masked"), [(4, 0), (18, 5)])
def test_kernel_and_twin_are_masked_attention(electrons, masked, dtype, tolerance):
    given = arguments(electrons, dtype, masked)
    active, expected = given[-1], by_numpy(*(x.astype("float64") for x in given[:4]), given[-1])
    for function in (attention_twin, lambda *a: fused_attention(*a, interpret=True)):
        out = jax.jit(function)(*given)
        assert out.dtype == dtype
        assert np.all(np.isfinite(out))
        np.testing.assert_allclose(out[active], expected[active], rtol=tolerance, atol=tolerance)


def test_kernel_takes_walkers_in_front():
    given = arguments(4, "float32", batch=(3,))
    mask = np.broadcast_to(given[-1], (3, 4))
    out = fused_attention(*given[:-1], mask, interpret=True)
    for walker in range(3):
        one = (x[walker] for x in given[:-1])
        np.testing.assert_allclose(out[walker], attention_twin(*one, given[-1]), rtol=1e-5, atol=1e-5)


def lowered(function, platform, *given):
    return str(jax.jit(function).trace(*given).lower(lowering_platforms=(platform,)).as_text())


def test_one_kernel_for_all_walkers_on_cuda_and_none_on_cpu():
    given = arguments(4, "float32", batch=(3, 5))
    function = jax.vmap(jax.vmap(flash_attention, (0, 0, 0, 0, None)), (0, 0, 0, 0, None))
    assert lowered(function, "cuda", *given).count("stablehlo.custom_call @__gpu$xla.gpu.triton") == 1
    assert "custom_call" not in lowered(function, "cpu", *given)
    np.testing.assert_allclose(function(*given), attention_twin(*given), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("x64")
def test_derivatives_are_those_of_the_twin():
    given = tuple(map(jnp.asarray, arguments(4, "float64", masked=1)))

    def second_order(attention):
        def gradient(query, bias):
            return jax.grad(lambda q, b: jnp.sum(jnp.sin(attention(q, *given[1:3], b, given[4]))), (0, 1))(query, bias)

        tangents = (jnp.ones_like(given[0]), jnp.ones_like(given[3]))
        return jax.jvp(gradient, (given[0], given[3]), tangents)

    by_kernel, by_twin = jax.jit(lambda: (second_order(flash_attention), second_order(attention_twin)))()
    for ours, twin in zip(jax.tree.leaves(by_kernel), jax.tree.leaves(by_twin), strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-10, atol=1e-12)
    assert "triton" not in lowered(lambda: second_order(flash_attention), "cuda")
