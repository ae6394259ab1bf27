"""Stage B of the Psiformers: electrons attend to electrons."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.initial import Initial, normal


def init_self_attention(width: int) -> dict[str, dict[str, Initial]]:
    """Square maps without bias for queries, keys, values and the output, normal of variance 1/fan-in."""
    return {part: init_linear(width, width, normal, bias=None) for part in ("query", "key", "value", "output")}


def self_attention(parameters: dict[str, Any], nodes: Any, heads: int) -> Any:
    """``[electrons, width]`` to the same: softmax(Q K / sqrt d) V in ``heads`` parts of d = width/heads, then a map."""
    electrons, width = nodes.shape

    def in_heads(part: str) -> Any:
        return linear(parameters[part], nodes).reshape(electrons, heads, width // heads)

    logits = jnp.einsum("ihd,jhd->hij", in_heads("query"), in_heads("key")) / math.sqrt(width // heads)
    attended = jnp.einsum("hij,jhd->ihd", jax.nn.softmax(logits), in_heads("value"))
    return linear(parameters["output"], attended.reshape(electrons, width))
