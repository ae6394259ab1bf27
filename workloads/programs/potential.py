"""The Coulomb energy of electrons and nuclei, in hartree."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from workloads.layers.features import electron_pair_lengths
from workloads.molecule import Molecule


def nuclear_repulsion(molecule: Molecule) -> float:
    """Sum over nuclei I < J of Z_I Z_J / R_IJ (hartree)."""
    first, second = np.triu_indices(len(molecule.charges), 1)
    charges, nuclei = np.array(molecule.charges), molecule.nuclei
    return float((charges[first] * charges[second] / np.linalg.norm(nuclei[first] - nuclei[second], axis=-1)).sum())


def coulomb_energy(molecule: Molecule, r: Any) -> Any:
    """Potential energy (hartree, scalar) of one walker ``r`` (``[electrons, 3]``, bohr)."""
    charges, nuclei = jnp.asarray(molecule.charges, r.dtype), jnp.asarray(molecule.nuclei, r.dtype)
    to_nuclei = jnp.linalg.norm(r[:, None, :] - nuclei[None, :, :], axis=-1)
    attraction = -(charges / to_nuclei).sum()
    repulsion = (1.0 / electron_pair_lengths(r)).sum()
    return attraction + repulsion + nuclear_repulsion(molecule)
