"""Walkers of the density of psi itself: a short Metropolis chain on the original's own log|psi|."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionlab.equivalence.oracle import Runner, workload_runner
from fusionlab.workload import Workload

TRANSITIONS = 40
"""Of all electrons of a walker at once; at a step that half of the proposals survive, a walker then has moved by a few
times its own size."""
MOST_WALKERS = 64
"""So many are moved; the others of a larger sample stay where samplers begin, about the nuclei."""
_FIRST_STEP_BOHR = 0.3
_ACCEPTANCE = 0.5

_runners: dict[tuple[object, ...], Runner] = {}


def equilibrated(workload: Workload, parameters: Sequence[np.ndarray], walkers: np.ndarray, seed: int) -> np.ndarray:
    """``walkers`` [W, electrons, 3] (bohr) after TRANSITIONS Metropolis transitions in |psi|^2 of ``workload`` with the
    leaves ``parameters``; the same for the same ``seed``.

    The width of the proposals is adapted after each transition. A walker whose psi is zero or not finite takes any
    proposal where it is neither.
    """
    found = np.array(walkers)
    moved = found[:MOST_WALKERS]
    run = _log_psi_of(workload, len(moved))
    random = np.random.default_rng(seed)
    step = _FIRST_STEP_BOHR
    logs = _finite_or_least(run([*parameters, moved])[0])
    for _ in range(TRANSITIONS):
        proposed = (moved + step * random.standard_normal(moved.shape)).astype(moved.dtype)
        new = _finite_or_least(run([*parameters, proposed])[0])
        accepted = np.log(random.uniform(size=len(moved))) < 2 * (new - logs)
        moved[accepted], logs[accepted] = proposed[accepted], new[accepted]
        step *= float(np.clip(accepted.mean() / _ACCEPTANCE, 0.5, 2.0))
    return found


def _finite_or_least(logs: np.ndarray) -> np.ndarray:
    """Wide, so that differences do not overflow."""
    return np.where(np.isfinite(logs), logs, -1e30).astype(np.float64)


def _log_psi_of(workload: Workload, walkers: int) -> Runner:
    """Compiled once for each ansatz, size and molecule."""
    one = workload.rebuild(program="log-psi", laplacian=None, walkers=walkers)
    key = (one.title, one.dtype, one.electrons, one.nuclei, one.charges)
    if key not in _runners:
        _runners[key] = workload_runner(one, one.dtype)
    return _runners[key]
