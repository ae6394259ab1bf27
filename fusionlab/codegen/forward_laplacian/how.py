"""The choices that a forward Laplacian leaves open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class How:
    """``sparse``: directions that are known to be zero are not carried, and parts of a concatenation are contracted
    apart. ``adjoint``: Laplacians are not pushed forward; their sources are kept, to be weighted by the adjoint.
    ``join_rows``: products of two values' directions are summed inside the contraction, which pays where batched
    contractions are slow (Psiformer on a CPU: 1.18 to 1.02 of sparse folx's time) and costs copies on a GPU.
    """

    sparse: bool = True
    adjoint: bool = False
    join_rows: bool = False


SPARSE = How()
"""What is best on a GPU."""
