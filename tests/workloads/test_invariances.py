"""What moving or renaming the nuclei together with the electrons does to log|psi|: what is promised, and what is not.

All ansätze see differences of positions only, so a shift of everything changes nothing. None is invariant under
rotations: differences enter by components. Orbformer names no nucleus, it sees species; the others have weights of
each nucleus.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.catalogue import ANSATZE
from workloads.molecule import Molecule
from workloads.programs.walkers import initial_walkers

OURS = [name for name in ANSATZE if not name.startswith("deepqmc:")]
SAMPLES = [name if name == "ferminet" else pytest.param(name, marks=pytest.mark.slow) for name in OURS]
WATER = Molecule("H2O", (8, 1, 1), ((0.0, 0.0, 0.2), (0.0, 1.4, -0.9), (0.0, -1.5, -0.8)))
WALKERS = 3
SHIFT = np.array([0.3, -1.1, 2.0])
ROTATION = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


@dataclass(frozen=True)
class Sample:
    """``log_psi(molecule, walkers)`` ``[W]`` of one tiny ansatz with one set of parameters, in float64."""

    name: str
    log_psi: Callable[[Molecule, Any], Any]
    walkers: Any


@pytest.fixture(scope="module", params=SAMPLES)
def sample(request: pytest.FixtureRequest, quickly: Callable[..., Any]) -> Iterator[Sample]:
    build = importlib.import_module(ANSATZE[request.param]).build
    with jax.enable_x64(True):
        parameters = build(WATER, "tiny").init(jax.random.PRNGKey(0), jnp.dtype("float64"))
        walkers = initial_walkers(jax.random.PRNGKey(1), WATER, WALKERS, jnp.dtype("float64"))

        def log_psi(molecule: Molecule, walkers: Any) -> np.ndarray:
            function = jax.vmap(build(molecule, "tiny").log_psi, (None, 0))
            return np.asarray(quickly(function, parameters, walkers)(parameters, walkers)[1])

        yield Sample(request.param, log_psi, walkers)


def placed(positions: np.ndarray) -> Molecule:
    return replace(WATER, positions=tuple(tuple(map(float, row)) for row in positions))


@pytest.mark.usefixtures("x64")
def test_a_shift_of_everything_changes_nothing(sample: Sample) -> None:
    moved = sample.log_psi(placed(WATER.nuclei + SHIFT), sample.walkers + SHIFT)
    np.testing.assert_allclose(moved, sample.log_psi(WATER, sample.walkers), rtol=1e-10, atol=1e-11)


@pytest.mark.usefixtures("x64")
def test_a_rotation_is_no_symmetry(sample: Sample) -> None:
    turned = sample.log_psi(placed(WATER.nuclei @ ROTATION), sample.walkers @ ROTATION)
    assert not np.any(np.isclose(turned, sample.log_psi(WATER, sample.walkers), rtol=1e-6))


@pytest.mark.usefixtures("x64")
def test_the_order_of_the_nuclei_matters_but_to_orbformer(sample: Sample) -> None:
    """Renaming the two hydrogens leaves the physical system as it is."""
    before, after = (sample.log_psi(placed(WATER.nuclei[order]), sample.walkers) for order in ([0, 1, 2], [0, 2, 1]))
    if sample.name.startswith("orbformer"):
        np.testing.assert_allclose(after, before, rtol=1e-10, atol=1e-11)
    else:
        assert not np.any(np.isclose(after, before, rtol=1e-6))


def test_the_rotation_is_one() -> None:
    np.testing.assert_allclose(ROTATION @ ROTATION.T, np.eye(3), atol=1e-12)
