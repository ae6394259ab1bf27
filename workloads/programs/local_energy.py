"""Program ``local-energy``: E_L = -1/2 (laplacian log|psi| + |gradient log|psi||^2) + V of every walker, in hartree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.programs.laplacians import LAPLACIANS, STOCHASTIC
from fusionlab.workloads.programs.potential import POTENTIALS

USES_LAPLACIAN = True


def argument_names(laplacian: str) -> tuple[str, ...]:
    """The names of the function's arguments; a stochastic Laplacian needs a key (``uint32[2]``) as the third."""
    return ("parameters", "walkers", "key") if laplacian in STOCHASTIC else ("parameters", "walkers")


def build(ansatz: Ansatz, laplacian: str) -> Callable[..., dict[str, Any]]:
    """``(parameters, walkers) -> {"local_energy": [W]}`` for walkers ``[W, electrons, 3]`` (bohr).

    One walker is written and then batched by ``vmap``, as in DeepQMC, so that the compiled loop has its form. An
    adapter's own local energy is used where it has one; InputError if that has no such Laplacian.
    """
    if ansatz.local_energy is not None:
        return ansatz.local_energy(laplacian)
    laplacian_of, potential = LAPLACIANS[laplacian], POTENTIALS[ansatz.upstream.potential]

    def of_one_walker(parameters: Any, r: Any, *key: Any) -> Any:
        def log_abs_psi(x: Any) -> Any:
            return ansatz.log_psi(parameters, x.reshape(r.shape))[1]

        with jax.named_scope("stage_e"):
            total, gradient = laplacian_of(log_abs_psi)(r.reshape(-1), *key)
            kinetic = -0.5 * (total + (gradient**2).sum())
        with jax.named_scope("potential"):
            return kinetic + potential(ansatz.molecule, r)

    def local_energy(parameters: Any, walkers: Any, *key: Any) -> dict[str, Any]:
        keys = [jax.random.split(k, walkers.shape[0]) for k in key]
        return {"local_energy": jax.vmap(of_one_walker, (None, 0, *[0 for _ in keys]))(parameters, walkers, *keys)}

    return local_energy
