"""How parameters start: a pytree of descriptions, and the one function that draws them all.

All random numbers of an ansatz come from one draw that is then cut up: a draw per array would cost a compilation per
shape, ten seconds for PauliNet.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

STANDARD_DEVIATION_OF_TRUNCATED_NORMAL = 0.87962566103423978
"""Standard deviation of a unit normal cut at two standard deviations."""


@dataclass(frozen=True)
class Initial:
    """One array: ``mean`` plus ``scale`` times a unit normal, cut at two standard deviations if ``truncated``."""

    shape: tuple[int, ...]
    mean: float = 0.0
    scale: float = 0.0
    truncated: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def zeros(*shape: int) -> Initial:
    """All zero."""
    return Initial(shape)


def ones(*shape: int) -> Initial:
    """All one."""
    return Initial(shape, mean=1.0)


def normal(*shape: int) -> Initial:
    """Variance 1/shape[0]: the fan-in of a weight matrix, the length of a bias."""
    return Initial(shape, scale=shape[0] ** -0.5)


def truncated_normal(*shape: int) -> Initial:
    """Variance 1/fan-in after the cut at two standard deviations (LeCun normal)."""
    return Initial(shape, scale=shape[0] ** -0.5 / STANDARD_DEVIATION_OF_TRUNCATED_NORMAL, truncated=True)


def cut_normal(*shape: int) -> Initial:
    """Variance 1/fan-in before the cut at two standard deviations (haiku's default for linear layers)."""
    return Initial(shape, scale=shape[0] ** -0.5, truncated=True)


def drawing(initials: Any) -> Callable[[Any, Any], Any]:
    """``(key, dtype) -> parameters``: the pytree ``initials`` with an array of ``dtype`` for every description."""
    leaves, structure = jax.tree.flatten(initials)

    def draw(key: Any, dtype: Any) -> Any:
        kinds = {False: jax.random.normal, True: lambda *of: jax.random.truncated_normal(of[0], -2.0, 2.0, *of[1:])}
        arrays: dict[int, Any] = {}
        for kind_key, (truncated, unit) in zip(jax.random.split(key), kinds.items(), strict=True):
            chosen = [i for i, leaf in enumerate(leaves) if leaf.scale and leaf.truncated == truncated]
            drawn = unit(kind_key, (sum(leaves[i].size for i in chosen),), dtype)
            # Without the barrier XLA computes the inverse error function again in every slice.
            values, start = jax.lax.optimization_barrier(drawn), 0
            for i in chosen:
                cut, start = values[start : start + leaves[i].size], start + leaves[i].size
                arrays[i] = leaves[i].mean + leaves[i].scale * cut.reshape(leaves[i].shape)
        constants = {i: jnp.full(leaf.shape, leaf.mean, dtype) for i, leaf in enumerate(leaves) if not leaf.scale}
        arrays |= constants
        return jax.tree.unflatten(structure, [arrays[i] for i in range(len(leaves))])

    return jax.jit(draw, static_argnums=1)  # type: ignore[no-any-return]
