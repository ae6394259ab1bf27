"""Mean, median, quantiles and spread of those of a batch that are not NaN, in the batch's own dtype.

jnp's functions compute some of it in float64. Each is NaN where there is no value.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp


def mean(values: Any) -> Any:
    """The mean of the values ``[W]`` that are not NaN."""
    counted = ~jnp.isnan(values)
    total = jnp.sum(jnp.where(counted, values, jnp.zeros_like(values)))
    return total / jnp.sum(counted.astype(values.dtype))


def median(values: Any) -> Any:
    """The median of the values ``[W]`` that are not NaN; the mean of the middle two where their number is even."""
    ordered = jnp.sort(values)  # NaN last
    count = jnp.sum((~jnp.isnan(values)).astype(jnp.int32))
    return (ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def quantile(values: Any, share: float) -> Any:
    """The value that ``share`` of the ``values`` ``[W]`` that are not NaN lie below, interpolated linearly."""
    ordered = jnp.sort(values)  # NaN last
    last = jnp.sum((~jnp.isnan(values)).astype(values.dtype)) - 1
    position = jnp.maximum(last, 0) * jnp.asarray(share, values.dtype)
    lower = jnp.floor(position)
    below, above = (ordered[index.astype(jnp.int32)] for index in (lower, jnp.minimum(lower + 1, jnp.maximum(last, 0))))
    return below + (position - lower) * (above - below)


def mean_deviation(values: Any, centre: Any) -> Any:
    """Mean of abs(value - centre) over the differences that are not NaN; ``values`` ``[W]``, ``centre`` a scalar."""
    return mean(jnp.abs(values - centre))
