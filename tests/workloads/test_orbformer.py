"""Orbformer: its size, its initial values, its masks and its generated orbitals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from workloads.ansatze.orbformer import build
from workloads.layers.orbital_generator import _slot_order, atomic_orbitals
from workloads.layers.padded_molecule import Dimensions, load_system, place_electrons
from workloads.molecule import Molecule
from workloads.molecules import find_molecule
from workloads.programs.walkers import initial_walkers

LIH, CH4 = find_molecule("LiH"), find_molecule("CH4")
TRIPLET = Molecule("LiH triplet", LIH.charges, LIH.positions, spin=2)


def shapes(molecule: Molecule, **options: Any) -> list[Any]:
    ansatz = build(molecule, **options)
    return jax.tree.leaves(jax.eval_shape(lambda: ansatz.init(jax.random.PRNGKey(0), np.dtype("float32"))))


@pytest.mark.parametrize(
    ("molecule", "options", "arrays", "parameters"),
    [
        (CH4, {}, 88, 3_029_650),
        (LIH, {}, 88, 3_027_514),
        (CH4, {"dimensions": Dimensions(8, 12, 12, 9, 9)}, 88, 3_032_938),
        (CH4, {"mode": "leaf"}, 50, 1_764_370),
    ],
)
def test_parameters(molecule: Molecule, options: dict[str, Any], arrays: int, parameters: int) -> None:
    leaves = shapes(molecule, **options)
    assert (len(leaves), sum(leaf.size for leaf in leaves)) == (arrays, parameters)
    assert {str(leaf.dtype) for leaf in leaves} == {"float32"}


@pytest.fixture(scope="module")
def tiny() -> Any:
    return build(LIH, "tiny").init(jax.random.PRNGKey(0), np.dtype("float32"))


def test_exponents_start_at_charge_over_index(tiny: Any) -> None:
    expected = [[1.0, 1.0], [2.0, 1.0], [3.0, 1.5]]
    np.testing.assert_allclose(0.1 + jax.nn.softplus(tiny["exponents"]), expected, rtol=1e-5)


def test_distance_scales_start_at_powers_of_two(tiny: Any) -> None:
    np.testing.assert_allclose(tiny["transformer"][1]["attention"]["distance_scale"], [[0.25, 8.0]], rtol=1e-6)


def test_jastrow_lengths_start_at_one(tiny: Any) -> None:
    np.testing.assert_allclose(jax.nn.softplus(tiny["jastrow"]), 1.0, rtol=1e-6)


def test_determinants_start_nearly_but_not_quite_equal(tiny: Any) -> None:
    weights = np.asarray(tiny["readout_up"]).reshape(8, 32, 2)
    difference = weights[..., 0] - weights[..., 1]
    assert np.all(np.abs(difference) <= 4e-3 / math.sqrt(8 * 32))
    assert np.all(difference != 0)
    assert np.std(weights) == pytest.approx(0.8796 / math.sqrt(8 * 32), rel=0.15)


def test_leaves_start_with_equal_coefficients() -> None:
    parameters = build(LIH, "tiny", mode="leaf").init(jax.random.PRNGKey(0), np.dtype("float32"))
    np.testing.assert_allclose(parameters["envelope_down"], np.full((4, 2, 2, 2), 2**-0.5), rtol=1e-6)


def test_each_nucleus_owns_as_many_orbitals_as_its_charge() -> None:
    dimensions = Dimensions(nuclei=3, up=3, down=3, charge=4, species=4)
    expected = np.zeros((6, 3, 10))
    for orbital, (nucleus, feature) in enumerate([(0, 3), (0, 4), (0, 5), (1, 0)]):
        expected[orbital, nucleus, feature] = 1
    one_hot = jax.jit(lambda: atomic_orbitals(load_system(LIH, dimensions, jnp.float32), dimensions, jnp.float32))()
    np.testing.assert_array_equal(one_hot, expected)


def test_orbitals_go_to_the_slots_of_their_spin() -> None:
    dimensions = Dimensions(nuclei=2, up=5, down=3, charge=3, species=3)
    order = _slot_order(load_system(TRIPLET, dimensions, jnp.float32), dimensions)
    assert sorted(np.asarray(order).tolist()) == list(range(8))
    assert np.asarray(order)[[0, 1, 2]].tolist() == [0, 1, 2]
    assert int(order[5]) == 3


def test_electrons_go_to_the_slots_of_their_spin() -> None:
    r = jnp.arange(1.0, 13.0).reshape(4, 3)
    placed = place_electrons(r, TRIPLET, Dimensions(nuclei=2, up=4, down=2, charge=3, species=3))
    np.testing.assert_array_equal(placed[:, 0], [1, 4, 7, 0, 10, 0])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("attention", ["plain", pytest.param("flash", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "molecule", [pytest.param(LIH, id="singlet", marks=pytest.mark.slow), pytest.param(TRIPLET, id="triplet")]
)
def test_padding_changes_nothing(molecule: Molecule, attention: str, quickly: Callable[..., Any]) -> None:
    """More slots for nuclei and electrons: same parameters, same value, same gradient."""
    parameters = jax.tree.map(
        lambda leaf: np.random.default_rng(leaf.size).normal(size=leaf.shape),
        jax.eval_shape(lambda: build(molecule, "tiny").init(jax.random.PRNGKey(0), np.dtype("float64"))),
    )
    r = initial_walkers(jax.random.PRNGKey(5), molecule, 1, jnp.dtype("float64"))[0]
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
def test_masks_stay_in_the_program() -> None:
    """The counts are behind a barrier, so no compiler can fold them although nothing is padded."""
    ansatz = build(LIH, "tiny")
    parameters = jax.eval_shape(lambda: ansatz.init(jax.random.PRNGKey(0), np.dtype("float32")))
    lowered = jax.jit(ansatz.log_psi).lower(parameters, jax.ShapeDtypeStruct((4, 3), jnp.float32))
    assert lowered.as_text().count("stablehlo.optimization_barrier") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "leave"}, "unknown mode 'leave'; did you mean: leaf"),
        ({"attention": "flesh"}, "unknown attention 'flesh'; did you mean: flash"),
        ({"dimensions": Dimensions(2, 1, 2, 3, 3)}, "molecule LiH needs up >= 2, got 1"),
        ({"dimensions": Dimensions(2, 2, 2, 2, 3)}, "molecule LiH needs charge >= 3, got 2"),
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(LIH, "tiny", **options)


@pytest.mark.parametrize("charge", [-1, 1])
def test_an_ion_is_refused(charge: int) -> None:
    with pytest.raises(InputError, match=f"must be neutral, not of charge {charge}"):
        build(find_molecule("LiH", charge=charge), "tiny")
