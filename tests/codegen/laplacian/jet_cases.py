"""Small functions of walkers ``x`` [B, N, 3], one or more per family of ops: ``(name, function, other arguments)``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

B, N, F = 2, 4, 5
_random = np.random.default_rng(3)
X = _random.standard_normal((B, N, 3))
W = 0.5 * _random.standard_normal((3, F))
V = 0.5 * _random.standard_normal((F, F))
U = 0.5 * _random.standard_normal((F, N))
MANY = 0.5 * _random.standard_normal((F, 6, N))
BIAS = _random.standard_normal(F)
POINTS = _random.standard_normal((2, 3))
FIRST, SECOND = np.triu_indices(N, 1)
ORDER = np.array([2, 0, 3, 1])


def h(x: Any, w: Any = W) -> Any:
    """Features [B, N, F] of each electron, not zero at first or second order."""
    return jnp.tanh(x @ w) + 0.1 * (x**2) @ w


def pairs(x: Any) -> Any:
    """Differences [B, N, N, 3]."""
    return x[:, :, None] - x[:, None]


def norms(x: Any, keep_diagonal: bool) -> Any:
    """Distances [B, N, N] with ones on the diagonal, or with the diagonal's own smooth value."""
    if keep_diagonal:
        return jnp.sqrt(1.0 + (pairs(x) ** 2).sum(-1))
    return jnp.linalg.norm(pairs(x) + jnp.eye(x.shape[1])[:, :, None], axis=-1)


def attention(x: Any, w: Any, v: Any) -> Any:
    """Two heads of softmax attention [B, N, 2 * F]."""
    q, k, value = (jnp.einsum("bnf,hfg->bnhg", h(x, w), jnp.stack([v * s, v.T - s])) for s in (1.0, 0.7, -0.4))
    weights = jax.nn.softmax(jnp.einsum("bihg,bjhg->bhij", q, k) / 2.0, -1)
    return jnp.einsum("bhij,bjhg->bihg", weights, value).reshape(*x.shape[:2], -1)


def layer_norm(y: Any) -> Any:
    centred = y - y.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * 1.3 + 0.2


def residual(x: Any, w: Any, v: Any, bias: Any) -> Any:
    y = h(x, w)
    for _ in range(2):
        y = y + jnp.tanh(y @ v + bias)
    return y


def matrices(x: Any) -> Any:
    """[B, N, N], far from singular."""
    return h(x) @ U + 2 * jnp.eye(N)


def _updated(x: Any) -> Any:
    y = h(x)
    return lax.dynamic_update_slice(y, jnp.sin(y[:, :1]), (0, 2, 0)).sum(1), lax.dynamic_update_slice(
        jnp.ones((x.shape[0], 6, F)), y, (0, 1, 0)
    )


def _scattered(how: str) -> Any:
    def function(x: Any) -> Any:
        y = h(x)
        return getattr(y.at[:, np.array([1, 3])], how)(jnp.cos(y[:, 1:3]), unique_indices=how != "add")

    return function


def _looped(x: Any, v: Any) -> Any:
    return lax.fori_loop(0, 3, lambda k, y: jnp.sin(y @ v) + 0.1 * k * y, h(x))


def _scanned(x: Any, v: Any) -> Any:
    last, rows = lax.scan(lambda c, w: (jnp.tanh(c @ w), c.sum(-1)), h(x), jnp.stack([v, v.T]))
    return last, rows.swapaxes(0, 1)


def _constant_beside(x: Any) -> Any:
    """Part of a value does not depend on x, and is used alone afterwards."""
    joined = jnp.concatenate([h(x), jnp.ones((x.shape[0], 2, F))], 1)
    return jnp.tanh(joined[:, N:]) * joined[:, :2], jnp.exp(joined[:, N:]), jnp.sin(joined)


def _one_electron_twice(x: Any) -> Any:
    """Both slots of the pair features belong to one electron on the diagonal."""
    features = jnp.tanh(pairs(x) @ W) + h(x)[:, :, None] * h(x)[:, None]
    diagonal = features[:, np.arange(N), np.arange(N)]
    return (
        diagonal * 2 + jnp.sin(diagonal) * h(x),
        diagonal - h(x),
        diagonal * diagonal + diagonal,
        diagonal / (2 + h(x) ** 2),
    )


def _orbitals(x: Any) -> Any:
    """Complex [B, N, N], far from singular."""
    return lax.complex(h(x) @ U, jnp.cos(h(x)) @ U) + (2 + 1j) * jnp.eye(N)


def _sorted(x: Any) -> Any:
    y = h(x)
    return (
        jnp.sort(y, 1),
        lax.sort((y, jnp.sin(y)), dimension=1, num_keys=1)[1],
        y[np.arange(x.shape[0])[:, None], jnp.argsort(y[:, :, 0], 1)],
    )


