"""Derivatives of maxima and minima that do not ask whether the result equals an operand.

JAX's rules compare the operands with the result. XLA may compute an operand again where it is compared, rounded in
another way (a fused multiply-add), and then no operand is the largest: the slope is 0, or 0/0 for a reduction. Here
operands are compared with each other, and elements within a few units of rounding of the extreme one share it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_ROUNDINGS = 8


def _of_larger(primals: Any, tangents: Any) -> Any:
    a, b = primals
    return larger(a, b), _chosen(a > b, a == b, *tangents)


def _of_smaller(primals: Any, tangents: Any) -> Any:
    a, b = primals
    return smaller(a, b), _chosen(a < b, a == b, *tangents)


def _chosen(first: Any, equal: Any, a: Any, b: Any) -> Any:
    return jnp.where(equal, (a + b) * np.asarray(0.5, a.dtype), jnp.where(first, a, b))


larger, smaller = jax.custom_jvp(lax.max), jax.custom_jvp(lax.min)
larger.defjvp(_of_larger)
smaller.defjvp(_of_smaller)

RULES = {"stablehlo.maximum": larger, "stablehlo.minimum": smaller}
"""Elementwise extremes: the slope is that of the larger (smaller) operand, by halves where they are equal."""


def shares(array: Any, extreme: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """How much of the maximum (or minimum) of ``array`` over ``axes`` each element is, [*shape]: they add up to 1."""
    kept = jnp.expand_dims(extreme, axes)
    slack = jnp.where(jnp.isfinite(kept), abs(kept) * (_ROUNDINGS * jnp.finfo(array.dtype).eps), 0).astype(array.dtype)
    among = (array >= kept - slack if largest else array <= kept + slack).astype(array.dtype)
    return among / among.sum(axes, keepdims=True)
