"""Orbformer's electron features and electron transformer."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.layers.attention import TRANSFORMER_EPS, gated_attention, init_gated_attention
from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.initial import cut_normal
from fusionlab.workloads.layers.near_equal import unit_cut_normal
from fusionlab.workloads.layers.normalisation import feature_norm
from fusionlab.workloads.layers.vector_features import vector_features

PROJECTION = 6
EDGE_FEATURES = 40


def init_electron_features(width: int, node_width: int) -> dict[str, Any]:
    """Projection ``[node_width, 18]``, edge ``[40, width]``, nucleus ``[node_width, width]``, spin, encoder."""
    return {
        "projection": init_linear(node_width, 3 * PROJECTION, cut_normal, bias=None),
        "edge": init_linear(EDGE_FEATURES, width, cut_normal, bias=None),
        "nucleus": init_linear(node_width, width, cut_normal),
        "spin": unit_cut_normal(2, width),
        "encoder": init_linear(width, width, cut_normal),
    }


def electron_features(parameters: dict[str, Any], differences: Any, nodes: Any, mask: Any, up: int, heads: int) -> Any:
    """Input representation ``[electrons, width]`` (oneQMC wf/orbformer/electrons.py).

    ``differences`` are r_i - R_I, ``[electrons, nuclei, 3]``; ``nodes`` the nuclei's features; ``mask`` bool
    ``[electrons, nuclei]``; the first ``up`` electrons have spin up. Each pair's 40 features are mapped to ``width``
    and gated by spin and nucleus; the sum over nuclei is normalised in ``heads`` parts, then as a whole.
    """
    electrons, nuclei = mask.shape
    pair_mask = mask[..., None].astype(differences.dtype)
    projection = linear(parameters["projection"], nodes).reshape(nuclei, PROJECTION, 3)
    projected = jnp.einsum("npc,enc->enp", projection, differences) / math.sqrt(3)
    pairs = vector_features(differences, scales=(1, 3), shifts=(2, 4), projected=projected)
    pairs = linear(parameters["edge"], pairs * pair_mask) * pair_mask
    spin_index = (jnp.arange(electrons) < up).astype(jnp.int32)
    spin = jax.nn.one_hot(spin_index, 2, dtype=differences.dtype) @ parameters["spin"] / math.sqrt(2)
    nucleus = linear(parameters["nucleus"], nodes) / math.sqrt(2)
    pairs = pairs * (pair_mask * jax.nn.sigmoid(spin[:, None, :] + nucleus[None, :, :]))
    summed = jnp.sum(pairs.reshape(electrons, nuclei, heads, -1), axis=1)
    flat = feature_norm(summed, 1.0).reshape(electrons, -1)
    return linear(parameters["encoder"], feature_norm(flat, TRANSFORMER_EPS))


def init_electron_transformer(width: int, heads: int, layers: int) -> list[dict[str, Any]]:
    """``layers`` blocks of a gated attention and one dense layer ``[width, width]``."""
    return [
        {"attention": init_gated_attention(width, heads), "dense": init_linear(width, width, cut_normal)}
        for _ in range(layers)
    ]


def electron_transformer(
    blocks: list[dict[str, Any]], h: Any, distances: Any, mask: Any, heads: int, variant: str
) -> Any:
    """Representations ``[electrons, width]`` after all blocks; see ``gated_attention`` for the other arguments."""
    for block in blocks:
        h = h + gated_attention(block["attention"], h, distances, mask, heads, variant)
        h = h + jnp.tanh(linear(block["dense"], feature_norm(h, TRANSFORMER_EPS)))
    return h
