"""Program ``train-step``: ten transitions, the local energies, the gradient of the energy, one AdamW update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.programs import inference_step, mcmc
from fusionlab.workloads.programs.adamw import adamw, init_adamw
from fusionlab.workloads.programs.clipping import CLIPPINGS
from fusionlab.workloads.programs.robust_statistics import mean
from fusionlab.workloads.programs.samplers import Sampler

USES_LAPLACIAN = True
LEARNING_RATE = 1e-3


def argument_names(laplacian: str) -> tuple[str, ...]:
    """The names of the function's arguments."""
    return (*mcmc.argument_names(laplacian), "optimiser")


initial_optimiser = init_adamw
"""``parameters -> optimiser``: the last argument to call the program with first."""


def build(
    ansatz: Ansatz, laplacian: str, sampler: Sampler | None = None, learning_rate: float = LEARNING_RATE
) -> Callable[..., dict[str, Any]]:
    """``(parameters, walkers, key, step, optimiser)``; all but the last as in ``mcmc``.

    The result has the new ``parameters``, ``optimiser``, ``walkers`` and ``step``, the ``acceptance``, and of the old
    parameters ``local_energy`` ``[W]`` and their mean ``energy`` (hartree), both as they are. A local energy that is
    not finite takes no part in the update.
    """
    evaluate = inference_step.build(ansatz, laplacian, sampler)
    clip = CLIPPINGS[ansatz.upstream.clipping]

    def train_step(parameters: Any, walkers: Any, key: Any, step: Any, optimiser: Any) -> dict[str, Any]:
        result = evaluate(parameters, walkers, key, step)
        gradient = energy_gradient(ansatz, parameters, result["walkers"], clip(result["local_energy"]))
        with jax.named_scope("optimiser"):
            parameters, optimiser = adamw(gradient, optimiser, parameters, learning_rate)
        kept = ("walkers", "step", "acceptance", "local_energy", "energy")
        return {"parameters": parameters, "optimiser": optimiser, **{name: result[name] for name in kept}}

    return train_step


def energy_gradient(ansatz: Ansatz, parameters: Any, walkers: Any, energies: Any) -> Any:
    """2 E[(E_L - E) grad log|psi|], a pytree like ``parameters`` (the paper's Eq. 7).

    ``walkers`` ``[W, electrons, 3]`` are distributed as |psi|^2; ``energies`` ``[W]`` are their local energies, which
    only weight the backward pass. Walkers whose energy is NaN are left out, and the others count as if these were not
    there; NaN if there are no others.
    """
    used = ~jnp.isnan(energies)
    deviations = jnp.where(used, energies - mean(energies), jnp.zeros_like(energies))
    weights = 2 * deviations / jnp.sum(used.astype(energies.dtype))
    # Zero times the derivative of a walker without a wavefunction is NaN, so another walker stands in its place.
    walkers = jnp.where(used[:, None, None], walkers, walkers[jnp.argmax(used)])

    def weighted_log_psi(parameters: Any) -> Any:
        return jnp.dot(weights, jax.vmap(ansatz.log_psi, (None, 0))(parameters, walkers)[1])

    return jax.grad(weighted_log_psi)(parameters)
