"""Integers made of data in a sum of derivatives, beside those of the value that is differentiated.

v = f(x)          table[floor(x)]          in both: every draw compares what it selects
s = f''(x)        other[floor(x)]          in one alone: a cell that no draw has may hold anything
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from fusionlab.equivalence.exact.coverage import DataIntegers, indices_of, makes_integers
from fusionlab.hlo import ops
from fusionlab.hlo.constants import constant_behind, fold, number_of
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, walk

INDEX_ARITHMETIC = (
    ops.ADD, ops.BROADCAST_IN_DIM, ops.COMPARE, ops.CONCATENATE, ops.CONVERT, ops.RESHAPE, ops.SELECT, ops.SLICE,
    ops.TRANSPOSE,
)  # fmt: skip
"""Ops that compute indices of others."""
_READS = (ops.DYNAMIC_SLICE, ops.GATHER)
_PLACED = (ops.BROADCAST_IN_DIM, ops.CONVERT, ops.RESHAPE, ops.TRANSPOSE)
_MOST_INDICES = 2**22
"""Elements of the largest array of indices that is evaluated."""


class DiscreteValues:
    """Integers made of data on which a sum depends in another way than its value does, which ``cone`` computes.

    Draws of integers are few: a cell beyond 1,600 or a count of 7 may occur in none. The sum has what is on the white
    list of ``coverage``, ends loops and branches as its value does, and reads and writes arrays of
    its value's shapes at its value's indices.
    """

    def __init__(self, flat: FunctionView, cone: Sequence[Node], x: Value, arguments: Sequence[Value]) -> None:
        self._arguments = arguments
        self._numbers = numbers = ValueNumbers(flat, equal_loops=True)
        self._values = {numbers.get(value): value for node in reversed(flat.nodes) for value in node.results}
        counters = [value for region in flat.regions() for value in region.arguments]
        self._moving = reached(flat, [x, *counters])
        self._of_value = {numbers.get(value) for node in walk(cone) for value in node.results}
        of_value = DataIntegers(cone, arguments)
        self._places = {self._place(of_value, node) for node in of_value.walk() if indices_of(node)}
        self._decisions = {self._decision(node) for node in of_value.walk() if node.op.control_flow}

    def outside(self, computing: Sequence[Node]) -> tuple[str, Node] | None:
        """What the first node, among those ``computing`` a sum, does that is outside the white list, and this node."""
        integers = DataIntegers(computing, self._arguments)
        for node in integers.walk():
            if self._is_own(node) and (reason := self._reason(integers, node)) is not None:
                return f"{reason} as its value does not", node
        return None

    def _is_own(self, node: Node) -> bool:
        return bool(node.results) and self._numbers.get(node.results[0]) not in self._of_value

    def _reason(self, integers: DataIntegers, node: Node) -> str | None:
        if makes_integers(node) and node.operands[0] in integers.kinds:
            return "makes integers of floats"
        if (reason := integers.outside(node)) is None:
            return None
        if node.op.control_flow:
            return None if self._decision(node) in self._decisions else reason
        if not indices_of(node) or self._place(integers, node) not in self._places:
            return reason
        return f"{reason} of a table" if node.op in _READS and self._has_table(node.operands[0]) else None

    def _decision(self, node: Node) -> int | None:
        """The number of the predicate that ends a loop or chooses a branch."""
        return self._numbers.get(node.regions[0].returns[0] if node.op is ops.WHILE else node.operands[0])

    def _place(self, integers: DataIntegers, node: Node) -> tuple[frozenset[int | None], tuple[int, ...]]:
        """The integers at which ``node`` reads or writes, by their numbers, and the extents of the array."""
        found: set[int | None] = set()
        open_ = [value for value in indices_of(node) if value in integers.kinds]
        seen = set(open_)
        while open_:
            value = open_.pop()
            if value.producer is None:  # carried by a loop, unchanged
                value = self._values.get(self._numbers.get(value), value)
            made = value.producer
            if made is not None and (made.op.strided or made.op in (*INDEX_ARITHMETIC, ops.CLAMP)):
                new = [v for v in made.operands if v in integers.kinds and v.dtype != "i1" and v not in seen]
                seen.update(new)
                open_ += new
            else:
                found.add(self._numbers.get(value))
        return frozenset(found), node.operands[0].type.shape

    def _has_table(self, value: Value) -> bool:
        """True if constants or parameters of several elements enter ``value`` elementwise, other than unit vectors."""
        open_, seen = [value], {value}
        while open_:
            value = open_.pop()
            made = value.producer
            if value not in self._moving:
                if math.prod(value.type.shape) > 1 and number_of(value) is None and not _has_unit_vectors(value):
                    return True
            elif made is not None and self._is_own(made) and (made.family == "elementwise" or made.op.strided):
                new = [operand for operand in made.operands if operand not in seen]
                seen.update(new)
                open_ += new
        return False


def _has_unit_vectors(value: Value) -> bool:
    """True for constants that are 1 at one place along some axis, and 0 elsewhere."""
    array = constant_behind(value, _PLACED)
    while value.producer is not None and value.producer.op in _PLACED:
        value = value.producer.operands[0]
    array = fold(value, most_elements=_MOST_INDICES) if array is None else array
    if array is None or not np.isin(array, (0, 1)).all():
        return False
    return any((array.sum(axis) == 1).all() for axis in range(array.ndim))
