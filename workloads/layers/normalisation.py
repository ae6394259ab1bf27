"""Layer normalisations without parameters, as Orbformer uses them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax


def feature_norm(x: Any, eps: float) -> Any:
    """Subtract the mean of the last axis and multiply by ``rsqrt(variance + eps)``.

    With ``eps`` 1.0 small features stay small; oneQMC uses that in the nuclei network and per featurisation head,
    and 1e-2 in the electron transformer (wf/nn/masked/basic.py).
    """
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * lax.rsqrt(variance + jnp.asarray(eps, x.dtype))


def orbital_norm(x: Any) -> Any:
    """``feature_norm`` with eps 1.0 whose variance is the largest along axis 1, the nuclei.

    So a component on a distant nucleus is not scaled up (oneQMC wf/orbformer/orbitals.py). ``x`` is
    ``[orbitals, nuclei, ..., features]``.
    """
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred * lax.rsqrt(jnp.max(variance, axis=1, keepdims=True) + jnp.asarray(1.0, x.dtype))
