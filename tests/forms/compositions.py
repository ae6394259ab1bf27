"""Random programs: a form of a Laplacian of a network of drawn parts, in drawn surroundings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.optimizing.rewriting import lower_jaxpr
from tests.forms.forms import EXPECTED, FORMS, SUMS, TOTALS
from tests.forms.layers import BETWEEN, _out
from tests.forms.matrix import judged, with_derivatives
from tests.forms.networks import (
    _COMPLEX,
    _IN,
    _LAYERS,
    _MIX,
    _ORBITALS,
    _WAVES,
    COORDINATES,
    ELECTRONS,
    _features,
    _layer_norm,
    _log_of_determinants,
    _pairs,
)

_MOST_LAYERS = 3
_NUCLEI = np.array([[0.0, 0, 0], [0, 0, 1.4]], np.float32)


def _distances(x: Any) -> Any:
    """[electrons, electrons], 1 on the diagonal."""
    r = x.reshape(-1, 3)
    d = r[:, None] - r[None] + jnp.eye(ELECTRONS, dtype=x.dtype)[..., None]
    return jnp.linalg.norm(d, axis=-1)


def _periodic(x: Any) -> Any:
    r = x.reshape(-1, 3)
    return jnp.concatenate([jnp.sin(r), jnp.cos(r)], -1) @ jnp.concatenate([_WAVES, _WAVES[::-1]])


def _from_nuclei(x: Any) -> Any:
    d = jnp.linalg.norm(x.reshape(-1, 1, 3) - _NUCLEI, axis=-1)
    return jnp.concatenate([jnp.log1p(d), jnp.exp(-d)], -1) @ _IN


def _pair_means(x: Any) -> Any:
    return _pairs(x).mean(1) + _features(x)


INPUTS: dict[str, Callable[[Any], Any]] = {
    "features": _features, "periodic": _periodic, "nuclei": _from_nuclei, "pair-means": _pair_means,
}  # fmt: skip
"""``x`` [coordinates] to ``h`` [electrons, WIDTH]."""


def _dense(h: Any) -> Any:
    return jnp.tanh(h @ _LAYERS[0])


def _residual(h: Any) -> Any:
    return h + jax.nn.silu(h @ _LAYERS[1])


def _mean_field(h: Any) -> Any:
    rest = jnp.broadcast_to(h.mean(0), h.shape)
    return jnp.tanh(jnp.concatenate([h, rest, h * rest], -1) @ _MIX)


def _scanned(h: Any) -> Any:
    return lax.scan(lambda h, w: (h + jnp.tanh(h @ w), None), h, jnp.asarray(_LAYERS, h.dtype))[0]


def _rematerialised(h: Any) -> Any:
    return jax.checkpoint(lambda h: jnp.sin(h @ _LAYERS[2]) * h)(h)


LAYERS_OF_BOTH = {
    **BETWEEN, "dense": _dense, "residual": _residual, "mean-field": _mean_field, "scanned": _scanned,
    "layer-norm": _layer_norm, "rematerialised": _rematerialised, "jitted": jax.jit(_residual),
}  # fmt: skip


def _determinants(h: Any) -> Any:
    orbitals = (h @ _ORBITALS).reshape(ELECTRONS, 2, ELECTRONS).transpose(1, 0, 2)
    return _log_of_determinants(orbitals + 0.5 * jnp.eye(ELECTRONS, dtype=h.dtype))


def _complex_determinant(h: Any) -> Any:
    orbitals = lax.complex(h @ _ORBITALS[:, :ELECTRONS], h @ _COMPLEX[:, :ELECTRONS])
    return jnp.linalg.slogdet(orbitals + jnp.eye(ELECTRONS, dtype=h.dtype))[1]


def _log_sum(h: Any) -> Any:
    return jax.nn.logsumexp(h @ _LAYERS[3])


HEADS = {
    "sum": _out, "determinants": _determinants, "complex-determinant": _complex_determinant, "log-sum": _log_sum,
}  # fmt: skip


def _cusp(x: Any) -> Any:
    d = _distances(x)
    return jnp.triu(d / (2 * (1 + d)), 1).sum()


def _decay(x: Any) -> Any:
    return -jnp.linalg.norm(x.reshape(-1, 3), axis=-1).sum()


JASTROWS: dict[str, Callable[[Any], Any]] = {"none": lambda x: 0, "cusp": _cusp, "decay": _decay}


def _walkers(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal((*shape, COORDINATES)).astype(np.float32)


def _in_steps(of_one: Any) -> Any:
    def step(x: Any, _: Any) -> Any:
        x = x + 0.1 * jnp.sin(x)
        return x, jax.vmap(of_one)(x)

    return lambda x: lax.scan(step, x, length=2)


def _mean(of_one: Any) -> Any:
    return lambda x: jax.tree.map(lambda a: a.mean(0), jax.vmap(of_one)(x))


def _with_potential(of_one: Any) -> Any:
    def energy(x: Any) -> Any:
        repulsion = jnp.triu(1 / _distances(x), 1).sum()
        return jax.tree.map(lambda a: -0.5 * a + repulsion, of_one(x))

    return jax.vmap(energy)


SURROUNDINGS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "one": (lambda of_one: of_one, ()),
    "vmap": (jax.vmap, (2,)),
    "two-vmaps": (lambda of_one: jax.vmap(jax.vmap(of_one)), (2, 3)),
    "second-axis": (lambda of_one: lambda x: jax.vmap(of_one, 1)(x.T), (2,)),
    "jit": (lambda of_one: jax.jit(jax.vmap(jax.jit(of_one))), (2,)),
    "map": (lambda of_one: lambda x: lax.map(of_one, x), (3,)),
    "steps": (_in_steps, (2,)),
    "mean": (_mean, (4,)),
    "with-potential": (_with_potential, (3,)),
}
"""A function of one walker to one of walkers, and the leading axes of these."""


@dataclass(frozen=True)
class Composition:
    """Names of the parts of a program."""

    form: str
    inputs: str
    layers: tuple[str, ...]
    head: str
    jastrow: str
    surroundings: str

    @property
    def name(self) -> str:
        """The parts in one line."""
        parts = (self.form, self.surroundings, self.inputs, *self.layers, self.head, self.jastrow)
        return " ".join(parts)

    def log_psi(self, x: Any) -> Any:
        """The network of ``x`` [coordinates]."""
        h = INPUTS[self.inputs](x)
        for layer in self.layers:
            h = LAYERS_OF_BOTH[layer](h)
        return HEADS[self.head](h) + JASTROWS[self.jastrow](x)

    def judged(self, walkers: int | None = None) -> dict[str, str]:
        """As ``matrix.cell``; at this number of ``walkers``, if there is one, where the surroundings have walkers."""
        around, shape = SURROUNDINGS[self.surroundings]
        x = _walkers(*((walkers,) if walkers and shape else shape[:1]), *shape[1:])

        def lower() -> Any:
            function = around(lambda y: FORMS[self.form](self.log_psi, y))
            return lower_jaxpr(jax.make_jaxpr(function)(x), "cpu", "composition")

        def truth_of_one(y: Any) -> Any:
            return EXPECTED[self.form](*with_derivatives(self.log_psi, y))

        def truth() -> list[np.ndarray]:
            with jax.enable_x64(True):
                return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(around(truth_of_one))(x.astype(float)))]

        return judged(lower, [x], truth)


def drawn(seed: int) -> Composition:
    """The composition of ``seed``."""
    random = np.random.default_rng([17, seed])

    def one(names: Any) -> str:
        return str(random.choice(list(names)))

    layers = tuple(one(LAYERS_OF_BOTH) for _ in range(random.integers(0, _MOST_LAYERS + 1)))
    return Composition(one({**TOTALS, **SUMS}), one(INPUTS), layers, one(HEADS), one(JASTROWS), one(SURROUNDINGS))