CASES: list[tuple[str, Any, tuple[Any, ...]]] = [
    # Layers of one electron.
    ("coordinates", lambda x: (x, x.sum((1, 2)), 2 * x - 1), ()),
    ("dense", lambda x, w, b: jnp.tanh(x @ w + b).sum((1, 2)), (W, BIAS)),
    ("residuals", lambda x, w, v, b: residual(x, w, v, b).mean(1), (W, V, BIAS)),
    ("activations", lambda x: [f(h(x)).sum(1) for f in (jax.nn.silu, jnp.tanh, jax.nn.softplus, jax.nn.gelu)], ()),
    ("more-activations", lambda x: [f(h(x)).sum(1) for f in (jax.nn.sigmoid, jax.nn.elu, jax.nn.relu, jnp.arctan)], ()),
    ("layer-norm", lambda x: layer_norm(h(x)).sum(1), ()),
    ("envelopes", lambda x, p, u: (
        jnp.exp(-jnp.linalg.norm(x[:, :, None] - p, axis=-1) @ jnp.abs(u[:2])) * (x @ u[:3])).sum(1), (POINTS, U)),
    # Softmax and its relatives, with a max inside.
    ("logsumexp", lambda x: (jax.nn.logsumexp(h(x), -1), jax.nn.logsumexp(h(x), (1, 2)), jax.nn.logsumexp(h(x), 1)),
     ()),
    ("logsumexp-signed", lambda x, v: jax.nn.logsumexp(h(x), -1, b=v[0], return_sign=True)[0], (V,)),
    ("logaddexp", lambda x: (jnp.logaddexp(h(x), h(x)[:, ::-1]), jnp.logaddexp2(x, -x)), ()),
    ("softmax", lambda x: (jax.nn.softmax(h(x), -1), jax.nn.softmax(h(x), 1)), ()),
    ("attention", lambda x, w, v: attention(x, w, v).sum((1, 2)), (W, V)),
    ("attention-layer", lambda x, w, v: layer_norm(attention(x, w, v)).mean(1), (W, V)),
    # Pairs of electrons.
    ("pair-norms", lambda x: [jnp.log1p(norms(x, keep)).sum((1, 2)) for keep in (True, False)], ()),
    ("pair-norms-masked", lambda x: (norms(x, False) * (1 - jnp.eye(N))).sum((1, 2)), ()),
    ("pair-features", lambda x, w: jnp.tanh(jnp.tanh(pairs(x) @ w) + pairs(x) @ w).sum(2), (W,)),
    ("pair-lists", lambda x: jnp.exp(-jnp.linalg.norm(x[:, FIRST] - x[:, SECOND], axis=-1)).sum(1), ()),
    ("pair-products", lambda x: (h(x)[:, FIRST] * h(x)[:, SECOND]).sum(1), ()),
    ("one-electron-twice", _one_electron_twice, ()),
    ("convolutions", lambda x, w: (jnp.tanh(pairs(x) @ w) * h(x, w)[:, None]).sum(2) + h(x, w), (W,)),
    ("outer-products", lambda x: jnp.tanh(h(x)[..., :, None] * h(x)[..., None, :]).sum((1, 2)), ()),
    ("means-of-spins", lambda x, w: jnp.tanh(jnp.concatenate([
        h(x, w), *(jnp.broadcast_to(part.mean(1, keepdims=True), h(x, w).shape)
                   for part in (h(x, w)[:, :2], h(x, w)[:, 2:]))], -1)).sum((1, 2)), (W,)),
    # Ops that move elements.
    ("gathers", lambda x: (h(x)[:, ORDER], h(x)[:, np.array([[0, 1], [1, 1]])], h(x)[:, ORDER][:, ::-1]), ()),
    ("gather-modes", lambda x: [h(x).at[:, np.array([0, 9, -7])].get(mode=mode, fill_value=2.0)
                                for mode in ("clip", "fill")], ()),
    ("gather-by-walker", lambda x: jnp.take_along_axis(h(x), jnp.argmax(h(x), 1, keepdims=True), 1), ()),
    ("concatenate-electrons", lambda x: jnp.sin(jnp.concatenate([h(x), h(x)[:, :2] * h(x)[:, 2:]], 1)), ()),
    ("concatenate-features", lambda x: jnp.sin(jnp.concatenate([h(x), h(x)[:, ::-1], jnp.tanh(pairs(x)).sum(2)], -1)),
     ()),
    ("concatenate-pairs", lambda x: jnp.sin(jnp.concatenate([jnp.tanh(pairs(x)), jnp.broadcast_to(
        x[:, :, None], (x.shape[0], N, N, 3))], -1)).sum(2), ()),
    ("constant-beside", _constant_beside, ()),
    ("pad", lambda x: jnp.cos(jnp.pad(h(x), ((0, 0), (1, 0), (0, 2)), constant_values=0.3)), ()),
    ("pad-moving-value", lambda x: jax.vmap(lambda y: lax.pad(y, y[0, 0], ((1, 0, 1), (0, 0, 0))))(h(x)), ()),
    ("dynamic_update_slice", _updated, ()),
    ("dynamic_slice", lambda x, i: lax.dynamic_slice_in_dim(h(x), i, 2, 1) ** 2, (np.int32(1),)),
    *[(f"scatter-{how}", _scattered(how), ()) for how in ("set", "add", "multiply", "min")],
    ("transposes", lambda x: (h(x).transpose(0, 2, 1).reshape(x.shape[0], -1), h(x).T.reshape(F, N, -1).T), ()),
    ("merged-walkers", lambda x, v: jnp.tanh(h(x).reshape(-1, F) @ v).reshape(x.shape[0], N, F).sum(1), (V,)),
    ("stacked", lambda x: jnp.stack([h(x), jnp.cos(h(x))], 2), ()),
    # Reductions, windows and sorting.
    ("cumulative", lambda x: [f(layer_norm(h(x)), 2) for f in (jnp.cumsum, lax.cummax)], ()),
    ("reductions", lambda x: [f(h(x), (1, 2)) for f in (jnp.max, jnp.min, jnp.prod, jnp.sum, jnp.var)], ()),
    ("reduction-from-two", lambda x: lax.reduce(h(x), np.float64(2), lax.add, (1,)), ()),
    ("reduction-custom", lambda x: lax.reduce(h(x), np.float64(0), lambda a, b: a + b - 0.1 * a * b, (2,)), ()),
    ("windows", lambda x: [lax.reduce_window(h(x), np.float64(initial), f, (1, 2, 2), (1, 1, 2), "SAME")
                           for f, initial in ((lax.add, 0), (lax.max, -np.inf))], ()),
    ("sort", _sorted, ()),
    # Elementwise ops of several values.
    ("select", lambda x: (jnp.where(h(x) > 0, jnp.sin(h(x)), h(x) ** 3), jnp.where(h(x) > h(x)[:, ::-1], h(x), 1.0),
                          jnp.where(h(x) > 0, jnp.sin(h(x)[:, ::-1]), h(x))), ()),
    ("select-scalar", lambda x, p: lax.select(p, h(x), h(x)[:, ::-1]), (np.bool_(False),)),
    ("bounds", lambda x: (jnp.maximum(h(x), h(x)[:, ::-1] ** 2), jnp.minimum(h(x), 0.1) ** 2, abs(h(x)) ** 1.5,
                          jnp.clip(h(x), -0.3, 0.4) ** 2, lax.clamp(h(x)[:, ::-1] - 0.5, h(x), h(x) ** 2 + 1)), ()),
    ("clamp-by-scalar", lambda x: jax.vmap(lambda y: lax.clamp(y[0, 0], BIAS, y[1, 1] + 3))(h(x)), ()),
    ("powers", lambda x: ((1.5 + h(x) ** 2) ** 2.3, h(x) ** 4, (2 + h(x) ** 2) ** h(x)[:, ::-1], 1.7 ** h(x),
                          (1 + h(x) ** 2) ** -2), ()),
    ("divide", lambda x: (h(x) / (2 + jnp.cos(h(x)[:, ::-1])), 1 / (2 + h(x) ** 2), h(x) / 3, h(x) / (
        2 + (h(x) ** 2).sum((1, 2), keepdims=True))), ()),
    ("atan2", lambda x: jnp.arctan2(h(x), 1 + h(x)[:, ::-1] ** 2), ()),
    ("remainder", lambda x: (lax.rem(3 * h(x), 1.0), jnp.floor(h(x)) * h(x), jnp.round(h(x)) + h(x)), ()),
    ("signs", lambda x: jnp.sign(h(x)) * jnp.log(abs(h(x))) + (h(x) > 0) * h(x), ()),
    ("dtypes-of-dense-jets", lambda x: (jnp.sin(h(x).sum(1).astype(np.float32)) ** 2).astype(np.float64) * 0
     + h(x).sum(1), ()),
    ("shared-roots", lambda x: (lambda a, b: a * b + a / (2 + b) - jnp.where(a > b, a, b))(
        jnp.tanh(h(x)), jnp.exp(h(x))), ()),
    ("dtypes", lambda x: (jnp.sin(h(x).astype(np.float32)).astype(np.float64) + h(x).astype(np.int32)).sum(1) * 0
     + h(x).sum(1), ()),
    # Contractions.
    ("einsums", lambda x, v: [jnp.einsum(form, h(x), h(x)[:, ::-1]) for form in (
        "bnf,bnf->bn", "bnf,bmf->bnm", "bnf,bng->bfg", "bnf,bmg->bnmfg", "bnf,bnf->b")], (V,)),
    ("einsums-with-weights", lambda x, v, many: (jnp.einsum("bnf,fdm->bdnm", h(x), many), jnp.einsum(
        "bnf,nfg->bng", h(x), jnp.stack([v] * N)), jnp.einsum("bnf,gf->bgn", h(x), v), jnp.einsum("bnf,n->bf", h(x),
                                                                                                 v[0, :N])), (V, MANY)),
    ("quadratic-form", lambda x, v: jnp.einsum("bnf,fg,bng->bn", h(x), v, h(x)), (V,)),
    # Linear algebra.
    ("blocks", lambda x, u: sum(jnp.linalg.slogdet(jnp.einsum("bnf,fdm->bdnm", part, u[:, :, :2]))[1].sum(1)
                                for part in (h(x)[:, :2], h(x)[:, 2:])), (MANY,)),
    ("factorisations", lambda x: (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.eigvalsh(a),
                                             jnp.linalg.svd(a, compute_uv=False)))(
        matrices(x) @ matrices(x).swapaxes(1, 2) + jnp.diag(jnp.arange(float(N)))), ()),
    ("solve", lambda x: (jnp.linalg.solve(matrices(x), h(x)), jnp.linalg.inv(matrices(x))), ()),
    # Complex numbers.
    ("complex-parts", lambda x: (lambda z: (z.real, z.imag, abs(z), (z.conj() * z[:, ::-1]).real))(
        lax.complex(h(x), jnp.sin(h(x)[:, ::-1])) ** 2), ()),
    ("complex-of-one", lambda x: jnp.exp(1j * h(x)).real * abs(1 + jnp.exp((0.5 + 1j) * h(x))), ()),
    ("complex-functions", lambda x: [f(_orbitals(x)).real for f in (
        jnp.exp, jnp.sin, jnp.tanh, jnp.sqrt, jnp.log, lambda z: 1 / z)], ()),
    ("complex-contractions", lambda x, v: (lambda z: (z @ (v[:N, :N] + 1j)).imag.sum(2) + abs(
        jnp.einsum("bij,bjk->bik", z, z[:, ::-1].conj())).sum(2) + abs(z.sum(2) / (2 + z[:, 0])))(_orbitals(x)), (V,)),
    ("complex-determinants", lambda x: (lambda s: s[1] + s[0].imag)(jnp.linalg.slogdet(_orbitals(x))), ()),
    ("complex-solve", lambda x: jnp.linalg.solve(_orbitals(x), h(x) + 0j).real, ()),
    # Convolutions and transforms.
    ("fourier", lambda x: (abs(jnp.fft.fft(h(x))), jnp.fft.irfft(jnp.fft.rfft(h(x), axis=1) ** 2, axis=1)), ()),
    ("convolution", lambda x, v: lax.conv_general_dilated(
        h(x), jnp.stack([v, v.T, v * v]), (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")), (V,)),
    ("top_k", lambda x: (lax.top_k(h(x), 3)[0] ** 2).sum(1), ()),
    # Control flow.
    ("fori_loop", _looped, (V,)),
    ("scan", _scanned, (V,)),
    ("cond", lambda x, p: lax.cond(p > 1, lambda y: jnp.sin(y) * h(x), lambda y: y**2, jnp.tanh(h(x))), (np.int32(2),)),
    ("cond-of-data", lambda x: jax.vmap(lambda y: lax.cond(y[0, 0] > 0, jnp.sin, jnp.cos, y))(h(x)), ()),
    ("cond-of-integers", lambda x, p: (lambda z: z * lax.cond(
        p > 1, lambda y: jnp.argmax(y, -1), lambda y: 1 + jnp.argmin(y, -1), z)[..., None])(jnp.tanh(h(x))),
     (np.int32(2),)),
    ("checkpoint", lambda x: jax.checkpoint(lambda y: jnp.sin(h(y)) * h(y))(x).sum(1), ()),
    ("barrier", lambda x: lax.optimization_barrier((h(x), jnp.sin(h(x)[:, ::-1])))[1], ()),
    # What does not depend on x, and integers on the way.
    ("constants", lambda x, v: (jnp.broadcast_to(jnp.sin(v), (x.shape[0], F, F)), h(x) + jnp.sin(v[0]),
                                jnp.argmax(h(x), 1)), (V,)),
    ("integers", lambda x: jnp.where(jnp.arange(N)[:, None] % 2 == 0, h(x), 0).sum(1) * (h(x) > 0).sum((1, 2))[:, None],
     ()),
    ("mean-field", lambda x: jnp.tanh(h(x) - h(x).mean(1, keepdims=True)), ()),
]  # fmt: skip
