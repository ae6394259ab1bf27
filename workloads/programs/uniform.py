"""Uniform random numbers whose bounds, too, have the dtype asked for."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def uniform(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers in [0, 1), of ``shape`` and ``dtype``; jax.random's default bounds are float64 under 64-bit types."""
    return jax.random.uniform(key, shape, dtype, minval=jnp.zeros((), dtype), maxval=jnp.ones((), dtype))
