"""Small functions of x for planted mistakes: loops that are batched or hoisted from, and replays of Laplacians."""

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


def by_twos(x):
    """From 3 in steps of 2; the counter is a result."""
    return lax.while_loop(lambda c: c[0] < 12, lambda c: (c[0] + 2, c[1] + jnp.sin(x * c[0])), (3, x))


def with_weights(x):
    """Two invariants of one shape, and two values computed from them in every trip."""
    first, second = jnp.cos(x + 1.0), x @ x
    return lax.fori_loop(0, 4, lambda k, s: s + jnp.tanh(first) * k + jnp.exp(-(second**2)) / (k + 1), x)


def replay(f, x, factor=1.0, start=0.0):
    """(sum over directions from ``start``, gradient)."""
    return replay_of(jax.grad(lambda z: f(z.reshape(x.shape))), x, factor, start)


def replay_of(gradient_at, x, factor=1.0, start=0.0):
    """The same for a function of which only the gradient is given."""
    y = x.reshape(-1)
    gradient, hessian = jax.linearize(gradient_at, y)
    eye = jnp.eye(y.size, dtype=y.dtype)
    step = lambda k, s: s + factor * hessian(eye[k])[k]  # noqa: E731
    return lax.fori_loop(0, y.size, step, jnp.asarray(start, y.dtype)), gradient


def products(x):
    return (jnp.sin(x @ W) * jnp.tanh(x @ V)).sum()


def overlaps(x):
    """A contraction of two values that both move."""
    return jnp.cos(jnp.sin(x @ W) @ jnp.tanh(x @ V).T).sum()


def attention(x):
    """Values of electrons, weighted by a softmax of products of two."""
    e = jnp.exp(jnp.sin(x @ W) @ jnp.tanh(x @ V).T)
    return jnp.cos((e / e.sum(-1, keepdims=True)) @ jnp.sin(x @ V)).sum()


def quotient(x):
    return (jnp.sin(x @ W) / (2.0 + jnp.tanh(x @ V))).sum()


def determinant(x):
    return jnp.linalg.slogdet(jnp.sin(x @ W[:, :3]) + 2.0 * jnp.eye(3, dtype=x.dtype))[1]


def largest(x):
    return (jnp.sin(x @ W).max(0) ** 2).sum() + jnp.cos(x).sum()


def pairs(x):
    apart = x[:, None] - x[None]
    return jnp.sqrt((apart**2).sum(-1) + 0.5).sum() + jnp.sin(x @ W).sum()


def with_gradient(x):
    total, gradient = replay(products, x)
    return products(x), -0.5 * (total + (gradient**2).sum()), gradient


def scaled(x):
    return products(x), replay(products, x, factor=-0.5, start=(x**2).sum())[0]


def of_another(x):
    """The loop sums second derivatives of a function that is not in the program: its gradient is written out."""
    return products(x), replay_of(lambda y: (jnp.cos(y.reshape(x.shape) @ V) ** 3 @ V.T).reshape(-1), x)[0]


PROGRAMS = {
    "directions": (lambda x: lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x), SQUARE),
    "subtracting": (lambda x: lax.fori_loop(0, 4, lambda k, s: s - jnp.sin(x * k), x), SQUARE),
    "by-twos": (by_twos, SQUARE),
    "stacked": (lambda x: lax.scan(lambda k, row: (k + 1, jnp.sin(row * k)), 1, x)[1], SQUARE),
    "with-weights": (with_weights, SQUARE),
    **{
        f.__name__: (jax.vmap(lambda x, f=f: (f(x), replay(f, x)[0])), POSITIONS)
        for f in (products, overlaps, attention, quotient, determinant, largest, pairs)
    },
    "gradient": (jax.vmap(with_gradient), POSITIONS),
    "scaled": (jax.vmap(scaled), POSITIONS),
    "of-another": (jax.vmap(of_another), POSITIONS),
}
