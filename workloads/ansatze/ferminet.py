"""FermiNet as DeepQMC 1.2.0 ships it (conf/ansatz/ferminet.yaml): one- and two-electron streams, determinants.

Source: Pfau, Spencer, Matthews and Foulkes 2020 (arXiv:1909.02487). Parameters: 744,800 on CH4, 683,744 on LiH.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz, assemble
from fusionlab.workloads.layers.dense import init_linear, init_mlp, mlp
from fusionlab.workloads.layers.determinants import log_sum_of_determinants
from fusionlab.workloads.layers.features import differences_between, electron_nucleus_features, length_and_difference
from fusionlab.workloads.layers.initial import normal
from fusionlab.workloads.layers.message_passing import residual, spin_means
from fusionlab.workloads.layers.orbitals import backflow_orbitals, init_envelopes
from fusionlab.workloads.molecule import Molecule


@dataclass(frozen=True)
class Size:
    """Widths: ``embedding`` of the one-electron stream, ``pair`` of the two-electron stream."""

    determinants: int = 16
    interactions: int = 4
    embedding: int = 256
    pair: int = 32


SIZES = {"full": Size(), "tiny": Size(determinants=2, interactions=2, embedding=8, pair=4)}


def build(molecule: Molecule, size: str = "full") -> Ansatz:
    """FermiNet on ``molecule``; ``size`` is a key of ``SIZES``. InputError: unknown size."""
    return assemble("ferminet", molecule, size, SIZES, initial_parameters, log_psi)


def initial_parameters(molecule: Molecule, size: Size) -> dict[str, Any]:
    """Weights normal of variance 1/fan-in, biases of variance 1/length, envelopes one."""
    nodes, pairs = 4 * len(molecule.charges), 4
    interactions = []
    for index in range(size.interactions):
        interaction = {"node": init_mlp(3 * nodes + 2 * pairs, (size.embedding,), normal, normal)}
        if index < size.interactions - 1:
            interaction["pair"] = init_mlp(pairs, (size.pair,), normal, normal)
        interactions.append(interaction)
        nodes, pairs = size.embedding, size.pair
    orbitals = size.determinants * molecule.electrons
    return {
        "interactions": interactions,
        "backflow": {spin: init_linear(nodes, orbitals, normal, bias=None) for spin in ("up", "down")},
        "envelopes": {spin: init_envelopes(orbitals, len(molecule.charges)) for spin in ("up", "down")},
    }


def log_psi(parameters: dict[str, Any], r: Any, molecule: Molecule, size: Size) -> tuple[Any, Any]:
    """Sign and log|psi| of one walker ``r`` (``[electrons, 3]``, bohr, spin-up first)."""
    n_up, nuclei = molecule.n_up, jnp.asarray(molecule.nuclei, r.dtype)
    with jax.named_scope("stage_a"):
        nodes = electron_nucleus_features(r, nuclei)
        pairs = [length_and_difference(differences_between(senders, r)) for senders in (r[:n_up], r[n_up:])]
    with jax.named_scope("stage_b"):
        for number, interaction in enumerate(parameters["interactions"]):
            with jax.named_scope(f"interaction_{number}"):
                nodes, pairs = interact(interaction, nodes, pairs, n_up)
    with jax.named_scope("stage_c"):
        orbitals = backflow_orbitals(parameters, nodes, r, nuclei, n_up, size.determinants)
    with jax.named_scope("stage_d"):
        return log_sum_of_determinants(orbitals)


def interact(parameters: dict[str, Any], nodes: Any, pairs: list[Any], n_up: int) -> tuple[Any, list[Any]]:
    """One layer of both streams; ``pairs`` holds ``[senders, receivers, features]`` for up and for down senders."""
    messages = [block.mean(axis=0) if len(block) else block.sum(axis=0) for block in pairs]
    update = mlp(parameters["node"], jnp.concatenate([nodes, *spin_means(nodes, n_up), *messages], axis=-1))
    if "pair" in parameters:
        updated = jnp.split(mlp(parameters["pair"], jnp.concatenate(pairs)), [n_up])
        pairs = [residual(old, new) for old, new in zip(pairs, updated, strict=True)]
    return residual(nodes, update), pairs
