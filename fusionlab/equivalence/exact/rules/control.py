"""Evaluation rules for control flow: loops run trip by trip; where draws differ, each keeps its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step, Uncovered
from fusionlab.hlo.flat import Node, Value

_MOST_TRIPS = 4096
"""Of a loop whose condition depends on the arguments: random predicates end it after a few."""


def _while(node: Node, evaluator: Evaluator) -> Step:
    condition, body = node.regions

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        carried = list(operands)
        active = np.ones(1, bool)
        trips = 0
        while True:
            [going] = evaluator.region(condition, carried, environment)
            if isinstance(going, Known) and active.all():
                if not going.array:
                    return carried
                carried = evaluator.region(body, carried, environment)
                continue
            active = active & evaluator.lifted(going, condition.returns[0])
            if not active.any():
                return carried
            trips += 1
            if trips > _MOST_TRIPS:
                raise Uncovered("a loop that ends by what it computes", node.scope)
            after = evaluator.region(body, carried, environment)
            carried = [
                _chosen(evaluator, active, new, old, value)
                for new, old, value in zip(after, carried, node.results, strict=True)
            ]

    return step


def _chosen(evaluator: Evaluator, where: Array, new: Held, old: Held, value: Value) -> Held:
    """``new`` in the draws ``where``, ``old`` in the others."""
    if new is old or where.all():
        return new
    shape = (-1, *(1,) * len(value.type.shape))
    return Drawn(np.where(where.reshape(shape), evaluator.lifted(new, value), evaluator.lifted(old, value)))


def _branches(node: Node, evaluator: Evaluator) -> Step:
    """``case``: the last branch for an index out of range; ``if``: the first for true."""
    count = len(node.regions)

    def taken(index: Array) -> Array:
        if index.dtype == np.bool_:
            return np.where(index, 0, 1)
        return np.where((index < 0) | (index >= count), count - 1, index)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if isinstance(operands[0], Known):
            return evaluator.region(node.regions[int(taken(operands[0].array))], [], environment)
        index = taken(operands[0].array)
        found: list[Held] | None = None
        for number in np.unique(index):
            results = evaluator.region(node.regions[number], [], environment)
            if found is None:
                found = results
                continue
            found = [
                _chosen(evaluator, index == number, new, old, value)
                for new, old, value in zip(results, found, node.results, strict=True)
            ]
        assert found is not None
        # An argument decides: whatever the branches are made of, this is drawn.
        return [
            held if isinstance(held, Drawn) else Drawn(evaluator.lifted(held, value))
            for held, value in zip(found, node.results, strict=True)
        ]

    return step


RULES: dict[str, Rule] = {
    "stablehlo.case": _branches,
    "stablehlo.if": _branches,
    "stablehlo.while": _while,
}
