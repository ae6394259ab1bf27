"""Real-space features against their formula, written out number by number."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from workloads.layers.vector_features import nuclear_pair_features, vector_features


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
