"""Blocks in Triton: their extents, powers of two, and the offsets of the elements that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.hlo.strided import Axis

FEWEST = 16
"""The shortest axis of Triton's matrix products."""


def padded(extent: int) -> int:
    """The extent of a block that holds ``extent`` elements and can be an operand of a product."""
    return int(max(FEWEST, 1 << (extent - 1).bit_length()))


def places(axes: Sequence[Axis], index: Any, arrays: int) -> list[Any]:
    """The offsets in each array of elements number ``index`` along ``axes``; past the last, arbitrary."""
    found = [jnp.zeros_like(index)] * arrays
    for position, axis in enumerate(reversed(axes)):
        outermost = position == len(axes) - 1
        here = index if outermost else lax.rem(index, jnp.int32(axis.extent))
        index = index if outermost else lax.div(index, jnp.int32(axis.extent))
        found = [place + here * step if step else place for place, step in zip(found, axis.steps, strict=True)]
    return found
