"""Orbformer's graph network over the nuclei: features of each nucleus in its molecule."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.initial import cut_normal
from fusionlab.workloads.layers.masked_messages import init_messages, messages
from fusionlab.workloads.layers.near_equal import unit_cut_normal
from fusionlab.workloads.layers.normalisation import feature_norm
from fusionlab.workloads.layers.padded_molecule import System
from fusionlab.workloads.layers.vector_features import nuclear_pair_features


def init_nuclei_network(species: int, width: int, layers: int) -> dict[str, Any]:
    """An embedding ``[species, width]`` and ``layers`` blocks of messages and one dense layer."""
    blocks = [{"messages": init_messages(width), "dense": init_linear(width, width, cut_normal)} for _ in range(layers)]
    return {"embedding": unit_cut_normal(species, width), "blocks": blocks}


def nuclei_network(parameters: dict[str, Any], system: System, heads: int) -> Any:
    """Nucleus features ``[nuclei, width]`` (oneQMC wf/orbformer/nuclei.py); rows of masked nuclei are unspecified."""
    dtype = system.positions.dtype
    mask = system.nuclei_mask[:, None].astype(dtype)
    h = look_up(parameters["embedding"], system.species) * mask
    edges = nuclear_pair_features(system.positions)
    for block in parameters["blocks"]:
        h = (h + messages(block["messages"], h, edges, system.nuclei_mask, heads, _norm)) * mask
        h = h + jnp.tanh(linear(block["dense"], h))
    return _norm(h)


def look_up(table: Any, species: Any) -> Any:
    """Rows of ``table`` for species numbers from 1, by a product with one-hot rows; species 0 gives zeros."""
    return jax.nn.one_hot(species - 1, table.shape[0], dtype=table.dtype) @ table


def _norm(x: Any) -> Any:
    return feature_norm(x, 1.0)
