"""Tolerances of a rewritten program: the loss of the *original* at the same inputs, with a margin.

In float32 that is one figure of an output, because one evaluation is a poor estimate of the loss of a single
ill-conditioned walker. In float64 each element has a tolerance of its own, or else one huge or ill-conditioned element
would excuse all the others. A float64 original is its own truth: its loss is how far it moves where its inputs are
rounded otherwise, and, in its own dtype, its distance from truth.

A float64 program may compute parts in float32 or bfloat16. Truth does not, so its distance from truth is the loss of
these parts, and the rewritten program may lose as much; for a program in float64 throughout that distance is a rounding
or none. No wrong rewriting gains by it: the second comparison, where both programs are widened and nothing is lost to
narrow types, is as strict as before. An error of precision alone (a float64 part computed in float32) exceeds the loss
of an original without narrow parts.

A float64 program may lose without moving where its inputs are rounded otherwise: 1 - p of a softmax that is all or
nothing, and 1 - t^2 of a tanh at its end, are integer multiples of half a rounding of 1 at all of them. They move where
the softmax and the tanh are rounded otherwise (``codegen.raising.roundings``), which is the loss of the original by its
own steps. An ill-conditioned walker allows nothing at the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

SPREAD_FACTOR = 4.0
"""The factor by which the rewritten program may be further from truth than the original at its worst walker."""
FLOAT64_FACTOR = 1000.0
"""Room over (eps64 / eps32) x the float32 tolerance: rounding of a reassociated sum, not an error."""
_ROOM_OF_ROUNDINGS = 64.0
"""Factor over how far a float64 program moves where it is rounded otherwise: a few roundings may be lucky ones."""
_LOWER_PART = 0.25
_ROUNDINGS_OF_ZERO = 64.0

Pairs = Sequence[tuple[np.ndarray, np.ndarray]]
"""(truth, original) at inputs, or with intermediate results, a rounding away."""


def tolerance_of(
    truth: np.ndarray,
    original: np.ndarray,
    nearby: Pairs = (),
    *,
    factor: float = SPREAD_FACTOR,
) -> float:
    """The loss of ``original`` against truth at its worst element, here or at one of ``nearby``, times ``factor``; one
    figure for all elements."""
    epsilon = _epsilon(original)
    loss = max(largest_loss(*pair) for pair in ((truth, original), *nearby))
    scale = max(largest_value(*pair) for pair in ((truth, original), *nearby))
    if _is_wide(original):
        moved = max((_most(element_loss(truth, other)) for other, _ in nearby), default=0.0)
        return FLOAT64_FACTOR * epsilon * scale + _ROOM_OF_ROUNDINGS * (moved + loss)
    return factor * (loss + epsilon * scale)


def tolerances_in_float64(truth: np.ndarray, original: np.ndarray, nearby: Pairs = ()) -> np.ndarray:
    """The tolerance of each element of the rewritten program computed in float64; float64, of truth's shape.

    An element so small, or so exact, that its own loss says nothing may be off by a float64 rounding of the smaller
    elements of the output; a zero, by one of the largest.
    """
    scale, epsilon, epsilon64 = _scale(truth, original), _epsilon(original), float(np.finfo(np.float64).eps)
    if _is_wide(original):
        moved = np.max([element_loss(truth, other) for other, _ in nearby], axis=0) if nearby else np.zeros(truth.shape)
        own = FLOAT64_FACTOR * epsilon * scale + _ROOM_OF_ROUNDINGS * moved
    else:
        loss = np.max([element_loss(*pair) for pair in ((truth, original), *nearby)], axis=0)
        own = SPREAD_FACTOR * FLOAT64_FACTOR * (epsilon64 / epsilon) * (loss + epsilon * scale)
    sizes = scale[scale > 0]
    if not sizes.size:
        return np.asarray(own)
    floor = FLOAT64_FACTOR * epsilon64 * float(np.quantile(sizes, _LOWER_PART))
    zero = _ROUNDINGS_OF_ZERO * epsilon64 * float(sizes.max())
    return np.asarray(np.maximum(own, np.where(truth == 0, max(floor, zero), floor)))


def element_loss(truth: np.ndarray, original: np.ndarray) -> np.ndarray:
    """|original - truth|, 0 where one of them is not finite; of truth's shape."""
    both = np.isfinite(truth) & np.isfinite(original)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf
        return np.asarray(np.where(both, np.abs(original - truth), 0.0))


def _scale(truth: np.ndarray, original: np.ndarray) -> np.ndarray:
    """|truth|, 0 where one of them is not finite: an overflow in the original says nothing about other elements."""
    return np.asarray(np.where(np.isfinite(truth) & np.isfinite(original), np.abs(truth), 0.0), np.float64)


def largest_loss(truth: np.ndarray, original: np.ndarray) -> float:
    """The largest loss of an element."""
    return _most(element_loss(truth, original))


def largest_value(truth: np.ndarray, original: np.ndarray) -> float:
    """The largest |truth| of an element that is finite in both."""
    return _most(_scale(truth, original))


def _most(values: np.ndarray) -> float:
    return float(np.max(values, initial=0.0))


def _epsilon(array: np.ndarray) -> float:
    return float(jnp.finfo(array.dtype).eps)


def _is_wide(array: np.ndarray) -> bool:
    return _epsilon(array) <= float(np.finfo(np.float64).eps)
