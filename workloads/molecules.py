"""The molecules of the study: literal geometries, each with its source."""

from __future__ import annotations

from dataclasses import replace

from fusionlab.errors import unknown
from fusionlab.workloads.molecule import BOHR_PER_ANGSTROM, Molecule
from fusionlab.workloads.xyz import read_xyz

Positions = tuple[tuple[float, float, float], ...]


def _from_angstrom(*rows: tuple[float, float, float]) -> Positions:
    """The same positions in bohr."""
    return tuple((x * BOHR_PER_ANGSTROM, y * BOHR_PER_ANGSTROM, z * BOHR_PER_ANGSTROM) for x, y, z in rows)


MOLECULES: dict[str, Molecule] = {
    "LiH": Molecule(
        name="LiH",
        charges=(3, 1),
        positions=_from_angstrom((0.0, 0.0, 0.0), (1.595, 0.0, 0.0)),
        source="DeepQMC 1.2.0, conf/hamil/mol/LiH.yaml (angstrom)",
    ),
    "CH4": Molecule(
        name="CH4",
        charges=(6, 1, 1, 1, 1),
        positions=_from_angstrom(
            (0.0, 0.0, 0.0),
            (0.62912, 0.62912, 0.62912),
            (-0.62912, -0.62912, 0.62912),
            (0.62912, -0.62912, -0.62912),
            (-0.62912, 0.62912, -0.62912),
        ),
        source="DeepQMC 1.2.0, conf/hamil/mol/CH4.yaml (angstrom)",
    ),
    "C2H6": Molecule(
        name="C2H6",
        charges=(6, 6, 1, 1, 1, 1, 1, 1),
        positions=_from_angstrom(
            (-0.760428, 0.0, -0.000001),
            (0.760428, 0.0, 0.000001),
            (-1.157353, 0.510817, 0.878154),
            (-1.157354, -1.015914, 0.003302),
            (-1.15735, 0.505096, -0.881461),
            (1.15735, -0.505096, 0.881461),
            (1.157354, 1.015914, -0.003302),
            (1.157353, -0.510817, -0.878154),
        ),
        source="oneQMC, data/bbmep/Ethane/00.yaml (angstrom): staggered, the lowest point of the dissociation path",
    ),
    "C4H4": Molecule(
        name="C4H4",
        charges=(6, 6, 6, 6, 1, 1, 1, 1),
        positions=(
            (0.0, 0.0, 0.0),
            (2.74199, 0.0, 0.0),
            (2.74199, 2.74199, 0.0),
            (0.0, 2.74199, 0.0),
            (-1.44047, -1.44047, 0.0),
            (4.18246, -1.44047, 0.0),
            (4.18246, 4.18246, 0.0),
            (-1.44047, 4.18246, 0.0),
        ),
        source=(
            "DeepQMC 1.2.0, conf/hamil/mol/cyclobutadiene_square.yaml, read as bohr; the file says angstrom,"
            " but its side of 2.74199 bohr is the 1.451 angstrom of oneQMC's data/cyclobutadiene/square.yaml"
        ),
    ),
}


def find_molecule(name: str, charge: int | None = None, spin: int | None = None) -> Molecule:
    """The molecule called ``name``, or that of the XYZ file ``name`` (it ends in ``.xyz``).

    ``charge`` and ``spin`` (n_up - n_down) replace those of a molecule of the table. ``InputError`` with the nearest
    known names if there is none, or when the charge or spin is impossible.
    """
    if name.lower().endswith(".xyz"):
        return read_xyz(name, charge or 0, spin)
    if name not in MOLECULES:
        raise unknown("molecule", name, MOLECULES)
    molecule = MOLECULES[name]
    if charge is None and spin is None:
        return molecule
    charge = molecule.charge if charge is None else charge
    parity = (sum(molecule.charges) - charge) % 2
    return replace(molecule, charge=charge, spin=parity if spin is None else spin)
