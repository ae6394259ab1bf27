"""Small JAX functions that between them use every op with a raising rule: ``(name, function, arguments)``."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import primitives

_random = np.random.default_rng(7)
REAL = _random.standard_normal((3, 4)).astype(np.float32)
OTHER = _random.standard_normal((3, 4)).astype(np.float32)
UNIT = _random.uniform(-0.9, 0.9, (3, 4)).astype(np.float32)
POSITIVE = _random.uniform(1.1, 3.0, (3, 4)).astype(np.float32)
WHOLE = _random.integers(-9, 9, (3, 4)).astype(np.int32)
SHIFT = _random.integers(0, 5, (3, 4)).astype(np.int32)
NATURAL = _random.integers(0, 99, (3, 4)).astype(np.uint32)
FLAG = _random.integers(0, 2, (3, 4)).astype(np.bool_)
SQUARE = (_random.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
STACK = _random.standard_normal((2, 4, 3)).astype(np.float32)
IMAGE = _random.standard_normal((2, 4, 5, 6)).astype(np.float32)
KERNEL = _random.standard_normal((6, 4, 3, 2)).astype(np.float32)
ODD = np.array([np.nan, -np.inf, -0.0, 0.0, 2.5, -2.5, 1.5, np.inf], np.float32)
OUTSIDE = np.array([-7, -1, 0, 2, 3, 11], np.int32)

_UNARY: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "real-line": (REAL, (lax.abs, lax.asinh, lax.atan, lax.bessel_i1e, lax.cbrt, lax.ceil, lax.cos, lax.cosh, lax.erf,
                         lax.erfc, lax.exp, lax.expm1, lax.floor, lax.logistic, lax.neg, lax.sign, lax.sin, lax.sinh,
                         lax.square, lax.tan, lax.tanh)),
    "unit-interval": (UNIT, (lax.acos, lax.asin, lax.atanh, lax.erf_inv)),
    "above-one": (POSITIVE, (lax.acosh, lax.digamma, lax.lgamma, lax.log, lax.log1p, lax.rsqrt, lax.sqrt)),
    "bits": (NATURAL, (lax.population_count, lax.clz, lax.bitwise_not)),
    "odd": (ODD, (lax.abs, lax.neg, lax.sign, lax.is_finite, lax.ceil, lax.exp, lax.log, lax.sqrt, lax.tanh)),
}  # fmt: skip
_BINARY: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "floats": (REAL, OTHER, (lax.add, lax.atan2, lax.complex, lax.div, lax.max, lax.min, lax.mul, lax.rem, lax.sub,
                             lax.nextafter, lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge)),
    "integers": (WHOLE, SHIFT, (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.shift_left, lax.mul,
                                lax.shift_right_arithmetic, lax.shift_right_logical, lax.sub, lax.lt)),
    "flags": (FLAG, ~FLAG, (lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.eq, lax.max)),
    "power": (POSITIVE, REAL, (lax.pow,)),
    "integer-division": (WHOLE, SHIFT + 1, (lax.rem, lax.div)),
    "unsigned": (NATURAL, NATURAL[::-1], (lax.gt, lax.div, lax.max)),
    "odd": (ODD, ODD[::-1], (lax.max, lax.min, lax.lt, lax.ge, lax.eq, lax.ne, lax.div)),
}  # fmt: skip


def _all(functions: tuple[Any, ...]) -> Any:
    return lambda *arguments: tuple(function(*arguments) for function in functions)


def _solve(**how: Any) -> Any:
    def function(a: Any, b: Any) -> Any:
        return lax.linalg.triangular_solve(a, b if how["left_side"] else b.swapaxes(1, 2), **how)

    return function


_SOLVES = [
    dict(zip(("left_side", "lower", "transpose_a", "unit_diagonal"), flags, strict=True))
    for flags in itertools.product((True, False), repeat=4)
]


def _dot(contracting: Any, batch: Any, **how: Any) -> Any:
    return lambda a, b: lax.dot_general(a, b, (contracting, batch), **how)


def with_place(exceeds: Any, least: float) -> Any:
    """The extreme along the last axis and its place, reduced together as ``jnp.argmax`` and ``jnp.argmin`` are."""

    def combine(first: Any, second: Any) -> Any:
        (x, i), (y, j) = first, second
        picked = exceeds(x, y) | (x != x)
        return lax.select(picked, x, y), lax.select(picked | ((x == y) & (i < j)), i, j)

    def function(x: Any) -> Any:
        axis = x.ndim - 1
        places = lax.broadcasted_iota(np.int32, x.shape, axis)
        return lax.reduce((x, places), (np.asarray(least, x.dtype), np.int32(0)), combine, (axis,))

    return function


def _window(reducer: Any, initial: float) -> Any:
    return lambda x: lax.reduce_window(
        x, np.float32(initial), reducer, (2, 2), (1, 2), ((1, 0), (0, 1)), (1, 1), (1, 2)
    )


def _captures(x: Any, n: Any) -> Any:
    """A while whose body captures a value and has a condition on data."""
    offset = jnp.sin(x)
    return lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 0.5 + offset, c[1] + 2), (x, jnp.int32(1)))


CASES: list[tuple[str, Any, tuple[Any, ...]]] = [
    *[(f"unary-{name}", _all(functions), (x,)) for name, (x, functions) in _UNARY.items()],
    *[(f"binary-{name}", _all(functions), (x, y)) for name, (x, y, functions) in _BINARY.items()],
    ("real-imag", lambda x, y: (lax.real(lax.complex(x, y)), lax.imag(jnp.exp(lax.complex(x, y)))), (REAL, OTHER)),
    ("round-even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), (ODD,)),
    ("round-away", lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), (ODD,)),
    ("power-constant", lambda x: lax.pow(x, np.float32(2.5)), (POSITIVE,)),
    ("power-array-constant", lambda x: lax.pow(x, np.full((3, 4), 1.7, np.float32)), (POSITIVE,)),
    ("integer-power", lambda x: x**3, (REAL,)),
    ("reduce_precision", lambda x: lax.reduce_precision(x, 5, 3), (REAL,)),
    ("convert", lambda x, n: (x.astype(np.int32), n.astype(np.float32), n.astype(bool), x.astype(jnp.bfloat16)),
     (REAL, WHOLE)),
    ("convert-f16", lambda x: x.astype(np.float16).astype(np.float32), (REAL,)),
    ("bitcast", lambda x: lax.bitcast_convert_type(x, np.uint32), (REAL,)),
    ("bitcast-narrower", lambda x: lax.bitcast_convert_type(x, np.uint8), (REAL,)),
    ("select", lambda p, x, y: jnp.where(p, x, y), (FLAG, REAL, OTHER)),
    ("select-scalar", lambda n, x, y: lax.select(n > 1, x, y), (np.int32(2), REAL, OTHER)),
    ("clamp-scalar", lambda x: lax.clamp(np.float32(-0.3), x, np.float32(0.4)), (REAL,)),
    ("clamp-arrays", lax.clamp, (UNIT - 1, REAL, UNIT + 1)),
    # Data movement.
    ("reshape-transpose", lambda x: x.reshape(2, 6).T.reshape(4, 3), (REAL,)),
    ("reshape-constant", lambda x: x + np.arange(12, dtype=np.float32).reshape(4, 3).T, (REAL,)),
    ("iota", lambda x: x + lax.broadcasted_iota(np.float32, (3, 4), 0) * lax.broadcasted_iota(np.float32, (3, 4), 1),
     (REAL,)),
    ("broadcast", lambda x: lax.broadcast_in_dim(x, (2, 5, 3, 4), (2, 3)), (REAL,)),
    *([("broadcast-transposed", lambda x: lax.broadcast_in_dim(x, (2, 4, 5, 3), (3, 1)), (REAL,))]
      if jax.__version_info__ >= (0, 10) else []),
    ("concatenate-reverse", lambda x, y: lax.rev(lax.concatenate([x, y, x], 1), (0, 1)), (REAL, OTHER)),
    ("pad", lambda x: lax.pad(x, np.float32(7), ((1, 2, 0), (0, 1, 2))), (REAL,)),
    ("pad-negative", lambda x: lax.pad(x, np.float32(7), ((-1, 1, 0), (2, -1, 1))), (REAL,)),
    ("slice-strided", lambda x: lax.slice(x, (0, 1), (3, 4), (2, 2)), (REAL,)),
    ("dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)), (REAL, np.int32(1))),
    ("dynamic_slice-too-far", lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)), (REAL, np.int32(9))),
    ("dynamic_slice-negative", lambda x, i: lax.dynamic_slice(x, (i, -i), (2, 3)), (REAL, np.int32(-9))),
    ("dynamic_update_slice", lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :2], (i, i)),
     (REAL, OTHER, np.int32(2))),
    ("dynamic_update_slice-negative", lambda x, y, i: lax.dynamic_update_slice(x, y[:2, :2], (i, -i)),
     (REAL, OTHER, np.int32(-8))),
    ("barrier", lambda x, y: lax.optimization_barrier((x + 1, y)), (REAL, OTHER)),
    *[(f"gather-{mode}", lambda x, i, mode=mode: x.at[i, 1].get(mode=mode, fill_value=-3), (REAL, OUTSIDE))
      for mode in ("clip", "fill")],
    ("gather-rows", lambda x, i: x[i], (REAL, OUTSIDE)),
    ("gather-batched", lambda x, i: jax.vmap(lambda row, k: row[k])(x, i), (REAL, np.array([3, 0, -1], np.int32))),
    ("take_along_axis", lambda x, i: jnp.take_along_axis(x, i, 1), (REAL, SHIFT % 4)),
    *[
        (f"scatter-{how}-{mode}", lambda x, i, v, how=how, mode=mode: getattr(x.at[i], how)(v, mode=mode),
         (np.arange(5, dtype=np.float32), np.array([-8, -1, 1, 7], np.int32), np.float32([3, 5, 0.5, 9])))
        for how, mode in itertools.product(("set", "add", "multiply", "min", "max"), ("drop", "clip"))
    ],
    ("scatter-rows", lambda x, i, v: x.at[i].add(v), (REAL, np.array([0, 2, 0], np.int32), OTHER)),
    # Reductions and sorting.
    *[(f.__name__, lambda x, f=f: f(x, (1,)), (REAL,)) for f in (lax.reduce_sum, lax.reduce_prod)],
    *[(f.__name__, lambda x, f=f: f(x, (0, 1)), (REAL,)) for f in (lax.reduce_max, lax.reduce_min)],
    *[(f.__name__, lambda x, f=f: f(x, (0,)), (FLAG,)) for f in (lax.reduce_and, lax.reduce_or)],
    ("not", lax.bitwise_not, (FLAG,)),
    ("reduce_xor", lambda x: lax.reduce_xor(x, (0,)), (WHOLE,)),
    ("argmax", lambda x: (jnp.argmax(x, 1), jnp.argmin(x)), (REAL,)),
    ("argmax-nan", jnp.argmax, (ODD,)),
    ("argmax-and-value", with_place(lax.gt, -np.inf), ((WHOLE // 4).astype(np.float32),)),
    ("argmax-and-value-nan", with_place(lax.gt, -np.inf), (ODD,)),
    ("reduce-custom", lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b - a * b, (1,)), (UNIT,)),
    ("reduce-two", lambda x, y: lax.reduce((x, y), (np.float32(0), np.float32(1)),
                                          lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)), (REAL, OTHER)),
    ("cumsum", lambda x: jnp.cumsum(x, 1), (REAL,)),
    ("cumprod", lambda x: jnp.cumprod(x, 0), (REAL,)),
    ("cummax-reverse", lambda x: lax.cummax(x, 1, reverse=True), (REAL,)),
    ("window-max", _window(lax.max, -np.inf), (REAL,)),
    ("window-sum", _window(lax.add, 0.0), (REAL,)),
    ("sort", lambda x: jnp.sort(x, 0), (REAL,)),
    ("sort-odd", jnp.sort, (ODD,)),
    ("sort-stable", lambda k, x: lax.sort((k, x), dimension=1, num_keys=1, is_stable=True), (WHOLE // 4, REAL)),
    ("sort-two-keys", lambda k, x: lax.sort((k, x), dimension=1, num_keys=2), (WHOLE // 4, REAL)),
    ("argsort", jnp.argsort, (np.array([3, 1, 2, 1, 3], np.int32),)),
    # Contractions and linear algebra.
    ("matmul", jnp.matmul, (REAL, OTHER.T.copy())),
    ("dot-batched", _dot(((2,), (1,)), ((0,), (0,))), (SQUARE, STACK)),
    ("dot-highest", _dot(((1,), (1,)), ((), ()), precision=lax.Precision.HIGHEST), (REAL, OTHER)),
    ("dot-two-axes", _dot(((0, 1), (0, 1)), ((), ())), (REAL, OTHER)),
    ("dot-integers", _dot(((1,), (1,)), ((), ()), preferred_element_type=np.int32), (WHOLE, SHIFT)),
    ("dot-bf16", _dot(((1,), (1,)), ((), ()), preferred_element_type=np.float32),
     (REAL.astype(jnp.bfloat16), OTHER.astype(jnp.bfloat16))),
    *[("solve-" + "".join("NY"[v] for v in how.values()), _solve(**how), (SQUARE, STACK)) for how in _SOLVES],
    ("slogdet", jnp.linalg.slogdet, (SQUARE,)),
    ("slogdet-singular", jnp.linalg.slogdet, (np.ones((2, 3, 3), np.float32),)),
    ("lu", lambda a: jax.scipy.linalg.lu(a), (SQUARE[0],)),
    *[
        (f"{name}-{kind}", function, (array,))
        for name, function in (
            ("cholesky", lambda a: jnp.linalg.cholesky(a @ jnp.conj(a.mT) + jnp.eye(4))),
            ("cholesky-upper", lambda a: jax.scipy.linalg.cholesky(a @ jnp.conj(a.mT) + jnp.eye(4))),
            ("eigh", lambda a: jnp.linalg.eigh(a + jnp.conj(a.mT))),
            ("qr", jnp.linalg.qr),
            ("svd", jnp.linalg.svd),
            ("svd-thin", lambda a: jnp.linalg.svd(a[..., :2], full_matrices=False)),
            ("svd-values", lambda a: jnp.linalg.svd(a, compute_uv=False)),
        )
        for kind, array in (("real", SQUARE), ("complex", SQUARE + 1j * SQUARE[::-1]))
    ],
    ("cholesky-of-no-positive-matrix", lambda a: jnp.linalg.cholesky(-a),
     (np.stack([np.eye(3), -np.eye(3)]).astype(np.float32),)),
    ("slogdet-complex", lambda a: jnp.linalg.slogdet(a + 1j * a[::-1]), (SQUARE,)),
    ("solve-complex", lambda a: jnp.linalg.solve(a + 1j * a[::-1], a), (SQUARE,)),
    # Convolutions and transforms, selections in order.
    *[
        (f"convolution-{name}", lambda x, k, how=how: lax.conv_general_dilated(x, k, **how), arrays)
        for name, arrays, how in (
            ("strided", (IMAGE, KERNEL), {"window_strides": (2, 1), "padding": ((1, 0), (0, 2))}),
            ("dilated", (IMAGE, KERNEL),
             {"window_strides": (1, 1), "padding": ((0, 1), (1, 0)), "lhs_dilation": (2, 3)}),
            ("widened", (IMAGE, KERNEL), {"window_strides": (1, 2), "padding": "SAME", "rhs_dilation": (2, 1)}),
            ("groups", (IMAGE, KERNEL[:, :2]),
             {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2}),
            ("batch-groups", (IMAGE, KERNEL), {"window_strides": (1, 1), "padding": "SAME", "batch_group_count": 2}),
            ("last", (STACK, STACK), {"window_strides": (1,), "padding": "SAME",
                                      "dimension_numbers": ("NWC", "OWI", "NWC")}),
        )
    ],
    ("convolution-transposed", jax.grad(lambda k: (lax.conv(IMAGE, k, (2, 1), "SAME") ** 2).sum()), (KERNEL,)),
    ("convolution-reversed", jax.grad(lambda x: (lax.conv(x, KERNEL, (2, 1), "SAME") ** 2).sum()), (IMAGE,)),
    ("fft", lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x + 1j), jnp.fft.fft2(x), jnp.fft.ifft2(1j * x)), (REAL,)),
    ("rfft", lambda x: [f(x) for f in (jnp.fft.rfft, jnp.fft.rfft2, jnp.fft.irfft, jnp.fft.irfft2)], (REAL,)),
    ("rfft-odd", lambda x: [f(x.T, n=3) for f in (jnp.fft.rfft, jnp.fft.irfft)], (REAL,)),
    ("rfft-transposed", jax.grad(lambda x: (jnp.fft.irfft(jnp.fft.rfft(x) ** 2) ** 2).sum()), (REAL,)),
    ("top_k", lambda x: lax.top_k(x, 2), (REAL,)),
    ("top_k-ties", lambda n: lax.top_k(n // 30, 3), (NATURAL,)),
    ("searchsorted", lambda x: jnp.searchsorted(np.linspace(-2, 2, 7, dtype=np.float32), x), (REAL,)),
    ("total-order", lambda x, y: [p.bind(x, y) for p in (primitives.lt_to_p, primitives.le_to_p, primitives.eq_to_p)],
     (REAL, OTHER)),
    ("polygamma", lambda x: (lax.polygamma(jnp.ones_like(x), x), lax.zeta(1 + x, x)), (POSITIVE,)),
    ("inverse", jnp.linalg.inv, (SQUARE,)),
    # Control flow.
    ("while-captures", _captures, (REAL, np.int32(6))),
    ("fori", lambda x: lax.fori_loop(0, 5, lambda k, c: c * 0.5 + k, x), (REAL,)),
    ("scan", lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x), (REAL,)),
    ("cond", lambda p, x: lax.cond(p, lambda: x + 1, lambda: jnp.sin(x)), (np.bool_(False), REAL)),
    *[(f"switch-{i}", lambda i, x: lax.switch(i, [lambda: x, lambda: -x, lambda: x * x]), (np.int32(i), REAL))
      for i in (-4, 1, 8)],
    ("jit-inside", lambda x: jax.jit(jnp.tanh)(x) + jax.jit(jnp.tanh)(2 * x), (REAL,)),
    ("softmax", lambda x: jax.nn.softmax(x, 1), (REAL,)),
]  # fmt: skip
