"""Raising rules for control flow."""

from __future__ import annotations

from typing import Any

from jax import lax

from fusionlab.codegen.raising_rules.rule import Rule
from fusionlab.hlo.flat import Node


def _while(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    condition = raising.region(node.regions[0], environment)
    body = raising.region(node.regions[1], environment)
    dtypes = [raising.dtype(value.type) for value in node.results]
    initial = tuple(lax.convert_element_type(x, dtype) for x, dtype in zip(operands, dtypes, strict=True))
    return list(lax.while_loop(lambda carried: condition(*carried)[0], lambda carried: body(*carried), initial))


def _case(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    branches = [raising.region(region, environment) for region in node.regions]
    return list(lax.switch(operands[0], [lambda branch=branch: branch() for branch in branches]))


def _if(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    on_true, on_false = (raising.region(region, environment) for region in node.regions)
    return list(lax.cond(operands[0], lambda: on_true(), lambda: on_false()))


RULES: dict[str, Rule] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
}
