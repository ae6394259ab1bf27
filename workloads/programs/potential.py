"""The Coulomb energy of electrons and nuclei, in hartree, with the regularisation of the code an ansatz comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.workloads.layers.features import electron_pair_lengths
from fusionlab.workloads.molecule import Molecule

SQUARE_FLOOR = 1e-12
"""What oneQMC adds to every squared distance (bohr^2; physics.py)."""


def nuclear_repulsion(molecule: Molecule, floor: float = 0.0) -> float:
    """Sum over nuclei I < J of Z_I Z_J / R_IJ (hartree); ``floor`` (bohr^2) is added to R_IJ^2."""
    first, second = np.triu_indices(len(molecule.charges), 1)
    charges, nuclei = np.array(molecule.charges), molecule.nuclei
    squares = ((nuclei[first] - nuclei[second]) ** 2).sum(axis=-1) + floor
    return float((charges[first] * charges[second] / np.sqrt(squares)).sum())


def coulomb_energy(molecule: Molecule, r: Any) -> Any:
    """Potential energy (hartree, scalar) of one walker ``r`` (``[electrons, 3]``, bohr), as DeepQMC 1.2.0 takes it.

    The dtype's epsilon is added to squared distances between electrons, nothing to those from nuclei (physics.py).
    Between nuclei, where DeepQMC adds it as well (below one part in 1e7), nothing is added.
    """
    charges, nuclei = jnp.asarray(molecule.charges, r.dtype), jnp.asarray(molecule.nuclei, r.dtype)
    to_nuclei = jnp.linalg.norm(r[:, None, :] - nuclei[None, :, :], axis=-1)
    attraction = -(charges / to_nuclei).sum()
    repulsion = (1.0 / electron_pair_lengths(r)).sum()
    return attraction + repulsion + nuclear_repulsion(molecule)


def floored_coulomb_energy(molecule: Molecule, r: Any) -> Any:
    """The same as oneQMC takes it: every 1/d is rsqrt(d^2 + 1e-12), so it is finite where particles meet (physics.py).

    oneQMC's masks of padded particles are left out; here no molecule is padded.
    """
    charges, nuclei = jnp.asarray(molecule.charges, r.dtype), jnp.asarray(molecule.nuclei, r.dtype)
    first, second = np.triu_indices(r.shape[0], 1)
    attraction = -(charges * _inverse_lengths(r[:, None, :] - nuclei[None, :, :])).sum()
    repulsion = _inverse_lengths(r[first] - r[second]).sum()
    return attraction + repulsion + nuclear_repulsion(molecule, SQUARE_FLOOR)


def _inverse_lengths(differences: Any) -> Any:
    squares = (differences * differences).sum(axis=-1)
    return jax.lax.rsqrt(squares + jnp.asarray(SQUARE_FLOOR, squares.dtype))


POTENTIALS: dict[str, Callable[[Molecule, Any], Any]] = {
    "deepqmc": coulomb_energy,
    "oneqmc": floored_coulomb_energy,
}
