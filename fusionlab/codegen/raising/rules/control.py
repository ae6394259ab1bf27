"""Raising rules for control flow and scans."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import RaisedOp, Rule
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.view import Region


def _while(op: RaisedOp) -> list[Any]:
    condition, body = op.region(0), op.region(1)
    dtypes = [op.raising.dtype(value.type) for value in op.node.results]
    initial = tuple(op.jax(lax.convert_element_type, *pair) for pair in zip(op.operands, dtypes, strict=True))
    return list(op.jax(lax.while_loop, lambda carried: condition(*carried)[0], lambda carried: body(*carried), initial))


def _case(op: RaisedOp) -> list[Any]:
    """StableHLO takes the last branch for any index out of range; JAX's switch clamps: the first branch below 0."""
    if (region := taken_branch(op.node)) is not None:
        return list(op.raising.region(region, op.environment)())
    branches = [op.region(number) for number in range(len(op.node.regions))]
    index = op.jax(jnp.where, op.operands[0] < 0, np.int32(len(branches) - 1), op.operands[0])
    return list(op.jax(lax.switch, index, branches))


def _if(op: RaisedOp) -> list[Any]:
    return list(op.jax(lax.cond, op.operands[0], op.region(0), op.region(1)))


def _scan(op: RaisedOp) -> list[Any]:
    """``(outputs, carries) = scan(inputs, inits)`` along one axis; the region maps (inputs, carries) to the same.

    JAX 0.11 writes ``chlo.scan`` for cumulative sums on a GPU.
    """
    node, operands = op.node, op.operands
    axis, reverse = int(node.attributes["dimension"].value), op.flag("is_reverse")
    carries = sum(len(value.type.shape) == len(node.results[-1].type.shape) for value in node.results)
    inputs, initial = operands[: len(operands) - carries], operands[len(operands) - carries :]
    if carries == len(inputs) == 1 and _adds(node.regions[0]):
        sums = op.jax(lambda start, x: jnp.expand_dims(start, axis) + lax.cumsum(x, axis, reverse), *initial, *inputs)
        return [sums, op.jax(lax.index_in_dim, sums, 0 if reverse else -1, axis, keepdims=False)]
    body = op.region()

    def step(carried: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        results = body(*given, *carried)
        return tuple(results[len(results) - carries :]), tuple(results[: len(results) - carries])

    moved = tuple(op.jax(jnp.moveaxis, one, axis, 0) for one in inputs)
    last, outputs = op.jax(lax.scan, step, tuple(initial), moved, reverse=reverse)
    return [*(op.jax(jnp.moveaxis, one, 0, axis) for one in outputs), *last]


def _adds(region: Region) -> bool:
    """True if the output, which is also the next carry, is the input plus the carry."""
    first, second = region.returns if len(region.returns) == 2 else (None, None)
    return first is second and combiner(Region(region.arguments, region.nodes, region.returns[:1])) == "add"


RULES: dict[str, Rule] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
    "chlo.scan": _scan,
}
