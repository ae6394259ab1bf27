"""Program ``inference-step``: ten transitions and one local energy of every walker, as the paper measures inference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.programs import local_energy, mcmc
from fusionlab.workloads.programs.samplers import Sampler

USES_LAPLACIAN = True


def argument_names(laplacian: str) -> tuple[str, ...]:
    """The names of the function's arguments."""
    return mcmc.argument_names(laplacian)


def build(ansatz: Ansatz, laplacian: str, sampler: Sampler | None = None) -> Callable[..., dict[str, Any]]:
    """``(parameters, walkers, key, step)`` as in ``mcmc``, with ``local_energy`` ``[W]`` and ``energy`` (hartree) too.

    ``energy`` is the mean local energy. A stochastic Laplacian takes its key from ``key``.
    """
    sample = mcmc.build(ansatz, sampler=sampler)
    energies = local_energy.build(ansatz, laplacian)
    stochastic = "key" in local_energy.argument_names(laplacian)

    def inference_step(parameters: Any, walkers: Any, key: Any, step: Any) -> dict[str, Any]:
        sampled = sample(parameters, walkers, key, step)
        extra = [jax.random.fold_in(key, 1)] if stochastic else []
        local = energies(parameters, sampled["walkers"], *extra)["local_energy"]
        return {**sampled, "local_energy": local, "energy": jnp.mean(local)}

    return inference_step
