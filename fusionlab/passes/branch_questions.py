"""What a program asks of its floats, and what it makes of the answers: all of them, how many, one behind another.

A comparison is a question; what is computed from nothing but answers and what no input moves (a conjunction, a count, a
product of indicators) is an answer again, a discrete number that few points may not show. ``branch_cover`` sees to it
that each was seen to take more than one value. Answers that go where they are not followed are lost.

The exchanges of rows of a factorisation are *orders*: as indices, and as whole numbers among themselves, they say
nothing but which element stands where. Where a float depends on one in another way, it is a question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from fusionlab.codegen.forward_laplacian.families import REPEATS
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.hlo.constants import filling, least_of, taken_branch
from fusionlab.hlo.flat import Node, Region, Value, reads
from fusionlab.hlo.replay import CONTROL_FLOW
from fusionlab.passes.branch_forms import (
    adds_or_multiplies,
    combines,
    extreme_asked_for,
    is_equality,
    is_extreme,
    is_sign,
    numbers_of,
    of_one,
)
from fusionlab.passes.op_branches import is_step, kind_of, of_floats
from fusionlab.passes.sums_over_directions import is_float

SIDES = ("stablehlo.maximum", "stablehlo.minimum", "stablehlo.abs", "stablehlo.clamp")
_SAME = ("stablehlo.convert", "stablehlo.negate", "stablehlo.not", *REPEATS)
"""What these make of answers was seen to be two things where the answers were."""
_INDEXED = {"stablehlo.gather": 1, "stablehlo.dynamic_slice": 1, "stablehlo.dynamic_update_slice": 2}
"""Ops that choose by whole numbers, and where among their operands these begin."""
_CONTINUOUS_STEPS = ("stablehlo.atan2", "stablehlo.reduce_precision", "stablehlo.remainder", "chlo.next_after")
"""Steps whose results are no discrete numbers."""
_LOGIC = ("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.select")
"""Where one bit is an answer, so is the result."""
_FOLLOWED = ("stablehlo.and", "stablehlo.or", "stablehlo.xor", "stablehlo.not", "stablehlo.select", "stablehlo.sign",
             "stablehlo.remainder", *SIDES)  # fmt: skip
"""Ops that make an answer of answers, beside the analytic ones and those that move."""


@dataclass(frozen=True)
class Question:
    """``node`` has to take more than one value, or of two functions both ``sides``; or it chooses by an answer
    ``which`` of many it takes, or its answers are ``lost`` in it, and nothing can be said. It may ask for an
    ``extreme``: which element is the largest (smallest) of all."""

    node: Node
    sides: bool = False
    which: bool = False
    lost: bool = False
    extreme: Value | None = None

    @property
    def chosen_by(self) -> tuple[Value, ...]:
        """The whole numbers that it chooses by."""
        return self.node.operands[_INDEXED[self.node.name] :] if self.which else ()

    @property
    def reads(self) -> tuple[Value, ...]:
        """What has to be known to say how it was answered."""
        return (*self.node.operands, *self.node.results)

    @property
    def can_be_seen(self) -> bool:
        """Whether its values say anything."""
        return not (self.which or self.lost)


@dataclass
class Questions:
    """The questions of nodes and the regions in them, in order. ``moving`` are the values that depend on floats that
    are given; ``loop`` is the one whose trips are added up."""

    moving: set[Value]
    loop: Node | None = None
    found: list[Question] = field(default_factory=list)
    answers: set[Value] = field(default_factory=set)
    orders: set[Value] = field(default_factory=set)
    ties: set[Value] = field(default_factory=set)
    """Answers to which element is the largest (smallest), however moved and converted, and its share."""
    pieced: set[Value] = field(default_factory=set)
    """Values that depend on an answer, or on a side."""
    given: dict[Value, Value] = field(default_factory=dict)
    """What a loop carries unchanged, by its name inside."""

    def ask(self, nodes: Iterable[Node]) -> None:
        """Add what ``nodes`` ask."""
        for node in nodes:
            read = [value for value in reads(node) if value in self.moving]
            if node.name in CONTROL_FLOW:
                self._regions(node, read)
            elif not read:
                continue
            elif all(value in self.orders for value in read):
                self._of_orders(node)
            elif node.name == "stablehlo.custom_call" or kind_of(node.name) == "ordering":
                self._ordering(node)
            else:
                self._plain(node)
            if read and not self._is_surface(node):
                self.moving.update(numbers_of(node))
            if any(value in self.pieced or value in self.answers for value in read):
                self.pieced.update(node.results)

    def _plain(self, node: Node) -> None:
        """Any op that is no control flow and no ordering, and reads something moving."""
        if node.name == "stablehlo.compare":
            self._comparison(node)
            return
        read = self.answers.intersection(node.operands)
        if self._mixes_orders(node):
            self._of_orders(node)
        elif node.name in _INDEXED and not self.answers.isdisjoint(node.operands[_INDEXED[node.name] :]):
            self._ask(Question(node, which=True), answer=self._made_of_answers(node))
        elif read and self._made_of_answers(node):
            self._answer(node)
        elif is_step(node):
            self._ask(Question(node), answer=node.name not in _CONTINUOUS_STEPS)
        elif (read and node.name in _LOGIC and node.results[0].type.dtype == "i1") or is_sign(node):
            self._ask(Question(node), answer=True)
        elif node.name in SIDES and is_float(node.operands[0]):
            if not any(least_of(node.name.removeprefix("stablehlo."), value) for value in node.operands):
                self._ask(Question(node, sides=True))
        elif is_extreme(node):
            self._ask(Question(node, sides=True))
        elif kind_of(node.name) == "reduction" and not adds_or_multiplies(node) and not of_one(node):
            self._ask(Question(node, lost=True))
        elif node.name == "stablehlo.divide" and node.operands[0] in self.ties:
            self.ties.update(node.results)
        elif node.name == "stablehlo.select" and node.operands[0] in self.orders and is_float(node.results[0]):
            self._ask_order(node.operands[0], node)
        elif read and not all(is_float(result) for result in node.results):
            self._ask(Question(node, lost=True), answer=True)

    def _mixes_orders(self, node: Node) -> bool:
        """Whether ``node`` makes one number of answers and orders."""
        read = [value for value in reads(node) if value in self.moving]
        return any(v in self.orders for v in read) and all(v in self.orders or v in self.answers for v in read)

    def _is_surface(self, node: Node) -> bool:
        """Whether it asks what is nowhere so but on a surface: the answer does not move."""
        asked = (self.answers, self.orders)
        return node.name == "stablehlo.compare" and all(node.results[0] not in kind for kind in asked)

    def _ask(self, question: Question, answer: bool = False) -> None:
        self.found.append(question)
        if answer:
            self.answers.update(value for value in question.node.results)
        self.pieced.update(question.node.results)

    def _comparison(self, node: Node) -> None:
        """Where floats are equal is no more than a surface, unless they are of several pieces."""
        if (extreme := extreme_asked_for(node)) is not None:
            self._ask(Question(node, extreme=extreme), answer=True)
            self.ties.update(node.results)
            return
        ordered = is_float(node.operands[0]) and not is_equality(node)
        pieces = not self.pieced.isdisjoint(node.operands) and not self._never_equal(node)
        if ordered or pieces or not self.answers.isdisjoint(node.operands):
            self._ask(Question(node), answer=True)

    def _never_equal(self, node: Node) -> bool:
        """Whether finite floats are asked if they are themselves, or infinite, or none at all."""
        first, second = node.operands
        return first is second or any(
            array is not None and array.dtype.kind == "f" and not np.isfinite(array).any()
            for array in (self._filling(first), self._filling(second))
        )

    def _made_of_answers(self, node: Node) -> bool:
        """Of answers, one at least, and of what nothing moves."""
        return all(value in self.answers or value not in self.moving for value in reads(node))

    def _answer(self, node: Node) -> None:
        """What is made of answers alone: an answer, and mostly a question of its own."""
        kind = kind_of(node.name)
        if not self.ties.isdisjoint(node.operands) and self._of_ties(node, kind):
            return
        known = kind in ("analytic", "root", "move") or node.name in _FOLLOWED
        if not known and not (kind == "reduction" and combines(node) and node.name != "stablehlo.scatter"):
            self._ask(Question(node, lost=True), answer=True)
        elif node.name in _SAME:
            self.answers.update(node.results)
            self.pieced.update(node.results)
        else:
            self._ask(Question(node), answer=True)

    def _of_ties(self, node: Node, kind: str) -> bool:
        """How many elements are the largest is one, but for a surface; what is asked of it is asked."""
        if node.name in _SAME:
            self.ties.update(node.results)
        elif kind == "reduction" and combiner(node.regions[0]) == "add":
            if not is_float(node.results[0]):
                self.orders.update(node.results)
            self.pieced.update(node.results)
            return True
        return False

    def _of_orders(self, node: Node) -> None:
        """Whole numbers and bits of exchanges of rows; where they become floats, questions."""
        if any(is_float(result) for result in node.results):
            self._ask(Question(node), answer=True)
        else:
            self.orders.update(node.results)

    def _ask_order(self, order: Value, node: Node) -> None:
        asked = order.producer or node
        self._ask(Question(asked, lost=order.producer is None), answer=False)
        self.pieced.update(node.results)

    def _ordering(self, node: Node) -> None:
        """Sorting floats, and answers, is not followed; a factorisation gives its factors and exchanges of rows."""
        if node.name == "stablehlo.sort" or not self.answers.isdisjoint(node.operands):
            self._ask(Question(node, lost=True), answer=True)
        else:
            self.orders.update(value for value in numbers_of(node) if not is_float(value))

    def _regions(self, node: Node, read: Iterable[Value]) -> None:
        """What the regions ask; what a loop or a branch that is not ``loop`` makes of answers is lost."""
        if node.name == "stablehlo.while":
            self._carried(node)
        asked = len(self.found)
        for region in node.regions:
            self.ask(region.nodes)
        if (taken := taken_branch(node)) is not None:
            self._as_in(taken, node)
        elif node is not self.loop and read:
            if all(value in self.orders for value in read) and not any(map(is_float, node.results)):
                self.orders.update(node.results)
            elif asked != len(self.found) or any(v in self.answers or v in self.orders for v in read):
                self._ask(Question(node, lost=True))
                self.answers.update(value for value in node.results if not is_float(value))

    def _as_in(self, region: Region, node: Node) -> None:
        for inner, value in zip(region.returns, node.results, strict=True):
            for kind in (self.moving, self.answers, self.orders, self.pieced):
                if inner in kind:
                    kind.add(value)

    def _carried(self, node: Node) -> None:
        """What is known of the arguments of a loop's regions: what is carried unchanged is what was given."""
        body = node.regions[1]
        for at, operand in enumerate(node.operands):
            unchanged = body.returns[at] is body.arguments[at]
            for region in node.regions:
                argument = region.arguments[at]
                if unchanged:
                    self.given[argument] = operand
                    for kind in (self.moving, self.answers, self.orders, self.pieced):
                        if operand in kind:
                            kind.add(argument)
                elif node is self.loop or is_float(argument) or operand in self.moving:
                    self.moving.add(argument)
                    if operand in self.orders:
                        self.orders.add(argument)

    def same_as(self, value: Value) -> Value:
        """The value that ``value`` is another form of: moved, converted, negated, carried."""
        while True:
            if value in self.given:
                value = self.given[value]
            elif value.producer is not None and value.producer.name in _SAME:
                value = value.producer.operands[0]
            else:
                return value

    def is_zero(self, value: Value) -> bool:
        """Whether it is a constant zero, however it was moved and carried."""
        array = self._filling(value)
        return array is not None and not array.any()

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


def ask(nodes: Iterable[Node], known: Iterable[Value], loop: Node | None = None) -> Questions:
    """What ``nodes``, those of regions too, ask of floats and of the answers, given ``known``."""
    asked = Questions({value for value in known if of_floats(value)}, loop)
    asked.ask(nodes)
    return asked
