"""Stage B: parts that update electron embeddings from each other."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp


def residual(x: Any, update: Any) -> Any:
    """``(x + update)/sqrt 2``, or just ``update`` where the widths differ."""
    return (x + update) / math.sqrt(2.0) if x.shape == update.shape else update


def spin_means(nodes: Any, n_up: int) -> tuple[Any, Any]:
    """The mean embedding of the spin-up and of the spin-down electrons, each repeated for every electron."""
    electrons = nodes.shape[0]

    def mean(of: Any) -> Any:
        total = of.mean(axis=0, keepdims=True) if of.shape[0] else jnp.zeros((1, nodes.shape[1]), nodes.dtype)
        return jnp.tile(total, (electrons, 1))

    return mean(nodes[:n_up]), mean(nodes[n_up:])
