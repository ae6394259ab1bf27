"""The inference step: its energies belong to the walkers it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.ansatz import Ansatz
from workloads.ansatze import psiformer
from workloads.molecule import Molecule
from workloads.molecules import find_molecule
from workloads.programs import inference_step, local_energy, mcmc
from workloads.programs.walkers import initial_walkers
from workloads.upstream import UPSTREAM

HYDROGEN = Molecule("H", (1,), ((0.0, 0.0, 0.0),), spin=1)


def exponential() -> Ansatz:
    """psi = exp(-a |r|); with a = 1 the ground state of hydrogen."""

    def log_psi(a: Any, r: Any) -> tuple[Any, Any]:
        return jnp.ones((), r.dtype), -a * jnp.sqrt(jnp.sum(r**2))

    return Ansatz("exponential", HYDROGEN, lambda key, dtype: jnp.ones((), dtype), log_psi, UPSTREAM["paulinet"])


def test_hydrogen_atom() -> None:
    """Every local energy is -1/2 hartree and the mean radius 3/2 bohr."""
    step = jax.jit(inference_step.build(exponential(), "replay"))
    walkers, tau = initial_walkers(jax.random.PRNGKey(0), HYDROGEN, 5000, jnp.float32), np.float32(1)
    for seed in range(5):
        result = step(np.float32(1), walkers, jax.random.PRNGKey(seed), tau)
        walkers, tau = result["walkers"], result["step"]
    np.testing.assert_allclose(result["local_energy"], -0.5, atol=1e-3)
    radii = np.linalg.norm(np.asarray(result["walkers"])[:, 0], axis=1)
    assert abs(radii.mean() - 1.5) < 5 * (0.75 / 5000) ** 0.5


@pytest.fixture(scope="module")
def outcome(quickly: Callable[..., Any]) -> tuple[Ansatz, Any, dict[str, Any]]:
    """Psiformer on LiH, its parameters, and one inference step of eight walkers in float32."""
    ansatz = psiformer.build(find_molecule("LiH"), "tiny")
    parameters = ansatz.init(jax.random.PRNGKey(0), jnp.dtype("float32"))
    walkers = initial_walkers(jax.random.PRNGKey(1), ansatz.molecule, 8, jnp.float32)
    arguments = (parameters, walkers, np.array([3, 4], np.uint32), mcmc.initial_step(ansatz, jnp.float32))
    return ansatz, parameters, quickly(inference_step.build(ansatz, "replay"), *arguments)(*arguments)


@pytest.mark.slow
def test_energies_are_those_of_the_returned_walkers(
    outcome: tuple[Ansatz, Any, dict[str, Any]], quickly: Callable[..., Any]
) -> None:
    ansatz, parameters, result = outcome
    arguments = parameters, result["walkers"]
    expected = quickly(local_energy.build(ansatz, "replay"), *arguments)(*arguments)["local_energy"]
    np.testing.assert_allclose(result["local_energy"], expected, rtol=2e-3, atol=2e-3)
    assert float(result["energy"]) == pytest.approx(float(np.mean(result["local_energy"])), rel=1e-5)


def test_result_names_shapes_and_dtypes(outcome: tuple[Ansatz, Any, dict[str, Any]]) -> None:
    shapes = {name: value.shape for name, value in outcome[2].items()}
    vectors = dict.fromkeys(("log_psi", "sign", "local_energy"), (8,))
    assert shapes == {"walkers": (8, 4, 3), "acceptance": (), "step": (), "energy": (), **vectors}
    assert {value.dtype for value in outcome[2].values()} == {np.dtype("float32")}


@pytest.mark.parametrize("laplacian", ["replay", "hutchinson"])
def test_phases_and_stages_are_marked(laplacian: str) -> None:
    ansatz = psiformer.build(find_molecule("LiH"), "tiny")
    assert inference_step.argument_names(laplacian) == ("parameters", "walkers", "key", "step")
    parameters = jax.eval_shape(lambda: ansatz.init(jax.random.PRNGKey(0), jnp.dtype("float32")))
    abstract = jax.ShapeDtypeStruct
    arguments = (abstract((2, 4, 3), jnp.float32), abstract((2,), jnp.uint32), abstract((), jnp.float32))
    text = jax.jit(inference_step.build(ansatz, laplacian)).lower(parameters, *arguments).as_text(debug_info=True)
    for scope in ("mcmc", "stage_a", "stage_b", "stage_c", "stage_d", "stage_e", "potential"):
        assert scope in text
