"""Stage C: orbitals per determinant, as a product of an exponential envelope and a network output."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from workloads.layers.dense import linear
from workloads.layers.features import differences_between, length


def by_determinant(values: Any, determinants: int) -> Any:
    """``[electrons, determinants * orbitals]`` to ``[determinants, electrons, orbitals]``."""
    return values.reshape(values.shape[0], determinants, -1).swapaxes(0, 1)


def init_envelopes(orbitals: int, nuclei: int, dtype: Any) -> dict[str, Any]:
    """Weights and exponents of one exponential per orbital (of all determinants) and nucleus, all one."""
    return {"weight": jnp.ones((orbitals, nuclei), dtype), "exponent": jnp.ones((orbitals, nuclei), dtype)}


def exponential_envelopes(envelopes: dict[str, Any], r: Any, nuclei: Any) -> Any:
    """``[electrons, orbitals]``: sum over nuclei I of w exp(-abs(zeta r_iI)) (FermiNet, Pfau et al. 2020, Eq. 10)."""
    distances = length(differences_between(r, nuclei))[:, None, :]
    return (envelopes["weight"] * jnp.exp(-jnp.abs(envelopes["exponent"] * distances))).sum(axis=-1)


def backflow_orbitals(
    backflow: dict[str, Any], envelopes: dict[str, Any], nodes: Any, r: Any, nuclei: Any, determinants: int
) -> Any:
    """``[determinants, electrons, orbitals]`` of one spin: envelope times a linear map of the embeddings."""
    envelope = by_determinant(exponential_envelopes(envelopes, r, nuclei), determinants)
    return envelope * by_determinant(linear(backflow, nodes), determinants)
