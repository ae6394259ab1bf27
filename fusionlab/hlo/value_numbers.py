"""Global value numbering: values of a view that are computed in the same way from equal values have one number.

A value that a loop carries unchanged has, inside it, the number of its initial value, so that recomputation in its body
is recognised. Results of loops and branches, and of ops with an effect, have numbers of their own; with
``equal_loops``, those of loops that carry equal values in the same way have one number. A loop in a loop is followed
through its trips within each trip around it; one whose body would be numbered too often keeps numbers of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping

from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.dependence import sources_of
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.view import FunctionView, Node, Region, Value, view_of

_MOST_TOGETHER = 16
"""A value that a loop computes from more of what it changes has numbers of its own: the trips that are followed grow
with them."""
_MOST_PASSES = 1000
"""A loop in loops whose body would be numbered more often has numbers of its own."""


class ValueNumbers(dict[Value, int]):
    """The number of every value of a function and of the regions in it.

    With ``through_reshapes``, a value that is reshaped and reshaped back keeps its number. With ``equal_loops``, so do
    values that loops carry from equal starts by equal updates while equal conditions hold, whatever else they carry
    (tangents). They are followed through 1 + 2 n trips, where n is the most changing values that an update depends on:
    what is computed alike in each of these trips is so in all, by Moore's refinement of states. Each trip that tells
    values of two loops apart splits a class of at most 2 n, and the first that does not is the last that could. Three
    trips would not do: a delay line gives another number only when its end is reached.
    """

    def __init__(self, flat: Region, *, through_reshapes: bool = False, equal_loops: bool = False) -> None:
        super().__init__()
        self._through_reshapes = through_reshapes
        self._reshaped: dict[int, tuple[int, Hashable]] = {}
        self._fresh = itertools.count()
        self._known: dict[Hashable, int] = {}
        loops = (node for node in flat.walk() if node.op is ops.WHILE and not has_effect(node)) if equal_loops else ()
        self._together = {loop: _together(loop) for loop in loops}
        counts = (count for each in self._together.values() for count in each if count <= _MOST_TOGETHER)
        self._trips = 1 + 2 * max(counts, default=0)
        self._around: list[set[int]] = []
        self.update((value, next(self._fresh)) for value in flat.arguments)
        self._number(flat.nodes)

    def _number(self, nodes: list[Node]) -> None:
        for node in nodes:
            if node in self._together and self._trips ** (len(self._around) + 1) <= _MOST_PASSES:
                self._number_loop(node)
                continue
            if node.op.control_flow or has_effect(node):
                self._number_regions(node)
                self.update((value, next(self._fresh)) for value in node.results)
                continue
            if self._through_reshapes and node.op is ops.RESHAPE:
                self[node.results[0]] = self._reshape(node)
                continue
            key = self._key(node)
            for value in node.results:
                self[value] = self._numbered((key, value.index))

    def _reshape(self, node: Node) -> int:
        """The number of the same elements in this shape, whatever the intermediate shapes."""
        given, made = self[node.operands[0]], _type_of(node.results[0])
        first, shape = self._reshaped.get(given, (given, _type_of(node.operands[0])))
        if made == shape:
            return first
        number = self._numbered(("reshape", first, made))
        self._reshaped[number] = (first, shape)
        return number

    def _numbered(self, key: Hashable) -> int:
        if key not in self._known:
            self._known[key] = next(self._fresh)
        return self._known[key]

    def _number_regions(self, node: Node) -> None:
        for region in node.regions:
            for at, argument in enumerate(region.arguments):
                unchanged = node.op is ops.WHILE and node.regions[1].returns[at] is node.regions[1].arguments[at]
                self[argument] = self[node.operands[at]] if unchanged else next(self._fresh)
            self._number(region.nodes)

    def _number_loop(self, node: Node) -> None:
        """Number what ``node`` carries by its start, and by its update and the condition in trip after trip.

        An inner loop whose values would have the numbers of an enclosing loop's is numbered apart: their trips differ.
        """
        for apart in itertools.count():
            if self._followed(node, apart):
                return

    def _followed(self, node: Node, apart: int) -> bool:
        """Number ``node``; False if it has the numbers of a loop around it, from which another ``apart`` tells it."""
        condition, body = node.regions
        together = self._together[node]
        starts = [self[value] for value in node.operands]
        keys: list[Hashable] = [("carried", apart, start) for start in starts]
        for trip in range(self._trips):
            numbers = [
                start if not count else self._numbered(key) if count <= _MOST_TOGETHER else next(self._fresh)
                for start, count, key in zip(starts, together, keys, strict=True)
            ]
            changing = {number for number, count in zip(numbers, together, strict=True) if count}
            if trip == self._trips - 1 and not all(map(changing.isdisjoint, self._around)):
                return False
            self._around.append(changing)
            for region in (condition, body):
                self.update(zip(region.arguments, numbers, strict=True))
                self._number(region.nodes)
            self._around.pop()
            goes_on = self[condition.returns[0]]
            keys = [("carried", n, self[value], goes_on) for n, value in zip(numbers, body.returns, strict=True)]
        self.update((value, self._numbered(("ended", key))) for value, key in zip(node.results, keys, strict=True))
        return True

    def _key(self, node: Node) -> Hashable:
        for region in node.regions:  # combiners: their arguments are the same everywhere
            self.update((a, self._numbered(("argument", at, _type_of(a)))) for at, a in enumerate(region.arguments))
            self._number(region.nodes)
        return (
            node.name,
            frozenset(node.attributes.items()),
            tuple(self[value] for value in node.operands),
            tuple(map(_type_of, node.results)),
            tuple(self[value] for region in node.regions for value in region.returns),
        )


def _together(loop: Node) -> list[int]:
    """Of each value that ``loop`` carries, the number of changing ones that it is computed from in some trip, or that
    end the loop; 0 if no trip changes it."""
    body = loop.regions[1]
    changing = [old for old, new in zip(body.arguments, body.returns, strict=True) if new is not old]
    sources = sources_of(loop, changing)
    return [sources.get(value, 0).bit_count() for value in body.arguments]


def _type_of(value: Value) -> Hashable:
    """The type: its text takes longer to make than to compare all else."""
    return value.type if value.is_array else str(value.handle.type)


def simplified_view(module: ir.Module, prepare: Callable[[FunctionView], None] | None = None) -> FunctionView:
    """The view of the entry of ``module`` with equal values merged: all read the first one of their number.

    ``prepare`` may change the view before.

    The module stays as it is; nodes of regions stay where they are. Values computed from constants alone are not
    merged: zeros of sixteen walkers and zeros of sixteen determinants are equal only until the number of walkers
    changes.
    """
    flat = view_of(module)
    if prepare is not None:
        prepare(flat)
    numbers = ValueNumbers(flat)
    fills = _from_constants(flat)
    first: dict[int, Value] = {}
    for value in (*flat.arguments, *(value for node in flat.nodes for value in node.results)):
        first.setdefault(numbers[value], value)
    top = {value for node in flat.nodes for value in node.results} - fills
    substitute(flat, {value: first[numbers[value]] for value in top})
    kept = fills.union(first.values())
    flat.nodes = [node for node in flat.nodes if not node.results or not kept.isdisjoint(node.results)]
    return flat


def substitute(flat: Region, instead: Mapping[Value, Value]) -> None:
    """Let all of ``flat``, a view that nobody else has yet, read other values."""
    for node in flat.walk():
        node.operands = tuple(instead.get(value, value) for value in node.operands)
    for region in flat.regions():
        region.returns = tuple(instead.get(value, value) for value in region.returns)


def _from_constants(flat: FunctionView) -> set[Value]:
    """Results of the ops of ``flat`` that read nothing but constants; not those of loops and branches."""
    found: set[Value] = set()
    for node in flat.nodes:
        if not node.regions and not has_effect(node) and found.issuperset(node.operands):
            found.update(node.results)
    return found
