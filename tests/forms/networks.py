"""Small wavefunctions of ``x`` [9], one of each kind that codes have."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ELECTRONS, COORDINATES, WIDTH = 3, 9, 8
_random = np.random.default_rng(7)


def _weights(*shape: int) -> Any:
    return (_random.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)


_IN, _PAIR, _MIX, _OUT = _weights(4, WIDTH), _weights(1, WIDTH), _weights(3 * WIDTH, WIDTH), _weights(WIDTH, 1)
_ORBITALS, _Q, _K, _V = _weights(WIDTH, 2 * ELECTRONS), *(_weights(WIDTH, 2, 4) for _ in range(3))
_LAYERS, _WAVES = _weights(4, WIDTH, WIDTH), _weights(3, WIDTH)
_SCALE, _COMPLEX = 1 + 0.1 * _weights(WIDTH), _weights(WIDTH, 2 * ELECTRONS)


def _features(x: Any) -> Any:
    """[electrons, WIDTH]."""
    r = x.reshape(-1, 3)
    distance = jnp.sqrt((r**2).sum(-1, keepdims=True) + 0.1)
    return jnp.tanh(jnp.concatenate([r, distance], -1) @ _IN)


def _pairs(x: Any) -> Any:
    """[electrons, electrons, WIDTH]."""
    r = x.reshape(-1, 3)
    d = r[:, None] - r[None]
    return jnp.tanh(jnp.sqrt((d**2).sum(-1, keepdims=True) + 0.2) @ _PAIR)


def mlp_with_pairs(x: Any) -> Any:
    h, p = _features(x), _pairs(x)
    h = jnp.concatenate([h, jnp.broadcast_to(h.mean(0), h.shape), p.mean(1)], -1) @ _MIX
    return (jax.nn.silu(h) @ _OUT).sum()


def _log_of_determinants(orbitals: Any) -> Any:
    """log|sum of the determinants| of [determinants, electrons, electrons]."""
    signs, logs = jnp.linalg.slogdet(orbitals)
    top = lax.stop_gradient(logs.max())
    return jnp.log(jnp.abs((signs * jnp.exp(logs - top)).sum())) + top


def ferminet_like(x: Any) -> Any:
    h, p = _features(x), _pairs(x)
    h = h + jnp.tanh(jnp.concatenate([h, jnp.broadcast_to(h.mean(0), h.shape), p.mean(1)], -1) @ _MIX)
    orbitals = (h @ _ORBITALS).reshape(ELECTRONS, 2, ELECTRONS).transpose(1, 0, 2)
    r = x.reshape(-1, 3)
    return _log_of_determinants(orbitals * jnp.exp(-jnp.sqrt((r**2).sum(-1) + 0.1))[:, None])


def _layer_norm(h: Any) -> Any:
    mean = h.mean(-1, keepdims=True)
    variance = jnp.maximum((h**2).mean(-1, keepdims=True) - mean**2, 0.0)
    return (h - mean) * lax.rsqrt(variance + 1e-5) * _SCALE


def attention(x: Any) -> Any:
    h = _features(x)
    y = _layer_norm(h)
    q, k, v = (jnp.einsum("nd,dhe->hne", y, w) for w in (_Q, _K, _V))
    a = jax.nn.softmax(jnp.einsum("hne,hme->hnm", q, k) / 2.0, -1)
    h = h + jnp.einsum("hnm,hme->nhe", a, v).reshape(ELECTRONS, WIDTH)
    return (jnp.tanh(_layer_norm(h)) @ _OUT).sum()


def complex_periodic(x: Any) -> Any:
    """The real part of log psi of complex orbitals of periodic features."""
    r = x.reshape(-1, 3)
    h = jnp.tanh(jnp.concatenate([jnp.sin(r), jnp.cos(r)], -1) @ jnp.concatenate([_WAVES, _WAVES[::-1]]))
    orbitals = lax.complex(h @ _ORBITALS[:, :ELECTRONS], h @ _COMPLEX[:, :ELECTRONS])
    orbitals = orbitals * jnp.exp(1j * (r @ jnp.ones(3, r.dtype)))[:, None]
    return jnp.linalg.slogdet(orbitals)[1]


def recurrent(x: Any) -> Any:
    """Gated layers in a scan."""

    def layer(h: Any, w: Any) -> tuple[Any, None]:
        gate = jax.nn.sigmoid(h @ w + h.mean(0))
        return gate * h + (1 - gate) * jnp.tanh(h @ w.T), None

    h, _ = lax.scan(layer, _features(x), jnp.asarray(_LAYERS, x.dtype))
    return jnp.log(1.0 + ((h @ _OUT) ** 2).sum()) - jnp.sqrt((x.reshape(-1, 3) ** 2).sum(-1) + 0.1).sum()


NETWORKS = {
    f.__name__.replace("_", "-"): f for f in (mlp_with_pairs, ferminet_like, attention, complex_periodic, recurrent)
}
