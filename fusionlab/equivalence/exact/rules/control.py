"""Evaluation rules for control flow: loops run trip by trip; where draws differ, each keeps its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Uncovered
from fusionlab.hlo.view import Node

_MOST_TRIPS = 4096
"""The most trips of a loop whose condition depends on the arguments: random predicates end it after a few."""


def _while(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    condition, body = node.regions
    carried, active, trips = list(operands), np.ones(1, bool), 0
    while True:
        [going] = evaluator.region(condition, carried, environment)
        active = active & going.array
        if not active.any():
            return carried
        trips += not isinstance(going, Known)
        if trips > _MOST_TRIPS:
            raise Uncovered("a loop that ends by what it computes", node.scope)
        after = evaluator.region(body, carried, environment)
        carried = [_chosen(active, new, old) for new, old in zip(after, carried, strict=True)]


def _chosen(where: Array, new: Held, old: Held) -> Held:
    """``new`` in the draws ``where``, ``old`` in the others."""
    if new is old or where.all():
        return new
    return Drawn(np.where(where.reshape(-1, *(1,) * (new.array.ndim - 1)), new.array, old.array))


def _branches(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """``case``: the last branch for an index out of range; ``if``: the first for true."""
    index, last = operands[0].array, len(node.regions) - 1
    index = 1 - index.astype(int) if index.dtype == np.bool_ else np.where((index < 0) | (index > last), last, index)
    numbers = np.unique(index)
    found = evaluator.region(node.regions[numbers[0]], [], environment)
    for number in numbers[1:]:
        results = evaluator.region(node.regions[number], [], environment)
        found = [_chosen(index == number, new, old) for new, old in zip(results, found, strict=True)]
    if isinstance(operands[0], Known):
        return found
    return [Drawn(held.array, held.parts) for held in found]  # an argument decides, even between constants


RULES: dict[str, Rule] = {
    "stablehlo.case": _branches,
    "stablehlo.if": _branches,
    "stablehlo.while": _while,
}
