"""The ways in which codes write a Laplacian: ``name -> (f, x) -> results`` of ``f``, a scalar function of ``x`` [n].

``TOTALS`` differ in how the directions are gone through, and return the Laplacian; ``SUMS`` in what is summed,
``OF_HESSIANS`` in what is summed of a diagonal without a loop. Each has in ``EXPECTED`` what it returns, from the
gradient and the whole Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import jet

Form = Callable[[Callable[[Any], Any], Any], Any]
CHUNK = 3


def _pushed(f: Any, x: Any) -> tuple[Any, Any]:
    """The Hessian's product with a direction, and all directions [n, n]."""
    return jax.linearize(jax.grad(f), x)[1], jnp.eye(x.size, dtype=x.dtype)


def _zero(f: Any, x: Any) -> Any:
    return jnp.zeros((), jax.eval_shape(f, x).dtype)


def fori(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.fori_loop(0, x.size, lambda k, s: s + h(e[k])[k], _zero(f, x))


def scan(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.scan(lambda s, k: (s + h(e[k])[k], None), _zero(f, x), jnp.arange(x.size))[0]


def scan_unrolled(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.scan(lambda s, k: (s + h(e[k])[k], None), _zero(f, x), jnp.arange(x.size), unroll=2)[0]


def scan_stacked(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.scan(lambda k, row: (k + 1, h(row)[k]), 0, e)[1].sum()


def while_loop(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.while_loop(lambda c: c[0] < x.size, lambda c: (c[0] + 1, c[1] + h(e[c[0]])[c[0]]), (0, _zero(f, x)))[1]


def vmapped(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return jnp.trace(jax.vmap(h)(e))


def vmapped_picked(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return jax.vmap(lambda k: h(e[k])[k])(jnp.arange(x.size)).sum()


def mapped(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.map(lambda row: jnp.vdot(row, h(row)), e).sum()


def mapped_in_batches(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.map(lambda row: jnp.vdot(row, h(row)), e, batch_size=CHUNK).sum()


def chunks(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    rows = e.reshape(-1, CHUNK, x.size)
    return lax.scan(lambda s, some: (s + (jax.vmap(h)(some) * some).sum(), None), _zero(f, x), rows)[0]


def set_directions(f: Any, x: Any) -> Any:
    h, _ = _pushed(f, x)
    return lax.fori_loop(0, x.size, lambda k, s: s + h(jnp.zeros_like(x).at[k].set(1.0))[k], _zero(f, x))


def one_hot_directions(f: Any, x: Any) -> Any:
    h, _ = _pushed(f, x)
    return lax.fori_loop(0, x.size, lambda k, s: s + h(jax.nn.one_hot(k, x.size, dtype=x.dtype))[k], _zero(f, x))


def jvp_in_loop(f: Any, x: Any) -> Any:
    e = jnp.eye(x.size, dtype=x.dtype)
    return lax.fori_loop(0, x.size, lambda k, s: s + jax.jvp(jax.grad(f), (x,), (e[k],))[1][k], _zero(f, x))


def trace_of_hessian(f: Any, x: Any) -> Any:
    return jnp.trace(jax.hessian(f)(x))


def diagonal_of_hessian(f: Any, x: Any) -> Any:
    return jnp.diag(jax.hessian(f)(x)).sum()


def jacfwd_of_jacrev(f: Any, x: Any) -> Any:
    return jnp.trace(jax.jacfwd(jax.jacrev(f))(x))


def jacrev_of_jacfwd(f: Any, x: Any) -> Any:
    return jnp.trace(jax.jacrev(jax.jacfwd(f))(x))


def reverse_over_reverse(f: Any, x: Any) -> Any:
    return jnp.trace(jax.jacrev(jax.jacrev(f))(x))


def pulled_back(f: Any, x: Any) -> Any:
    """A transposed product of the Hessian for each coordinate, in a loop."""
    _, pull = jax.vjp(jax.grad(f), x)
    e = jnp.eye(x.size, dtype=x.dtype)
    return lax.fori_loop(0, x.size, lambda k, s: s + pull(e[k])[0][k], _zero(f, x))


def nested_jvp(f: Any, x: Any) -> Any:
    """Second directional derivatives."""

    def second(e: Any) -> Any:
        return jax.jvp(lambda y: jax.jvp(f, (y,), (e,))[1], (x,), (e,))[1]

    return lax.map(second, jnp.eye(x.size, dtype=x.dtype)).sum()


def nested_jvp_vmapped(f: Any, x: Any) -> Any:
    def second(e: Any) -> Any:
        return jax.jvp(lambda y: jax.jvp(f, (y,), (e,))[1], (x,), (e,))[1]

    return jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)).sum()


def taylor(f: Any, x: Any) -> Any:
    def second(e: Any) -> Any:
        return jet.jet(f, (x,), ((e, jnp.zeros_like(e)),))[1][1]

    return jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)).sum()


TOTALS: dict[str, Form] = {
    f.__name__.replace("_", "-"): f
    for f in (
        fori, scan, scan_unrolled, scan_stacked, while_loop, vmapped, vmapped_picked, mapped, mapped_in_batches, chunks,
        set_directions, one_hot_directions, jvp_in_loop, trace_of_hessian, diagonal_of_hessian, jacfwd_of_jacrev,
        jacrev_of_jacfwd, reverse_over_reverse, pulled_back, nested_jvp, nested_jvp_vmapped, taylor,
    )
}  # fmt: skip


def _loop(f: Any, x: Any, term: Callable[[Any, Any, Any], Any], start: Any) -> Any:
    """Sum of ``term(k, gradient, row of the Hessian)``, the gradient from the linearisation outside."""
    gradient, h = jax.linearize(jax.grad(f), x)
    e = jnp.eye(x.size, dtype=x.dtype)
    return lax.fori_loop(0, x.size, lambda k, s: jax.tree.map(jnp.add, s, term(k, gradient, h(e[k]))), start)


def old_ferminet(f: Any, x: Any) -> Any:
    e = jnp.eye(x.size, dtype=x.dtype)

    def body(k: Any, s: Any) -> Any:
        primal, tangent = jax.jvp(jax.grad(f), (x,), (e[k],))
        return s + primal[k] ** 2 + tangent[k]

    return -0.5 * lax.fori_loop(0, x.size, body, _zero(f, x))


def with_squares(f: Any, x: Any) -> Any:
    return -0.5 * _loop(f, x, lambda k, g, h: g[k] ** 2 + h[k], _zero(f, x))


def two_sums(f: Any, x: Any) -> Any:
    return _loop(f, x, lambda k, g, h: (h[k], g[k] ** 2), (_zero(f, x), _zero(f, x)))


def weights(x: Any) -> Any:
    """Per coordinate, as 1 / mass."""
    return 1.0 / (1.0 + jnp.arange(x.size, dtype=x.dtype) // 3)


def weighted(f: Any, x: Any) -> Any:
    w = weights(x)
    return _loop(f, x, lambda k, g, h: w[k] * h[k], _zero(f, x))


def per_particle(f: Any, x: Any) -> Any:
    masses = 1.0 + jnp.arange(x.size // 3, dtype=x.dtype)
    return _loop(f, x, lambda k, g, h: h[k] / masses[k // 3], _zero(f, x))


def run_time_factor(f: Any, x: Any) -> Any:
    factor = 1.0 + x[0] ** 2
    return _loop(f, x, lambda k, g, h: factor * h[k], _zero(f, x))


def diagonal_kept(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.map(lambda k: h(e[k])[k], jnp.arange(x.size))


def diagonal_set(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    start = jnp.zeros(x.size, _zero(f, x).dtype)
    return lax.fori_loop(0, x.size, lambda k, d: d.at[k].set(h(e[k])[k]), start)


def per_electron(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return -0.5 * lax.map(lambda k: h(e[k])[k], jnp.arange(x.size)).reshape(-1, 3).sum(-1)


def some_coordinates(f: Any, x: Any) -> Any:
    h, e = _pushed(f, x)
    return lax.fori_loop(0, x.size - 3, lambda k, s: s + h(e[k])[k], _zero(f, x))


def start_of_gradient(f: Any, x: Any) -> Any:
    gradient, _ = jax.linearize(jax.grad(f), x)
    return _loop(f, x, lambda k, g, h: h[k], (gradient**2).sum())


def with_gradient(f: Any, x: Any) -> Any:
    """Kinetic energy from one linearisation."""
    gradient, h = jax.linearize(jax.grad(f), x)
    e = jnp.eye(x.size, dtype=x.dtype)
    total = lax.fori_loop(0, x.size, lambda k, s: s + h(e[k])[k], _zero(f, x))
    return -0.5 * (total + (gradient**2).sum())


SUMS: dict[str, Form] = {
    f.__name__.replace("_", "-"): f
    for f in (
        old_ferminet, with_squares, two_sums, weighted, per_particle, run_time_factor, diagonal_kept, diagonal_set,
        per_electron, some_coordinates, start_of_gradient, with_gradient,
    )
}  # fmt: skip


def _diagonal(f: Any, x: Any) -> Any:
    return jnp.diag(jax.hessian(f)(x))


def weighted_diagonal(f: Any, x: Any) -> Any:
    return (weights(x) * _diagonal(f, x)).sum()


def weighted_by_contraction(f: Any, x: Any) -> Any:
    return weights(x).astype(jax.eval_shape(f, x).dtype) @ _diagonal(f, x)


def kinetic_of_masses(f: Any, x: Any) -> Any:
    """As NetKet writes it."""
    gradient = jax.jacrev(f)
    return -0.5 * (weights(x) * (jnp.diag(jax.jacfwd(gradient)(x)) + gradient(x) ** 2)).sum(-1)


def diagonal_per_particle(f: Any, x: Any) -> Any:
    masses = 1.0 + jnp.arange(x.size // 3, dtype=x.dtype)
    return (_diagonal(f, x).reshape(-1, 3).sum(-1) / masses).sum()


def some_of_diagonal(f: Any, x: Any) -> Any:
    return _diagonal(f, x)[:-3].sum()


def diagonal_per_electron(f: Any, x: Any) -> Any:
    return -0.5 * _diagonal(f, x).reshape(-1, 3).sum(-1)


OF_HESSIANS: dict[str, Form] = {
    f.__name__.replace("_", "-"): f
    for f in (
        weighted_diagonal, weighted_by_contraction, kinetic_of_masses, diagonal_per_particle, some_of_diagonal,
        diagonal_per_electron,
    )
}  # fmt: skip
EXPECTED: dict[str, Callable[[Any, Any, Any], Any]] = {
    **dict.fromkeys(TOTALS, lambda x, g, d: d.sum()),
    "old-ferminet": lambda x, g, d: -0.5 * (d.sum() + (g**2).sum()),
    "with-squares": lambda x, g, d: -0.5 * (d.sum() + (g**2).sum()),
    "two-sums": lambda x, g, d: (d.sum(), (g**2).sum()),
    "weighted": lambda x, g, d: (weights(x) * d).sum(),
    "per-particle": lambda x, g, d: (d / (1.0 + jnp.arange(x.size) // 3)).sum(),
    "run-time-factor": lambda x, g, d: (1.0 + x[0] ** 2) * d.sum(),
    "diagonal-kept": lambda x, g, d: d,
    "diagonal-set": lambda x, g, d: d,
    "per-electron": lambda x, g, d: -0.5 * d.reshape(-1, 3).sum(-1),
    "some-coordinates": lambda x, g, d: d[:-3].sum(),
    "start-of-gradient": lambda x, g, d: d.sum() + (g**2).sum(),
    "with-gradient": lambda x, g, d: -0.5 * (d.sum() + (g**2).sum()),
    **dict.fromkeys(("weighted-diagonal", "weighted-by-contraction"), lambda x, g, d: (weights(x) * d).sum()),
    "kinetic-of-masses": lambda x, g, d: -0.5 * (weights(x) * (d + g**2)).sum(),
    "diagonal-per-particle": lambda x, g, d: (d / (1.0 + jnp.arange(x.size) // 3)).sum(),
    "some-of-diagonal": lambda x, g, d: d[:-3].sum(),
    "diagonal-per-electron": lambda x, g, d: -0.5 * d.reshape(-1, 3).sum(-1),
}
"""(x, gradient, diagonal of the Hessian) to what the form returns."""
FORMS = {**TOTALS, **SUMS, **OF_HESSIANS}
