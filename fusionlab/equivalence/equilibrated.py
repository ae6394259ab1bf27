"""Walkers of the density of psi itself: a short Metropolis chain on the original's own log|psi|."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionlab.equivalence.oracle import Runner, workload_runner
from fusionlab.workload import Workload

TRANSITIONS = 40
"""Transitions of all electrons of a walker at once; at an acceptance of one half, a walker then has moved by a few
times its own size."""
MOST_WALKERS = 64
"""The number of walkers moved; the others of a larger sample keep their initial positions about the nuclei."""
_FIRST_STEP_BOHR = 0.3
_WIDEST_STEP_BOHR = 1.0
_FARTHEST_BOHR = 10.0
"""An electron farther than this from its start belongs to no normalisable density: its psi does not decay."""
_ACCEPTANCE = 0.5

_runners: dict[tuple[object, ...], Runner] = {}


def equilibrated(workload: Workload, parameters: Sequence[np.ndarray], walkers: np.ndarray, seed: int) -> np.ndarray:
    """``walkers`` [W, electrons, 3] (bohr) after TRANSITIONS Metropolis transitions in |psi|^2 of ``workload`` with the
    leaves ``parameters``; the same for the same ``seed``.

    The width of the proposals is adapted after each transition, up to a bohr. A walker whose psi is zero or not finite
    accepts only proposals where it is neither. Walkers that run away, or find no such place, stay put.
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
        accepted = (np.log(random.uniform(size=len(moved))) < 2 * (new - logs)) & (new > _NOWHERE)
        moved[accepted], logs[accepted] = proposed[accepted], new[accepted]
        step = min(step * float(np.clip(accepted.mean() / _ACCEPTANCE, 0.5, 2.0)), _WIDEST_STEP_BOHR)
    lost = np.linalg.norm(moved - walkers[: len(moved)], axis=-1).max(-1) > _FARTHEST_BOHR
    moved[lost] = walkers[: len(moved)][lost]
    return found


_NOWHERE = -1e30


def _finite_or_least(logs: np.ndarray) -> np.ndarray:
    """``log|psi|`` with non-finite values replaced by a wide floor whose differences do not overflow."""
    return np.where(np.isfinite(logs), logs, _NOWHERE).astype(np.float64)


def _log_psi_of(workload: Workload, walkers: int) -> Runner:
    """log|psi|, compiled once for each ansatz, size, dtype and molecule (positions, charges and spin, not its name)."""
    one = workload.rebuild(program="log-psi", laplacian=None, walkers=walkers)
    key = (one.title, one.dtype, one.electrons, one.spin, one.nuclei, one.charges)
    if key not in _runners:
        _runners[key] = workload_runner(one, one.dtype)
    return _runners[key]
