"""Raising rules for ops that move or create values without arithmetic: layout, iota, concatenation, padding."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import Rule, in_jax, integers
from fusionlab.hlo.view import Node


def _broadcast_in_dim(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    dimensions = integers(node.attributes["broadcast_dimensions"])
    return [in_jax(node, lax.broadcast_in_dim, operands[0], raising.shape(node.results[0]), dimensions)]


def _reshape(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if isinstance(operands[0], np.ndarray):
        return [in_jax(node, np.reshape, operands[0], raising.shape(node.results[0]))]
    return [in_jax(node, lax.reshape, operands[0], raising.shape(node.results[0]))]


def _transpose(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [in_jax(node, lax.transpose, operands[0], integers(node.attributes["permutation"]))]


def _concatenate(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [in_jax(node, lax.concatenate, operands, node.attributes["dimension"].value)]


def _iota(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    dtype, axis = raising.dtype(node.results[0].type), node.attributes["iota_dimension"].value
    return [in_jax(node, lax.broadcasted_iota, dtype, raising.shape(node.results[0]), axis)]


def _pad(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    low, high, interior = (
        integers(node.attributes[name]) for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
    )
    return [in_jax(node, lax.pad, operands[0], operands[1], list(zip(low, high, interior, strict=True)))]


def _reverse(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [in_jax(node, lax.rev, operands[0], integers(node.attributes["dimensions"]))]


def _barrier(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return list(in_jax(node, lax.optimization_barrier, tuple(operands)))


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
