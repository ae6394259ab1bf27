"""Raising rules for control flow."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import Rule, in_jax
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.view import Node


def _while(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    condition = raising.region(node.regions[0], environment)
    body = raising.region(node.regions[1], environment)
    dtypes = [raising.dtype(value.type) for value in node.results]
    initial = tuple(in_jax(node, lax.convert_element_type, x, dtype) for x, dtype in zip(operands, dtypes, strict=True))
    return list(
        in_jax(node, lax.while_loop, lambda carried: condition(*carried)[0], lambda carried: body(*carried), initial)
    )


def _case(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    """StableHLO takes the last branch for any index out of range; JAX's switch clamps: the first branch below 0."""
    if (region := taken_branch(node)) is not None:
        return list(raising.region(region, environment)())
    branches = [raising.region(region, environment) for region in node.regions]
    index = in_jax(node, jnp.where, operands[0] < 0, np.int32(len(branches) - 1), operands[0])
    return list(in_jax(node, lax.switch, index, [lambda branch=branch: branch() for branch in branches]))


def _if(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    on_true, on_false = (raising.region(region, environment) for region in node.regions)
    return list(in_jax(node, lax.cond, operands[0], lambda: on_true(), lambda: on_false()))


RULES: dict[str, Rule] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}
