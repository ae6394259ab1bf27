"""Jastrow factors: the electron-electron cusps in log|psi|."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from fusionlab.workloads.layers.features import upper_triangle

PARALLEL, ANTIPARALLEL = 0.25, 0.5
"""Slopes of log|psi| at coalescence: 1/4 for the same spin, 1/2 for opposite spins (Kato 1957; Pack and Brown 1966)."""


def _inverse_decay(slope: float, alpha: Any, distances: Any) -> Any:
    """- sum slope / (alpha (1 + alpha r))."""
    return -(slope / (alpha * (1 + alpha * distances))).sum()


def psiformer_decay(slope: float, alpha: Any, distances: Any) -> Any:
    """- slope alpha^2 / (alpha + r) of each pair (Psiformer, von Glehn et al. 2023); shaped like ``distances``."""
    return -((slope * alpha**2) / (alpha + distances))


def _psiformer_decays(slope: float, alpha: Any, distances: Any) -> Any:
    """The sum of ``psiformer_decay`` over the pairs."""
    return psiformer_decay(slope, alpha, distances).sum()


def _cusps(decay: Any, distances: Any, n_up: int, alphas: tuple[Any, Any]) -> Any:
    """The sum of ``decay`` over all pairs; ``distances`` is ``[electrons, electrons]``."""
    parallel = jnp.concatenate([upper_triangle(distances[:n_up, :n_up]), upper_triangle(distances[n_up:, n_up:])])
    antiparallel = distances[:n_up, n_up:].reshape(-1)
    return decay(PARALLEL, alphas[0], parallel) + decay(ANTIPARALLEL, alphas[1], antiparallel)


def fixed_cusps(distances: Any, n_up: int, alpha: float) -> Any:
    """DeepQMC's cusp factor with one fixed decay rate ``alpha`` (1/bohr)."""
    return _cusps(_inverse_decay, distances, n_up, (alpha, alpha))


def psiformer_cusps(parameters: dict[str, Any], distances: Any, n_up: int) -> Any:
    """Psiformer's cusp factor with the trained lengths ``parallel`` and ``antiparallel`` (bohr, scalars)."""
    return _cusps(_psiformer_decays, distances, n_up, (parameters["parallel"], parameters["antiparallel"]))
