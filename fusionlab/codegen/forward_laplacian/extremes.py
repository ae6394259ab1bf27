"""Derivatives of maxima and minima that do not ask whether the result equals an operand.

JAX's rules compare the operands with the result. XLA may compute an operand again where it is compared, rounded in
another way (a fused multiply-add), and then no operand is the largest: the slope is 0, or 0/0 for a reduction. Here
operands are compared with each other; the elements of a reduction with the largest of these same elements, which a
barrier keeps from being computed twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def _rule(function: Callable[[Any, Any], Any], exceeds: Callable[[Any, Any], Any], tie: int | None) -> Any:
    extreme = jax.custom_jvp(function)

    def of_chosen(primals: Any, tangents: Any) -> Any:
        (a, b), (s, t) = primals, tangents
        equal = {None: (s + t) * np.asarray(0.5, s.dtype), 0: s, 1: t}[tie]
        return extreme(a, b), jnp.where(a == b, equal, jnp.where(exceeds(a, b), s, t))

    extreme.defjvp(of_chosen)
    return extreme


_FUNCTIONS = {"stablehlo.maximum": (lax.max, lax.gt), "stablehlo.minimum": (lax.min, lax.lt)}
RULES = {(name, tie): _rule(*functions, tie) for name, functions in _FUNCTIONS.items() for tie in (None, 0, 1)}
"""Elementwise extremes: the slope is that of the larger (smaller) operand; where they are equal that of operand ``tie``
(``jax.nn.relu(x)`` is the maximum of x and 0 with the slope of 0 at 0), by halves if it is None (``jnp.maximum``)."""
NAMES = tuple(_FUNCTIONS)


def shares(array: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """How much of the maximum (or minimum) of ``array`` over ``axes`` each element is, [*shape]: they add up to 1."""
    array = lax.optimization_barrier(array)  # what is compared below is not computed twice
    among = (array == (jnp.max if largest else jnp.min)(array, axes, keepdims=True)).astype(array.dtype)
    return among / among.sum(axes, keepdims=True)
