"""Evaluation rules for contractions and dense linear algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusionlab.codegen.raising.rules.contraction import Window, convolution_axes, fft_kind
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.equivalence.exact.rules.elementwise import unchanged
from fusionlab.equivalence.exact.rules.moves import padded
from fusionlab.equivalence.exact.rules.rule import Computed, Formula, Rule, uninterpreted
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, dtype_of, is_float, same_draws
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.ops import LU_TARGETS, TRSM_TARGETS, family_of_target
from fusionlab.hlo.view import Node, keyword

if TYPE_CHECKING:
    from fusionlab.equivalence.exact.evaluation import Evaluator


def _dot_general(node: Node) -> Formula:
    axes, shape = DotAxes.of(node), node.results[0].type.shape

    def matrices(x: Array, side: int) -> Array:
        """[draws, *batch, free, contracted], with the last two exchanged for the right side."""
        batch, free, inner = axes.batch[side], axes.free[side], axes.contracted[side]
        extents = [math.prod(x.shape[axis + 1] for axis in each) for each in (free, inner)]
        order = [*batch, *free, *inner] if side == 0 else [*batch, *inner, *free]
        return x.transpose(0, *(axis + 1 for axis in order)).reshape(
            len(x), *(x.shape[axis + 1] for axis in batch), *(extents if side == 0 else extents[::-1])
        )

    def formula(arithmetic: Any, x: Array, y: Array) -> Array:
        left, right = matrices(x, 0), matrices(y, 1)
        draws = max(len(left), len(right))
        if len(right) == 1 and left.ndim == 3:  # the same weights in all draws: one GEMM
            left, right = left.reshape(math.prod(left.shape[:-1]), left.shape[-1]), right[0]
        return np.asarray(arithmetic.matmul(left, right).reshape(draws, *shape))

    return formula


def _dot(node: Node) -> Formula:
    """The last axis of the left operand with the first of the right one."""
    return lambda arithmetic, x, y: _product_of(arithmetic, x, y).reshape(-1, *node.results[0].type.shape)


def _product_of(arithmetic: Any, x: Array, y: Array) -> Array:
    x = x[:, None] if x.ndim == 2 else x
    return np.asarray(arithmetic.matmul(x, y[..., None] if y.ndim == 2 else y))


def _convolution(node: Node) -> Formula:
    axes, window = convolution_axes(node), Window.of(node)
    (batch, feature, *spatial), (out, inner, *kernel_axes) = axes.lhs_spec, axes.rhs_spec
    back = np.argsort([axes.out_spec[0], *axes.out_spec[2:], axes.out_spec[1]])
    kernel_shape = [node.operands[1].type.shape[axis] for axis in kernel_axes]
    extents = [(n - 1) * d + 1 for n, d in zip(kernel_shape, window.dilation, strict=True)]
    every = (slice(None), slice(None), *(slice(None, None, n) for n in window.strides), slice(None),
             *(slice(None, None, n) for n in window.dilation))  # fmt: skip
    rank = len(spatial)

    def of_group(arithmetic: Any, x: Array, kernel: Array) -> Array:
        """[draws, batch, *result, out] from [draws, batch, *spatial, inner] and [draws, *kernel, inner, out]."""
        low, high = zip(*((0, 0), *window.padding, (0, 0)), strict=True)
        whole = padded(x, np.zeros(1), low, high, [0, *(n - 1 for n in window.base_dilation), 0])
        windows = np.lib.stride_tricks.sliding_window_view(whole, extents, tuple(range(2, rank + 2)))[every]
        windows = np.moveaxis(windows, rank + 2, -1)  # the features last
        shape = windows.shape[: rank + 2]
        rows = windows.reshape(len(windows), math.prod(shape[1:]), -1)
        found = arithmetic.matmul(rows, kernel.reshape(len(kernel), -1, kernel.shape[-1]))
        return np.asarray(found.reshape(len(found), *shape[1:], kernel.shape[-1]))

    def formula(arithmetic: Any, x: Array, kernel: Array) -> Array:
        kernel = np.flip(kernel, tuple(axis + 1 for axis in window.reversed_axes))
        x = x.transpose(0, *(axis + 1 for axis in (batch, *spatial, feature)))
        kernel = kernel.transpose(0, *(axis + 1 for axis in (*kernel_axes, inner, out)))
        groups = max(window.feature_groups, window.batch_groups)
        inputs = np.split(x, groups, -1 if window.feature_groups > 1 else 1)
        parts = zip(inputs, np.split(kernel, groups, -1), strict=True)
        found = same_draws([of_group(arithmetic, *part) for part in parts])
        return np.concatenate(found, -1).transpose(0, *(int(axis) + 1 for axis in back))

    return formula


def _fft(node: Node) -> Formula:
    """Sums with the constants cos(2 pi j / n) and sin(2 pi j / n), one table for all kinds and directions."""
    kind, lengths = fft_kind(node), integers(node.attributes["fft_length"])
    inverse = kind.startswith("I")
    # As a number of the program's precision, as which JAX's transpose of an inverse has it.
    scale = np.asarray(1 / math.prod(lengths), dtype_of(node.results[0]).type(0).real.dtype)

    def along(arithmetic: Any, x: Array, axis: int, n: int) -> Array:
        table = np.round(np.exp(2j * np.pi * np.arange(n // 2 + 1) / n), 15)
        table = np.concatenate([table, table[1 : (n + 1) // 2][::-1].conj()])  # opposite angles are conjugate exactly
        matrix = arithmetic.embedded(table)[0][np.outer(np.arange(n), np.arange(n)) % n]
        matrix = matrix if inverse else matrix.conj()
        return np.moveaxis(arithmetic.matmul(np.moveaxis(x, axis, -1).astype(complex), matrix), -1, axis)

    def formula(arithmetic: Any, x: Array) -> Array:
        *others, last = axes = list(zip(range(x.ndim - len(lengths), x.ndim), lengths, strict=True))
        if kind == "IRFFT":
            for axis, n in others:
                x = along(arithmetic, x, axis, n)
            rest = x[..., 1 : (last[1] + 1) // 2][..., ::-1].conj()  # the other half is conjugate
            x = along(arithmetic, np.concatenate([x, rest], -1), *last).real
        else:
            for axis, n in reversed(axes):
                x = along(arithmetic, x, axis, n)
                x = x[..., : n // 2 + 1] if kind == "RFFT" and (axis, n) == last else x
        return np.asarray(arithmetic.multiply(x, arithmetic.embedded(scale)[0]) if inverse else x)

    return formula


def _top_k(node: Node) -> Formula:
    k = int(node.attributes["k"].value)

    def formula(arithmetic: Any, x: Array) -> list[Array]:
        keys = arithmetic.key(x) if is_float(x.dtype) else x
        n = x.shape[-1]
        ascending = np.argsort(keys[..., ::-1], -1, kind="stable")  # of equal ones the first is taken
        places = (n - 1 - ascending)[..., ::-1][..., :k]
        return [np.take_along_axis(array, each, -1) for array, each in [same_draws([x, places])]] + [
            places.astype(np.int32)
        ]

    return formula


def _factorised(a: Array, arithmetic: Any) -> tuple[Array, Array]:
    """LU factors of a [..., m, n] and the exchanges of rows [..., min(m, n)], 0-based."""
    draws = len(arithmetic.pivot_size(np.zeros(1)))  # pivots differ between draws, of a constant too
    batch, (m, n) = (draws, *a.shape[1:-2]), a.shape[-2:]
    a = np.array(np.broadcast_to(a, (*batch, m, n))).reshape(math.prod(batch), m, n)
    every = np.arange(len(a))
    exchanges = np.zeros((len(a), min(m, n)), np.int64)
    for k in range(min(m, n)):
        sizes = arithmetic.pivot_size(a[:, k:, k].reshape(draws, -1, m - k)).reshape(len(a), m - k)
        row = k + sizes.argmax(1)
        exchanges[:, k] = row
        a[every, k], a[every, row] = a[every, row].copy(), a[every, k].copy()
        factors = arithmetic.multiply(a[:, k + 1 :, k], arithmetic.inverse(a[:, k, k])[:, None])
        a[:, k + 1 :, k] = factors
        a[:, k + 1 :, k + 1 :] = arithmetic.subtract(
            a[:, k + 1 :, k + 1 :], arithmetic.multiply(factors[:, :, None], a[:, k, None, k + 1 :])
        )
    return a.reshape(*batch, m, n), exchanges.reshape(*batch, min(m, n))


def _getrf(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    factors, exchanges = _factorised(operands[0].array, evaluator.arithmetic)
    info = evaluator.known(np.zeros(node.results[2].type.shape, np.int32))
    return [Drawn(factors), Drawn(exchanges.astype(np.int32) + 1), info]


def _pivots_to_permutation(node: Node) -> Formula:
    n = node.results[0].type.shape[-1]

    def formula(arithmetic: Any, pivots: Array) -> Array:
        permutation = np.array(np.broadcast_to(np.arange(n), (*pivots.shape[:-1], n)))
        for k in range(pivots.shape[-1]):
            row = pivots[..., k : k + 1].astype(np.int64)
            moved = np.take_along_axis(permutation, row, -1)
            np.put_along_axis(permutation, row, permutation[..., k : k + 1].copy(), -1)
            permutation[..., k : k + 1] = moved
        return permutation

    return formula


def _solved(a: Array, b: Array, arithmetic: Any, left: bool, lower: bool, transposed: bool, unit: bool) -> Array:
    """X with op(a) X = b, or X op(a) = b where not ``left``; a [draws, ..., n, n]."""
    if not left:
        swapped = _solved(a, np.swapaxes(b, -1, -2), arithmetic, True, lower, not transposed, unit)
        return np.swapaxes(swapped, -1, -2)
    if transposed:
        a, lower = np.swapaxes(a, -1, -2), not lower
    n, draws = a.shape[-1], max(len(a), len(b))
    if b.shape[-1] > n and not np.isnan(b).any():  # a product with the inverse, which has few columns
        inverse = _solved(a, np.broadcast_to(np.eye(n), a.shape), arithmetic, True, lower, False, unit)
        return np.asarray(arithmetic.matmul(inverse, b))
    x = np.array(np.broadcast_to(b, (draws, *b.shape[1:])), np.result_type(a, b))
    inverses = None if unit else arithmetic.inverse(np.diagonal(a, axis1=-2, axis2=-1))
    for k in range(n) if lower else reversed(range(n)):
        if inverses is not None:
            x[..., k, :] = arithmetic.multiply(x[..., k, :], inverses[..., k, None])
        rest = slice(k + 1, n) if lower else slice(0, k)
        x[..., rest, :] = arithmetic.subtract(
            x[..., rest, :], arithmetic.multiply(a[..., rest, k, None], x[..., None, k, :])
        )
    return x


def _triangular_solve(node: Node) -> Formula:
    if node.name == "stablehlo.custom_call":
        config = node.attributes["mhlo.backend_config"]
        side, part, transposition, diagonal = (chr(config[name].value) for name in ("side", "uplo", "trans_x", "diag"))
        left, lower, unit = side == "L", part == "L", diagonal == "U"
    else:
        left, lower, unit = (bool(node.attributes[name].value) for name in ("left_side", "lower", "unit_diagonal"))
        transposition = keyword(node.attributes["transpose_a"])

    def formula(arithmetic: Any, a: Array, b: Array, *rest: Array) -> Array:
        a = a.conj() if transposition in ("C", "ADJOINT") else a
        return _solved(a, b, arithmetic, left, lower, transposition not in ("N", "NO_TRANSPOSE"), unit)

    return formula


TARGETS: dict[str, Rule] = {
    "Sharding": unchanged,
    "cu_lu_pivots_to_permutation": Computed(_pivots_to_permutation),
    **dict.fromkeys(LU_TARGETS, _getrf),
    **dict.fromkeys(TRSM_TARGETS, Computed(_triangular_solve, folds=False)),
}


def _custom_call(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    if (rule := TARGETS.get(node.call_target)) is not None:
        return rule(node, evaluator, operands, environment)
    found = uninterpreted(node, evaluator, operands, environment)
    *_, info = node.results
    if family_of_target(node.call_target) == "factorisation" and info.type.dtype == "i32":
        # Of a routine that succeeds: where it fails, JAX's lowering has NaN, and those of two programs are equal.
        found[-1] = evaluator.known(np.zeros(info.type.shape, np.int32))
    return found


RULES: dict[str, Rule] = {
    "chlo.top_k": Computed(_top_k),
    "stablehlo.convolution": Computed(_convolution, folds=False),
    "stablehlo.custom_call": _custom_call,
    "stablehlo.dot": Computed(_dot, folds=False),
    "stablehlo.dot_general": Computed(_dot_general, folds=False),
    "stablehlo.fft": Computed(_fft, folds=False),
    "stablehlo.triangular_solve": Computed(_triangular_solve, folds=False),
}
