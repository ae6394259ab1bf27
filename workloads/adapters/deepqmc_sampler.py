"""The electron samplers of the installed DeepQMC 1.2.0, unedited, as the program ``mcmc``."""

from __future__ import annotations

import importlib.resources
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.programs.mcmc import TRANSITIONS

FACTORIES = {
    "langevin": "decorr_langevin.yaml",
    "metropolis-deepqmc": "decorr_metropolis_ferminet.yaml",
    "metropolis-deepqmc-psiformer": "decorr_metropolis_psiformer.yaml",
}
"""Name of a sampler to its file in DeepQMC's ``conf/task/sampler_factory``."""


def sample(
    sampler: str, hamiltonian: Any, wavefunction: Any, parameters: Any, walkers: Any, key: Any, step: Any
) -> dict[str, Any]:
    """What ``programs.mcmc.build`` documents, by DeepQMC's sampler ``sampler`` (a key of ``FACTORIES``).

    Ten transitions for all, as in the paper's protocol, though DeepQMC's Psiformer takes 30. The wavefunction of the
    given walkers is evaluated first, as DeepQMC does after each update of the parameters. ``acceptance`` is that of
    the last transition, the one that DeepQMC keeps.
    """
    chain = _chain(sampler, hamiltonian, wavefunction)
    nuclei = jnp.asarray(hamiltonian.mol.coords, walkers.dtype)
    with jax.named_scope("mcmc"):
        state = {"r": walkers, "age": jnp.zeros(walkers.shape[0], jnp.int32), "tau": step}
        state = chain.update(state, parameters, nuclei)
        state, _, statistics = chain.sample(key, state, parameters, nuclei)
    return {
        "walkers": state["r"],
        "log_psi": state["psi"].log,
        "sign": state["psi"].sign,
        "acceptance": statistics["sampling/acceptance"],
        "step": state["tau"],
    }


def configured_sampler(sampler: str) -> Any:
    """DeepQMC's settings of its last, moving sampler: the tau and target acceptance that its file gives."""
    return _parts(sampler)[-1]


def _parts(sampler: str) -> Any:
    from omegaconf import OmegaConf

    file = importlib.resources.files("deepqmc") / "conf" / "task" / "sampler_factory" / FACTORIES[sampler]
    return OmegaConf.create(file.read_text()).elec_sampler.samplers


def _chain(sampler: str, hamiltonian: Any, wavefunction: Any) -> Any:
    """DeepQMC's chain of samplers: the repetition, then what moves electrons."""
    from deepqmc.sampling import combine_samplers
    from hydra.utils import instantiate

    repeat, move = _parts(sampler)
    repeat.length = TRANSITIONS
    return combine_samplers([instantiate(repeat), instantiate(move)], hamiltonian, wavefunction)
