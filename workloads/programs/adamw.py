"""AdamW in the parameters' own dtype (Loshchilov and Hutter, arXiv:1711.05101).

Written out because a float32 program must stay float32 while 64-bit types are enabled, which optax's bias correction
does not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

FIRST_DECAY = 0.9
SECOND_DECAY = 0.9
EPSILON = 1e-8
WEIGHT_DECAY = 1e-4
"""DeepQMC 1.2.0 conf/task/opt/adamw.yaml (second decay 0.9, rate 1e-3), optax's defaults for the rest."""


class AdamwState(NamedTuple):
    """Number of updates (int32 scalar) and running means of gradient and squared gradient, like the parameters."""

    count: Any
    mean: Any
    square: Any


def init_adamw(parameters: Any) -> AdamwState:
    """The state before the first update."""
    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return AdamwState(jnp.zeros((), jnp.int32), zeros, zeros)


def adamw(gradient: Any, state: AdamwState, parameters: Any, rate: float) -> tuple[Any, AdamwState]:
    """New parameters and state; ``gradient`` is a pytree like ``parameters``."""
    count = state.count + 1
    mean = jax.tree.map(lambda m, g: FIRST_DECAY * m + (1 - FIRST_DECAY) * g, state.mean, gradient)
    square = jax.tree.map(lambda v, g: SECOND_DECAY * v + (1 - SECOND_DECAY) * g**2, state.square, gradient)

    def update(p: Any, m: Any, v: Any) -> Any:
        steps = count.astype(p.dtype)
        unbiased_mean = m / (1 - jnp.asarray(FIRST_DECAY, p.dtype) ** steps)
        unbiased_square = v / (1 - jnp.asarray(SECOND_DECAY, p.dtype) ** steps)
        return p - rate * (unbiased_mean / (jnp.sqrt(unbiased_square) + EPSILON) + WEIGHT_DECAY * p)

    return jax.tree.map(update, parameters, mean, square), AdamwState(count, mean, square)
