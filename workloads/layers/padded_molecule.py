"""A molecule as runtime data, padded to fixed dimensions, with masks that say what is real.

oneQMC compiles one program for many molecules: positions, charges and counts are arguments, and masks are computed
from the counts. Here the molecule is fixed, but its data pass through an optimization barrier, so that a compiler
cannot fold the masks away even where nothing is padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.errors import InputError
from fusionlab.workloads.molecule import Molecule


@dataclass(frozen=True)
class Dimensions:
    """Slots for nuclei, spin-up and spin-down electrons; the largest nuclear charge and species number."""

    nuclei: int
    up: int
    down: int
    charge: int
    species: int

    @staticmethod
    def of(molecule: Molecule) -> Dimensions:
        """No padding: as many slots as ``molecule`` needs. A nucleus's species is its charge."""
        largest = max(molecule.charges)
        return Dimensions(len(molecule.charges), molecule.n_up, molecule.n_down, largest, largest)

    @property
    def electrons(self) -> int:
        """Electron slots, which is also the number of orbital slots; spin-up slots come first."""
        return self.up + self.down

    def require(self, molecule: Molecule) -> None:
        """InputError where ``molecule`` does not fit."""
        needed = Dimensions.of(molecule)
        for name in ("nuclei", "up", "down", "charge", "species"):
            if getattr(self, name) < getattr(needed, name):
                raise InputError(
                    f"molecule {molecule.name} needs {name} >= {getattr(needed, name)}, got {getattr(self, name)}"
                )


class System(NamedTuple):
    """Traced data of one molecule. Masked slots hold zeros.

    ``positions`` ``[nuclei, 3]`` (bohr); ``charges`` and ``species`` int32 ``[nuclei]``; ``n_up`` and ``n_down`` int32
    scalars; ``nuclei_mask`` bool ``[nuclei]``; ``electron_mask`` bool ``[electrons]``, also the mask of orbitals.
    """

    positions: Any
    charges: Any
    species: Any
    n_up: Any
    n_down: Any
    nuclei_mask: Any
    electron_mask: Any


def load_system(molecule: Molecule, dimensions: Dimensions, dtype: Any) -> System:
    """The data of ``molecule`` in ``dimensions``, positions in ``dtype``, behind one optimization barrier."""
    count = len(molecule.charges)
    positions = np.zeros((dimensions.nuclei, 3))
    positions[:count] = molecule.nuclei
    charges = np.zeros(dimensions.nuclei, np.int32)
    charges[:count] = molecule.charges
    counts = np.array([count, molecule.n_up, molecule.n_down], np.int32)
    positions, charges, species, counts = lax.optimization_barrier(
        (jnp.asarray(positions, dtype), jnp.asarray(charges), jnp.asarray(charges), jnp.asarray(counts))
    )
    n_up, n_down = counts[1], counts[2]
    return System(
        positions=positions,
        charges=charges,
        species=species,
        n_up=n_up,
        n_down=n_down,
        nuclei_mask=_slots(dimensions.nuclei) < counts[0],
        electron_mask=jnp.concatenate([_slots(dimensions.up) < n_up, _slots(dimensions.down) < n_down]),
    )


def place_electrons(r: Any, molecule: Molecule, dimensions: Dimensions) -> Any:
    """``r`` ``[electrons, 3]`` in the electron slots of ``dimensions``; empty slots are at the origin."""
    up, down = dimensions.up - molecule.n_up, dimensions.down - molecule.n_down
    if up == 0 and down == 0:
        return r
    parts = [r[: molecule.n_up], jnp.zeros((up, 3), r.dtype), r[molecule.n_up :], jnp.zeros((down, 3), r.dtype)]
    return jnp.concatenate(parts)


def _slots(count: int) -> Any:
    return lax.iota(jnp.int32, count)
