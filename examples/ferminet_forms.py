"""Local energies written as FermiNet and JaQMC write them, each under ``fusionlab.optimize``.

    python examples/ferminet_forms.py --molecule CH4 --walkers 64

FermiNet and JaQMC are not in the package index, so this is a script in their form and not their code: a function of
one walker's flat positions that gives log|psi|, the Laplacian as a loop over directions (FermiNet's ``fori_loop``, its
option ``use_scan``, and the JVP of the gradient inside the loop), batched over walkers by ``vmap``, and a loss with a
JVP of its own that differentiates log|psi| only. The network is fusionlab's FermiNet at its full size. What is
printed is in studies/transcripts.txt.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fusionlab
from fusionlab.workloads import catalogue
from fusionlab.workloads.ansatze import ferminet
from fusionlab.workloads.molecules import find_molecule
from fusionlab.workloads.programs.potential import POTENTIALS

LogAbs = Callable[[Any, Any], Any]
"""(parameters, positions [3 electrons]) -> log|psi|"""


def fori_loop(logabs: LogAbs, parameters: Any, x: Any) -> Any:
    """-1/2 (laplacian + gradient^2), the linearised gradient replayed in a ``fori_loop``."""
    eye = jnp.eye(x.size)
    gradient, dgradient = jax.linearize(lambda x: jax.grad(logabs, argnums=1)(parameters, x), x)
    start = -0.5 * jnp.sum(gradient**2)
    return start - 0.5 * jax.lax.fori_loop(0, x.size, lambda i, value: value + dgradient(eye[i])[i], 0.0)


def scan(logabs: LogAbs, parameters: Any, x: Any) -> Any:
    """The same; a ``scan`` collects the diagonal, which is summed after it."""
    eye = jnp.eye(x.size)
    gradient, dgradient = jax.linearize(lambda x: jax.grad(logabs, argnums=1)(parameters, x), x)
    _, diagonal = jax.lax.scan(lambda i, _: (i + 1, dgradient(eye[i])[i]), 0, None, length=x.size)
    return -0.5 * jnp.sum(diagonal) - 0.5 * jnp.sum(gradient**2)


def jvp_in_loop(logabs: LogAbs, parameters: Any, x: Any) -> Any:
    """The same; every trip of the loop takes the JVP of the gradient anew, so that log|psi| is computed in each."""
    eye, grad = jnp.eye(x.size), lambda x: jax.grad(logabs, argnums=1)(parameters, x)
    body = lambda i, value: value + jax.jvp(grad, (x,), (eye[i],))[1][i]  # noqa: E731
    return -0.5 * jax.lax.fori_loop(0, x.size, body, 0.0) - 0.5 * jnp.sum(grad(x) ** 2)


FORMS = {"fori_loop": fori_loop, "scan": scan, "jvp in loop": jvp_in_loop}


def make_loss(logabs: LogAbs, local_energies: Callable[..., Any]) -> Callable[..., Any]:
    """The energy of a batch, its gradient that of variational Monte Carlo: 2 <(E_L - <E_L>) d log|psi|>."""

    @jax.custom_jvp
    def loss(parameters: Any, positions: Any) -> Any:
        return jnp.mean(local_energies(parameters, positions))

    @loss.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        energies = local_energies(*primals)
        _, moved = jax.jvp(jax.vmap(logabs, (None, 0)), primals, tangents)
        return jnp.mean(energies), 2 * jnp.mean((energies - jnp.mean(energies)) * moved)

    return loss


def main(molecule: str = "CH4", walkers: int = 64, size: str = "full", calls: int = 5) -> list[dict[str, Any]]:
    """Print a row per form, and give the rows."""
    workload = catalogue.build("ferminet", molecule, walkers=walkers, size=size)
    parameters, r = workload.inputs(0)
    positions = r.reshape(walkers, -1)
    system = find_molecule(molecule)
    network = ferminet.build(system, size)

    def logabs(parameters: Any, x: Any) -> Any:
        return network.log_psi(parameters, x.reshape(-1, 3))[1]

    rows = []
    print(f"{'form':<12} {'energy':>10} {'optimised':>10} {'largest diff':>13} {'ms':>9} {'ms':>9} {'times':>6} loss")
    for name, kinetic in FORMS.items():

        def local_energies(parameters: Any, positions: Any, kinetic: Any = kinetic) -> Any:
            def of_one(x: Any) -> Any:
                return kinetic(logabs, parameters, x) + POTENTIALS[network.upstream.potential](system, x.reshape(-1, 3))

            return jax.vmap(of_one)(positions)

        plain, optimized = jax.jit(local_energies), fusionlab.optimize(local_energies)
        energies, ours = (np.asarray(f(parameters, positions)) for f in (plain, optimized))
        times = [_fastest(f, parameters, positions, calls) for f in (plain, optimized)]
        step = jax.jit(jax.value_and_grad(make_loss(logabs, optimized)))
        value, _ = step(parameters, positions)
        row = {"form": name, "energies": energies, "optimized": ours, "ms": times, "loss": float(value)}
        rows.append({**row, "function": optimized})
        print(
            f"{name:<12} {energies.mean():>10.4f} {ours.mean():>10.4f} {abs(energies - ours).max():>13.2g} "
            f"{times[0]:>9.1f} {times[1]:>9.1f} {times[0] / times[1]:>6.2f} {row['loss']:.4f}",
            flush=True,
        )
    return rows


def _fastest(function: Callable[..., Any], parameters: Any, positions: Any, calls: int) -> float:
    """Milliseconds of the fastest call."""
    found = []
    for _ in range(calls):
        started = time.perf_counter()
        jax.block_until_ready(function(parameters, positions))
        found.append((time.perf_counter() - started) * 1e3)
    return min(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--molecule", default="CH4")
    parser.add_argument("--walkers", type=int, default=64)
    main(**vars(parser.parse_args()))
