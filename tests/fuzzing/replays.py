"""Random replays: small smooth networks, every way in which codes write their Laplacian, and what is nearly one.

``replays()`` is a hypothesis strategy of ``RandomReplay``. A *near* replay differs from the Laplacian in one place
(fewer trips, a square, another entry, ...); a pass must leave it alone or keep its numbers. Of a true one, brute force
(the trace of ``jax.hessian``, walker by walker) says what the numbers must be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st
from jax import lax

from tests.fuzzing import properties
from tests.fuzzing.steps import Draw
from tests.passes import laplacian_functions as known

WEIGHTS = np.random.default_rng(31).standard_normal((9, 9)) * 0.5
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "tanh": jnp.tanh, "sin": jnp.sin, "logistic": jax.nn.sigmoid, "softplus": lambda y: jnp.logaddexp(y, 0.0),
    "gauss": lambda y: jnp.exp(-(y**2)), "root": lambda y: jnp.sqrt(y**2 + 0.3), "square": lambda y: y**2,
    "quotient": lambda y: y / (1.3 + y**2), "product": lambda y: y * jnp.cos(y), "silu": jax.nn.silu,
}  # fmt: skip
LAYERS = ("own", "mean", "pairs", "attention", "gathered", "joined", "halves", "loop", "selected")
READOUTS = ("sum", "log of a sum", "determinant", "two determinants", "jastrow", "product", "logsumexp")
PIPELINES = (
    "fuse-jvp-replay", "sparsify-directions", "collapse-replay", "transpose-replay", "batch-replay",
    "batch-replay{chunk=2}", "licm", "sparsify-directions{chunks=2}", "layout",
)  # fmt: skip


def _layer(kind: str, activation: Callable[[Any], Any], seed: int, h: Any) -> Any:
    """[electrons, features] to [electrons, 4]."""
    n, width = h.shape
    draw = np.random.default_rng(seed)
    w = jnp.asarray(draw.standard_normal((2 * width, 4)) * 0.6, h.dtype)
    own = h @ w[:width]

    def pairs() -> Any:
        distance = jnp.sqrt(((h[:, None, :3] - h[None, :, :3]) ** 2).sum(-1) + 0.4)
        return activation(own + (jnp.exp(-distance)[..., None] * own[None]).sum(1))

    first, last = np.array([0, n - 1, 0]), np.array([n - 1, 0, 0])
    layers = {
        "own": lambda: activation(own),
        "mean": lambda: activation(jnp.concatenate([h, jnp.broadcast_to(h.mean(0), h.shape)], -1) @ w),
        "pairs": pairs,
        "attention": lambda: activation(jax.nn.softmax(own @ own.T / 2.0, -1) @ own) + own,
        "gathered": lambda: activation(own[first] + own[last])[:n].repeat(n, 0)[:n] + own,
        "joined": lambda: activation(jnp.concatenate([own[:, :2], h[:, :1] ** 2, jnp.ones((n, 1), h.dtype)], -1)),
        "halves": lambda: jnp.concatenate([activation(own[: n // 2 + 1]), jnp.sin(own[n // 2 + 1 :])], 0),
        "loop": lambda: lax.fori_loop(0, 2, lambda k, y: activation(y * 0.8 + 0.1 * k), own),
        "selected": lambda: jnp.where(own > 0.0371, activation(own), activation(0.0371) + 0.5 * (own - 0.0371) ** 3),
    }
    return layers[kind]()


def _readout(kind: str, x: Any, h: Any) -> Any:
    n = h.shape[0]
    if kind == "log of a sum":
        return jnp.log(1.2 + (h**2).sum())
    if kind == "jastrow":
        r = jnp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 0.5)
        return h.sum() - (jnp.triu(jnp.ones((n, n)), 1) * r / (1.0 + r)).sum()
    if kind == "product":
        return jnp.prod(1.5 + jnp.tanh(h.mean(-1)))
    if kind == "logsumexp":
        return jax.nn.logsumexp(h)
    if kind.endswith(("determinant", "determinants")):
        count = 2 if kind.startswith("two") else 1
        orbitals = (h @ jnp.asarray(WEIGHTS[:4, : n * count], h.dtype)).reshape(n, count, n).transpose(1, 0, 2)
        orbitals = orbitals * jnp.exp(-0.3 * (x**2).sum(-1))[:, None] + 1.3 * jnp.eye(n, dtype=h.dtype)
        signs, logs = jnp.linalg.slogdet(orbitals)
        top = lax.stop_gradient(logs.max())
        return jnp.log(jnp.abs((signs * jnp.exp(logs - top)).sum())) + top
    return jnp.sin(h).sum()


def _summed(term: Callable[..., Any]) -> Callable[..., Any]:
    """``term(k, f, y, h, e, n)`` over all k."""
    return lambda f, y, h, e, n: lax.fori_loop(0, n, lambda k, s: s + term(k, f, y, h, e, n), 0.0 * y[0])


def _pushed(function: Callable[[Any], Any], at: Any, e: Any) -> Any:
    return jax.jvp(function, (at,), (e,))[1]


def _that_stops(f: Any, y: Any, h: Any, e: Any, n: int) -> Any:
    def going(carried: Any) -> Any:
        return (carried[0] < n) & (jnp.abs(carried[1]) < 1.737)

    return lax.while_loop(going, lambda c: (c[0] + 1, c[1] + h(e[c[0]])[c[0]]), (0, 0.0 * y[0]))[1]


NEAR = {
    "fewer trips": lambda f, y, h, e, n: lax.fori_loop(0, n - 1, lambda k, s: s + h(e[k])[k], 0.0 * y[0]),
    "from one": lambda f, y, h, e, n: lax.fori_loop(1, n, lambda k, s: s + h(e[k])[k], 0.0 * y[0]),
    "steps of two": lambda f, y, h, e, n: lax.fori_loop(0, n // 2, lambda k, s: s + h(e[2 * k])[2 * k], 0.0 * y[0]),
    "recurrent": lambda f, y, h, e, n: lax.fori_loop(0, n, lambda k, s: 0.9 * s + h(e[k])[k], 0.0 * y[0]),
    "while that stops": _that_stops,
    "square of a term": _summed(lambda k, f, y, h, e, n: h(e[k])[k] ** 2),
    "squared direction": _summed(lambda k, f, y, h, e, n: h(e[k] * y**2)[k]),
    "another entry": _summed(lambda k, f, y, h, e, n: h(e[k])[(k + 1) % n]),
    "first entry": _summed(lambda k, f, y, h, e, n: h(e[k])[0]),
    "sum of entries": _summed(lambda k, f, y, h, e, n: h(e[k]).sum()),
    "weighted": _summed(lambda k, f, y, h, e, n: (1 + 0.1 * k) * h(e[k])[k]),
    "weighted by position": _summed(lambda k, f, y, h, e, n: y[k] * h(e[k])[k]),
    "double": _summed(lambda k, f, y, h, e, n: h(2 * e[k])[k]),
    "two hot": _summed(lambda k, f, y, h, e, n: h(e[k] + e[0])[k]),
    "elsewhere": _summed(lambda k, f, y, h, e, n: _pushed(jax.grad(f), 1.01 * y, e[k])[k]),
    "moving point": _summed(lambda k, f, y, h, e, n: _pushed(jax.grad(f), y + 0.01 * k, e[k])[k]),
    "another function": _summed(
        lambda k, f, y, h, e, n: _pushed(jax.grad(lambda z: f(z) + 1e-3 * (z**3).sum()), y, e[k])[k]
    ),
    "not symmetric": _summed(lambda k, f, y, h, e, n: _pushed(lambda z: z**2 * jax.grad(f)(z), y, e[k])[k]),
}
"""Name -> (the function of flat positions, these, its Hessian times a vector, the unit vectors, how many) -> scalar."""


def vmapped_diagonal(log_psi: Any, weights: Any, x: Any) -> Any:
    """Each entry of the diagonal by itself, under ``vmap`` over directions."""
    gradient, y = known.flat_gradient(log_psi, weights, x)
    return jax.vmap(lambda e: jnp.vdot(e, jax.jvp(gradient, (y,), (e,))[1]))(jnp.eye(y.size, dtype=y.dtype)).sum()


FORMS = {**known.LOOPS, **known.LOOP_FREE, "vmapped-diagonal": vmapped_diagonal}


@dataclass(frozen=True)
class RandomReplay:
    """A network (layers, activations, readout), the form of its Laplacian or how it is nearly one, and walkers."""

    layers: tuple[tuple[str, str, int], ...]
    readout: str
    form: str
    near: str
    walkers: int
    electrons: int
    energy: bool
    platform: str
    seed: int

    def log_psi(self, weights: Any, x: Any) -> Any:
        """[electrons, 3] to a scalar; ``weights`` scale the first layer."""
        h = jnp.concatenate([x, jnp.sqrt((x**2).sum(-1, keepdims=True) + 0.3)], -1) * weights
        for kind, activation, seed in self.layers:
            h = _layer(kind, ACTIVATIONS[activation], seed, h)
        return _readout(self.readout, x, h)

    def method(self, log_psi: Any, weights: Any, x: Any) -> Any:
        """The Laplacian, or what is nearly one."""
        if not self.near:
            return FORMS[self.form](log_psi, weights, x)
        y = x.reshape(-1)
        f = lambda z: log_psi(weights, z.reshape(x.shape))  # noqa: E731
        _, hessian = jax.linearize(jax.grad(f), y)
        return NEAR[self.near](f, y, hessian, jnp.eye(y.size, dtype=y.dtype), y.size)

    def function(self, weights: Any, x: Any) -> Any:
        """(log|psi|, Laplacian or local energy, ...) of walkers [walkers, electrons, 3]."""
        of_all = (known.local_energy if self.energy else known.alone)(self.log_psi, self.method)
        return of_all(weights, x)

    def of_one(self, weights: Any, x: Any) -> Any:
        """Without ``vmap``: one walker [electrons, 3]."""
        return self.log_psi(weights, x), self.method(self.log_psi, weights, x)

    def arrays(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Weights and walkers, near and further out."""
        random = np.random.default_rng(self.seed)
        shape = (self.walkers, self.electrons, 3) if self.walkers else (self.electrons, 3)
        weights = random.standard_normal(4)
        return [weights, random.standard_normal(shape)], [weights, 2.5 * random.standard_normal(shape)]


