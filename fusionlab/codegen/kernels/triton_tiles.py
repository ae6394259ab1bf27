"""Blocks in Triton: their extents, powers of two, and where the elements of arrays that they hold stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.hlo.strided import Axis

FEWEST = 16
"""Its matrix products have no shorter axis."""


def padded(extent: int) -> int:
    """The extent of a block that holds ``extent`` elements and can be an operand of a product."""
    return int(max(FEWEST, 1 << (extent - 1).bit_length()))


def places(axes: Sequence[Axis], index: Any, arrays: int) -> list[Any]:
    """How far elements number ``index`` along ``axes`` are from the start of each array; past the last, anywhere."""
    found = [jnp.zeros_like(index)] * arrays
    for position, axis in enumerate(reversed(axes)):
        outermost = position == len(axes) - 1
        here = index if outermost else lax.rem(index, jnp.int32(axis.extent))
        index = index if outermost else lax.div(index, jnp.int32(axis.extent))
        found = [place + here * step if step else place for place, step in zip(found, axis.steps, strict=True)]
    return found
