"""The correspondence between the ops of two programs: the pairs that a diff leaves out.

Ops of equal digest are the same. An op that reads a replaced value has another digest although it is the same op; it is
found from both ends: from the results of a region towards its arguments, while ops are equal, and from paired operands
onwards. A loop whose body changed is the loop of the same place; its carried values are paired by their initial values,
and its regions are compared in turn. Last, ops left over in one region that occur in another have moved.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Sequence

from fusionlab.hlo import ops
from fusionlab.hlo.diff.numbering import Digests, is_literal, literal
from fusionlab.hlo.view import FunctionView, Node, Region, Value

_MOST_ROUNDS = 8

Key = Hashable
KeyOf = Callable[[Node], Key]


class Matching:
    """``ops`` and ``values`` pair the first program's with the second's; ``moved`` are those ops in other regions now.

    ``replaced`` maps a value of the first program to the one of the second that replaces it, where another op
    computes it.
    """

    def __init__(self, old: Digests, new: Digests) -> None:
        before, after = old.flat, new.flat
        self.ops: dict[Node, Node] = {}
        self.values: dict[Value, Value] = {}
        self.replaced: dict[Value, Value] = {}
        self.moved: set[Node] = set()
        self._taken: set[Node] = set()
        self._digests = (old, new)
        self._origins = old.origins | new.origins
        self._signatures = old.signatures | new.signatures
        self.values.update(zip(before.arguments, after.arguments, strict=False))
        self._compare(before, after, list(zip(before.returns, after.returns, strict=False)))
        self._find_moved(before, after)

    def _compare(self, before: Region, after: Region, returned: Sequence[tuple[Value, Value]]) -> None:
        """Pair the ops of two corresponding regions, and of the regions in them."""
        self._same_digest(before.nodes, after.nodes)
        for _ in range(_MOST_ROUNDS):
            known = len(self.ops)
            self._from_returns(returned, before, after)
            self._from_operands(before.nodes, after.nodes)
            if len(self.ops) == known and not self._same_place(before.nodes, after.nodes):
                break
        for node in before.nodes:
            if node in self.ops:
                for inner, other in zip(node.regions, self.ops[node].regions, strict=True):
                    self._pair_arguments(inner, other)
                    self._compare(inner, other, self._returned(node, inner, other))

    def _returned(self, node: Node, region: Region, other: Region) -> list[tuple[Value, Value]]:
        """The results of two regions in pairs; of loops, the next values of paired carried values."""
        if node.op is not ops.WHILE or region is not node.regions[1]:
            return list(zip(region.returns, other.returns, strict=False))
        pairs = ((value, self.values.get(value)) for value in region.arguments)
        return [(region.returns[value.index], other.returns[to.index]) for value, to in pairs if to is not None]

    def _pair(self, node: Node, other: Node) -> None:
        self.ops[node] = other
        self._taken.add(other)
        if node.op is ops.WHILE:
            self._pair_arguments(node.regions[1], other.regions[1])
            positions = {value.index: self.values.get(value) for value in node.regions[1].arguments}
            pairs = [(i, argument.index) for i, argument in positions.items() if argument is not None]
        else:
            pairs = [(i, i) for i in range(min(len(node.results), len(other.results)))]
        self.values.update({node.results[i]: other.results[j] for i, j in pairs})

    def _pair_arguments(self, region: Region, other: Region) -> None:
        """Pair arguments by their initial values, the others by type and order."""
        left, right = list(region.arguments), list(other.arguments)
        for keys in ([digests.values.__getitem__ for digests in self._digests], [_type_text] * 2):
            for value in list(left):
                if (found := next((one for one in right if keys[1](one) == keys[0](value)), None)) is not None:
                    self.values[value] = found
                    left.remove(value)
                    right.remove(found)

    def _free(self, node: Node) -> bool:
        return node not in self.ops and node not in self._taken

    def _pair_equal(
        self,
        before: Iterable[Node],
        after: Iterable[Node],
        key: Callable[[Node], Key],
        other_key: Callable[[Node], Key],
    ) -> list[Node]:
        """Pair ops of equal keys in order; ``key`` may depend on the pairs that were made before."""
        waiting: dict[Key, deque[Node]] = defaultdict(deque)
        for other in filter(self._free, after):
            waiting[other_key(other)].append(other)
        paired = []
        for node in filter(self._free, before):
            if others := waiting.get(key(node)):
                self._pair(node, others.popleft())
                paired.append(node)
        return paired

    def _same_digest(self, before: Sequence[Node], after: Sequence[Node]) -> list[Node]:
        """Pair ops of the same digest: first those of the same scope, then any."""
        old, new = (digests.ops for digests in self._digests)
        scoped = self._pair_equal(before, after, lambda n: (old[n], n.scope), lambda n: (new[n], n.scope))
        return scoped + self._pair_equal(before, after, old.__getitem__, new.__getitem__)

    def _from_operands(self, before: Sequence[Node], after: Sequence[Node]) -> list[Node]:
        """Pair equal ops of corresponding operands, and loops and branches of one scope, in program order."""

        def key(node: Node, value_of: Callable[[Value], Value | None]) -> Key:
            if node.op.control_flow:
                return node.name, node.scope, len(node.regions)
            return self._signatures[node], tuple(map(value_of, node.operands))

        return self._pair_equal(before, after, lambda n: key(n, self.stands_for), lambda n: key(n, self.origin))

    def _from_returns(self, pairs: Iterable[tuple[Value, Value]], before: Region, after: Region) -> None:
        """Go from corresponding values to their producers, as long as these are equal but for their operands."""
        here, there = set(before.nodes), set(after.nodes)
        waiting = deque(pairs)
        seen: set[tuple[Value, Value]] = set()
        while waiting:
            value, other = map(self.origin, waiting.popleft())
            node, reached = value.producer, other.producer
            if (value, other) in seen or self.values.get(value) is other or node not in here or reached not in there:
                continue
            seen.add((value, other))
            assert node is not None
            assert reached is not None
            if not (self._free(node) and self._free(reached) and self._alike(node, reached)):
                if value not in self.values:
                    self.replaced.setdefault(value, other)
                continue
            self._pair(node, reached)
            if node.op is not ops.WHILE:
                waiting.extend(zip(node.operands, reached.operands, strict=True))

    def _alike(self, node: Node, other: Node) -> bool:
        if node.op.control_flow:
            return node.name == other.name and len(node.regions) == len(other.regions) and node.scope == other.scope
        return self._signatures[node] == self._signatures[other] and len(node.operands) == len(other.operands)

    def origin(self, value: Value) -> Value:
        """``value``, or the initial value of the loop that carries it unchanged."""
        return self._origins.get(value, value)

    def stands_for(self, value: Value) -> Value | None:
        """The value of the second program that is, or replaces, ``value`` of the first."""
        value = self.origin(value)
        found = self.values.get(value, self.replaced.get(value))
        return None if found is None else self.origin(found)

    def same(self, value: Value, other: Value) -> bool:
        """True if ``value`` of the first program is ``other`` of the second; equal constants are the same."""
        if literal(value) and literal(value) == literal(other):
            return True
        found = self.values.get(self.origin(value))
        return found is not None and self.origin(found) is self.origin(other)

    def _same_place(self, before: Sequence[Node], after: Sequence[Node]) -> bool:
        """Pair equal ops of one scope that share an operand; True if any was paired."""
        waiting: dict[tuple[str, str], list[Node]] = defaultdict(list)
        for other in filter(self._free, after):
            waiting[self._signatures[other], other.scope].append(other)
        paired = False
        for node in filter(self._free, before):
            others = waiting.get((self._signatures[node], node.scope), [])
            found = next((one for one in others if self._share(node, one)), None)
            if found is not None and self._alike(node, found):
                others.remove(found)
                self._pair(node, found)
                paired = True
        return paired

    def _share(self, node: Node, other: Node) -> bool:
        pairs = zip(node.operands, other.operands, strict=False)
        return any(self.stands_for(value) is self.origin(read) for value, read in pairs)

    def _find_moved(self, before: FunctionView, after: FunctionView) -> None:
        """Pair the ops that are left across regions: they have moved."""
        old = [node for node in before.operations() if self._may_move(node)]
        new = [node for node in after.operations() if self._may_move(node)]
        self.moved.update(self._same_digest(old, new))
        self.moved.update(self._from_operands(old, new))

    def _may_move(self, node: Node) -> bool:
        return self._free(node) and not node.op.control_flow and not is_literal(node)


def _type_text(value: Value) -> str:
    return str(value.handle.type)
