"""Which way the branches of a program went: an equality seen at some points holds on the branches that these took.

A comparison of floats makes two programs of one. Where the value and its supposed Laplacian read the same comparison,
both are also evaluated with its outcome turned around at random: derivatives do not ask whether it was true. A
comparison that only the supposed Laplacian reads has to go both ways at the points tried, or nothing is known of it;
and so has what it makes of several of them (``branch_questions``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import Raising, live_nodes
from fusionlab.hlo.flat import Node, Value
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.replay import Replay
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.passes.branch_questions import Question, questions

TURNS = 2
"""Ways in which comparisons are turned around."""

_Seen = tuple[Any, Any]
"""The least and the most that something was, over all elements; of gates 0 and whether they were ever open together."""


def _spread(question: Question, raising: Raising, environment: Mapping[Value, Any]) -> _Seen:
    """What ``question`` was, in the environment of its node."""
    if question.gates:
        together: Any = True
        for gate in question.gates:
            array = jnp.equal(environment[gate.answer], 0) == gate.inverted
            for move in gate.moves:
                (array,) = raising.node(move, {move.operands[0]: array})
            together = together & array
        return jnp.zeros(()), jnp.any(together).astype(float)
    node = question.node
    outcome = _side(node, environment) if question.sides else environment[node.results[0]]
    if not outcome.size:
        return jnp.zeros(()), jnp.ones(())
    return jnp.min(outcome).astype(float), jnp.max(outcome).astype(float)


def _side(node: Node, environment: Mapping[Value, Any]) -> Any:
    """Which of its two functions ``node`` was, element by element."""
    arrays = [environment[value] for value in node.operands]
    if node.name == "stablehlo.clamp":
        return (arrays[1] > arrays[0]) & (arrays[1] < arrays[2])
    return jnp.greater(arrays[0], arrays[1] if len(arrays) > 1 else 0)


@dataclass(frozen=True)
class Turning(Raising):
    """Turns the outcomes of the comparisons number n around, at random, where ``turn[0][slots[n]]`` is not 0.

    ``turn`` holds one traced array of integers while a function is traced, up to ``TURNS``: each turns others around.
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
        bits = np.random.default_rng(number).integers(0, 2, (TURNS + 1, *np.shape(results[0]))).astype(bool)
        bits[0] = False
        return [results[0] ^ jnp.asarray(bits)[self.turn[0][self.slots[number]]]]


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
        found = questions(live_nodes(nodes, known, targets))
        body = () if replay is None else replay.loop.body.nodes
        varying = frozenset() if replay is None else replay.varying
        at_top, inside = set(nodes), set(body)
        self.top = [question for question in found if question.node in at_top]
        in_body = [question for question in found if question.node in inside]
        self.unseen = [question for question in found if question.node not in at_top | inside]
        self.directed = [q for q in in_body if not varying.isdisjoint(q.reads)]
        self.in_body = [q for q in in_body if varying.isdisjoint(q.reads)]
        turned = [numbers[q.node.results[0]] for q in found if q.node.name == "stablehlo.compare"]
        self.slots = {number: at for at, number in enumerate(dict.fromkeys(turned))}

    def _questions_of(self, output: Value) -> list[Question]:
        return questions(live_nodes(self.nodes, self.known, [output]))

    def turn(self, output: Value | None) -> np.ndarray:
        """1 for the comparisons that ``output`` reads too, 0 for others: what to give, times one of ``TURNS``, as
        ``turn``; None turns none."""
        shared = set() if output is None else {self._number(q) for q in self._questions_of(output)}
        return np.array([number in shared for number in self.slots], np.int32)

    def _number(self, question: Question) -> int:
        return self.numbers[question.node.results[0]]

    def _gates(self, question: Question) -> set[tuple[int, bool]]:
        return {(self.numbers[gate.answer], gate.inverted) for gate in question.gates}

    def evaluate(self, raising: Raising, environment: dict[Value, Any]) -> list[_Seen]:
        """What each of ``top`` and ``in_body`` was, given the program's values."""
        found = [_spread(question, raising, environment) for question in self.top if not question.which]
        if self.in_body:
            assert self.replay is not None
            loop = self.replay.loop
            inner = dict(environment)
            inner.update((loop.body.arguments[i], environment[loop.node.operands[i]]) for i in loop.indices(Invariant))
            wanted = [value for question in self.in_body if not question.which for value in question.reads]
            raising.run(live_nodes(loop.body.nodes, list(inner), wanted), inner)
            found += [_spread(question, raising, inner) for question in self.in_body if not question.which]
        return found

    def complaint(self, output: Value, seen: Sequence[Sequence[_Seen]]) -> str | None:
        """What is not known of the targets as a function of ``output``, given what ``evaluate`` gave for each draw."""
        theirs = self._questions_of(output)
        shared = {self._number(question) for question in theirs}
        gates = [self._gates(question) for question in theirs if question.gates]
        chosen_by = {self.numbers[value] for question in theirs for value in question.chosen_by}

        def own(question: Question) -> bool:
            if question.which:
                return any(self.numbers[value] not in chosen_by for value in question.chosen_by)
            behind = self._gates(question)
            return self._number(question) not in shared and not (behind and any(behind <= one for one in gates))

        for question in filter(own, self.directed):
            return f"compares what depends on the direction ({_place(question.node)})"
        for question in filter(own, self.unseen):
            return f"compares floats in a region of its own ({_place(question.node)})"
        asked = [*self.top, *self.in_body]
        for question in filter(own, (question for question in asked if question.which)):
            return f"chooses which element to take by comparisons ({_place(question.node)}), as its value does not"
        for at, question in enumerate(question for question in asked if not question.which):
            if not own(question):
                continue
            least, most = min(float(draw[at][0]) for draw in seen), max(float(draw[at][1]) for draw in seen)
            if least == most:
                return _unseen(question, least)
        return None


def _unseen(question: Question, value: float) -> str:
    where = _place(question.node)
    if question.gates:
        return f"lets through what several comparisons must let through together ({where}), which no point tried has"
    truth = question.sides or question.node.results[0].type.dtype == "i1"
    was = ("true" if value else "false") if truth else f"{value:g}"
    return f"compares what its value does not ({where}), which was {was} wherever it was tried"


def _place(node: Node) -> str:
    name = node.name.removeprefix("stablehlo.")
    return f"{name} at {node.scope}" if node.scope else name
