"""A product in float32 by three of TF32, as Triton computes it on tensor cores (algorithm TF32_TF32_F32_X3).

    a b     -->     (high(a) low(b) + low(a) high(b)) + high(a) high(b)

Each number is a sum of two of 11 significant bits; the product of the lower ones is left out. A term has a relative
error of about 2^-21, in float32 of 2^-24. A product of two numbers of 11 bits is exact in float32, so float32 products
of the parts round as those of tensor cores do, up to the sums: tensor cores may truncate these.

The split, the order and the lower products that are no number are those of Triton's pass F32DotTC
(``lib/Dialect/TritonGPU/Transforms/F32DotTC.cpp``), whose conversion is ``cvt.rna.tf32.f32``: ties away from zero.
Above the largest number of 11 bits, (2 - 2^-10) 2^127, that conversion may be infinite; here it is that number.

The pass jet-layer-kernels alone asks for it, by its option ``precision=tf32x3``, and where it pays
(``kernels.jet_layers.kernel.pays_in_tf32x3``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

_DROPPED = 13
"""Bits of a float32 that TF32 does not have."""


def by_three_products(multiply: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """``multiply(left, right)`` by three contractions of numbers of 11 significant bits: float32 of its shape.

    ``left`` and ``right`` are float32 arrays of shapes that ``multiply`` takes. It is called three times with arrays of
    the same shapes and types, and contracts them in full float32; the parts are found by bits, so that another type is
    an error of JAX (TypeError).
    """
    (high, low), (its_high, its_low) = split(left), split(right)
    lower = multiply(high, its_low) + multiply(low, its_high)
    return jnp.where(lower == lower, lower, jnp.float32(0.0)) + multiply(high, its_high)  # inf - inf is no number


def split(array: Any) -> tuple[Any, Any]:
    """A float32 array [...] as the sum of two, high and low, float32 [...] of 11 significant bits each.

    The first is the nearest such number, ties away from zero; the largest one instead of an infinity. Of infinities and
    of what is no number the first is the same and the second no number, so that no lower product of it counts. Another
    type is an error of JAX (TypeError).
    """
    nearest = _truncated(array, jnp.int32(1 << (_DROPPED - 1)))
    high = jnp.where(lax.is_finite(nearest), nearest, _truncated(array, jnp.int32(0)))
    high = jnp.where(lax.is_finite(array), high, array)
    return high, _truncated(array - high, jnp.int32(0))


def _truncated(array: Any, more: Any) -> Any:
    """``array``, its bits as a number plus ``more``, without the bits that TF32 does not have."""
    bits = lax.bitcast_convert_type(array, jnp.int32) + more
    return lax.bitcast_convert_type(bits & jnp.int32(-1 << _DROPPED), jnp.float32)
