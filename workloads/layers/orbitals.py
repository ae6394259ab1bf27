"""Stage C: orbitals per determinant, as a product of an exponential envelope and a network output."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fusionlab.workloads.layers.dense import linear
from fusionlab.workloads.layers.features import differences_between, length
from fusionlab.workloads.layers.initial import Initial, ones


def by_determinant(values: Any, determinants: int) -> Any:
    """``[electrons, determinants * orbitals]`` to ``[determinants, electrons, orbitals]``."""
    return values.reshape(values.shape[0], determinants, values.shape[1] // determinants).swapaxes(0, 1)


def init_envelopes(orbitals: int, nuclei: int) -> dict[str, Initial]:
    """Weights and exponents of one exponential per orbital (of all determinants) and nucleus, all one."""
    return {"weight": ones(orbitals, nuclei), "exponent": ones(orbitals, nuclei)}


def exponential_envelopes(envelopes: dict[str, Any], r: Any, nuclei: Any) -> Any:
    """``[electrons, orbitals]``: sum over nuclei I of w exp(-abs(zeta r_iI)) (FermiNet, Pfau et al. 2020)."""
    distances = length(differences_between(r, nuclei))[:, None, :]
    return (envelopes["weight"] * jnp.exp(-jnp.abs(envelopes["exponent"] * distances))).sum(axis=-1)


def backflow_orbitals(parameters: dict[str, Any], nodes: Any, r: Any, nuclei: Any, n_up: int, determinants: int) -> Any:
    """``[determinants, electrons, electrons]``: envelopes times a linear map of the embeddings, by spin.

    Reads ``parameters["backflow"]`` and ``parameters["envelopes"]``, each with entries ``up`` and ``down``.
    """

    def of_one_spin(spin: str, electrons: slice) -> Any:
        envelope = exponential_envelopes(parameters["envelopes"][spin], r[electrons], nuclei)
        factor = linear(parameters["backflow"][spin], nodes[electrons])
        return by_determinant(envelope, determinants) * by_determinant(factor, determinants)

    rows = [of_one_spin("up", slice(None, n_up)), of_one_spin("down", slice(n_up, None))]
    return jnp.concatenate(rows, axis=1)
