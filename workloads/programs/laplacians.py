"""Stage E: ways to compute the Laplacian and the gradient of a scalar function.

Every entry of ``LAPLACIANS`` turns ``f: [n] -> scalar`` into ``x -> (laplacian, gradient)`` with shapes ``()`` and
``[n]`` and the dtype of ``x``. Those named in ``STOCHASTIC`` take a key as well: ``(x, key)``.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.errors import InputError
from fusionlab.workloads.programs.staged_forward import forward_laplacian

Function = Callable[[Any], Any]
LaplacianOf = Callable[[Function], Callable[..., tuple[Any, Any]]]

PROBES = 8
"""Random directions of one Hutchinson estimate."""

SPARSITY_THRESHOLDS = {"forward": 0, "forward-sparse": 0.6}
"""folx: a Jacobian stays sparse while no value depends on more than this share of the coordinates (0: dense)."""


def replay(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """Linearise the gradient once and replay the linear program once per direction (DeepQMC, ``physics.laplacian``)."""

    def laplacian(x: Any) -> tuple[Any, Any]:
        gradient, hessian_times = jax.linearize(jax.grad(f), x)
        identity, zero = jnp.eye(x.shape[0], dtype=x.dtype), jnp.zeros((), x.dtype)
        total = jax.lax.fori_loop(0, x.shape[0], lambda k, sum_: sum_ + hessian_times(identity[k])[k], zero)
        return total, gradient

    return laplacian


def scan(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """The replay as a ``scan`` that collects the diagonal of the Hessian and sums it after the loop."""

    def laplacian(x: Any) -> tuple[Any, Any]:
        gradient, hessian_times = jax.linearize(jax.grad(f), x)
        identity = jnp.eye(x.shape[0], dtype=x.dtype)
        _, diagonal = jax.lax.scan(lambda k, _: (k + 1, hessian_times(identity[k])[k]), 0, length=x.shape[0])
        return diagonal.sum(), gradient

    return laplacian


def jvp_in_loop(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """``jvp`` of the gradient inside the loop: every trip computes the wavefunction and its gradient again."""

    def laplacian(x: Any) -> tuple[Any, Any]:
        gradient = jax.grad(f)
        identity, zero = jnp.eye(x.shape[0], dtype=x.dtype), jnp.zeros((), x.dtype)

        def add_direction(k: Any, sum_: Any) -> Any:
            return sum_ + jax.jvp(gradient, (x,), (identity[k],))[1][k]

        return jax.lax.fori_loop(0, x.shape[0], add_direction, zero), gradient(x)

    return laplacian


def vmap(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """All directions at once: the linear program under ``vmap``, and the trace of what it gives (the whole Hessian)."""

    def laplacian(x: Any) -> tuple[Any, Any]:
        gradient, hessian_times = jax.linearize(jax.grad(f), x)
        return jnp.trace(jax.vmap(hessian_times)(jnp.eye(x.shape[0], dtype=x.dtype))), gradient

    return laplacian


def jet(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """Taylor mode: the second derivative along every direction, from ``jax.experimental.jet`` under ``vmap``.

    InputError when tracing meets an operation that jet cannot do (``INCOMPLETE``); none of the ansätze is without one.
    """
    from jax.experimental.jet import jet as taylor

    def laplacian(x: Any) -> tuple[Any, Any]:
        def derivatives(direction: Any) -> tuple[Any, Any]:
            _, (first, second) = taylor(f, (x,), ((direction, jnp.zeros_like(direction)),))
            return first, second

        try:
            first, second = jax.vmap(derivatives)(jnp.eye(x.shape[0], dtype=x.dtype))
        except KeyError as error:
            raise InputError(f"jax.experimental.jet has no rule for {error.args[0]}") from None
        except jax.errors.UnexpectedTracerError:
            raise InputError("jax.experimental.jet leaks a tracer out of a nested jax.jit or custom rule") from None
        return second.sum(), first

    return laplacian


def forward(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """folx's forward Laplacian with dense Jacobians (method: Li et al. 2024, arXiv:2307.08214)."""
    return _folx(f, SPARSITY_THRESHOLDS["forward"])


def forward_sparse(f: Function) -> Callable[[Any], tuple[Any, Any]]:
    """folx's forward Laplacian; a Jacobian stays sparse while no value depends on over 60 % of the coordinates."""
    return _folx(f, SPARSITY_THRESHOLDS["forward-sparse"])


def _folx(f: Function, sparsity_threshold: float) -> Callable[[Any], tuple[Any, Any]]:
    require_folx()
    return forward_laplacian(f, sparsity_threshold)


def require_folx() -> None:
    """Raise ``InputError`` if folx is not installed."""
    if importlib.util.find_spec("folx") is None:
        raise InputError("the forward Laplacians need folx: pip install 'fusionlab[models]'")


def hutchinson(f: Function) -> Callable[[Any, Any], tuple[Any, Any]]:
    """The mean of v.Hv over ``PROBES`` random signs v: an unbiased estimate (Hutchinson 1990)."""

    def laplacian(x: Any, key: Any) -> tuple[Any, Any]:
        gradient, hessian_times = jax.linearize(jax.grad(f), x)
        coins, zero = jax.random.bits(key, (PROBES, *x.shape), "uint8") & 1, jnp.zeros((), x.dtype)
        probes = 1 - 2 * coins.astype(x.dtype)
        total = jax.lax.fori_loop(0, PROBES, lambda k, sum_: sum_ + probes[k] @ hessian_times(probes[k]), zero)
        return total / PROBES, gradient

    return laplacian


LAPLACIANS: dict[str, LaplacianOf] = {
    "replay": replay,
    "scan": scan,
    "jvp-in-loop": jvp_in_loop,
    "vmap": vmap,
    "jet": jet,
    "forward": forward,
    "forward-sparse": forward_sparse,
    "hutchinson": hutchinson,
}

STOCHASTIC = frozenset({"hutchinson"})

INCOMPLETE = frozenset({"jet"})
"""Those that cannot do every operation: they work on some functions only."""
