"""How far from truth a rewritten program may be: what the *original* loses at the same inputs, with room.

In float32 that is one figure of an output, because one evaluation says little of what a single ill-conditioned walker
may lose. In float64 each element has a tolerance of its own, or else one huge or ill-conditioned element would excuse
all the others. A float64 original is its own truth: what it loses is how far it moves where its inputs are rounded
otherwise, and, in its own dtype, how far it is from truth.

A float64 program may compute parts in float32 or bfloat16. Truth does not, so that its distance from truth is what
these parts lose, and the rewritten program may lose as much; of a program in float64 throughout that distance is a
rounding or none. No wrong rewriting gets room by it: the second comparison, where both programs are widened and nothing
is lost to narrow types, is as strict as before. What is wrong by its precision alone (a float64 part computed in
float32) is further off than what an original without narrow parts loses.

Where its inputs are rounded otherwise, a float64 program need not move although it loses: 1 - p of a softmax that is
all or nothing is an integer multiple of half a rounding of 1 at all of them, and a Laplacian multiplies it by the
square of the scores. The same program computed in float32 loses as many roundings of float32, which float64 shows.
So an element may also be off by what it loses there itself, in roundings of float64, times what any float32 program is
allowed: no wrong rewriting gets room by it that the same rewriting of the program in float32 would not have, and what
is ill-conditioned at one walker allows nothing at the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

SPREAD_FACTOR = 4.0
"""The rewritten program may be this many times further from truth than the original is at its worst walker."""
FLOAT64_FACTOR = 1000.0
"""Room over (eps64 / eps32) x the float32 tolerance: float64 rounding of a reassociated sum, not of a mistake."""
_ROOM_OF_ROUNDINGS = 64.0
"""Over how far a float64 program moves with its inputs rounded otherwise: seven roundings may be lucky ones."""
_LOWER_PART = 0.25
_ROUNDINGS_OF_ZERO = 64.0

Pairs = Sequence[tuple[np.ndarray, np.ndarray]]
"""(truth, original) at some inputs, and at inputs a rounding away."""


def tolerance_of(
    truth: np.ndarray,
    original: np.ndarray,
    nearby: Pairs = (),
    *,
    factor: float = SPREAD_FACTOR,
) -> float:
    """What ``original`` loses against truth at its worst element, here or at one of ``nearby``, times ``factor``; one
    figure for all elements."""
    epsilon = _epsilon(original)
    loss = max((_most(element_loss(*pair)) for pair in ((truth, original), *nearby)), default=0.0)
    scale = max(_most(_scale(*pair)) for pair in ((truth, original), *nearby))
    if _is_wide(original):
        moved = max((_most(element_loss(truth, other)) for other, _ in nearby), default=0.0)
        return FLOAT64_FACTOR * epsilon * scale + _ROOM_OF_ROUNDINGS * (moved + loss)
    return factor * (loss + epsilon * scale)


def tolerances_in_float64(
    truth: np.ndarray, original: np.ndarray, nearby: Pairs = (), narrowed: np.ndarray | None = None
) -> np.ndarray:
    """What each element of the rewritten program, computed in float64, may be off; float64, of truth's shape.

    Where an element is so small, or so exact, that its own loss says nothing, it may be off by what is float64 rounding
    of the smaller elements of the output; and where it is zero, of the largest.
    """
    scale, epsilon, epsilon64 = _scale(truth, original), _epsilon(original), float(np.finfo(np.float64).eps)
    if _is_wide(original):
        moved = np.max([element_loss(truth, other) for other, _ in nearby], axis=0) if nearby else np.zeros(truth.shape)
        own = FLOAT64_FACTOR * epsilon * scale + _ROOM_OF_ROUNDINGS * moved + allowance_of_narrowed(truth, narrowed)
    else:
        loss = np.max([element_loss(*pair) for pair in ((truth, original), *nearby)], axis=0)
        own = SPREAD_FACTOR * FLOAT64_FACTOR * (epsilon64 / epsilon) * (loss + epsilon * scale)
    sizes = scale[scale > 0]
    if not sizes.size:
        return np.asarray(own)
    floor = FLOAT64_FACTOR * epsilon64 * float(np.quantile(sizes, _LOWER_PART))
    zero = _ROUNDINGS_OF_ZERO * epsilon64 * float(sizes.max())
    return np.asarray(np.maximum(own, np.where(truth == 0, max(floor, zero), floor)))


def allowance_of_narrowed(truth: np.ndarray, narrowed: np.ndarray | None) -> np.ndarray:
    """What each element of a float64 program may be off beside its other tolerances, in either comparison: what it
    loses computed in float32 (``narrowed``), in roundings of float64; zeros without ``narrowed``. Of truth's shape."""
    if narrowed is None:
        return np.zeros(truth.shape)
    ratio = float(np.finfo(np.float64).eps) / _epsilon(narrowed)
    return np.asarray(SPREAD_FACTOR * FLOAT64_FACTOR * ratio * element_loss(truth, narrowed))


def element_loss(truth: np.ndarray, original: np.ndarray) -> np.ndarray:
    """|original - truth|, 0 where one of them is not finite; of truth's shape."""
    both = np.isfinite(truth) & np.isfinite(original)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        return np.asarray(np.where(both, np.abs(original - truth), 0.0))


def _scale(truth: np.ndarray, original: np.ndarray) -> np.ndarray:
    """|truth|, 0 where one of them is not finite: what overflows in the original says nothing of the other elements."""
    return np.asarray(np.where(np.isfinite(truth) & np.isfinite(original), np.abs(truth), 0.0), np.float64)


def _most(values: np.ndarray) -> float:
    return float(np.max(values, initial=0.0))


def _epsilon(array: np.ndarray) -> float:
    return float(jnp.finfo(array.dtype).eps)


def _is_wide(array: np.ndarray) -> bool:
    return _epsilon(array) <= float(np.finfo(np.float64).eps)
