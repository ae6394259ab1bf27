"""The logarithm of a sum of Slater determinants with equal weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def slater_sum(orbitals: Any) -> tuple[Any, Any]:
    """Sign and log|sum_d det A_d| of ``orbitals`` ``[determinants, electrons, electrons]``; the sign is constant.

    oneQMC wf/psiformer.py and wf/orbformer/base.py: slogdet of each, then a signed log-sum-exp.
    """
    signs, logs = jnp.linalg.slogdet(orbitals)
    total, sign = jax.nn.logsumexp(logs, b=signs, return_sign=True)
    return jax.lax.stop_gradient(sign), total
