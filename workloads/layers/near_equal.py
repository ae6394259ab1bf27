"""Initial values of oneQMC beyond dense layers: embeddings, and weights nearly equal for all determinants."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from fusionlab.workloads.layers.initial import Initial

NOISE = 1e-3
"""Relative spread between determinants at the start."""


def unit_cut_normal(*shape: int) -> Initial:
    """A unit normal cut at two standard deviations (haiku's default for embeddings)."""
    return Initial(shape, scale=1.0, truncated=True)


class NearEqual(NamedTuple):
    """Weights as a part that all determinants share, ``[inputs, outputs, 1]``, and one that is each one's own."""

    shared: Any
    noise: Any


def near_equal_determinants(inputs: int, outputs: int, determinants: int, deviation: float) -> NearEqual:
    """Description of weights ``[inputs, outputs * determinants]``, determinant fastest.

    The shared part is a cut normal of scale ``deviation``, the own part one of a thousandth of it (oneQMC
    wf/nn/initializers.py). ``join_determinants`` makes the weights after the draw.
    """
    return NearEqual(
        shared=Initial((inputs, outputs, 1), scale=deviation, truncated=True),
        noise=Initial((inputs, outputs, determinants), scale=NOISE * deviation, truncated=True),
    )


def join_determinants(drawn: Any) -> Any:
    """The pytree ``drawn`` with one array of weights in place of every ``NearEqual``."""

    def join(entry: Any) -> Any:
        if not isinstance(entry, NearEqual):
            return entry
        return (entry.shared + entry.noise).reshape(entry.noise.shape[0], -1)

    return jax.tree.map(join, drawn, is_leaf=lambda entry: isinstance(entry, NearEqual))
