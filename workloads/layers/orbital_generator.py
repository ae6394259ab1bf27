"""Orbformer's orbital generator: features of every orbital on every nucleus, from the molecule alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from fusionlab.workloads.layers.dense import init_linear, linear
from fusionlab.workloads.layers.initial import cut_normal
from fusionlab.workloads.layers.masked_messages import init_messages, messages
from fusionlab.workloads.layers.near_equal import unit_cut_normal
from fusionlab.workloads.layers.normalisation import orbital_norm
from fusionlab.workloads.layers.padded_molecule import Dimensions, System
from fusionlab.workloads.layers.vector_features import nuclear_pair_features


def init_orbital_generator(charge: int, width: int, node_width: int, layers: int) -> dict[str, Any]:
    """An embedding of the ``charge (charge + 1) / 2`` atomic orbitals, ``layers`` blocks without biases, two gates."""
    blocks = [
        {"messages": init_messages(width, node_width), "dense": init_linear(width, width, cut_normal, bias=None)}
        for _ in range(layers)
    ]
    return {
        "embedding": init_linear(charge * (charge + 1) // 2, width, unit_cut_normal, bias=None),
        "blocks": blocks,
        "gate_up": init_linear(width, width, cut_normal),
        "gate_down": init_linear(width, width, cut_normal),
    }


def orbital_generator(
    parameters: dict[str, Any], system: System, nodes: Any, dimensions: Dimensions, heads: int
) -> tuple[Any, Any]:
    """Orbital features for up and for down electrons, both ``[orbitals, nuclei, width]``, zero in masked slots.

    ``nodes`` are the nuclei's features ``[nuclei, node_width]``. oneQMC wf/orbformer/orbitals.py and base.py.
    """
    dtype = system.positions.dtype
    mask = system.electron_mask[:, None, None].astype(dtype) * system.nuclei_mask[:, None].astype(dtype)
    atomic = atomic_orbitals(system, dimensions, dtype)[_slot_order(system, dimensions)]
    o = linear(parameters["embedding"], atomic) * mask
    edges = nuclear_pair_features(system.positions)
    for block in parameters["blocks"]:
        o = o + messages(block["messages"], o, edges, system.nuclei_mask, heads, orbital_norm, nodes)
        o = o * system.nuclei_mask[:, None].astype(dtype)
        o = (o + jnp.tanh(linear(block["dense"], orbital_norm(o)))) * mask
    up, down = (o * jax.nn.sigmoid(linear(parameters[gate], o)) for gate in ("gate_up", "gate_down"))
    return up, down


def atomic_orbitals(system: System, dimensions: Dimensions, dtype: Any) -> Any:
    """One-hot ``[orbitals, nuclei, charge (charge + 1) / 2]``: which atomic orbital each orbital starts from.

    A nucleus of charge Z owns the next Z orbitals; its i-th one (from 0) has its one at its own nucleus and feature
    ``Z (Z - 1) / 2 + i``. Right for neutral molecules only, as in oneQMC. The inner loop's trip count is data.
    """
    features = dimensions.charge * (dimensions.charge + 1) // 2

    def nucleus(index: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        charge = system.charges[index]
        first = charge * (charge - 1) // 2

        def orbital(i: Any, one_hot_and_offset: tuple[Any, Any]) -> tuple[Any, Any]:
            one_hot, offset = one_hot_and_offset
            return one_hot.at[offset + i, index, first + i].set(1), offset

        one_hot, offset = lax.fori_loop(jnp.int32(0), charge, orbital, carry)
        return one_hot, offset + charge

    start = jnp.zeros((dimensions.electrons, dimensions.nuclei, features), dtype)
    return lax.fori_loop(jnp.int32(0), jnp.int32(dimensions.nuclei), nucleus, (start, jnp.int32(0)))[0]


def _slot_order(system: System, dimensions: Dimensions) -> Any:
    """Which row goes to which orbital slot: n_up rows to the up slots, the next n_down to the down slots, the rest."""
    slot = lax.iota(jnp.int32, dimensions.electrons)
    down_end = dimensions.up + system.n_down
    order = jnp.where(slot < dimensions.up, slot + system.n_down, slot)
    order = jnp.where((slot >= dimensions.up) & (slot < down_end), slot - dimensions.up + system.n_up, order)
    return jnp.where(slot < system.n_up, slot, order)
