"""Features of a vector in real space that decay exponentially with its length (Orbformer)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp


def smooth_length(d: Any) -> Any:
    """``sqrt(|d|^2 + 1e-26)`` of the last axis, kept with size 1; finite derivatives at zero."""
    return jnp.sqrt(jnp.sum(d * d, axis=-1, keepdims=True) + jnp.asarray(1e-26, d.dtype))


def vector_features(d: Any, scales: Sequence[float], shifts: Sequence[float], projected: Any = None) -> Any:
    """Features ``[..., n]`` of vectors ``d`` ``[..., 3]`` (oneQMC wf/nn/masked/features.py).

    With r = |d|, in this order: c exp(-c r) for each scale c; sigmoid(s - r) / s for each shift s; d times each of
    the exponentials; d times each of the sigmoids; and, if ``projected`` ``[..., p]`` is given, it times each of the
    sigmoids, then times each of the exponentials. So n = (1 + 3 + p) (len(scales) + len(shifts)).
    """
    r = smooth_length(d)
    exponentials = [c * jnp.exp(-c * r) for c in scales]
    sigmoids = [jax.nn.sigmoid(s - r) / s for s in shifts]
    features = [*exponentials, *sigmoids, *(d * f for f in exponentials), *(d * f for f in sigmoids)]
    if projected is not None:
        features += [projected * f for f in (*sigmoids, *exponentials)]
    return jnp.concatenate(features, axis=-1)


def nuclear_pair_features(positions: Any) -> Any:
    """16 features ``[senders, receivers, 16]`` of ``R_sender - R_receiver``; ``positions`` is ``[nuclei, 3]``."""
    return vector_features(positions[:, None, :] - positions[None, :, :], scales=(1,), shifts=(2, 4, 6))
