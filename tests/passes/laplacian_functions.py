"""Small wavefunctions and the ways in which codes write their Laplacian: ``name -> (weights, x) -> results``.

``x`` is [walkers, electrons, 3]. Every function gives (log|psi|, Laplacian or local energy, ...); with the method
``exact`` it is the truth, from ``jax.hessian``.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

_random = np.random.default_rng(5)
WALKERS, ELECTRONS, FEATURES = 3, 3, 4
X = _random.standard_normal((WALKERS, ELECTRONS, 3))
WEIGHTS = {
    "features": 0.7 * _random.standard_normal((4, FEATURES)),
    "mixing": 0.7 * _random.standard_normal((2 * FEATURES, FEATURES)),
    "orbitals": _random.standard_normal((FEATURES, 2 * ELECTRONS)),
}


def features(weights, x):
    """Per electron, [electrons, features]: one layer of its own, one that mixes electrons."""
    r = jnp.sqrt((x**2).sum(-1, keepdims=True) + 0.3)
    h = jnp.tanh(jnp.concatenate([x, r], -1) @ weights["features"])
    mixed = jnp.concatenate([h, jnp.broadcast_to(h.mean(0), h.shape)], -1)
    return h + jnp.tanh(mixed @ weights["mixing"])


def smooth(weights, x):
    """A positive wavefunction without determinants, so that programs stay small."""
    h = features(weights, x)
    return jnp.log(1.0 + ((h @ weights["orbitals"]) ** 2).sum()) - jnp.sqrt((x**2).sum(-1) + 0.3).sum()


def determinants(count):
    """log|psi| of a sum of ``count`` determinants of both signs."""

    def log_psi(weights, x):
        orbitals = (features(weights, x) @ weights["orbitals"])[:, : ELECTRONS * count]
        orbitals = orbitals.reshape(ELECTRONS, count, ELECTRONS).transpose(1, 0, 2)
        orbitals = orbitals * jnp.exp(-jnp.sqrt((x**2).sum(-1) + 0.3))[:, None]
        signs, logs = jnp.linalg.slogdet(orbitals)
        top = lax.stop_gradient(logs.max())
        return jnp.log(jnp.abs((signs * jnp.exp(logs - top)).sum())) + top

    return log_psi


def flat_gradient(log_psi, weights, x):
    """The gradient as a function of all coordinates in one axis, and these."""
    return jax.grad(lambda y: log_psi(weights, y.reshape(x.shape))), x.reshape(-1)


def pushed(log_psi, weights, x):
    """The Hessian's product with a direction, and all directions [coordinates, coordinates]."""
    gradient, y = flat_gradient(log_psi, weights, x)
    return jax.linearize(gradient, y)[1], jnp.eye(y.size, dtype=y.dtype)


def fori(log_psi, weights, x):
    """As every code writes it."""
    hessian, eye = pushed(log_psi, weights, x)
    return lax.fori_loop(0, len(eye), lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), eye.dtype))


def scan(log_psi, weights, x):
    """Terms stacked and summed afterwards."""
    hessian, eye = pushed(log_psi, weights, x)
    return lax.scan(lambda k, _: (k + 1, hessian(eye[k])[k]), 0, length=len(eye))[1].sum()


def scan_over_rows(log_psi, weights, x):
    """The identity is what is scanned over; each term is a full inner product."""
    hessian, eye = pushed(log_psi, weights, x)
    return lax.scan(lambda s, e: (s + jnp.vdot(e, hessian(e)), None), jnp.zeros((), eye.dtype), eye)[0]


def jvp_in_loop(log_psi, weights, x):
    """The primal is recomputed in every trip."""
    gradient, y = flat_gradient(log_psi, weights, x)
    eye = jnp.eye(y.size, dtype=y.dtype)
    return lax.fori_loop(0, y.size, lambda k, s: s + jax.jvp(gradient, (y,), (eye[k],))[1][k], jnp.zeros((), y.dtype))


def comparison(log_psi, weights, x):
    """The direction is a comparison with an iota, and so is the pick; the factor is inside."""
    hessian, _ = pushed(log_psi, weights, x)

    def body(k, total):
        e = (jnp.arange(x.size) == k).astype(x.dtype)
        return total - 0.5 * (e * hessian(e)).sum()

    return -2 * lax.fori_loop(0, x.size, body, jnp.zeros((), x.dtype))


def by_electron(log_psi, weights, x):
    """Directions of the shape of the positions, [electrons, 3]."""
    _, hessian = jax.linearize(jax.grad(lambda y: log_psi(weights, y)), x)
    eye = jnp.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
    return lax.fori_loop(0, x.size, lambda k, s: s + (hessian(eye[k]) * eye[k]).sum(), jnp.zeros((), x.dtype))


