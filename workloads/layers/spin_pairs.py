"""Electron pairs grouped by relative spin: parallel (without an electron's pair with itself) and antiparallel."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.workloads.layers.features import differences_between

Blocks = tuple[Any, Any]
"""Two arrays ``[senders, receivers, features]``, the first received by spin up, the second by spin down."""


def senders_without_self(electrons: int) -> np.ndarray:
    """``[electrons - 1, electrons]``: for each receiver (column) the indices of all the others, in order."""
    row, receiver = np.arange(electrons - 1)[:, None], np.arange(electrons)[None, :]
    return row + (row >= receiver)


def parallel_differences(r: Any, n_up: int) -> Blocks:
    """Differences between distinct electrons of the same spin: up to up, and down to down."""

    def block(positions: Any) -> Any:
        senders = senders_without_self(positions.shape[0])
        receivers = np.broadcast_to(np.arange(positions.shape[0]), senders.shape)
        return differences_between(positions, positions)[senders, receivers]

    return block(r[:n_up]), block(r[n_up:])


def antiparallel_differences(r: Any, n_up: int) -> Blocks:
    """Differences between electrons of opposite spin: down to up, and up to down."""
    return differences_between(r[n_up:], r[:n_up]), differences_between(r[:n_up], r[n_up:])


def parallel_senders(nodes: Any, n_up: int) -> Blocks:
    """Node values placed at the senders of the parallel blocks: ``[senders, receivers, features]``."""
    n_down = nodes.shape[0] - n_up
    return nodes[senders_without_self(n_up)], nodes[n_up + senders_without_self(n_down)]


def antiparallel_senders(nodes: Any, n_up: int) -> Blocks:
    """Node values placed at the senders of the antiparallel blocks; the receiver axis is left to broadcasting."""
    return nodes[n_up:, None], nodes[:n_up, None]


def as_list(blocks: Blocks) -> Any:
    """``[pairs, features]``: both blocks, one pair after the other, for a network that acts on each pair."""
    return jnp.concatenate([block.reshape(-1, block.shape[-1]) for block in blocks], axis=0)


def as_blocks(pairs: Any, like: Blocks) -> Blocks:
    """The inverse of ``as_list``, with the shapes of ``like`` but the features of ``pairs``."""
    first = like[0].shape[0] * like[0].shape[1]
    return (
        pairs[:first].reshape(*like[0].shape[:2], pairs.shape[-1]),
        pairs[first:].reshape(*like[1].shape[:2], pairs.shape[-1]),
    )


def sum_over_senders(blocks: Blocks) -> Any:
    """``[electrons, features]``: what every electron receives, spin up first."""
    return jnp.concatenate([block.sum(axis=0) for block in blocks], axis=0)
