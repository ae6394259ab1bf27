"""Stage D: the sum of determinants, in the logarithm."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def log_sum_of_determinants(orbitals: Any, weights: Any = None, *, constant_shift: bool = False) -> tuple[Any, Any]:
    """Sign and log of abs(sum_d w_d det_d); the sign carries no derivative.

    ``orbitals`` is ``[determinants, electrons, electrons]``; ``weights`` is ``[determinants, 1]`` or None for ones.
    The largest log is taken out before exponentiating. Derivatives pass through it and cancel, as in DeepQMC 1.2.0
    (``wf/nn_wave_function``), or with ``constant_shift`` see a constant, as in oneQMC (``util/logsumexp.py``).
    """
    signs, logs = jnp.linalg.slogdet(orbitals)
    shift = jax.lax.stop_gradient(logs.max()) if constant_shift else logs.max()
    shift = jnp.where(jnp.isinf(shift), jnp.zeros_like(shift), shift)
    scaled = signs * jnp.exp(logs - shift)
    total = scaled.sum() if weights is None else jnp.dot(scaled, weights)[0]
    return jax.lax.stop_gradient(jnp.sign(total)), jnp.log(jnp.abs(total)) + shift
