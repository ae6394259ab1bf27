"""Extents of blocks in Triton: powers of two."""

from __future__ import annotations

FEWEST = 16
"""Its matrix products have no shorter axis."""


def padded(extent: int) -> int:
    """The extent of a block that holds ``extent`` elements and can be an operand of a product."""
    return int(max(FEWEST, 1 << (extent - 1).bit_length()))
