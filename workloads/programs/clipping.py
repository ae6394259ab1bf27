"""Ways to tame outlying local energies before they weight the gradient; ``[W]`` to ``[W]``, both in hartree.

A local energy that is not finite comes out as NaN and does not touch the others: median, mean and spread are those of
the finite ones. Both codes mask such walkers out of the gradient (abs(E - centre) < infinity; DeepQMC 1.2.0
loss/clip.py, oneQMC clip.py), but one still spoils their step: DeepQMC's centre and mean energy are over all walkers,
and oneQMC multiplies NaN by its mask (utils.masked_mean). Here none does. Where all are finite the formulas are theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from fusionlab.workloads.programs.robust_statistics import mean, mean_deviation, median, quantile


def log_squeeze(energies: Any) -> Any:
    """Compress deviations d from the median: linear within the 95 % quantile q of abs(d), logarithmic far outside.

    With x = abs(d) / 2q: 2q sign(d) log(1 + (x + x^2/2 + x^3) / (1 + x^2)) (DeepQMC 1.2.0, loss/clip.py
    ``median_log_squeeze_and_mask``, the default of its training).
    """
    energies = _finite_or_nan(energies)
    centre = median(energies)
    deviation = energies - centre
    width = 2 * quantile(jnp.abs(deviation), 0.95)
    x = jnp.abs(deviation) / jnp.maximum(width, jnp.finfo(width.dtype).tiny)
    squeezed = jnp.log1p((x + x**2 / 2 + x**3) / (1 + x**2))
    return centre + width * jnp.sign(deviation) * squeezed


def median_clip(energies: Any, width: float = 5.0) -> Any:
    """Cut at ``width`` mean absolute deviations from the median.

    oneQMC, clip.py with its default width; DeepQMC 1.2.0, conf/task/train_psiformer.yaml.
    """
    energies = _finite_or_nan(energies)
    return _cut(energies, median(energies), width)


def mean_clip(energies: Any, width: float = 5.0) -> Any:
    """Cut at ``width`` mean absolute deviations from the mean (DeepQMC 1.2.0, conf/task/train_ferminet.yaml)."""
    energies = _finite_or_nan(energies)
    return _cut(energies, mean(energies), width)


def _finite_or_nan(energies: Any) -> Any:
    return jnp.where(jnp.isfinite(energies), energies, jnp.full_like(energies, jnp.nan))


def _cut(energies: Any, centre: Any, width: float) -> Any:
    allowed = width * mean_deviation(energies, centre)
    return jnp.clip(energies, centre - allowed, centre + allowed)


CLIPPINGS: dict[str, Callable[[Any], Any]] = {
    "log-squeeze": log_squeeze,
    "mean": mean_clip,
    "median": median_clip,
}
