"""Raising rules for ops that move or create values without arithmetic: layout, iota, concatenation, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import RaisedOp, Rule


def _broadcast_in_dim(op: RaisedOp) -> list[Any]:
    operand, (axes,) = op.operands[0], op.integers("broadcast_dimensions")
    if list(axes) != sorted(axes):  # JAX before 0.10 wants them in order
        operand = op.jax(lax.transpose, operand, tuple(int(axis) for axis in np.argsort(axes)))
    return [op.jax(lax.broadcast_in_dim, operand, op.shape, tuple(sorted(axes)))]


def _reshape(op: RaisedOp) -> list[Any]:
    reshape = np.reshape if isinstance(op.operands[0], np.ndarray) else lax.reshape
    return [op.jax(reshape, op.operands[0], op.shape)]


def _transpose(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.transpose, op.operands[0], *op.integers("permutation"))]


def _concatenate(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.concatenate, op.operands, op.node.attributes["dimension"].value)]


def _iota(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.broadcasted_iota, op.dtype, op.shape, op.node.attributes["iota_dimension"].value)]


def _pad(op: RaisedOp) -> list[Any]:
    padding = op.integers("edge_padding_low", "edge_padding_high", "interior_padding")
    return [op.jax(lax.pad, *op.operands, list(zip(*padding, strict=True)))]


def _reverse(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.rev, op.operands[0], *op.integers("dimensions"))]


def _barrier(op: RaisedOp) -> list[Any]:
    return list(op.jax(lax.optimization_barrier, tuple(op.operands)))


RULES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _broadcast_in_dim,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.iota": _iota,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.pad": _pad,
    "stablehlo.reshape": _reshape,
    "stablehlo.reverse": _reverse,
    "stablehlo.transpose": _transpose,
}
