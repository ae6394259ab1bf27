"""The molecules of the catalogue: electrons, bond lengths, sources."""

import numpy as np
import pytest

from workloads.molecule import BOHR_PER_ANGSTROM
from workloads.molecules import MOLECULES, find_molecule


def bonds(name, first, second):
    """Distances (angstrom) below 1.7 between nuclei of two charges, each pair once."""
    molecule = find_molecule(name)
    distances = [
        float(np.linalg.norm(molecule.nuclei[i] - molecule.nuclei[j])) / BOHR_PER_ANGSTROM
        for i, a in enumerate(molecule.charges)
        for j, b in enumerate(molecule.charges)
        if i != j and (a, b) == (first, second) and (a != b or i < j)
    ]
    return [d for d in distances if d < 1.7]


def test_electrons_of_the_study():
    electrons = {name: (m.electrons, m.n_up, m.n_down) for name, m in MOLECULES.items()}
    assert electrons == {"LiH": (4, 2, 2), "CH4": (10, 5, 5), "C2H6": (18, 9, 9), "C4H4": (28, 14, 14)}


@pytest.mark.parametrize(
    ("name", "pair", "count", "length"),
    [
        ("LiH", (3, 1), 1, 1.595),
        ("CH4", (6, 1), 4, 1.0897),
        ("C2H6", (6, 6), 1, 1.5209),
        ("C2H6", (6, 1), 6, 1.0908),
        ("C4H4", (6, 6), 4, 1.451),
        ("C4H4", (6, 1), 4, 1.078),
    ],
)
def test_bond_lengths(name, pair, count, length):
    found = bonds(name, *pair)
    assert len(found) == count
    np.testing.assert_allclose(found, length, atol=5e-4)


def test_every_molecule_is_named_and_sourced():
    for name, molecule in MOLECULES.items():
        assert molecule.name == name
        assert molecule.source
