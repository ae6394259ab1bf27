"""Initial electron positions: every electron near a nucleus, spins balanced."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.workloads.molecule import Molecule

WIDTH = 1.0
"""Standard deviation (bohr) of an electron about its nucleus, in each direction."""


def electron_homes(molecule: Molecule) -> np.ndarray:
    """``[electrons]`` index of each electron's nucleus, spin-up first.

    A nucleus gets as many electrons as its charge; the heaviest ones give up (cation) or take (anion) the difference.
    Each nucleus pairs its spins as far as the numbers of spin-up and spin-down electrons allow.
    """
    counts = list(molecule.charges)
    for _ in range(abs(molecule.charge)):
        nucleus = int(np.argmax(counts))
        counts[nucleus] -= 1 if molecule.charge > 0 else -1
    free = [molecule.n_up, molecule.n_down]
    homes: tuple[list[int], list[int]] = ([], [])
    for nucleus, count in enumerate(counts):
        here = [0, 0]
        for _ in range(count):
            spin = min((0, 1), key=lambda s: (free[s] == 0, here[s], -free[s]))
            here[spin] += 1
            free[spin] -= 1
            homes[spin].append(nucleus)
    return np.array(homes[0] + homes[1])


def initial_walkers(key: Any, molecule: Molecule, walkers: int, dtype: Any) -> Any:
    """``[walkers, electrons, 3]`` positions (bohr) of ``dtype``: gaussian about the nuclei; traceable in ``key``."""
    centres = jnp.asarray(molecule.nuclei[electron_homes(molecule)], dtype)
    return centres + WIDTH * jax.random.normal(key, (walkers, molecule.electrons, 3), dtype)
