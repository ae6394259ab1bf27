"""Ways to tame outlying local energies before they weight the gradient; ``[W]`` to ``[W]``, both in hartree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from workloads.programs.robust_statistics import mean_deviation, median, quantile


def log_squeeze(energies: Any) -> Any:
    """Compress deviations d from the median: linear within the 95 % quantile q of abs(d), logarithmic far outside.

    With x = abs(d) / 2q: 2q sign(d) log(1 + (x + x^2/2 + x^3) / (1 + x^2)) (DeepQMC 1.2.0, loss/clip.py
    ``median_log_squeeze_and_mask``, the default of its training).
    """
    centre = median(energies)
    deviation = energies - centre
    width = 2 * quantile(jnp.abs(deviation), 0.95)
    x = jnp.abs(deviation) / jnp.maximum(width, jnp.finfo(width.dtype).tiny)
    squeezed = jnp.log1p((x + x**2 / 2 + x**3) / (1 + x**2))
    return centre + width * jnp.sign(deviation) * squeezed


def median_clip(energies: Any, width: float = 5.0) -> Any:
    """Cut at ``width`` mean absolute deviations from the median (oneQMC, clip.py with its default width)."""
    return _cut(energies, median(energies), width)


def mean_clip(energies: Any, width: float = 5.0) -> Any:
    """Cut at ``width`` mean absolute deviations from the mean (DeepQMC 1.2.0, conf/task/train_ferminet.yaml)."""
    return _cut(energies, jnp.mean(energies), width)


def _cut(energies: Any, centre: Any, width: float) -> Any:
    allowed = width * mean_deviation(energies, centre)
    return jnp.clip(energies, centre - allowed, centre + allowed)


CLIPPINGS: dict[str, Callable[[Any], Any]] = {
    "langevin": log_squeeze,
    "metropolis-deepqmc": mean_clip,
    "metropolis-deepqmc-psiformer": mean_clip,
    "metropolis-oneqmc": median_clip,
}
"""Sampler name to the clipping that the same code's training pairs it with."""
