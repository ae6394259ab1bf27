"""The logarithm of a sum of Slater determinants with equal weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def slater_sum(orbitals: Any) -> tuple[Any, Any]:
    """Sign and log|sum_d det A_d| of ``orbitals`` ``[determinants, electrons, electrons]``; the sign is constant.

    oneQMC wf/psiformer.py and wf/orbformer/base.py: slogdet of each, then a log-sum-exp
    with signs, whose shift is a constant to derivatives.
    """
    signs, logs = jnp.linalg.slogdet(orbitals)
    largest = jax.lax.stop_gradient(jnp.max(logs))
    shift = jnp.where(jnp.isfinite(largest), largest, jnp.zeros_like(largest))
    total = jnp.sum(signs * jnp.exp(logs - shift))
    return jax.lax.stop_gradient(jnp.sign(total)), jnp.log(jnp.abs(total)) + shift
