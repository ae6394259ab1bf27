"""Networks of ``x`` [9] with one layer or feature each, of those that published wavefunctions have."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.forms.networks import _K, _OUT, _Q, _V, ELECTRONS, WIDTH, _features, _pairs, _weights

_W, _U, _X = (_weights(WIDTH, WIDTH) for _ in range(3))
_KERNEL, _FOUR, _PHASES = _weights(3, WIDTH, WIDTH), _weights(WIDTH, 4), _weights(WIDTH, 2 * ELECTRONS)
_SIX = _weights(WIDTH, 2 * ELECTRONS)
_FIRST, _SECOND = np.array([0, 1, 2, 0], np.int32), np.array([1, 2, 0, 2], np.int32)


def _out(h: Any) -> Any:
    return (jnp.tanh(h) @ _OUT).sum()


def _heads(h: Any) -> tuple[Any, Any]:
    """(scores [heads, N, N], values [heads, N, c]) of attention; kernels [WIDTH, heads, c]."""
    q, k, v = (jnp.einsum("nd,dhe->hne", h, w) for w in (_Q, _K, _V))
    return jnp.einsum("hne,hme->hnm", q, k) / 2, v


def _mixed(weights: Any, values: Any) -> Any:
    return jnp.einsum("hnm,hme->nhe", weights, values).reshape(ELECTRONS, WIDTH)


def rms_norm(h: Any) -> Any:
    return h * lax.rsqrt((h**2).mean(-1, keepdims=True) + 1e-6)


def gated_recurrent_unit(h: Any) -> Any:
    m = h.mean(0)
    z, r = jax.nn.sigmoid(h @ _W + m), jax.nn.sigmoid(h @ _U - m)
    return (1 - z) * jnp.tanh(h @ _X + r * m) + z * h


def softmax_without_shift(h: Any) -> Any:
    scores, values = _heads(h)
    e = jnp.exp(scores)
    return h + _mixed(e / e.sum(-1, keepdims=True), values)


def gated_attention(h: Any) -> Any:
    scores, values = _heads(h)
    return h + _mixed(jax.nn.softmax(scores, -1), values) * jax.nn.sigmoid(h @ _W)


def several_contracted_axes(x: Any) -> Any:
    return jnp.tanh(jnp.einsum("if,ijf,fg->g", _features(x), _pairs(x), _W)).sum()


def convolution(h: Any) -> Any:
    kernel, numbers = jnp.asarray(_KERNEL, h.dtype), ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(h[None], kernel, (1,), "SAME", dimension_numbers=numbers)[0]


def fourier_transform(x: Any) -> Any:
    h = _features(x)
    return abs(jnp.fft.fft(h, axis=-1) + 2).sum() + jnp.fft.irfft(jnp.fft.rfft(h)[:, :4] ** 2).sum() ** 2


def segment_sum(h: Any) -> Any:
    return h - jax.ops.segment_sum(h, np.array([0, 1, 0]), 2)[np.array([1, 0, 1])]


def segment_max(h: Any) -> Any:
    return h - jax.ops.segment_max(h, np.array([0, 1, 0]), 2)[np.array([1, 0, 1])]


def sort(h: Any) -> Any:
    return jnp.sort(h, 0) * jnp.arange(1.0, 4.0, dtype=h.dtype)[:, None]


def top_k(x: Any) -> Any:
    return jnp.tanh(lax.top_k(_features(x).T, 2)[0]).sum()


def interpolation(x: Any) -> Any:
    r, grid = jnp.sqrt((x.reshape(-1, 3) ** 2).sum(-1) + 0.1), np.linspace(0, 5, 12)
    return (jnp.interp(r, grid, np.cos(grid)) ** 2).sum() + _out(_features(x))


def log_gamma(x: Any) -> Any:
    return jax.scipy.special.gammaln(2 + _features(x) ** 2).sum()


def branches(h: Any) -> Any:
    return lax.cond(h[0, 0] > 0, jnp.sin, jnp.cos, h)


def hypot(x: Any) -> Any:
    r = x.reshape(-1, 3)
    return jnp.log(jnp.hypot(r[:, 0] + 2, r[:, 1]) + 1).sum() + _out(_features(x))


def spherical(x: Any) -> Any:
    r = x.reshape(-1, 3)
    d = jnp.sqrt((r**2).sum(-1) + 0.1)
    return (jnp.sin(jnp.arccos(r[:, 2] / (d + 0.5))) * jnp.cos(2 * jnp.arctan2(r[:, 1], r[:, 0])) * jnp.exp(-d)).sum()


def masked_norms(x: Any) -> Any:
    r = x.reshape(-1, 3)
    d = r[:, None] - r[None] + jnp.eye(ELECTRONS)[..., None]
    return (jnp.linalg.norm(d, axis=-1) * (1 - jnp.eye(ELECTRONS))).sum() / 2 + _out(_features(x))


def backflow(x: Any) -> Any:
    r = x.reshape(-1, 3)
    d = r[_FIRST] - r[_SECOND]
    return _out(_features(r.at[_FIRST].add(d * jnp.exp(-(d**2).sum(-1, keepdims=True))).reshape(-1)))


def cumulative_sum(h: Any) -> Any:
    return jnp.cumsum(h, 0)


def log_add_exp(x: Any) -> Any:
    h = _features(x)
    return jnp.logaddexp(h[0], h[1]).sum() + jax.nn.logsumexp(h @ _W)


def inverse(x: Any) -> Any:
    a = _features(x)[:, :ELECTRONS] + 2 * jnp.eye(ELECTRONS)
    return jnp.linalg.inv(a).sum() + jnp.linalg.det(a)


def pfaffian(x: Any) -> Any:
    """log|Pf| of an antisymmetric matrix, by the LU of its determinant."""
    h = _features(x)
    f = jnp.concatenate([h, h[:1] ** 2]) @ _FOUR
    a = f @ jnp.triu(jnp.ones((4, 4))) @ f.T
    return jnp.linalg.slogdet(a - a.T + jnp.kron(jnp.eye(2), jnp.array([[0.0, 2], [-2, 0]])))[1] / 2


def complex_log_psi(x: Any) -> Any:
    """log of a sum of two complex determinants, complex."""
    h = _features(x)
    orbitals = lax.complex(h @ _SIX, h @ _PHASES).reshape(ELECTRONS, 2, ELECTRONS).transpose(1, 0, 2)
    phases, logs = jnp.linalg.slogdet(orbitals)
    top = lax.stop_gradient(logs.max())
    return jnp.log((phases * jnp.exp(logs - top)).sum()) + top


def complex_determinants(x: Any) -> Any:
    return complex_log_psi(x).real


def cholesky(x: Any) -> Any:
    h = _features(x)
    return jnp.log(jnp.diagonal(jnp.linalg.cholesky(h @ h.T + 2 * jnp.eye(ELECTRONS)))).sum()


def qr(x: Any) -> Any:
    a = _features(x)[:, :ELECTRONS] + 2 * jnp.eye(ELECTRONS)
    return jnp.log(abs(jnp.diagonal(jnp.linalg.qr(a)[1]))).sum()


def eigenvalues(x: Any) -> Any:
    h = _features(x)
    return jnp.log(jnp.linalg.eigh(h @ h.T + jnp.diag(jnp.array([2.0, 4, 6])))[0]).sum()


def _network(layer: Any) -> Any:
    return lambda x: _out(layer(_features(x)))


def _named(*functions: Any) -> dict[str, Any]:
    return {f.__name__.replace("_", "-"): f for f in functions}


BETWEEN = _named(
    rms_norm, gated_recurrent_unit, softmax_without_shift, gated_attention, convolution, segment_sum, segment_max, sort,
    branches, cumulative_sum,
)  # fmt: skip
"""Functions of ``h`` [electrons, WIDTH] to the same shape."""
LAYERS = {
    **{name: _network(layer) for name, layer in BETWEEN.items()},
    **_named(
        several_contracted_axes, fourier_transform, top_k, interpolation, log_gamma, hypot, spherical, masked_norms,
        backflow, log_add_exp, inverse, pfaffian, complex_determinants,
    ),
}  # fmt: skip
FACTORISATIONS = {"cholesky": cholesky, "qr": qr, "eigenvalues": eigenvalues}
"""By custom calls without an exact rule, which are functions of their operand of which nothing else is known."""
