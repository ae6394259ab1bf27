"""Median, quantiles and spread of a batch, in the batch's own dtype (jnp's functions compute some of it in float64)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def median(values: Any) -> Any:
    """The median of the values ``[W]`` that are not NaN; the mean of the middle two where their number is even."""
    ordered = jnp.sort(values)  # NaN last
    count = jnp.sum((~jnp.isnan(values)).astype(jnp.int32))
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def quantile(values: Any, share: float) -> Any:
    """The value that ``share`` of ``values`` ``[W]`` lie below, interpolated linearly; NaN is not treated."""
    position = share * (values.shape[0] - 1)
    lower = int(position)
    upper = min(lower + 1, values.shape[0] - 1)
    ordered = jnp.sort(values)
    return ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower])


def mean_deviation(values: Any, centre: Any) -> Any:
    """Mean of abs(value - centre) over the differences that are not NaN; ``values`` ``[W]``, ``centre`` a scalar."""
    deviations = jnp.abs(values - centre)
    counted = ~jnp.isnan(deviations)
    total = jnp.sum(jnp.where(counted, deviations, jnp.zeros_like(values)))
    return total / jnp.sum(counted.astype(values.dtype))
