"""Functions that saturate between the positions and a value: where all their slopes vanish, nothing is known of them.

    w = logistic((12 - |x|) / 0.1),  F = w G        a replay of F, or of G weighted by w that is held constant

Within 6 bohr both have the same Laplacian in floating point: w is 1 and its slope is 0. They are told apart only by
points where w moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import Raising, live_nodes
from fusionlab.hlo.constants import filling
from fusionlab.hlo.flat import Node, Value

LEAST_SLOPE = 1e-4
"""A slope, in units of the function's range, that is seen in a Laplacian that is compared to 1e-6."""

_SLOPES: Mapping[str, Callable[[Any, Any], Any]] = {
    "stablehlo.logistic": lambda _, y: y * (1 - y),
    "stablehlo.tanh": lambda _, y: 1 - y**2,
    "chlo.erf": lambda u, _: jnp.exp(-(u**2)),
    "chlo.erfc": lambda u, _: jnp.exp(-(u**2)),
}
"""Slope of the function of u that is y; of bounded functions."""


def saturating(nodes: Sequence[Node], moving: Collection[Value]) -> list[Node]:
    """Those of ``nodes`` that saturate, as functions of what is ``moving``."""
    return [node for node in nodes if _argument(node) is not None and node.results[0] in moving]


def slopes(
    nodes: Sequence[Node], every: Sequence[Node], raising: Raising, environment: Mapping[Value, Any]
) -> list[Any]:
    """The slope of each of ``nodes``, element by element; of an exponential, which underflows at masked elements, the
    largest. ``every`` node of the program may be needed; ``environment`` has what is known."""
    inner = dict(environment)
    read = [value for node in nodes for value in (_argument(node), _offset(node), node.results[0]) if value is not None]
    raising.run(live_nodes(every, list(inner), read), inner)
    return [_slope(node, inner) for node in nodes]


def _argument(node: Node) -> Value | None:
    """What ``node`` saturates in: of c / (a + exp(u)) it is u; None where it does not saturate."""
    if node.name in _SLOPES or node.name == "stablehlo.exponential":
        return node.operands[0]
    if node.name != "stablehlo.divide" or filling(node.operands[0]) is None:
        return None
    total = node.operands[1].producer
    if total is None or total.name != "stablehlo.add":
        return None
    powers = [v.producer for v in total.operands if v.producer is not None and filling(v) is None]
    power = powers[0] if len(powers) == 1 and _offset(node) is not None else None
    return power.operands[0] if power is not None and power.name == "stablehlo.exponential" else None


def _offset(node: Node) -> Value | None:
    """The constant a of c / (a + exp(u)); None of other nodes."""
    total = node.operands[1].producer if node.name == "stablehlo.divide" else None
    if total is None or total.name != "stablehlo.add":
        return None
    return next((value for value in total.operands if filling(value) is not None), None)


def _slope(node: Node, environment: Mapping[Value, Any]) -> Any:
    argument = _argument(node)
    assert argument is not None
    u, y = environment[argument], environment[node.results[0]]
    if node.name == "stablehlo.exponential":
        return jnp.max(jnp.abs(y), initial=0.0)
    if node.name == "stablehlo.divide":
        offset = _offset(node)
        assert offset is not None
        return _slope_of_fraction(u, environment[offset])
    return jnp.abs(_SLOPES[node.name](u, y))


def _slope_of_fraction(u: Any, a: Any) -> Any:
    """|d/du 1 / (a + exp(u))| in units of 1/a: that of the logistic function at u - log|a|, about which it moves. Of an
    ``a`` of 0 it is 1: exp(-u) does not saturate but as the exponential does, which has a slope of its own."""
    small = jnp.exp(-jnp.abs(u - jnp.log(jnp.abs(a))))
    return jnp.where(a == 0, 1.0, small / (1 + jnp.sign(a) * small) ** 2)


def vanishing(
    nodes: Sequence[Node], seen: Sequence[Sequence[np.ndarray]], walkers: Mapping[Value, set[int]]
) -> Node | None:
    """The first of ``nodes`` of which an element has no slope in any of ``seen``, the results of ``slopes`` of each
    draw; ``walkers`` are the axes along which elements are the same of another walker."""
    for at, node in enumerate(nodes):
        largest = np.max([np.nan_to_num(draw[at]) for draw in seen], axis=0)
        if largest.ndim:
            largest = largest.max(tuple(walkers.get(node.results[0], ())), initial=0.0)
        if largest.size and not largest.min() >= LEAST_SLOPE:
            return node
    return None
