"""DeepQMC 1.3.0's own training command, unedited, with four Laplacians side by side.

    python3.12 -m venv deepqmc && deepqmc/bin/pip install deepqmc==1.3.0 hydra-core==1.3.2 fusionlab
    deepqmc/bin/python examples/deepqmc_training.py --molecule LiH --walkers 256 --steps 8

Each side is the command ``deepqmc hamil/mol=LiH ...`` in a process of its own, with overrides of its configuration:

- ``folx``: none; DeepQMC's default is folx's forward Laplacian;
- ``loop``: its other Laplacian, a loop over the coordinates;
- ``fusionlab.laplacian``: that as the factory of Laplacians;
- ``fusionlab.optimize``: the loop, in a Hamiltonian whose local energy is under ``fusionlab.optimize`` (below).

All start from the same seed, so that the first step evaluates the same walkers. What it prints is in docs/deepqmc.md.
"""

from __future__ import annotations

import argparse
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from deepqmc.hamil import MolecularHamiltonian

import fusionlab

SIDES = {
    "folx": [],
    "loop": ["hamil=qc"],
    "fusionlab.laplacian": [
        "hamil.laplacian_factory._target_=fusionlab.laplacian",
        "hamil.laplacian_factory._partial_=true",
    ],
    "fusionlab.optimize": ["hamil=qc", "hamil._target_=deepqmc_training.OptimizedHamiltonian"],
}


class OptimizedHamiltonian(MolecularHamiltonian):
    """DeepQMC's Hamiltonian, its local energy rewritten as a whole."""

    def local_energy(self, ansatz: Any) -> Any:
        """The inherited local energy under ``fusionlab.optimize``."""
        return fusionlab.optimize(super().local_energy(ansatz))


@dataclass(frozen=True)
class Run:
    """Local energies (hartree) [steps, walkers], the seconds of the first step and the median of the others, and the
    lines that fusionlab warned with."""

    energies: np.ndarray
    first_s: float
    step_s: float
    warnings: list[str]


def train(side: str, folder: Path, molecule: str, ansatz: str, walkers: int, steps: int) -> Run:
    """Run DeepQMC's command with the overrides of ``side``; its files go to ``folder``."""
    command = [
        sys.executable, "-m", "deepqmc", f"hamil/mol={molecule}", f"ansatz={ansatz}", f"task.steps={steps}",
        f"task.electron_batch_size={walkers}", "task.pretrain_steps=2", f"hydra.run.dir={folder}", *SIDES[side],
    ]  # fmt: skip
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "NPROC": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return read(folder / "training", done.stdout + done.stderr)


def read(folder: Path, printed: str) -> Run:
    """The energies that DeepQMC recorded, and the times at which it did."""
    import h5py

    with h5py.File(folder / "result.h5") as results:
        samples = np.asarray(results["local_energy/samples"])
    (events,) = folder.glob("events.out.tfevents.*")
    times = list(read_events(events.read_bytes()))
    steps = [time for time, event in times if b"local_energy/mean" in event]
    started = max(time for time, _ in times if time < steps[0] - 0.1)  # the end of the sampler's equilibration
    return Run(
        energies=samples.reshape(len(samples), -1),
        first_s=steps[0] - started,
        step_s=float(np.median(np.diff(steps))),
        warnings=[line for line in printed.splitlines() if "Warning: fusionlab" in line],
    )


def read_events(content: bytes) -> Iterator[tuple[float, bytes]]:
    """(Unix time, bytes) of each event in a file of TensorBoard's: records of length, checksum, event and checksum."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        event = content[at + 12 : at + 12 + length]
        yield struct.unpack_from("<d", event, 1)[0], event  # its first field is the time, after a tag
        at += 16 + length


def main(molecule: str = "LiH", ansatz: str = "psiformer", walkers: int = 256, steps: int = 8) -> dict[str, Run]:
    """Train by all sides, print a row for each, and return the runs."""
    runs: dict[str, Run] = {}
    print(f"{'Laplacian':<22}{'first step s':>14}{'step s':>10}{'/ folx':>8}{'energy':>12}{'off folx':>12}")
    with tempfile.TemporaryDirectory() as folder:
        for side in SIDES:
            run = runs[side] = train(side, Path(folder) / side, molecule, ansatz, walkers, steps)
            folx = runs["folx"]
            largest = np.abs(run.energies[0] - folx.energies[0]).max()
            cells = f"{run.first_s:>14.1f}{run.step_s:>10.3f}{run.step_s / folx.step_s:>8.2f}"
            print(f"{side:<22}{cells}{run.energies[-1].mean():>12.4f}{largest:>12.2g}", flush=True)
            for line in run.warnings:
                print(f"  {line}")
    return runs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="LiH")
    parser.add_argument("--ansatz", default="psiformer")
    parser.add_argument("--walkers", type=int, default=256)
    parser.add_argument("--steps", type=int, default=8)
    main(**vars(parser.parse_args()))
