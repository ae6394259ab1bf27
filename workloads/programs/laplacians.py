"""Stage E: ways to compute the Laplacian and the gradient of a scalar function.

Every entry of ``LAPLACIANS`` turns ``f: [n] -> scalar`` into ``x -> (laplacian, gradient)`` with shapes ``()`` and
``[n]`` and the dtype of ``x``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

Function = Callable[[Any], Any]
LaplacianOf = Callable[[Function], Callable[[Any], tuple[Any, Any]]]


def replay(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """Linearise the gradient once and replay the linear program once per direction (DeepQMC, ``physics.laplacian``)."""

    def laplacian(x: Any) -> tuple[Any, Any]:
        gradient, hessian_times = jax.linearize(jax.grad(f), x)
        identity = jnp.eye(x.shape[0], dtype=x.dtype)
        zero = jnp.zeros((), x.dtype)
        total = jax.lax.fori_loop(0, x.shape[0], lambda k, sum_: sum_ + hessian_times(identity[k])[k], zero)
        return total, gradient

    return laplacian


LAPLACIANS: dict[str, LaplacianOf] = {
    "replay": replay,
}
