"""Global value numbering: values of a view that are computed in the same way from equal values have one number.

A value that a loop carries unchanged has, inside it, the number of its initial value, so that recomputation in its body
is recognised. Results of loops and branches, and of ops with an effect, have numbers of their own; with
``equal_loops``, those of loops that carry equal values in the same way have one number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Mapping

from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.view import FunctionView, Node, Region, Value, view_of

_MOST_CHANGING = 16
"""A loop that changes more of what it carries has numbers of its own: the trips that are followed grow with them."""


class ValueNumbers(dict[Value, int]):
    """The number of every value of a function and of the regions in it.

    With ``through_reshapes``, a value that is reshaped and reshaped back keeps its number. With ``equal_loops``, so do
    values that loops carry from equal starts by equal updates while equal conditions hold, whatever else they carry
    (tangents). What two loops carry is followed through as many trips as both change values: values that are computed
    alike in each of these are so in all (Moore's refinement of states: a trip that tells no two of them apart is the
    last that could). A shorter prefix would not do: a delay line gives another number only when its end is reached.
    """

    def __init__(self, flat: Region, *, through_reshapes: bool = False, equal_loops: bool = False) -> None:
        super().__init__()
        self._through_reshapes, self._equal_loops = through_reshapes, equal_loops
        self._reshaped: dict[int, tuple[int, Hashable]] = {}
        self._fresh = itertools.count()
        self._known: dict[Hashable, int] = {}
        loops = [node for node in flat.walk() if equal_loops and self._may_equal_another(node)]
        self._trips = 1 + 2 * max((_changing(loop).count(True) for loop in loops), default=0)
        self.update((value, next(self._fresh)) for value in flat.arguments)
        self._number(flat.nodes)

    def _number(self, nodes: list[Node]) -> None:
        for node in nodes:
            if self._equal_loops and self._may_equal_another(node):
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

    def _may_equal_another(self, node: Node) -> bool:
        return node.op is ops.WHILE and not has_effect(node) and _changing(node).count(True) <= _MOST_CHANGING

    def _number_loop(self, node: Node) -> None:
        """Number what ``node`` carries by its start, and by its update and the condition in trip after trip."""
        condition, body = node.regions
        changing = _changing(node)
        starts = [self[value] for value in node.operands]
        keys: list[Hashable] = [("carried", start) for start in starts]
        for _ in range(self._trips):
            numbers = [self._numbered(key) if new else s for s, new, key in zip(starts, changing, keys, strict=True)]
            for region in (condition, body):
                self.update(zip(region.arguments, numbers, strict=True))
                self._number(region.nodes)
            goes_on = self[condition.returns[0]]
            keys = [("carried", n, self[value], goes_on) for n, value in zip(numbers, body.returns, strict=True)]
        self.update((value, self._numbered(("ended", key))) for value, key in zip(node.results, keys, strict=True))

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


def _changing(loop: Node) -> list[bool]:
    """Of each value that ``loop`` carries, whether a trip may change it."""
    body = loop.regions[1]
    return [returned is not argument for returned, argument in zip(body.returns, body.arguments, strict=True)]


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
