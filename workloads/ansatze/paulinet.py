"""PauliNet as DeepQMC 1.2.0 ships it (conf/ansatz/default.yaml): message passing, Jastrow factor and backflow.

Sources: Hermann, Schätzle and Noé 2020 (arXiv:1909.08423); Schätzle et al. 2023 (arXiv:2307.14123) for this form.
Parameters: 230,799 on CH4, 197,589 on LiH.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz, assemble
from fusionlab.workloads.layers.dense import geometric_widths, init_linear, init_mlp, linear, mlp
from fusionlab.workloads.layers.determinants import log_sum_of_determinants
from fusionlab.workloads.layers.features import (
    electron_distance_matrix,
    electron_nucleus_features,
    length_and_difference,
)
from fusionlab.workloads.layers.initial import ones
from fusionlab.workloads.layers.jastrow import fixed_cusps
from fusionlab.workloads.layers.message_passing import residual, spin_means
from fusionlab.workloads.layers.orbitals import backflow_orbitals, init_envelopes
from fusionlab.workloads.layers.spin_pairs import (
    antiparallel_differences,
    antiparallel_senders,
    as_blocks,
    as_list,
    parallel_differences,
    parallel_senders,
    sum_over_senders,
)
from fusionlab.workloads.molecule import Molecule

CUSP_DECAY = 10.0  # 1/bohr


@dataclass(frozen=True)
class Size:
    """Widths: ``embedding`` per electron, ``pair`` per electron pair."""

    determinants: int = 16
    interactions: int = 3
    embedding: int = 128
    pair: int = 32


SIZES = {"full": Size(), "tiny": Size(determinants=2, interactions=2, embedding=8, pair=4)}


def build(molecule: Molecule, size: str = "full") -> Ansatz:
    """PauliNet on ``molecule``; ``size`` is a key of ``SIZES``. InputError: unknown size."""
    return assemble("paulinet", molecule, size, SIZES, initial_parameters, log_psi)


def initial_parameters(molecule: Molecule, size: Size) -> dict[str, Any]:
    """Dense weights truncated normal of variance 1/fan-in, biases zero, envelopes and determinant weights one."""
    nodes, pairs = 4 * len(molecule.charges), 4
    interactions = []
    for index in range(size.interactions):
        last = index == size.interactions - 1
        interactions.append(initial_interaction(nodes, pairs, size, update_pairs=not last))
        nodes, pairs = size.embedding, size.pair
    orbitals = size.determinants * molecule.electrons
    return {
        "interactions": interactions,
        "jastrow": init_linear(nodes, 1, bias=None),
        "backflow": {spin: init_linear(nodes, orbitals, bias=None) for spin in ("up", "down")},
        "envelopes": {spin: init_envelopes(orbitals, len(molecule.charges)) for spin in ("up", "down")},
        "determinants": ones(size.determinants, 1),
    }


def initial_interaction(nodes: int, pairs: int, size: Size, *, update_pairs: bool) -> dict[str, Any]:
    """One interaction that reads embeddings of width ``nodes`` and pairs of width ``pairs``."""

    def subnet(inputs: int) -> list[dict[str, Any]]:
        return init_mlp(inputs, geometric_widths(inputs, size.pair, 2))

    interaction = {
        "filter": {spin: subnet(pairs) for spin in ("parallel", "antiparallel")},
        "sender": {spin: subnet(nodes) for spin in ("parallel", "antiparallel")},
        "node": init_mlp(3 * nodes + 2 * size.pair, (size.embedding,), bias=None),
    }
    return {**interaction, "pair": subnet(pairs)} if update_pairs else interaction


def log_psi(parameters: dict[str, Any], r: Any, molecule: Molecule, size: Size) -> tuple[Any, Any]:
    """Sign and log|psi| of one walker ``r`` (``[electrons, 3]``, bohr, spin-up first)."""
    n_up, nuclei = molecule.n_up, jnp.asarray(molecule.nuclei, r.dtype)
    with jax.named_scope("stage_a"):
        distances = electron_distance_matrix(r)
        nodes = electron_nucleus_features(r, nuclei)
        pairs = {
            "parallel": tuple(length_and_difference(block) for block in parallel_differences(r, n_up)),
            "antiparallel": tuple(length_and_difference(block) for block in antiparallel_differences(r, n_up)),
        }
    with jax.named_scope("stage_b"):
        for number, interaction in enumerate(parameters["interactions"]):
            with jax.named_scope(f"interaction_{number}"):
                nodes, pairs = interact(interaction, nodes, pairs, n_up)
    with jax.named_scope("stage_c"):
        jastrow = linear(parameters["jastrow"], nodes.sum(axis=0))[0]
        orbitals = backflow_orbitals(parameters, nodes, r, nuclei, n_up, size.determinants)
    with jax.named_scope("stage_d"):
        sign, log = log_sum_of_determinants(orbitals, parameters["determinants"])
        return sign, log + fixed_cusps(distances, n_up, CUSP_DECAY) + jastrow


def interact(parameters: dict[str, Any], nodes: Any, pairs: dict[str, Any], n_up: int) -> tuple[Any, dict[str, Any]]:
    """One message-passing step: new embeddings from the old pairs, then (except in the last step) new pairs."""
    messages = [
        convolve(parameters, spin, nodes, pairs[spin], senders, n_up)
        for spin, senders in (("parallel", parallel_senders), ("antiparallel", antiparallel_senders))
    ]
    update = mlp(parameters["node"], jnp.concatenate([nodes, *spin_means(nodes, n_up), *messages], axis=-1))
    if "pair" in parameters:
        pairs = update_pairs(parameters["pair"], pairs)
    return residual(nodes, update), pairs


def convolve(parameters: dict[str, Any], spin: str, nodes: Any, blocks: Any, senders: Any, n_up: int) -> Any:
    """``[electrons, pair]``: sum over senders of a filter (from the pair) times a network of the sender."""
    filters = as_blocks(mlp(parameters["filter"][spin], as_list(blocks)), blocks)
    values = senders(mlp(parameters["sender"][spin], nodes), n_up)
    return sum_over_senders((filters[0] * values[0], filters[1] * values[1]))


def update_pairs(layers: list[dict[str, Any]], pairs: dict[str, Any]) -> dict[str, Any]:
    """All pairs, of either kind, through one shared network, with a residual connection."""
    lists = {spin: as_list(blocks) for spin, blocks in pairs.items()}
    updated = mlp(layers, jnp.concatenate(list(lists.values()), axis=0))
    split = jnp.split(updated, [len(lists["parallel"])])
    return {
        spin: tuple(residual(old, new) for old, new in zip(pairs[spin], as_blocks(part, pairs[spin]), strict=True))
        for spin, part in zip(pairs, split, strict=True)
    }
