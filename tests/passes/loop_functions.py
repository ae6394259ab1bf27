"""Small JAX functions with loops that the passes rewrite: ``name -> (function, arguments)``."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .laplacian_functions import fori, jvp_in_loop, scan

_random = np.random.default_rng(11)
X = _random.standard_normal((2, 6)).astype(np.float32)
WEIGHTS = (0.4 * _random.standard_normal((6, 6))).astype(np.float32)


def _psi(weights, x):
    return jnp.log(1.0 + (jnp.tanh(weights @ x) * jnp.exp(-x)).sum() ** 2)


def _laplacian(method):
    return jax.vmap(lambda weights, x: method(_psi, weights, x), (None, 0))


def _energy(weights, x):
    """The value that the loop differentiates is in the program too."""
    return jax.vmap(lambda y: _psi(weights, y) - fori(_psi, weights, y) / 2)(x)


def _stacked(weights, x):
    """Rows in reverse order, a sum beside them, and a counter that is an output."""

    def body(k, carried):
        rows, total = carried
        row = jnp.sin(x * k) @ weights
        return lax.dynamic_update_slice(rows, row[:, None], (0, 4 - k, 0)), total + row

    return lax.fori_loop(0, 5, body, (jnp.ones((2, 7, 6), x.dtype), x))


def _subtracting(weights, x):
    return lax.fori_loop(0, 5, lambda k, s: (jnp.cos(x) * k + (s - jnp.sin(x * k))) - x @ weights, x)


def _two_sums(weights, x):
    def body(k, carried):
        first, second = carried
        term = jnp.tanh(x * k) @ weights
        return first + term, second - term.sum()

    return lax.fori_loop(0, 4, body, (x, jnp.zeros((), x.dtype)))


def _steps(start, stop, step):
    def function(weights, x):
        going = (lambda c: c[0] < stop) if step > 0 else (lambda c: c[0] > stop)
        return lax.while_loop(going, lambda c: (c[0] + step, c[1] + jnp.sin(x * c[0]) @ weights), (start, x))

    return function


def _nested(weights, x):
    """The outer loop is a true recurrence; the inner one is a sum in each of its trips."""

    def outer(j, y):
        inner = lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(y * k) @ weights, jnp.zeros_like(y))
        return jnp.tanh(y + 0.1 * inner + j)

    return lax.fori_loop(0, 3, outer, x)


def _nested_sums(weights, x):
    """Both loops are sums: the outer one is batched with a loop in its body, which is batched then."""

    def outer(j, total):
        return total + lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x * k + j) @ weights, jnp.zeros_like(x))

    return lax.fori_loop(0, 3, outer, x)


def _inner_recurrence(weights, x):
    """A sum whose terms each run a recurrence of their own."""

    def outer(j, total):
        return total + lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y @ weights) + j, x)

    return lax.fori_loop(0, 5, outer, x)


def _called_twice(weights, x):
    summed = jax.jit(lambda y: lax.fori_loop(0, 5, lambda k, s: s + jnp.sin(y * k) @ weights, jnp.zeros_like(y)))
    return summed(summed(x))


def _determinants(weights, x):
    """A factorisation and triangular solves in the body; the factorisation is invariant."""

    def body(k, total):
        matrix = weights + 3 * jnp.eye(6, dtype=x.dtype)
        return total + jnp.linalg.solve(matrix, (x * k).T).T

    return lax.fori_loop(0, 4, body, x)


def _gathered(weights, x):
    """Rows of data at a computed index; out of range for the last trips."""
    return lax.fori_loop(0, 9, lambda k, s: s + weights[(2 * k - 3,)] * x, x)


def _choices(weights, x):
    def body(k, total):
        return total + lax.cond(k % 2 == 0, lambda: jnp.sin(x), lambda: x @ weights)

    return lax.fori_loop(0, 5, body, x)


def _mixed(weights, y):
    """Attention of two heads between three particles: batch axes that are not in front."""
    q, k = (jnp.tanh(part @ y).reshape(3, 2, 1) for part in (weights, weights.T))
    return jnp.sum(jnp.einsum("ihd,jhd->hij", q, k) ** 2)


def _pairs(weights, x):
    """The reverse pass of a gather by known indices scatters (one place is hit twice, one never); and attention."""
    left, right = jnp.array([0, 2, 0, 5]), jnp.array([1, 3, 4, 1])

    def value(weights, y):
        return jnp.sin(y[left] * y[right]).sum() + _mixed(weights, y)

    return jax.vmap(lambda y: fori(value, weights, y))(x)


def _layers(weights, x):
    """Two layers of one value in a loop."""
    other = jnp.tanh(weights)

    def body(k, total):
        y = jnp.cos(x * k)
        return total + (y @ weights) * (y @ other)

    return lax.fori_loop(0, 5, body, x)


def _shared(weights, x):
    """Layers of many features that all rows share, forwards (a mean) and backwards (a sum of what a layer gives)."""
    wide = jnp.tile(weights, (86, 1))  # [516, 6]
    h = jnp.sin(x[:, :, None] * jnp.arange(1.0, 259.0, dtype=x.dtype))  # [2, 6, 258]
    mean = jnp.broadcast_to(h.mean(1, keepdims=True), h.shape)
    y = jnp.tanh(jnp.concatenate([h, mean], -1) @ wide)  # [2, 6, 6]
    z = y @ wide.T  # [2, 6, 516]
    summed = jnp.sin(z[..., :258]).sum((1, 2)) + jnp.cos(z[..., 258:].sum(1)).sum(-1)
    return lax.fori_loop(0, 3, lambda _, s: jnp.sin(s) + s, summed)


def _halves(weights, x):
    """Means over the first and over the second half of the rows, and a layer of their own for each."""

    def body(k, total):
        y = jnp.sin(total[:, :, None] * jnp.arange(1.0, 4.0, dtype=x.dtype))  # [2, 6, 3]
        up, down = y[:, :3], y[:, 3:]
        features = jnp.concatenate([up.mean(1), down.mean(1)], -1)  # [2, 6]
        layers = jnp.tanh(up @ weights[:3]).sum((1, 2)) + jnp.tanh(down @ weights[3:]).sum((1, 2))
        return jnp.cos(features) + layers[:, None] * k

    return lax.fori_loop(0, 3, body, x)


def _heads(weights, x):
    """Scores of two heads, which lie between the rows and the features; and a loop of constants."""
    ramp = lax.fori_loop(0, 3, lambda _, t: jnp.sin(t) + t, jnp.arange(6, dtype=x.dtype))
    h = jnp.sin(x[:, :, None] * ramp)  # [2, 6, 6]
    q, k = ((h @ matrix).reshape(2, 6, 2, 3) for matrix in (weights, weights.T))
    score = jnp.einsum("wihc,wjhc->whij", q, k)
    return lax.fori_loop(0, 3, lambda n, s: s + jnp.sin(n * score).sum((1, 2, 3)), x[:, 0])


def _jets(weights, x):
    """A layer of jets, rows of a value, its Laplacian and its derivatives; and a loop of constants."""
    rows = jnp.sin(jnp.arange(1.0, 7)[:, None, None] * x)
    made = jnp.einsum("rbk,kn->rbn", rows, jnp.tile(weights, (1, 8)), precision="highest")
    value = jnp.tanh(made[0])
    slope = 1 - value**2
    laplacian = slope * made[1] - 2 * value * slope * (made[2:] ** 2).sum(0)
    jets = jnp.concatenate([value[None], laplacian[None], slope * made[2:]])
    return lax.fori_loop(0, 3, lambda n, s: s + jnp.sin(n * jets).sum((0, 2)), x[:, 0])


def _attended(weights, x):
    """A softmax between two products of small matrices; and a loop of constants."""
    ramp = lax.fori_loop(0, 3, lambda _, t: jnp.sin(t) + t, jnp.arange(12, dtype=x.dtype))
    h = jnp.sin(x[:, :, None] * ramp) + weights[0, 0]  # [2, 6, 12]
    score = jnp.exp(jnp.einsum("wic,wjc->wij", h, jnp.cos(h)))
    mixed = jnp.einsum("wij,wjc->wic", score / score.sum(-1, keepdims=True), h)
    return lax.fori_loop(0, 3, lambda n, s: s + jnp.sin(n * mixed).sum((1, 2)), x[:, 0])


FUNCTIONS = {
    "replay": _laplacian(fori),
    "energy": _energy,
    "scan": _laplacian(scan),
    "jvp-in-loop": _laplacian(jvp_in_loop),
    "stacked": _stacked,
    "subtracting": _subtracting,
    "two-sums": _two_sums,
    "step-2-from-3": _steps(3, 12, 2),
    "downwards": _steps(10, 0, -3),
    "nested": _nested,
    "nested-sums": _nested_sums,
    "inner-recurrence": _inner_recurrence,
    "called-twice": _called_twice,
    "determinants": _determinants,
    "gathered": _gathered,
    "choices": _choices,
    "pairs": _pairs,
    "layers": _layers,
    "shared": _shared,
    "halves": _halves,
    "heads": _heads,
    "jets": _jets,
    "attended": _attended,
}
