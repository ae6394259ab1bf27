"""oneQMC's pruning of lost walkers before it samples."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.workloads.programs.robust_statistics import mean_deviation, median
from fusionlab.workloads.programs.uniform import uniform
from fusionlab.workloads.programs.walker_state import State


def prune(state: State, key: Any, width: float) -> State:
    """Replace walkers whose log|psi| is not finite, or too small, by copies of other walkers drawn uniformly.

    Too small is below the median minus ``width`` times the mean absolute deviation from it. oneQMC
    sampling/samplers.py, PruningSampler; the draw is by a cumulative count here, over the same distribution. Where no
    walker is good, all become copies of the last.
    """
    log_psi, walkers = state.log_psi, state.log_psi.shape[0]
    centre = median(log_psi)
    good = jnp.isfinite(log_psi) & (log_psi >= centre - width * mean_deviation(log_psi, centre))
    cumulative = jnp.cumsum(good.astype(jnp.int32))
    rank = uniform(key, (walkers, 1), log_psi.dtype) * cumulative[-1].astype(log_psi.dtype)
    donor = jnp.sum((cumulative <= rank.astype(jnp.int32)).astype(jnp.int32), axis=1)
    index = jnp.where(good, jax.lax.iota(jnp.int32, walkers), donor)
    return jax.tree.map(lambda x: jnp.take(x, index, axis=0, mode="clip"), state)  # type: ignore[no-any-return]
