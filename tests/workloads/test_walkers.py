import jax
import numpy as np
import pytest

from workloads.molecule import Molecule
from workloads.molecules import find_molecule
from workloads.programs.walkers import WIDTH, electron_homes, initial_walkers


def occupation(molecule):
    """(spin-up, spin-down) electrons of every nucleus."""
    homes = electron_homes(molecule)
    up, down = homes[: molecule.n_up], homes[molecule.n_up :]
    return [(int((up == i).sum()), int((down == i).sum())) for i in range(len(molecule.charges))]


def atom(charge=0, spin=0):
    return Molecule("O", (8,), ((0.0, 0.0, 0.0),), charge=charge, spin=spin)


def test_each_nucleus_gets_its_charge_in_paired_electrons():
    assert occupation(find_molecule("CH4")) == [(3, 3), (1, 0), (0, 1), (1, 0), (0, 1)]
    assert occupation(find_molecule("LiH")) == [(2, 1), (0, 1)]


@pytest.mark.parametrize(
    ("molecule", "expected"),
    [
        (atom(spin=2), [(5, 3)]),
        (atom(spin=-2), [(3, 5)]),
        (atom(charge=1, spin=1), [(4, 3)]),
        (atom(charge=-1, spin=1), [(5, 4)]),
        (Molecule("LiH+", (3, 1), ((0.0, 0.0, 0.0), (3.0, 0.0, 0.0)), charge=1, spin=1), [(1, 1), (1, 0)]),
        (Molecule("H2", (1, 1), ((0.0, 0.0, 0.0), (1.4, 0.0, 0.0)), spin=2), [(1, 0), (1, 0)]),
    ],
)
def test_ions_and_open_shells(molecule, expected):
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
