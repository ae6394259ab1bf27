"""The choices that a forward Laplacian leaves open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class How:
    """``sparse``: directions that are known to be zero are not carried, and parts of a concatenation are contracted
    apart. ``adjoint``: Laplacians are not pushed forward; their sources are kept, to be weighted by the adjoint.
    """

    sparse: bool = True
    adjoint: bool = False
