"""Molecule: nuclei, charges and electron spins of one system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusionlab.errors import InputError

BOHR_PER_ANGSTROM = 1.0 / 0.529177210903
"""CODATA 2018 Bohr radius, 0.529177210903 angstrom."""


@dataclass(frozen=True)
class Molecule:
    """Nuclei at ``positions`` (bohr, one ``(x, y, z)`` each) with integer ``charges``; ``spin`` is n_up - n_down."""

    name: str
    charges: tuple[int, ...]
    positions: tuple[tuple[float, float, float], ...]
    charge: int = 0
    spin: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        if self.electrons < 1:
            raise InputError(f"molecule {self.name}: charge {self.charge} leaves {self.electrons} electrons")
        if (self.electrons + self.spin) % 2 or abs(self.spin) > self.electrons:
            raise InputError(f"molecule {self.name}: spin {self.spin} is impossible with {self.electrons} electrons")

    @property
    def electrons(self) -> int:
        """Number of electrons."""
        return sum(self.charges) - self.charge

    @property
    def n_up(self) -> int:
        """Number of spin-up electrons; they come first in every electron axis."""
        return (self.electrons + self.spin) // 2

    @property
    def n_down(self) -> int:
        """Number of spin-down electrons."""
        return (self.electrons - self.spin) // 2

    @property
    def nuclei(self) -> np.ndarray:
        """Nuclear positions, float64 ``[nuclei, 3]``, bohr."""
        return np.array(self.positions, dtype=np.float64)
