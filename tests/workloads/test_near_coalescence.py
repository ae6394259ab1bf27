"""log|psi| and its gradient stay finite where electrons meet nuclei or each other, and well outside the molecule."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.catalogue import build
from workloads.molecules import find_molecule


@pytest.mark.parametrize(
    "name", ["ferminet", *(pytest.param(name, marks=pytest.mark.slow) for name in ("paulinet", "psiformer-deepqmc"))]
)
def test_values_and_gradients_are_finite(name: str) -> None:
    workload = build(name, "LiH", "log-psi", walkers=5, size="tiny")
    parameters, drawn = workload.inputs(3)
    nuclei, walkers = find_molecule("LiH").nuclei, np.array(drawn)
    nudge = np.array([0.0, 0.0, 1e-5])
    walkers[0, 0] = nuclei[0] + nudge
    walkers[1, 3] = nuclei[1] + nudge
    walkers[2, 0] = walkers[2, 1] + nudge  # same spin
    walkers[3, 0] = walkers[3, 2] + nudge  # opposite spins
    walkers[4] *= 3.0  # much further out, exp(-r) underflows in float32 and log|psi| is -inf, as in DeepQMC

    def value_and_gradient(r: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.value_and_grad(lambda x: workload.function(parameters, x)["log_psi"].sum())(r)

    value, gradient = jax.jit(value_and_gradient)(jnp.asarray(walkers))
    assert np.isfinite(value)
    assert np.all(np.isfinite(gradient))
