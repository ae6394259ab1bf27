"""Message passing between nuclei with a gate per pair: the shared block of Orbformer's two nuclear networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.initial import cut_normal

EDGE_FEATURES = 16


def init_messages(width: int, node_width: int | None = None) -> dict[str, Any]:
    """Maps without bias: edge ``[16, width]``, receiver and sender ``[width, width]``.

    With ``node_width`` also those of fixed node features, ``[node_width, width]`` for receiver and sender.
    """
    inputs = {"edge": EDGE_FEATURES, "receiver": width, "sender": width}
    if node_width is not None:
        inputs |= {"receiver_node": node_width, "sender_node": node_width}
    return {name: init_linear(n, width, cut_normal, bias=None) for name, n in inputs.items()}


def messages(
    parameters: dict[str, Any],
    h: Any,
    edges: Any,
    mask: Any,
    heads: int,
    norm: Callable[[Any], Any],
    nodes: Any = None,
) -> Any:
    """Sum over senders of masked messages, ``[..., nuclei, width]`` like ``h``; any axes before the nuclei's.

    The message from S to R is ``tanh((W_r x_R + W_s x_S) / sqrt 2) * W_e f_SR`` with ``x = norm(h)``, masked; with
    ``nodes`` ``[nuclei, node_width]`` also times ``sigmoid((V_r v_R + V_s v_S) / sqrt 2)``. The sum is normalised per
    head and the heads are concatenated; self-messages are included (oneQMC wf/nn/masked/message_passing.py: its
    attempt to zero them has no effect). ``edges`` is ``[senders, receivers, 16]``, ``mask`` bool ``[nuclei]``.
    """
    x = norm(h) * mask[:, None].astype(h.dtype)
    pair_mask = (mask[:, None] & mask[None, :])[..., None].astype(h.dtype)
    edge = _split(linear(parameters["edge"], edges * pair_mask), heads)
    receiver, sender = (_split(linear(parameters[name], x) / math.sqrt(2), heads) for name in ("receiver", "sender"))
    message = jnp.tanh(receiver[..., None, :, :, :] + sender[..., :, None, :, :])
    if nodes is not None:
        receiver, sender = (_split(linear(parameters[f"{name}_node"], nodes), heads) for name in ("receiver", "sender"))
        message = message * jax.nn.sigmoid((receiver[None, :] + sender[:, None]) / math.sqrt(2))
    message = message * edge * pair_mask[..., None]
    return norm(jnp.sum(message, axis=-4)).reshape(h.shape)


def _split(x: Any, heads: int) -> Any:
    return x.reshape(*x.shape[:-1], heads, -1)
