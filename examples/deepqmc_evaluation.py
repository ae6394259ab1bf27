"""DeepQMC 1.2.0's own evaluation, unedited, with fusionlab in place of the cost of its Laplacian.

    pip install 'fusionlab[deepqmc]'
    python examples/deepqmc_evaluation.py --molecule CH4 --ansatz default --walkers 64 --steps 20

DeepQMC asks its Hamiltonian for a local energy and batches, maps and compiles what it gets. So the one line that is
needed is a Hamiltonian whose local energy is optimised. Both evaluations below start from the same seed and take the
same Metropolis steps; they differ in the Hamiltonian alone. What they print is in docs/optimize.md.
"""

from __future__ import annotations

import argparse
import importlib.resources
import statistics
import tempfile
import time
import warnings
from functools import partial
from typing import Any

import fusionlab

warnings.filterwarnings("ignore", category=DeprecationWarning)  # names that DeepQMC's dependencies take from JAX
warnings.filterwarnings("ignore", "Explicitly requested dtype", UserWarning)  # as DeepQMC's own command does

from deepqmc.app import instantiate_ansatz  # noqa: E402
from deepqmc.hamil import MolecularHamiltonian  # noqa: E402
from deepqmc.molecule import Molecule  # noqa: E402
from deepqmc.sampling import DecorrSampler, MetropolisSampler, combine_samplers, initialize_sampling  # noqa: E402
from deepqmc.train import train  # noqa: E402
from hydra.utils import instantiate  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402


class OptimizedHamiltonian(MolecularHamiltonian):
    """DeepQMC's Hamiltonian, its local energy rewritten."""

    def local_energy(self, ansatz: Any) -> Any:
        self.optimized = fusionlab.optimize(super().local_energy(ansatz))
        return self.optimized


class Log:
    """What DeepQMC tells a metric logger: energies, and when it told them."""

    def __init__(self, workdir: str, n_mol: int) -> None:
        self.energies: list[float] = []
        self.times: list[float] = []
        logs.append(self)

    def update(self, step: int, stats: Any, *_: Any, prefix: str | None = None, **__: Any) -> None:
        if "local_energy/mean" in stats:
            self.energies.append(float(stats["local_energy/mean"].squeeze()))
            self.times.append(time.perf_counter())

    def close(self) -> None:
        """Nothing is open."""


class NoFile:
    """In place of the HDF5 file of all samples."""

    def __init__(self, *_: Any, **__: Any) -> None: ...
    def update(self, *_: Any, **__: Any) -> None: ...
    def close(self) -> None: ...


logs: list[Log] = []


def evaluate(hamiltonian: MolecularHamiltonian, ansatz_name: str, walkers: int, steps: int) -> Log:
    """DeepQMC's evaluation of a wave function as initialised; no training."""
    configuration = importlib.resources.files("deepqmc") / "conf" / "ansatz" / f"{ansatz_name}.yaml"
    ansatz = instantiate(OmegaConf.create(configuration.read_text()), _recursive_=True, _convert_="all")
    samplers = [DecorrSampler(length=10), partial(MetropolisSampler, tau=1.0)]
    with tempfile.TemporaryDirectory() as folder:
        train(
            hamiltonian,
            instantiate_ansatz(hamiltonian, ansatz),
            None,
            partial(initialize_sampling, elec_sampler=partial(combine_samplers, samplers=samplers)),
            steps,
            seed=0,
            electron_batch_size=walkers,
            max_eq_steps=10,
            workdir=folder,
            metric_logger_constructor=Log,
            h5_logger_constructor=NoFile,
        )
    return logs[-1]


def main(arguments: list[str] | None = None) -> tuple[Log, Log, Any]:
    """Evaluate twice, print both, and give both with the optimised local energy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="CH4")
    parser.add_argument("--ansatz", default="default", help="default (PauliNet), ferminet or psiformer")
    parser.add_argument("--walkers", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args(arguments)
    molecule = Molecule.from_name(given.molecule)
    hamiltonians = MolecularHamiltonian(mol=molecule), OptimizedHamiltonian(mol=molecule)
    plain, optimized = (evaluate(h, given.ansatz, given.walkers, given.steps) for h in hamiltonians)
    print(f"{'step':>4} {'DeepQMC':>14} {'optimised':>14} hartree (mean of {given.walkers} walkers)")
    for step, energies in enumerate(zip(plain.energies, optimized.energies, strict=True)):
        print(f"{step:>4} {energies[0]:>14.5f} {energies[1]:>14.5f}")
    per_step = [statistics.median(b - a for a, b in zip(log.times, log.times[1:], strict=False)) for log in logs[-2:]]
    print(f"median step: {per_step[0]:.3f} s and {per_step[1]:.3f} s, {per_step[0] / per_step[1]:.2f} times faster")
    print(hamiltonians[1].optimized.fusionlab.report())
    return plain, optimized, hamiltonians[1].optimized


if __name__ == "__main__":
    main()
