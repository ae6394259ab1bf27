"""Psiformer as DeepQMC 1.2.0 ships it (conf/ansatz/psiformer.yaml): attention between electrons, determinants, cusps.

Source: von Glehn, Spencer and Pfau 2023 (arXiv:2211.13672). Parameters: 1,665,410 on CH4, 1,610,498 on LiH.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz, assemble
from fusionlab.workloads.layers.dense import init_linear, init_mlp, linear, mlp
from fusionlab.workloads.layers.determinants import log_sum_of_determinants
from fusionlab.workloads.layers.features import (
    electron_distance_matrix,
    electron_nucleus_features,
    rescaled_length_and_difference,
)
from fusionlab.workloads.layers.initial import cut_normal, normal, ones
from fusionlab.workloads.layers.jastrow import psiformer_cusps
from fusionlab.workloads.layers.orbitals import backflow_orbitals, init_envelopes
from fusionlab.workloads.layers.self_attention import init_self_attention, self_attention
from fusionlab.workloads.molecule import Molecule


@dataclass(frozen=True)
class Size:
    """``embedding`` is the width per electron, shared out among ``heads``."""

    determinants: int = 16
    interactions: int = 4
    embedding: int = 256
    heads: int = 4


SIZES = {"full": Size(), "tiny": Size(determinants=2, interactions=2, embedding=8, heads=2)}


def build(molecule: Molecule, size: str = "full") -> Ansatz:
    """Psiformer on ``molecule``; ``size`` is a key of ``SIZES``. InputError: unknown size."""
    return assemble("psiformer-deepqmc", molecule, size, SIZES, initial_parameters, log_psi)


def initial_parameters(molecule: Molecule, size: Size) -> dict[str, Any]:
    """Weights normal of variance 1/fan-in (the first cut), biases of variance 1/length, envelopes and cusps one."""
    width, orbitals = size.embedding, size.determinants * molecule.electrons
    return {
        "embedding": init_linear(4 * len(molecule.charges) + 1, width, cut_normal, bias=None),
        "interactions": [
            {"attention": init_self_attention(width), "dense": init_mlp(width, (width, width), normal, normal)}
            for _ in range(size.interactions)
        ],
        "backflow": {spin: init_linear(width, orbitals, normal, bias=None) for spin in ("up", "down")},
        "envelopes": {spin: init_envelopes(orbitals, len(molecule.charges)) for spin in ("up", "down")},
        "cusps": {"parallel": ones(), "antiparallel": ones()},
    }


def log_psi(parameters: dict[str, Any], r: Any, molecule: Molecule, size: Size) -> tuple[Any, Any]:
    """Sign and log|psi| of one walker ``r`` (``[electrons, 3]``, bohr, spin-up first)."""
    n_up, nuclei = molecule.n_up, jnp.asarray(molecule.nuclei, r.dtype)
    with jax.named_scope("stage_a"):
        distances = electron_distance_matrix(r)
        positions = electron_nucleus_features(r, nuclei, rescaled_length_and_difference)
        spins = jnp.asarray([[1.0]] * n_up + [[-1.0]] * molecule.n_down, r.dtype)
        nodes = linear(parameters["embedding"], jnp.concatenate([positions, spins], axis=1))
    with jax.named_scope("stage_b"):
        for number, interaction in enumerate(parameters["interactions"]):
            with jax.named_scope(f"interaction_{number}"):
                nodes = nodes + self_attention(interaction["attention"], nodes, size.heads)
                nodes = nodes + mlp(interaction["dense"], nodes)
    with jax.named_scope("stage_c"):
        orbitals = backflow_orbitals(parameters, nodes, r, nuclei, n_up, size.determinants)
    with jax.named_scope("stage_d"):
        sign, log = log_sum_of_determinants(orbitals)
        return sign, log + psiformer_cusps(parameters["cusps"], distances, n_up)