def two_counters(log_psi, weights, x):
    """The condition reads one counter, the body another, which runs backwards."""
    hessian, eye = pushed(log_psi, weights, x)

    def body(carried):
        k, j, total = carried
        return k + 1, j - 1, total + hessian(eye[j])[j]

    return lax.while_loop(lambda c: c[0] < len(eye), body, (0, len(eye) - 1, jnp.zeros((), eye.dtype)))[2]


def trace(log_psi, weights, x):
    """No loop: all directions at once."""
    hessian, eye = pushed(log_psi, weights, x)
    return jnp.trace(jax.vmap(hessian)(eye))


def diagonal(log_psi, weights, x):
    """No loop: the diagonal of ``jax.hessian``."""
    _, y = flat_gradient(log_psi, weights, x)
    return jnp.diagonal(jax.hessian(lambda z: log_psi(weights, z.reshape(x.shape)))(y)).sum()


def one_by_one(log_psi, weights, x):
    """A Python loop over the directions."""
    hessian, _ = pushed(log_psi, weights, x)
    return sum(hessian(jnp.zeros(x.size, x.dtype).at[k].set(1))[k] for k in range(x.size))


def gradients_one_by_one(log_psi, weights, x):
    """A Python loop over the entries of the gradient, whose cotangents are the unit vectors."""
    gradient, y = flat_gradient(log_psi, weights, x)
    return sum(jax.grad(lambda z, k=k: gradient(z)[k])(y)[k] for k in range(x.size))


def entries_one_by_one(log_psi, weights, x):
    """A Python loop over the diagonal of ``jax.hessian``."""
    _, y = flat_gradient(log_psi, weights, x)
    hessian = jax.hessian(lambda z: log_psi(weights, z.reshape(x.shape)))(y)
    return sum(hessian[k, k] for k in range(x.size))


def electron_by_electron(log_psi, weights, x):
    """A Python loop over the electrons, each with a Hessian of its own."""
    return sum(_trace_of_one(log_psi, weights, x, i) for i in range(len(x)))


def electrons_mapped(log_psi, weights, x):
    """The same by ``vmap``: identities of three rows go into an array of zeros."""
    return jax.vmap(lambda i: _trace_of_one(log_psi, weights, x, i))(jnp.arange(len(x))).sum()


def _trace_of_one(log_psi, weights, x, i):
    return jnp.trace(jax.hessian(lambda y: log_psi(weights, x.at[i].set(y)))(x[i]))


LOOPS = {
    f.__name__.replace("_", "-"): f
    for f in (fori, scan, scan_over_rows, jvp_in_loop, comparison, by_electron, two_counters)
}
LOOP_FREE = {
    f.__name__: f
    for f in (
        trace, diagonal, one_by_one, gradients_one_by_one, entries_one_by_one, electron_by_electron, electrons_mapped,
    )
}  # fmt: skip


def alone(log_psi, method):
    """(log|psi|, its Laplacian) of all walkers."""
    return jax.vmap(lambda weights, x: (log_psi(weights, x), method(log_psi, weights, x)), (None, 0))


def local_energy(log_psi, method):
    """(log|psi|, local energy, its mean) of all walkers: the gradient is used beside the Laplacian."""

    def of_one(weights, x):
        gradient = jax.grad(log_psi, 1)(weights, x)
        kinetic = -0.5 * (method(log_psi, weights, x) + (gradient**2).sum())
        return log_psi(weights, x), kinetic - (1 / jnp.sqrt((x**2).sum(-1) + 0.1)).sum()

    def of_all(weights, x):
        logs, energies = jax.vmap(of_one, (None, 0))(weights, x)
        return logs, energies, energies.mean()

    return of_all


def exact(log_psi, weights, x):
    """The Laplacian from ``jax.hessian``."""
    hessian = jax.hessian(lambda y: log_psi(weights, y.reshape(x.shape)))(x.reshape(-1))
    return jnp.trace(hessian)


W = np.random.default_rng(8).standard_normal((3, 5))


def psi(_, y):
    return jnp.tanh(y @ W).sum() ** 2 - jnp.sqrt((y**2).sum(-1) + 0.3).sum()


def both(value, replayed=None):
    """``value(y)`` of all walkers, and the sum over directions of ``replayed(y, ...)``, by default of the same."""

    def function(x, *more):
        summed = replayed or value
        return jax.vmap(lambda y: (value(y), fori(lambda _, z: summed(z, *more), None, y)))(x)

    return function


def of(changed):
    """``psi`` of all walkers, and the sum over directions of ``changed(y, ...)``, which is nearly it."""
    return both(lambda y: psi(None, y), changed)
