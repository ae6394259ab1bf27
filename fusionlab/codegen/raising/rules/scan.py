"""Raising rule for ``chlo.scan``, which JAX 0.11 writes for cumulative sums on a GPU."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import Rule, in_jax
from fusionlab.hlo.view import Node, Region


def _scan(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    """``(outputs, carries) = scan(inputs, inits)`` along one axis; the region maps (inputs, carries) to the same."""
    region = node.regions[0]
    axis = int(node.attributes["dimension"].value)
    attributes = node.attributes
    reverse = bool(attributes["is_reverse"].value) if "is_reverse" in attributes else False
    carries = sum(len(value.type.shape) == len(node.results[-1].type.shape) for value in node.results)
    inputs, initial = operands[: len(operands) - carries], operands[len(operands) - carries :]
    if carries == len(inputs) == 1 and _adds(region):
        sums = in_jax(node, _sums_from, initial[0], inputs[0], axis, reverse)
        return [sums, in_jax(node, lax.index_in_dim, sums, 0 if reverse else -1, axis, keepdims=False)]
    body = raising.region(region, environment)

    def step(carried: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        results = body(*given, *carried)
        return tuple(results[len(results) - carries :]), tuple(results[: len(results) - carries])

    moved = tuple(in_jax(node, jnp.moveaxis, one, axis, 0) for one in inputs)
    last, outputs = in_jax(node, lax.scan, step, tuple(initial), moved, reverse=reverse)
    return [*(in_jax(node, jnp.moveaxis, one, 0, axis) for one in outputs), *last]


def _sums_from(initial: Any, array: Any, axis: int, reverse: bool) -> Any:
    return jnp.expand_dims(initial, axis) + lax.cumsum(array, axis, reverse)


def _adds(region: Region) -> bool:
    """True if the output, which is also the next carry, is the input plus the carry."""
    first, second = region.returns if len(region.returns) == 2 else (None, None)
    return first is second and combiner(Region(region.arguments, region.nodes, region.returns[:1])) == "add"


RULES: dict[str, Rule] = {"chlo.scan": _scan}
