"""The choices that a forward Laplacian leaves open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class How:
    """``sparse``: directions that are known to be zero are not carried, and parts of a concatenation are contracted
    apart. ``adjoint``: Laplacians are not pushed forward; their sources are kept, to be weighted by the adjoint.
    ``for_cpu``: products of two values' directions are summed inside the contraction, which pays where batched
    contractions are slow (Psiformer: 1.18 to 1.02 of sparse folx's time) and costs copies on a GPU; and value and
    Laplacian of a product are written over rows, in place of a selection, of which XLA:CPU computes both sides.
    ``lean``: fewer bytes at the peak for some more work, for programs whose memory is short: what a layer makes is
    written over what it was made from, and a wide part of a concatenation is contracted where it stands.
    """

    sparse: bool = True
    adjoint: bool = False
    for_cpu: bool = False
    lean: bool = False


SPARSE = How()
"""What is best on a GPU."""
