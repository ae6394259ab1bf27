"""Orbformer: its size, its initial values, its masks and its generated orbitals."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.workloads.ansatze.orbformer import build
from fusionlab.workloads.layers.orbital_generator import _slot_order, atomic_orbitals
from fusionlab.workloads.layers.padded_molecule import Dimensions, load_system, place_electrons
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.molecules import find_molecule
from tests.workloads.wavefunctions import LIH, abstract, drawn

pytestmark = pytest.mark.slow

TRIPLET = Molecule("LiH triplet", LIH.charges, LIH.positions, spin=2)


def test_initial_values():
    tiny, _ = drawn(build(LIH, "tiny"), 1)
    exponents = [[1.0, 1.0], [2.0, 1.0], [3.0, 1.5]]  # charge over index
    np.testing.assert_allclose(0.1 + jax.nn.softplus(tiny["exponents"]), exponents, rtol=1e-5)
    np.testing.assert_allclose(tiny["transformer"][1]["attention"]["distance_scale"], [[0.25, 8.0]], rtol=1e-6)
    np.testing.assert_allclose(jax.nn.softplus(tiny["jastrow"]), 1.0, rtol=1e-6)
    weights = np.asarray(tiny["readout_up"]).reshape(8, 32, 2)
    difference = weights[..., 0] - weights[..., 1]  # of the determinants: nearly but not quite equal
    assert np.all(np.abs(difference) <= 4e-3 / math.sqrt(8 * 32))
    assert np.all(difference != 0)
    assert np.std(weights) == pytest.approx(0.8796 / math.sqrt(8 * 32), rel=0.15)
    leaves, _ = drawn(build(LIH, "tiny", mode="leaf"), 1)
    np.testing.assert_allclose(leaves["envelope_down"], np.full((4, 2, 2, 2), 2**-0.5), rtol=1e-6)


def test_each_nucleus_owns_as_many_orbitals_as_its_charge():
    dimensions = Dimensions(nuclei=3, up=3, down=3, charge=4, species=4)
    expected = np.zeros((6, 3, 10))
    for orbital, (nucleus, feature) in enumerate([(0, 3), (0, 4), (0, 5), (1, 0)]):
        expected[orbital, nucleus, feature] = 1
    one_hot = jax.jit(lambda: atomic_orbitals(load_system(LIH, dimensions, jnp.float32), dimensions, jnp.float32))()
    np.testing.assert_array_equal(one_hot, expected)


def test_orbitals_and_electrons_go_to_the_slots_of_their_spin():
    dimensions = Dimensions(nuclei=2, up=5, down=3, charge=3, species=3)
    order = np.asarray(_slot_order(load_system(TRIPLET, dimensions, jnp.float32), dimensions)).tolist()
    assert sorted(order) == list(range(8))
    assert [order[slot] for slot in (0, 1, 2, 5)] == [0, 1, 2, 3]
    r = jnp.arange(1.0, 13.0).reshape(4, 3)
    placed = place_electrons(r, TRIPLET, Dimensions(nuclei=2, up=4, down=2, charge=3, species=3))
    np.testing.assert_array_equal(placed[:, 0], [1, 4, 7, 0, 10, 0])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("attention", ["plain", pytest.param("flash", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "molecule", [pytest.param(LIH, id="singlet", marks=pytest.mark.slow), pytest.param(TRIPLET, id="triplet")]
)
def test_padding_changes_nothing(molecule, attention, quickly):
    """More slots for nuclei and electrons: same parameters, same value, same gradient."""
    parameters = jax.tree.map(
        lambda leaf: np.random.default_rng(leaf.size).normal(size=leaf.shape),
        abstract(build(molecule, "tiny"), 1, "float64")[0],
    )
    _, (r,) = drawn(build(molecule, "tiny"), 1, "float64")
    needed = Dimensions.of(molecule)
    more = Dimensions(needed.nuclei + 2, needed.up + 1, needed.down + 2, needed.charge, needed.species)
    results = []
    for dimensions in (needed, more):
        ansatz = build(molecule, "tiny", attention=attention, dimensions=dimensions)
        function = jax.value_and_grad(lambda p, r, of=ansatz.log_psi: of(p, r)[::-1], 1, has_aux=True)
        results.append(jax.tree.leaves(quickly(function, parameters, r)(parameters, r)))
    for plain, padded in zip(*results, strict=True):
        np.testing.assert_allclose(padded, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("x64")
def test_masks_stay_in_the_program():
    """The counts are behind a barrier, so no compiler can fold them although nothing is padded."""
    ansatz = build(LIH, "tiny")
    lowered = jax.jit(ansatz.log_psi).lower(abstract(ansatz, 1)[0], jax.ShapeDtypeStruct((4, 3), jnp.float32))
    assert lowered.as_text().count("stablehlo.optimization_barrier") == 1


@pytest.mark.parametrize(
    ("molecule", "options", "message"),
    [
        (LIH, {"mode": "leave"}, "unknown mode 'leave'; did you mean: leaf"),
        (LIH, {"attention": "flesh"}, "unknown attention 'flesh'; did you mean: flash"),
        (LIH, {"dimensions": Dimensions(2, 1, 2, 3, 3)}, "molecule LiH needs up >= 2, got 1"),
        (LIH, {"dimensions": Dimensions(2, 2, 2, 2, 3)}, "molecule LiH needs charge >= 3, got 2"),
        *((find_molecule("LiH", charge=q), {}, f"must be neutral, not of charge {q}") for q in (-1, 1)),
    ],
)
def test_what_does_not_fit_is_refused(molecule, options, message):
    with pytest.raises(InputError, match=message):
        build(molecule, "tiny", **options)
