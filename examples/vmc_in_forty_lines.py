"""Variational Monte Carlo of the hydrogen molecule from scratch, with one line of fusionlab.

    python examples/vmc_in_forty_lines.py

A network, its Laplacian as everybody writes it first, Metropolis sampling and a training step. ``@fusionlab.optimize``
above the local energy is the only line that is not plain JAX; take it away and the numbers stay. The training step
differentiates log|psi| and not the energy, so it runs the rewritten program. What it prints is in
studies/transcripts.txt.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import jax
import jax.numpy as jnp

import fusionlab

NUCLEI = jnp.array([[0.0, 0.0, -0.7], [0.0, 0.0, 0.7]])  # bohr; charges 1, two electrons of opposite spin


# --- 40 lines ---
def init(key: Any, width: int) -> Any:
    sizes = [(6, width), (width, width), (width, 1)]
    keys = jax.random.split(key, len(sizes))
    return [(jax.random.normal(k, s) / s[0] ** 0.5, jnp.zeros(s[1])) for k, s in zip(keys, sizes, strict=True)]


def log_psi(params: Any, x: Any) -> Any:
    """log psi of one walker [6]: a network on electron-nucleus distances, envelope and electron-electron cusp."""
    r = x.reshape(2, 3)
    d = jnp.sqrt(jnp.sum((r[:, None] - NUCLEI) ** 2, -1) + 1e-12)
    r12 = jnp.sqrt(jnp.sum((r[0] - r[1]) ** 2) + 1e-12)
    near = jnp.stack([*d.sum(0), *(d[0] - d[1]) ** 2, r12, jnp.exp(-r12)])
    for w, b in params[:-1]:
        near = jnp.tanh(near @ w + b)
    (w, b), orbital = params[-1], jnp.log(jnp.exp(-d).sum(1)).sum()
    return (near @ w + b)[0] + orbital + 0.5 * r12 / (1 + r12)


@fusionlab.optimize
def local_energies(params: Any, walkers: Any) -> Any:
    def of_one(x: Any) -> Any:
        gradient, hessian = jax.linearize(jax.grad(functools.partial(log_psi, params)), x)
        laplacian = jax.lax.fori_loop(0, 6, lambda i, s: s + hessian(jnp.eye(6)[i])[i], 0.0)
        r = x.reshape(2, 3)
        attraction = -jnp.sum(1 / jnp.linalg.norm(r[:, None] - NUCLEI, axis=-1))
        potential = attraction + 1 / jnp.linalg.norm(r[0] - r[1]) + 1 / jnp.linalg.norm(NUCLEI[0] - NUCLEI[1])
        return -0.5 * (laplacian + gradient @ gradient) + potential

    return jax.vmap(of_one)(walkers)


@functools.partial(jax.jit, static_argnames="sweeps")
def step(params: Any, walkers: Any, key: Any, sweeps: int = 10) -> Any:
    batched = jax.vmap(log_psi, (None, 0))
    for k in jax.random.split(key, sweeps):  # Metropolis-Hastings, all electrons at once
        kd, ku = jax.random.split(k)
        moved = walkers + 0.4 * jax.random.normal(kd, walkers.shape)
        accept = jnp.log(jax.random.uniform(ku, walkers.shape[:1])) < 2 * (
            batched(params, moved) - batched(params, walkers)
        )
        walkers = jnp.where(accept[:, None], moved, walkers)
    energies = local_energies(params, walkers)
    centre = jnp.median(energies)
    clipped = jnp.clip(energies - centre, -5 * jnp.std(energies), 5 * jnp.std(energies))
    gradient = jax.grad(lambda p: 2 * jnp.mean((clipped - clipped.mean()) * batched(p, walkers)))(params)
    return jax.tree.map(lambda p, g: p - 0.02 * g, params, gradient), walkers, energies


# --- end ---


def main(walkers: int = 1024, width: int = 64, steps: int = 300, every: int = 50) -> list[tuple[int, float, float]]:
    """Train, print (step, energy, its standard error) in hartree every few steps, and give these."""
    keys = jax.random.split(jax.random.key(0), steps + 2)
    params, x = init(keys[0], width), jax.random.normal(keys[1], (walkers, 6))
    local_energies(params, x)  # on its own first: so the check is made on these walkers, and not on drawn ones
    rows = []
    print(f"{'step':>5} {'energy':>10} {'error':>8}  hartree (exact: -1.1745)")
    for number, key in enumerate(keys[2:], start=1):
        params, x, energies = step(params, x, key)
        if number % every == 0:
            rows.append((number, float(energies.mean()), float(energies.std() / walkers**0.5)))
            print(f"{number:>5} {rows[-1][1]:>10.4f} {rows[-1][2]:>8.4f}", flush=True)
    print(local_energies.fusionlab.report())
    return rows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
