"""Small functions of x for planted mistakes: loops that are batched or hoisted from, and replays of Laplacians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_random = np.random.default_rng(3)
SQUARE = _random.standard_normal((4, 4)).astype(np.float32)
WALKERS, ELECTRONS = 5, 3
POSITIONS = _random.standard_normal((WALKERS, ELECTRONS, 3)).astype(np.float32)
W = (0.5 * _random.standard_normal((3, 4))).astype(np.float32)
V = (0.5 * _random.standard_normal((3, 4))).astype(np.float32)


def directions(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x)


def subtracting(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda k, s: s - jnp.sin(x * k), x)


def by_twos(x: Any) -> Any:
    """From 3 in steps of 2; the counter is a result."""
    return lax.while_loop(lambda c: c[0] < 12, lambda c: (c[0] + 2, c[1] + jnp.sin(x * c[0])), (3, x))


def stacked(x: Any) -> Any:
    return lax.scan(lambda k, row: (k + 1, jnp.sin(row * k)), 1, x)[1]


def with_weights(x: Any) -> Any:
    """Two invariants of one shape, and two values computed from them in every trip."""
    first, second = jnp.cos(x + 1.0), x @ x

    def body(k: Any, s: Any) -> Any:
        return s + jnp.tanh(first) * k + jnp.exp(-(second**2)) / (k + 1)

    return lax.fori_loop(0, 4, body, x)


def _replay(f: Callable[[Any], Any], x: Any, factor: float = 1.0, start: Any = 0.0) -> tuple[Any, Any]:
    """(sum over directions from ``start``, gradient)."""
    y = x.reshape(-1)
    gradient, hessian = jax.linearize(jax.grad(lambda z: f(z.reshape(x.shape))), y)
    eye = jnp.eye(y.size, dtype=y.dtype)
    step = lambda k, s: s + factor * hessian(eye[k])[k]  # noqa: E731
    return lax.fori_loop(0, y.size, step, jnp.asarray(start, y.dtype)), gradient


def laplacian(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return jax.vmap(lambda x: (f(x), _replay(f, x)[0]))


def with_gradient(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of_one(x: Any) -> Any:
        total, gradient = _replay(f, x)
        return f(x), -0.5 * (total + (gradient**2).sum()), gradient

    return jax.vmap(of_one)


def products(x: Any) -> Any:
    return (jnp.sin(x @ W) * jnp.tanh(x @ V)).sum()


def overlaps(x: Any) -> Any:
    """A contraction of two values that both move."""
    a, b = jnp.sin(x @ W), jnp.tanh(x @ V)
    return jnp.cos(a @ b.T).sum()


def quotient(x: Any) -> Any:
    return (jnp.sin(x @ W) / (2.0 + jnp.tanh(x @ V))).sum()


def determinant(x: Any) -> Any:
    return jnp.linalg.slogdet(jnp.sin(x @ W[:, :3]) + 2.0 * jnp.eye(3, dtype=x.dtype))[1]


def largest(x: Any) -> Any:
    return (jnp.sin(x @ W).max(0) ** 2).sum() + jnp.cos(x).sum()


def pairs(x: Any) -> Any:
    apart = x[:, None] - x[None]
    return jnp.sqrt((apart**2).sum(-1) + 0.5).sum() + jnp.sin(x @ W).sum()


def _scaled(x: Any) -> Any:
    return products(x), _replay(products, x, factor=-0.5, start=(x**2).sum())[0]


def _of_another(x: Any) -> Any:
    """The loop sums another function's second derivatives."""
    return products(x), _replay(lambda y: (jnp.cos(y @ V) ** 3).sum(), x)[0]


PROGRAMS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "directions": (directions, SQUARE),
    "subtracting": (subtracting, SQUARE),
    "by-twos": (by_twos, SQUARE),
    "stacked": (stacked, SQUARE),
    "with-weights": (with_weights, SQUARE),
    "products": (laplacian(products), POSITIONS),
    "overlaps": (laplacian(overlaps), POSITIONS),
    "quotient": (laplacian(quotient), POSITIONS),
    "determinant": (laplacian(determinant), POSITIONS),
    "largest": (laplacian(largest), POSITIONS),
    "pairs": (laplacian(pairs), POSITIONS),
    "gradient": (with_gradient(products), POSITIONS),
    "scaled": (jax.vmap(_scaled), POSITIONS),
    "of-another": (jax.vmap(_of_another), POSITIONS),
}
