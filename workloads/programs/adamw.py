"""The optimiser: optax's AdamW with DeepQMC's settings, in the parameters' own dtype."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.errors import InputError

FIRST_DECAY = 0.9
SECOND_DECAY = 0.9
WEIGHT_DECAY = 1e-4
"""DeepQMC 1.2.0 conf/task/opt/adamw.yaml (second decay 0.9, rate 1e-3), optax's defaults for the rest."""


def init_adamw(parameters: Any) -> Any:
    """The state before the first update; InputError without optax."""
    with _precision_of(parameters):
        return _optimiser(0.0).init(parameters)


def adamw(gradient: Any, state: Any, parameters: Any, rate: float) -> tuple[Any, Any]:
    """New parameters and state; ``gradient`` is a pytree like ``parameters``."""
    import optax

    with _precision_of(parameters):
        updates, state = _optimiser(rate).update(gradient, state, parameters)
        return optax.apply_updates(parameters, updates), state


def _optimiser(rate: float) -> Any:
    try:
        import optax
    except ImportError:
        raise InputError("training steps need optax: pip install 'fusionlab[models]'") from None
    return optax.adamw(rate, b1=FIRST_DECAY, b2=SECOND_DECAY, weight_decay=WEIGHT_DECAY)


def _precision_of(parameters: Any) -> Any:
    """optax corrects its bias in the widest float allowed; allow none wider than the parameters'."""
    return jax.enable_x64(any(leaf.dtype == jnp.float64 for leaf in jax.tree.leaves(parameters)))
