"""Which way the branches of a program went: an equality seen at some points holds on the branches that these took.

A question makes two programs of one. Where the value and its supposed Laplacian ask the same, both are also evaluated
with the answer turned around at random (``branch_turns``). A question that only the supposed Laplacian asks has to be
answered both ways at the points tried, or nothing is known of it; so has what it makes of several answers
(``branch_questions``); and what is behind one has to come through to the sum (``branch_doors``).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.families import reduced_axes
from fusionlab.codegen.raising import Raising, live_nodes
from fusionlab.hlo.flat import Node, Value, walk
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.replay import Replay
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.passes.branch_doors import Door, doors
from fusionlab.passes.branch_questions import Question, Questions, ask
from fusionlab.passes.branch_turns import keys_of

Seen = tuple[Any, Any]
"""The least and the most that something was, over all elements."""


def _spread(question: Question, environment: Mapping[Value, Any]) -> Seen:
    """What ``question`` was, in the environment of its node."""
    node = question.node
    outcome = _side(node, environment) if question.sides else environment[node.results[0]]
    if not outcome.size:
        return jnp.zeros(()), jnp.zeros(())
    return jnp.min(outcome).astype(float), jnp.max(outcome).astype(float)


def _side(node: Node, environment: Mapping[Value, Any]) -> Any:
    """Which of its two functions ``node`` was, element by element."""
    arrays = [environment[value] for value in node.operands]
    if node.name == "stablehlo.reduce":
        return jnp.equal(arrays[0], jnp.expand_dims(environment[node.results[0]], reduced_axes(node)))
    if node.name == "stablehlo.clamp":
        return (arrays[1] > arrays[0]) & (arrays[1] < arrays[2])
    return jnp.greater(arrays[0], arrays[1] if len(arrays) > 1 else 0)


class BranchCover:
    """The questions that ``targets`` ask when ``known`` is given, and those that only ``outputs`` ask."""

    def __init__(
        self,
        nodes: Sequence[Node],
        known: Sequence[Value],
        targets: Sequence[Value],
        replay: Replay | None,
        numbers: ValueNumbers,
        outputs: Sequence[Value] = (),
    ) -> None:
        self.nodes, self.known, self.replay, self.numbers = nodes, known, replay, numbers
        live = live_nodes(nodes, known, targets)
        self.asked = ask(live, known, None if replay is None else replay.loop.node)
        body = () if replay is None else replay.loop.body.nodes
        varying = frozenset() if replay is None else replay.varying
        at_top, inside = set(nodes), set(body)
        found = self.asked.found
        self.top = [question for question in found if question.node in at_top]
        in_body = [question for question in found if question.node in inside]
        self.unseen = [question for question in found if question.node not in at_top | inside]
        self.directed = [q for q in in_body if not varying.isdisjoint(q.reads)]
        self.in_body = [q for q in in_body if varying.isdisjoint(q.reads)]
        in_regions = {self.numbers[v] for q in self.unseen for v in q.node.results}
        turnable = [q for q in (*self.top, *self.in_body) if _turnable(q) and self._number(q) not in in_regions]
        self.keys_asked = {key for question in found for key in self.keys(question)}
        self.alone = self._alone(targets, outputs)
        turnable += [question for question in self.alone if _turnable(question) and question.node in at_top]
        self.turned = frozenset(map(self._number, turnable))
        self.slots = {key: at for at, key in enumerate(dict.fromkeys(k for q in turnable for k in self.keys(q)))}

    def keys(self, question: Question) -> tuple[Hashable, ...]:
        """What it asks."""
        if question.extreme is not None:
            return (self.numbers[question.extreme],)
        return keys_of(question.node, self.numbers)

    def _number(self, question: Question) -> int:
        return self.numbers[question.node.results[0]]

    def _alone(self, targets: Sequence[Value], outputs: Sequence[Value]) -> list[Question]:
        """What ``outputs`` ask and ``targets`` do not."""
        computed = set().union(*map(self._computed, targets))
        asked = ask(live_nodes(self.nodes, self.known, outputs), self.known)
        return [
            question
            for question in asked.found
            if self._number(question) not in computed and not self.keys_asked.issuperset(self.keys(question))
        ]

    def of(self, output: Value) -> Questions:
        """What ``output`` asks."""
        return ask(live_nodes(self.nodes, self.known, [output]), self.known)

    def turn(self, output: Value | None, alone: bool = False) -> np.ndarray:
        """1 for what ``output`` asks too (what it asks ``alone``), 0 for other questions: what to give, times one of
        ``TURNS``, as ``turn``; None turns none."""
        theirs = set() if output is None else {key for q in self.of(output).found for key in self.keys(q)}
        return np.array([key in theirs and (key not in self.keys_asked) == alone for key in self.slots], np.int32)

    def evaluate(self, raising: Raising, environment: dict[Value, Any]) -> list[Seen]:
        """What each of ``top``, ``in_body`` and ``alone`` was that can be seen, given the program's values."""
        found = [_spread(question, environment) for question in self.top if question.can_be_seen]
        if self.in_body:
            assert self.replay is not None
            loop = self.replay.loop
            inner = dict(environment)
            inner.update((loop.body.arguments[i], environment[loop.node.operands[i]]) for i in loop.indices(Invariant))
            wanted = [value for question in self.in_body if question.can_be_seen for value in question.reads]
            raising.run(live_nodes(loop.body.nodes, list(inner), wanted), inner)
            found += [_spread(question, inner) for question in self.in_body if question.can_be_seen]
        if self.alone:
            at_top = set(self.nodes)
            alone = [question for question in self.alone if question.can_be_seen and question.node in at_top]
            inner = dict(environment)
            raising.run(live_nodes(self.nodes, list(inner), [v for q in alone for v in q.reads]), inner)
            found += [_spread(question, inner) for question in alone]
        return found

    def asked_alone(self, output: Value, seen: Sequence[Sequence[Seen]]) -> list[tuple[Question, str | None]]:
        """What ``output`` asks as the targets do not and what was not answered both ways, with how it was answered;
        None for what cannot be seen, or cannot be answered otherwise."""
        nodes = {question.node for question in self.of(output).found}
        at_top = set(self.nodes)
        at = sum(question.can_be_seen for question in (*self.top, *self.in_body))
        found: list[tuple[Question, str | None]] = []
        for question in self.alone:
            if not (question.can_be_seen and question.node in at_top):
                if question.node in nodes:
                    found.append((question, None))
                continue
            least, most = min(float(draw[at][0]) for draw in seen), max(float(draw[at][1]) for draw in seen)
            at += 1
            if question.node in nodes and not least < most:
                found.append((question, _answer(question, least) if _turnable(question) else None))
        return found

    def asks_as(self, value: Value, output: Value) -> bool:
        """Whether ``value`` asks nothing but what ``output`` or the targets ask."""
        computed = self._computed(output) | {self._number(question) for question in self.asked.found}
        known = self.keys_asked | {key for question in self.of(output).found for key in self.keys(question)}
        return all(
            self._number(question) in computed or known.issuperset(self.keys(question))
            for question in self.of(value).found
        )

    def _computed(self, output: Value) -> set[int]:
        """The numbers of all values that ``output`` is computed from."""
        cone = walk(live_nodes(self.nodes, self.known, [output]))
        return {self.numbers[value] for node in cone for value in node.results}

    def doors(self, output: Value, target: Value) -> list[Door]:
        """What has to come through to ``target`` at some point."""
        computed = self._computed(output)
        shared = {key for question in self.of(output).found for key in self.keys(question)}
        asked = {question.node: question for question in self.asked.found}

        def turned(value: Value) -> bool:
            value = self.asked.same_as(value)
            if value.producer not in asked or self.numbers[value] not in self.turned:
                return False
            return shared.issuperset(self.keys(asked[value.producer]))

        live = live_nodes(self.nodes, self.known, [target])
        return doors(live, self.replay, self.asked, lambda n: self.numbers[n.results[0]] not in computed, turned)

    def complaint(self, output: Value, seen: Sequence[Sequence[Seen]]) -> str | None:
        """What is not known of the targets as a function of ``output``, given what ``evaluate`` gave for each draw."""
        theirs = self.of(output)
        shared = {key for question in theirs.found for key in self.keys(question)}
        computed = self._computed(output)
        chosen_by = {self.numbers[value] for question in theirs.found for value in question.chosen_by}

        def own(question: Question) -> bool:
            if question.which:
                return any(self.numbers[value] not in chosen_by for value in question.chosen_by)
            if self.numbers[question.node.results[0]] in computed:
                return False
            if question.extreme is not None and self.numbers[question.extreme] in computed:
                return False
            return question.lost or not shared.issuperset(self.keys(question))

        for question in filter(own, self.directed):
            return f"compares what depends on the direction ({place(question.node)})"
        for question in filter(own, self.unseen):
            return f"compares floats in a region of its own ({place(question.node)})"
        asked = [*self.top, *self.in_body]
        for question in filter(own, (question for question in asked if question.which)):
            return f"chooses which element to take by comparisons ({place(question.node)}), as its value does not"
        for question in filter(own, (question for question in asked if question.lost)):
            return f"orders floats or hides answers as its value does not ({place(question.node)})"
        for at, question in enumerate(question for question in asked if question.can_be_seen):
            if not own(question):
                continue
            least, most = min(float(draw[at][0]) for draw in seen), max(float(draw[at][1]) for draw in seen)
            if not least < most:
                return _unseen(question, least)
        return None


def _turnable(question: Question) -> bool:
    """Whether another answer can be given for its own: discrete numbers, and sides."""
    name = question.node.name
    if question.extreme is not None or (question.sides and name == "stablehlo.reduce"):
        return False
    return question.can_be_seen and len(question.node.results) == 1 and name != "stablehlo.bitcast_convert"


def _unseen(question: Question, value: float) -> str:
    was = _answer(question, value)
    return f"compares what its value does not ({place(question.node)}), which was {was} wherever it was tried"


def _answer(question: Question, value: float) -> str:
    truth = question.sides or question.node.results[0].type.dtype == "i1"
    return ("true" if value else "false") if truth else f"{value:g}"


def place(node: Node) -> str:
    """The name and the scope of ``node``, for people."""
    name = node.name.removeprefix("stablehlo.")
    return f"{name} at {node.scope}" if node.scope else name


def equal_where_finite(first: np.ndarray, second: np.ndarray, tolerance: float) -> bool | None:
    """Whether what can be compared is equal; None where nothing can be compared."""
    finite = np.isfinite(first) & np.isfinite(second)
    if not finite.any():
        return None
    return bool(np.allclose(first[finite], second[finite], rtol=tolerance, atol=0))
