"""What a program asks of its floats, and what it makes of the answers: all of them, how many, one behind another.

A comparison is a question; what is computed from nothing but answers and constants (a conjunction, a count, a product
of indicators) is an answer again, a discrete number that few points may not show. ``branch_cover`` sees to it that
each was seen to take more than one value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from fusionlab.codegen.forward_laplacian.families import ELEMENTWISE, MOVES, REPEATS
from fusionlab.hlo.constants import filling, least_of
from fusionlab.hlo.flat import Node, Value
from fusionlab.hlo.replay import CONTROL_FLOW
from fusionlab.passes.sums_over_directions import is_float

SIDES = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.sign", "stablehlo.abs", "stablehlo.clamp")
_SAME_OR_GATES = ("stablehlo.convert", "stablehlo.negate", "stablehlo.not", "stablehlo.multiply", *REPEATS)
"""What these make of answers was seen to be two things where the answers were, but for products, which are gates."""
_REDUCTIONS = ("stablehlo.reduce", "stablehlo.reduce_window")
_BITWISE = ("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.select")
_OF_EACH = ELEMENTWISE | {"stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.not", "stablehlo.remainder",
                          "stablehlo.sign", "stablehlo.dot_general"}  # fmt: skip
"""Ops that make one answer of several, or of one answer and a constant."""
_PASSING = ("stablehlo.negate", "stablehlo.convert", *REPEATS)
_INDEXED = {"stablehlo.gather": 1, "stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2,
            "stablehlo.case": 0}  # fmt: skip
"""Ops that choose by whole numbers, and where among their operands these begin."""


@dataclass(frozen=True)
class Gate:
    """An answer that something was multiplied by or chosen by, ``moves`` later: open where it is not zero, or, of an
    ``inverted`` one, where it is."""

    answer: Value
    moves: tuple[Node, ...] = ()
    inverted: bool = False


@dataclass(frozen=True)
class Question:
    """``node`` has to take more than one value, or of one of two functions both ``sides``; or the ``gates``, which it
    puts behind one another, have to be open together somewhere; or it chooses by an answer ``which`` of many it takes,
    and nothing can be said."""

    node: Node
    gates: frozenset[Gate] = frozenset()
    sides: bool = False
    which: bool = False

    @property
    def chosen_by(self) -> tuple[Value, ...]:
        """The whole numbers that it chooses by."""
        return self.node.operands[_INDEXED[self.node.name] :] if self.which else ()

    @property
    def reads(self) -> tuple[Value, ...]:
        """What has to be known to say how it was answered."""
        if self.gates:
            return tuple(gate.answer for gate in self.gates)
        return (*self.node.operands, *self.node.results)


@dataclass
class Questions:
    """The questions of nodes and the regions in them, in order."""

    found: list[Question] = field(default_factory=list)
    answers: set[Value] = field(default_factory=set)
    gates: dict[Value, frozenset[Gate]] = field(default_factory=dict)
    given: dict[Value, Value] = field(default_factory=dict)
    """What a loop carries unchanged, by its name inside."""

    def ask(self, nodes: Iterable[Node]) -> None:
        """Add what ``nodes`` ask."""
        for node in nodes:
            if node.name in CONTROL_FLOW:
                self._regions(node)
            elif node.name == "stablehlo.compare":
                self._comparison(node)
            else:
                self._side(node)
                self._answer(node)
                self._gate(node)
            if node.name in _INDEXED and not self.answers.isdisjoint(node.operands[_INDEXED[node.name] :]):
                self.found.append(Question(node, which=True))

    def _regions(self, node: Node) -> None:
        if node.name == "stablehlo.while":
            own, kept = node.regions[1].arguments, node.regions[1].returns
            for at, (inside, after) in enumerate(zip(own, kept, strict=True)):
                for argument in (region.arguments[at] for region in node.regions if inside is after):
                    self._same(argument, node.operands[at])
        for region in node.regions:
            self.ask(region.nodes)

    def _same(self, argument: Value, value: Value) -> None:
        self.given[argument] = value
        if value in self.answers:
            self.answers.add(argument)
        if value in self.gates:
            self.gates[argument] = self.gates[value]

    def _filling(self, value: Value) -> np.ndarray | None:
        """The array of a constant, before it was converted, moved and carried; None for what is not one."""
        while True:
            node = value.producer
            if value in self.given:
                value = self.given[value]
            elif node is not None and node.name in ("stablehlo.convert", *REPEATS):
                value = node.operands[0]
            else:
                return filling(value)

    def _comparison(self, node: Node) -> None:
        """Equality of floats is left out, unless they are answers: where it holds is no more than a surface."""
        direction = str(node.attributes["comparison_direction"])
        of_floats = is_float(node.operands[0]) and "EQ" not in direction and "NE" not in direction
        if of_floats or not self.answers.isdisjoint(node.operands):
            self.found.append(Question(node))
            self.answers.update(node.results)

    def _side(self, node: Node) -> None:
        """One of two functions of floats, but for answers."""
        if node.name in SIDES and is_float(node.operands[0]) and not self._made_of_answers(node):
            name = node.name.removeprefix("stablehlo.")
            if not any(least_of(name, value) for value in node.operands):
                self.found.append(Question(node, sides=True))

    def _made_of_answers(self, node: Node) -> bool:
        """Of answers, one at least, and constants."""
        read = self.answers.intersection(node.operands)
        return bool(read) and all(value in read or self._filling(value) is not None for value in node.operands)

    def _answer(self, node: Node) -> None:
        """What is made of answers and constants alone: an answer, and mostly a question of its own."""
        read = self.answers.intersection(node.operands)
        if not read or len(node.results) != 1:
            return
        bits = node.name in _BITWISE and node.results[0].type.dtype == "i1"
        if not (bits or self._made_of_answers(node)):
            return
        if node.name not in _REDUCTIONS and node.name not in _OF_EACH and node.name not in MOVES:
            return
        self.answers.update(node.results)
        if node.name not in _SAME_OR_GATES and (bits or not self._selects_or_nothing(node)):
            self.found.append(Question(node))

    def _selects_or_nothing(self, node: Node) -> bool:
        """Whether it is something or zero, as an answer says: a gate."""
        return node.name == "stablehlo.select" and any(map(self._is_zero, node.operands[1:]))

    def _gate(self, node: Node) -> None:
        """What is multiplied by an answer, or is zero where one says so; a question where it was so already."""
        if len(node.results) != 1 or node.results[0].type.dtype == "i1":
            return
        parts: list[frozenset[Gate]] = []
        if node.name == "stablehlo.multiply":
            parts = [self._of(value) for value in node.operands]
        elif node.name == "stablehlo.select" and node.operands[0] in self.answers:
            condition, first, second = node.operands
            if self._is_zero(second):
                parts = [self._of(condition), self._of(first)]
            elif self._is_zero(first):
                parts = [frozenset({Gate(condition, inverted=True)}), self._of(second)]
        elif node.name in _PASSING:
            moved = (node,) if node.name in REPEATS else ()
            parts = [frozenset(replace(gate, moves=(*gate.moves, *moved)) for gate in self._of(node.operands[0]))]
        gates = frozenset[Gate]().union(*parts)
        if gates:
            self.gates[node.results[0]] = gates
        if sum(map(bool, parts)) > 1 and len(gates) > 1:
            self.found.append(Question(node, gates))

    def _of(self, value: Value) -> frozenset[Gate]:
        return self.gates.get(value, frozenset({Gate(value)} if value in self.answers else ()))

    def _is_zero(self, value: Value) -> bool:
        array = self._filling(value)
        return array is not None and not array.any()


def questions(nodes: Iterable[Node]) -> list[Question]:
    """What ``nodes``, those of regions too, ask of floats and of the answers."""
    asked = Questions()
    asked.ask(nodes)
    return asked.found
