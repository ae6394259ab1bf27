"""Which way the branches of a program went: an equality seen at some points holds on the branches that these took.

A comparison of floats makes two programs of one. Where the value and its supposed Laplacian read the same comparison,
both are also evaluated with its outcome turned around at random: derivatives do not ask whether it was true. A
comparison that only the supposed Laplacian reads has to go both ways at the points tried, or nothing is known of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.families import REPEATS
from fusionlab.codegen.raising import Raising, live_nodes
from fusionlab.hlo.constants import least_of
from fusionlab.hlo.flat import Node, Value
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.replay import CONTROL_FLOW, Replay
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.passes.sums_over_directions import is_float

_SIDES = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.sign", "stablehlo.abs", "stablehlo.clamp")
_TOGETHER = ("stablehlo.and", "stablehlo.or", "stablehlo.xor")


def comparisons(nodes: Sequence[Node]) -> list[Node]:
    """Nodes, those of regions too, whose value is one of two functions of floats: a comparison, a maximum, a sign; and
    what two comparisons say together.

    Equality of floats is left out: where it holds is no more than a surface.
    """
    found = []
    answers: set[Value] = set()
    for node in nodes:
        read = answers.intersection(node.operands)
        if read and node.name in (*_TOGETHER, "stablehlo.not", *REPEATS):
            answers.update(node.results)
            if len(read) > 1 and node.name in _TOGETHER:
                found.append(node)
        if node.name in CONTROL_FLOW:
            found += [inner for region in node.regions for inner in comparisons(region.nodes)]
        if node.name == "stablehlo.compare":
            direction = str(node.attributes["comparison_direction"])
            if is_float(node.operands[0]) and "EQ" not in direction and "NE" not in direction:
                found.append(node)
                answers.update(node.results)
        elif node.name in _SIDES and is_float(node.operands[0]):
            name = node.name.removeprefix("stablehlo.")
            if not any(least_of(name, value) for value in node.operands):
                found.append(node)
    return found


def outcomes(node: Node, raising: Raising, environment: Mapping[Value, Any]) -> Any:
    """Which way ``node`` went, element by element; 0 or 1, booleans."""
    arrays = [environment[value] for value in node.operands]
    if node.name == "stablehlo.compare" or node.name in _TOGETHER:
        return raising.node(node, environment)[0]
    if node.name == "stablehlo.clamp":
        return (arrays[1] > arrays[0]) & (arrays[1] < arrays[2])
    return jnp.greater(arrays[0], arrays[1] if len(arrays) > 1 else 0)


@dataclass(frozen=True)
class Turning(Raising):
    """Turns the outcomes of the comparisons number n around, at random, where ``turn[0][slots[n]]`` is set.

    ``turn`` holds one traced array of booleans while a function is traced.
    """

    numbers: Mapping[Value, int] = field(default_factory=dict)
    slots: Mapping[int, int] = field(default_factory=dict)
    turn: list[Any] = field(default_factory=list)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Raising's, comparisons turned."""
        results = super().node(node, environment)
        if node.name != "stablehlo.compare" or self.numbers[node.results[0]] not in self.slots:
            return results
        number = self.numbers[node.results[0]]
        bits = np.random.default_rng(number).integers(0, 2, np.shape(results[0])).astype(bool)
        return [results[0] ^ (self.turn[0][self.slots[number]] & bits)]


class BranchCover:
    """The comparisons that ``targets`` read when ``known`` is given."""

    def __init__(
        self,
        nodes: Sequence[Node],
        known: Sequence[Value],
        targets: Sequence[Value],
        replay: Replay | None,
        numbers: ValueNumbers,
    ) -> None:
        self.nodes, self.known, self.replay, self.numbers = nodes, known, replay, numbers
        found = comparisons(live_nodes(nodes, known, targets))
        everywhere = set(found)
        body = () if replay is None else replay.loop.body.nodes
        varying = frozenset() if replay is None else replay.varying
        self.top = [node for node in nodes if node in everywhere]
        in_body = [node for node in body if node in everywhere]
        self.in_body = [node for node in in_body if varying.isdisjoint(node.operands)]
        self.directed = [node for node in in_body if not varying.isdisjoint(node.operands)]
        reached = {*self.top, *in_body}
        self.unseen = [node for node in found if node not in reached]
        turned = [numbers[node.results[0]] for node in found if node.name == "stablehlo.compare"]
        self.slots = {number: at for at, number in enumerate(dict.fromkeys(turned))}

    def shared(self, output: Value) -> set[int]:
        """Numbers of the comparisons that ``output`` reads."""
        return {self.numbers[node.results[0]] for node in comparisons(live_nodes(self.nodes, self.known, [output]))}

    def turn(self, output: Value | None) -> np.ndarray:
        """What to give as ``turn`` for the comparisons that ``output`` reads too; None turns none."""
        shared = set() if output is None else self.shared(output)
        return np.array([number in shared for number in self.slots], bool)

    def evaluate(self, raising: Raising, environment: dict[Value, Any]) -> list[tuple[Any, Any]]:
        """(was it ever true, was it ever false) of each of ``top`` and ``in_body``, given the program's values."""
        found = [outcomes(node, raising, environment) for node in self.top]
        if self.in_body:
            assert self.replay is not None
            loop = self.replay.loop
            inner = dict(environment)
            inner.update((loop.body.arguments[i], environment[loop.node.operands[i]]) for i in loop.indices(Invariant))
            wanted = [value for node in self.in_body for value in node.operands]
            raising.run(live_nodes(loop.body.nodes, list(inner), wanted), inner)
            found += [outcomes(node, raising, inner) for node in self.in_body]
        return [(jnp.any(outcome), jnp.any(jnp.logical_not(outcome))) for outcome in found]

    def complaint(self, output: Value, seen: Sequence[Sequence[tuple[Any, Any]]]) -> str | None:
        """What is not known of the targets as a function of ``output``, given what ``evaluate`` gave for each draw."""
        shared = self.shared(output)

        def own(nodes: Sequence[Node]) -> list[Node]:
            return [node for node in nodes if self.numbers[node.results[0]] not in shared]

        if directed := own(self.directed):
            return f"compares what depends on the direction ({_place(directed[0])})"
        if unseen := own(self.unseen):
            return f"compares floats in a region of its own ({_place(unseen[0])})"
        for at, node in enumerate([*self.top, *self.in_body]):
            ever = [any(bool(draw[at][side]) for draw in seen) for side in (0, 1)]
            if not all(ever) and own([node]):
                outcome = "true" if ever[0] else "false"
                return f"compares what its value does not ({_place(node)}), which was {outcome} wherever it was tried"
        return None


def _place(node: Node) -> str:
    name = node.name.removeprefix("stablehlo.")
    return f"{name} at {node.scope}" if node.scope else name
