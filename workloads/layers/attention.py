"""Stage B of Orbformer: masked attention with a distance bias on the logits and a gate on the result."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.flash_attention import flash_attention
from fusionlab.workloads.layers.initial import cut_normal, normal, ones, zeros
from fusionlab.workloads.layers.normalisation import feature_norm

TRANSFORMER_EPS = 1e-2


def init_gated_attention(width: int, heads: int) -> dict[str, Any]:
    """Square maps for query, key, value and output without bias, the gate's with one, ``distance_scale`` [1, heads].

    The scales are to be set to ``first_distance_scales(heads)`` after the draw.
    """
    parts = {part: init_linear(width, width, normal, bias=None) for part in ("query", "key", "value")}
    gate = init_linear(width, width, normal, bias=zeros)
    output = init_linear(width, width, cut_normal, bias=None)
    return {**parts, "gate": gate, "output": output, "distance_scale": ones(1, heads)}


def first_distance_scales(heads: int) -> np.ndarray:
    """``[1, heads]`` (1/bohr): powers of two from 2^-2 to 2^3, evenly spaced in the exponent."""
    return np.logspace(-2.0, 3.0, heads, base=2.0)[None, :]


def gated_attention(
    parameters: dict[str, Any], x: Any, distances: Any, mask: Any, heads: int, variant: str = "plain"
) -> Any:
    """Orbformer's masked attention of ``x`` ``[electrons, width]`` (oneQMC wf/nn/masked/attention.py).

    ``distances`` is ``[electrons, electrons]``, ``mask`` bool ``[electrons]``. The logit of a pair is
    ``q.k / sqrt(head) - |scale d| + log sigmoid(8 - d)``; each head's result is multiplied by a sigmoid gate of the
    receiving electron. ``variant`` is ``plain`` or ``flash`` (one fused kernel on a GPU).
    """
    x = feature_norm(x, TRANSFORMER_EPS) * mask[:, None].astype(x.dtype)
    query, key, value, gate = (_in_heads(linear(parameters[p], x), heads) for p in ("query", "key", "value", "gate"))
    query = query / math.sqrt(query.shape[-1])
    pair_mask = mask[:, None] & mask[None, :]
    bias = _distance_bias(parameters["distance_scale"], distances * pair_mask.astype(x.dtype))
    if variant == "flash":
        mixed = flash_attention(query, key, value, jnp.swapaxes(bias, 1, 2), mask)
    else:
        logits = jnp.einsum("qhc,khc->qkh", query, key) + bias
        logits = logits - jnp.asarray(1e20, x.dtype) * (~pair_mask[..., None]).astype(x.dtype)
        mixed = jnp.einsum("qkh,khc->qhc", jax.nn.softmax(logits, axis=1), value)
    return linear(parameters["output"], (mixed * jax.nn.sigmoid(gate)).reshape(x.shape))


def _distance_bias(scale: Any, distances: Any) -> Any:
    """``[query, key, heads]`` from ``scale`` ``[1, heads]`` and the pair distances."""
    d = distances[..., None]
    return jax.nn.log_sigmoid(8 - d) - jnp.abs(jnp.dot(d, scale))


def _in_heads(x: Any, heads: int) -> Any:
    return x.reshape(x.shape[0], heads, -1)
