"""Molecules of the catalogue and of XYZ files, and the electrons that are placed about their nuclei."""

import jax
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.workloads.molecule import BOHR_PER_ANGSTROM, Molecule
from fusionlab.workloads.molecules import MOLECULES, find_molecule
from fusionlab.workloads.programs.walkers import WIDTH, electron_homes, initial_walkers
from fusionlab.workloads.xyz import read_xyz


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


def test_electrons_names_and_sources_of_the_study():
    electrons = {name: (m.electrons, m.n_up, m.n_down) for name, m in MOLECULES.items()}
    assert electrons == {"LiH": (4, 2, 2), "CH4": (10, 5, 5), "C2H6": (18, 9, 9), "C4H4": (28, 14, 14)}
    assert all(molecule.name == name and molecule.source for name, molecule in MOLECULES.items())


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


WATER = "3\nwater\nO 0 0 0.1173\nH 0 0.7572 -0.4692\nh 0 -0.7572 -0.4692\n"


def write(folder, text):
    path = folder / "mine.xyz"
    path.write_text(text)
    return str(path)


def test_reads_elements_and_converts_angstrom_to_bohr(tmp_path):
    water = find_molecule(write(tmp_path, WATER))
    assert (water.name, water.charges, water.electrons, water.n_up) == ("mine", (8, 1, 1), 10, 5)
    assert water.positions[1][1] == pytest.approx(0.7572 / 0.529177210903, rel=1e-12)


def test_charge_and_spin(tmp_path):
    path = write(tmp_path, WATER)
    assert read_xyz(path, charge=1).spin == 1
    assert read_xyz(path, spin=2).n_up == 6
    assert find_molecule("LiH", charge=1).n_up - find_molecule("LiH", charge=1).n_down == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("\u00b2\n\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("9" * 5000 + "\n\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("1\n\n\u00b2 0 0 0\n", "line 3: unknown element"),
        ("three\nwater\nO 0 0 0\n", "line 1: expected the number of atoms"),
        ("2\n\nO 0 0 0\n", "announces 2 atoms, but only 1"),
        ("1\n\nO 0 0 0\nH 0 0 1\n", "announces 1 atoms, but more follow"),
        ("1\n\nXx 0 0 0\n", "line 3: unknown element 'Xx'"),
        ("1\n\nO 0 zero 0\n", "line 3: coordinates must be numbers"),
        ("1\n\nO 0 nan 0\n", "line 3: coordinates must be finite"),
        ("1\n\nO 0 0\n", "line 3: expected 'element x y z'"),
        ("2\n\nH 0 0 0\nH 0 0 0\n", "lines 3 and 4 place two nuclei 0 angstrom apart; they must be at least 0.1 "),
        ("3\n\nO 0 0 0\nH 0 0 1\nH 0 1e-11 1\n", "lines 4 and 5 place two nuclei 1e-11 angstrom apart"),
    ],
)
def test_bad_files_get_one_clear_line(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        read_xyz(write(tmp_path, text))
    assert "mine.xyz" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value).removeprefix(str(tmp_path))) < 130


def occupation(molecule):
    """(spin-up, spin-down) electrons of every nucleus."""
    homes = electron_homes(molecule)
    up, down = homes[: molecule.n_up], homes[molecule.n_up :]
    return [(int((up == i).sum()), int((down == i).sum())) for i in range(len(molecule.charges))]


def atom(charge=0, spin=0):
    return Molecule("O", (8,), ((0.0, 0.0, 0.0),), charge=charge, spin=spin)


@pytest.mark.parametrize(
    ("molecule", "expected"),
    [
        (find_molecule("CH4"), [(3, 3), (1, 0), (0, 1), (1, 0), (0, 1)]),  # paired
        (find_molecule("LiH"), [(2, 1), (0, 1)]),
        (atom(spin=2), [(5, 3)]),
        (atom(spin=-2), [(3, 5)]),
        (atom(charge=1, spin=1), [(4, 3)]),
        (atom(charge=-1, spin=1), [(5, 4)]),
        (Molecule("LiH+", (3, 1), ((0.0, 0.0, 0.0), (3.0, 0.0, 0.0)), charge=1, spin=1), [(1, 1), (1, 0)]),
        (Molecule("H2", (1, 1), ((0.0, 0.0, 0.0), (1.4, 0.0, 0.0)), spin=2), [(1, 0), (1, 0)]),
    ],
)
def test_each_nucleus_gets_the_electrons_of_its_charge_and_spin(molecule, expected):
    assert occupation(molecule) == expected


def test_positions_are_gaussian_about_the_nuclei():
    molecule = find_molecule("C2H6")
    walkers = np.asarray(initial_walkers(jax.random.PRNGKey(1), molecule, 4000, "float32"), np.float64)
    offsets = walkers - molecule.nuclei[electron_homes(molecule)]
    deviations_of_the_mean = WIDTH / np.sqrt(len(walkers))
    assert np.abs(offsets.mean(axis=0)).max() < 5 * deviations_of_the_mean
    assert offsets.std() == pytest.approx(WIDTH, rel=0.01)


def test_seeded_traceable_and_of_the_dtype_asked_for(x64):
    molecule = find_molecule("LiH")

    def make(seed, dtype):
        return initial_walkers(jax.random.PRNGKey(seed), molecule, 3, dtype)

    for dtype in ("float32", "float64"):
        shape = jax.eval_shape(lambda seed, dtype=dtype: make(seed, dtype), 0)
        assert (shape.shape, shape.dtype) == ((3, 4, 3), dtype)
        np.testing.assert_array_equal(make(0, dtype), make(0, dtype))
        assert not np.array_equal(make(0, dtype), make(1, dtype))
