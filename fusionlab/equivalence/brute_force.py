"""The local energy by brute force: the whole Hessian of log|psi|, one walker at a time, and Coulomb's law in NumPy.

    E = -1/2 (tr H + |g|^2) + V,   H = hessian(log|psi|),  g = grad(log|psi|)

It shares the wavefunction with the program that is checked, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.equivalence.oracle import argument_structure
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.verdict import OracleAgreement
from fusionlab.workload import Workload

NAME = "brute force"
RELATIVE = 1e-7
"""Tolerance over the sum of the magnitudes of the energy's parts: codes regularise 1/r by up to 1e-12 bohr^2."""
_WALKERS = 4


def ask_brute_force(
    workload: Workload, sample: Sample, truth: Sequence[np.ndarray], original: Sequence[np.ndarray] = ()
) -> OracleAgreement:
    """Compare the float64 energies ``truth`` (hartree) of the first walkers of ``sample`` with brute force.

    Skipped, with the reason, for programs that are not a local energy and for stochastic Laplacians.
    """
    if workload.program != "local-energy" or workload.argument_names != ("parameters", "walkers"):
        return OracleAgreement(NAME, None, reason="it knows local energies without random numbers, and nothing else")
    structure = argument_structure(workload)
    parameters, walkers = jax.tree.unflatten(structure, [array.astype(np.float64) for array in sample.arrays])
    walkers = walkers[:_WALKERS]
    kinetic, kinetic_scale = _kinetic(workload, parameters, walkers)
    potential, potential_scale = coulomb(walkers, np.array(workload.nuclei), np.array(workload.charges))
    errors = np.abs(truth[0][:_WALKERS] - kinetic - potential)
    tolerances = RELATIVE * (kinetic_scale + potential_scale)
    worst = int(np.argmax(errors / tolerances))
    agrees = bool((errors <= tolerances).all())  # NaN does not agree
    return OracleAgreement(NAME, agrees, float(errors[worst]), float(tolerances[worst]))


def _kinetic(workload: Workload, parameters: Any, walkers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """-1/2 (tr H + |g|^2) of each walker, and the sum of the magnitudes of its terms; float64, hartree."""
    one = workload.rebuild(program="log-psi", dtype="float64", walkers=1, laplacian=None)

    def of_one(parameters: Any, r: Any) -> tuple[Any, Any]:
        def log_psi(x: Any) -> Any:
            return one.function(parameters, x.reshape(1, *r.shape))["log_psi"][0]

        hessian, gradient = jax.hessian(log_psi)(r.reshape(-1)), jax.grad(log_psi)(r.reshape(-1))
        diagonal, squares = jnp.diagonal(hessian), gradient**2
        return -0.5 * (diagonal.sum() + squares.sum()), 0.5 * (jnp.abs(diagonal).sum() + squares.sum())

    with jax.enable_x64(True):
        compiled = jax.jit(of_one, compiler_options=CPU_OPTIONS)
        pairs = [compiled(parameters, r) for r in walkers]
    energies, scales = np.asarray(pairs).T
    return energies, scales


def coulomb(walkers: np.ndarray, nuclei: np.ndarray, charges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The Coulomb energy of each walker [W, electrons, 3] with ``nuclei`` [n, 3] (bohr) and ``charges`` [n], and the
    sum of the magnitudes of its terms; hartree, float64."""
    electrons, pairs = np.triu_indices(walkers.shape[1], 1), np.triu_indices(len(nuclei), 1)
    to_nuclei = np.linalg.norm(walkers[:, :, None] - nuclei, axis=-1)
    apart = np.linalg.norm(walkers[:, electrons[0]] - walkers[:, electrons[1]], axis=-1)
    between = np.linalg.norm(nuclei[pairs[0]] - nuclei[pairs[1]], axis=-1)
    attraction = (charges / to_nuclei).sum((1, 2))
    repulsion = (1 / apart).sum(1) + (charges[pairs[0]] * charges[pairs[1]] / between).sum()
    return repulsion - attraction, repulsion + attraction
