"""DeepQMC 1.2.0, unedited, sampling and evaluating local energies with fusionlab in place of its Laplacian's cost.

    pip install 'fusionlab[deepqmc]'
    python examples/deepqmc_evaluation.py --molecule CH4 --ansatz default --walkers 64 --steps 10

The wave function, the Hamiltonian with its replay, and the Metropolis sampler are DeepQMC's. The one line that is
needed stands in ``main``: the batched local energy under ``fusionlab.optimize`` in place of ``jax.jit``. Both are
evaluated on the same walkers. What it prints is in studies/transcripts.txt. (DeepQMC's ``train`` itself, which
evaluates by ``jax.pmap``, needs a JAX older than 0.10.)
"""

from __future__ import annotations

import argparse
import importlib.resources
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import deepqmc  # noqa: F401  # before JAX: it sets how GPUs multiply matrices
import jax
import numpy as np

import fusionlab


@dataclass(frozen=True)
class Step:
    """Mean local energy (hartree) and seconds of both sides, and the largest difference of a walker's energies."""

    plain: float
    optimized: float
    largest: float
    plain_s: float
    optimized_s: float


def deepqmc_model(molecule: str, ansatz_name: str) -> tuple[Any, Any, Any]:
    """DeepQMC's Hamiltonian, its wave function as a haiku network, and its sampler."""
    from deepqmc.app import instantiate_ansatz
    from deepqmc.hamil import MolecularHamiltonian
    from deepqmc.molecule import Molecule
    from deepqmc.sampling import DecorrSampler, MetropolisSampler, combine_samplers
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    configuration = importlib.resources.files("deepqmc") / "conf" / "ansatz" / f"{ansatz_name}.yaml"
    ansatz = instantiate(OmegaConf.create(configuration.read_text()), _recursive_=True, _convert_="all")
    hamiltonian = MolecularHamiltonian(mol=Molecule.from_name(molecule))
    network = instantiate_ansatz(hamiltonian, ansatz)
    moves = [DecorrSampler(length=10), partial(MetropolisSampler, tau=0.3)]
    return hamiltonian, network, combine_samplers(moves, hamiltonian, network.apply)


def main(molecule: str = "CH4", ansatz: str = "default", walkers: int = 64, steps: int = 10) -> tuple[list[Step], Any]:
    """Sample and evaluate, print a row per step, and give the rows and the optimised local energy."""
    hamiltonian, network, sampler = deepqmc_model(molecule, ansatz)
    nuclei, key = hamiltonian.mol.coords, jax.random.key(0)
    first = jax.tree.map(lambda leaf: leaf[0], hamiltonian.init_sample(key, nuclei, 1))
    parameters = network.init(key, first)

    local_energy = jax.vmap(hamiltonian.local_energy(network.apply), (None, None, 0))
    plain: Callable[..., Any] = jax.jit(local_energy)
    optimized = fusionlab.optimize(local_energy)

    sample = jax.jit(sampler.sample)
    state = jax.jit(sampler.init, static_argnums=2)(key, parameters, walkers, nuclei)
    rows = []
    print(f"{'step':>4} {'DeepQMC':>12} {'optimised':>12} {'largest diff':>13} {'s':>8} {'s':>8}   (hartree)")
    for number in range(steps + 1):
        key, now = jax.random.split(key)
        state, walkers_now, _ = sample(now, state, parameters, nuclei)
        (energies, seconds), (ours, our_seconds) = (_timed(f, parameters, walkers_now) for f in (plain, optimized))
        if number > 0:  # the first call of both compiles
            rows.append(Step(energies.mean(), ours.mean(), abs(energies - ours).max(), seconds, our_seconds))
            row = rows[-1]
            print(
                f"{number:>4} {row.plain:>12.5f} {row.optimized:>12.5f} {row.largest:>13.2g} "
                f"{row.plain_s:>8.3f} {row.optimized_s:>8.3f}"
            )
    total = sum(row.plain_s for row in rows) / sum(row.optimized_s for row in rows)
    print(f"local energies {total:.2f} times faster")
    print(optimized.fusionlab.report())
    return rows, optimized


def _timed(function: Callable[..., Any], parameters: Any, walkers: Any) -> tuple[Any, float]:
    started = time.perf_counter()
    energies, _ = jax.block_until_ready(function(None, parameters, walkers))
    return np.asarray(energies), time.perf_counter() - started


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="CH4")
    parser.add_argument("--ansatz", default="default", help="default (PauliNet), ferminet or psiformer")
    parser.add_argument("--walkers", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    main(**vars(parser.parse_args()))