@st.composite
def replays(draw: Draw) -> RandomReplay:
    """A network of one to three layers; half of them nearly a Laplacian only."""
    layer = st.tuples(st.sampled_from(LAYERS), st.sampled_from(sorted(ACTIVATIONS)), st.integers(0, 99))
    layers = tuple(draw(st.lists(layer, min_size=1, max_size=3)))
    near = draw(st.sampled_from(["", *sorted(NEAR)])) if draw(st.booleans()) else ""
    return RandomReplay(
        layers=layers,
        readout=draw(st.sampled_from(READOUTS)),
        form=draw(st.sampled_from(sorted(FORMS))),
        near=near,
        walkers=draw(st.integers(0, 3)),
        electrons=draw(st.integers(2, 3)),
        energy=draw(st.booleans()),
        platform=draw(st.sampled_from(["cpu", "cuda"])),
        seed=draw(st.integers(0, 2**16)),
    )


def check_replay(random: RandomReplay) -> None:
    """Every pass leaves ``random`` alone or keeps its numbers, near and further out; brute force agrees."""
    function = random.function if random.walkers else random.of_one
    samples = random.arrays()
    expected = [properties.direct(function, sample) for sample in samples]
    if not random.near and not (random.energy and random.walkers):
        for sample, values in zip(samples, expected, strict=True):
            properties.require_same([values[1]], [_brute_force(random, *sample)], "brute force")
    program = properties.lowered(function, samples[0], random.platform)
    properties.tally["near replays" if random.near else "replays"] += 1
    for pipeline in PIPELINES:
        result = properties.rewritten(program, pipeline)
        if result.applied:
            if random.near and pipeline == "fuse-jvp-replay":
                properties.tally[f"near, and applied: {result.applied[0].pass_name}"] += 1
            for sample, values in zip(samples, expected, strict=True):
                properties.require_same(properties.raised(result.program, sample), values, pipeline)


def _brute_force(random: RandomReplay, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        of_one = jax.jit(lambda one: known.exact(random.log_psi, weights, one))
        return np.asarray(of_one(x) if x.ndim == 2 else np.array([of_one(one) for one in x]))
