"""NetKet 3.23's kinetic energy of particles in continuous space, rewritten, and with another line for its Laplacian.

    python3.12 -m venv netket && netket/bin/pip install netket==3.23 'jax<0.12' fusionlab
    netket/bin/python examples/netket_kinetic.py --particles 10 --walkers 1024

NetKet computes the diagonal of ``jacfwd(jacrev(log psi))``, all directions at once, for every sample. Its own operator
is rewritten by ``fusionlab.optimize``; then the diagonal is replaced by ``fusionlab.laplacian`` with the inverse masses
as weights, and, with ``--memory-budget``, within that temp memory. What it prints is in docs/deepqmc.md.
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any

import jax
import jax.numpy as jnp
import netket as nk
import numpy as np

import fusionlab


class KineticEnergy(nk.operator.KineticEnergy):
    """NetKet's operator; ``budget`` (``512MiB``) bounds the temp memory, "" does not."""

    budget = ""

    def _expect_kernel_single(self, logpsi: Any, params: Any, x: Any) -> Any:
        inverse_mass = 1 / self.mass
        pipeline = f"fuse-jvp-replay{{memory_budget={self.budget}}}" if self.budget else "fuse-jvp-replay"
        of_log_psi = fusionlab.laplacian(lambda y: logpsi(params, y), inverse_mass, pipeline=pipeline)
        laplacian, gradient = of_log_psi(x)
        return -0.5 * (laplacian + jnp.sum(inverse_mass * gradient**2))


def seconds(function: Any, *arguments: Any) -> float:
    """The median of five calls after the first."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        started = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def main(particles: int = 10, walkers: int = 1024, memory_budget: str = "") -> dict[str, tuple[np.ndarray, int]]:
    """Compare the kinetic energies of a network of relative distances; (energies, temp bytes) by name."""
    cell = nk.experimental.geometry.Cell(d=3, L=6.0)
    hilbert = nk.experimental.hilbert.Particle(particles, geometry=cell)
    model = nk.models.DeepSetRelDistance(
        hilbert=hilbert, layers_phi=2, layers_rho=3, features_phi=(128, 128), features_rho=(128, 128, 1)
    )
    x = hilbert.random_state(jax.random.key(0), walkers)
    params = model.init(jax.random.key(1), x[:1])

    def log_psi(params: Any, y: Any) -> Any:
        """The network takes samples [samples, coordinates] only, and NetKet's operator has one."""
        return model.apply(params, jnp.atleast_2d(y)).reshape(y.shape[:-1])

    mass = jnp.repeat(jnp.linspace(1.0, 2.0, particles), 3)
    budgeted = type("KineticEnergy", (KineticEnergy,), {"budget": memory_budget})
    theirs = nk.operator.KineticEnergy
    sides = {"NetKet": theirs, "fusionlab.optimize": theirs, "fusionlab.laplacian": KineticEnergy}
    sides |= {f"within {memory_budget}": budgeted} if memory_budget else {}
    found: dict[str, tuple[np.ndarray, int]] = {}
    print(f"{'kinetic energy':<22}{'ms':>10}{'/ NetKet':>10}{'temp MiB':>10}{'largest difference':>20}")
    base_s = 0.0
    for name, kind in sides.items():
        operator = kind(hilbert, mass)
        energies = functools.partial(operator._expect_kernel, log_psi)
        kernel = jax.jit(fusionlab.optimize(energies) if name == "fusionlab.optimize" else energies)
        temp = kernel.lower(params, x).compile().memory_analysis().temp_size_in_bytes
        taken = seconds(kernel, params, x)
        base_s = base_s or taken
        found[name] = (np.asarray(kernel(params, x)), temp)
        largest = np.abs(found[name][0] - found["NetKet"][0]).max()
        print(f"{name:<22}{1e3 * taken:>10.1f}{taken / base_s:>10.2f}{temp / 2**20:>10.1f}{largest:>20.2g}", flush=True)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--particles", type=int, default=10)
    parser.add_argument("--walkers", type=int, default=1024)
    parser.add_argument("--memory-budget", default="")
    main(**vars(parser.parse_args()))
