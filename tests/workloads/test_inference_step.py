"""The inference step: its energies belong to the walkers it returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.workloads.wavefunctions import LIH, drawn, hydrogen
from workloads.ansatze import psiformer
from workloads.programs import inference_step, local_energy, mcmc


def test_hydrogen_atom():
    """Every local energy is -1/2 hartree and the mean radius 3/2 bohr."""
    ansatz = hydrogen(upstream="paulinet")
    step = jax.jit(inference_step.build(ansatz, "replay"))
    parameters, walkers = drawn(ansatz, 5000)
    tau = np.float32(1)
    for seed in range(5):
        result = step(parameters, walkers, jax.random.PRNGKey(seed), tau)
        walkers, tau = result["walkers"], result["step"]
    np.testing.assert_allclose(result["local_energy"], -0.5, atol=1e-3)
    radii = np.linalg.norm(np.asarray(result["walkers"])[:, 0], axis=1)
    assert abs(radii.mean() - 1.5) < 5 * (0.75 / 5000) ** 0.5


@pytest.fixture(scope="module")
def outcome(quickly):
    """Psiformer on LiH, its parameters, and one inference step of eight walkers in float32."""
    ansatz = psiformer.build(LIH, "tiny")
    arguments = (*drawn(ansatz, 8), np.array([3, 4], np.uint32), mcmc.initial_step(ansatz, jnp.float32))
    return ansatz, arguments[0], quickly(inference_step.build(ansatz, "replay"), *arguments)(*arguments)


@pytest.mark.slow
def test_energies_are_those_of_the_returned_walkers(outcome, quickly):
    ansatz, parameters, result = outcome
    arguments = parameters, result["walkers"]
    expected = quickly(local_energy.build(ansatz, "replay"), *arguments)(*arguments)["local_energy"]
    np.testing.assert_allclose(result["local_energy"], expected, rtol=2e-3, atol=2e-3)
    assert float(result["energy"]) == pytest.approx(float(np.mean(result["local_energy"])), rel=1e-5)


def test_result_names_shapes_and_dtypes(outcome):
    shapes = {name: value.shape for name, value in outcome[2].items()}
    vectors = dict.fromkeys(("log_psi", "sign", "local_energy"), (8,))
    assert shapes == {"walkers": (8, 4, 3), "acceptance": (), "step": (), "energy": (), **vectors}
    assert {value.dtype for value in outcome[2].values()} == {np.dtype("float32")}
