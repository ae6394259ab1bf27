"""The correspondence between the ops of two programs: the pairs that a diff leaves out.

Ops of equal digest are the same. An op that reads a replaced value has another digest although it is the same op; it is
found from both ends: from the results of a region towards its arguments, while ops are equal, and from paired operands
onwards. A loop whose body changed is the loop of the same place; its carried values are paired by their initial values,
and its regions are compared in turn. Last, ops left over in one region that occur in another have moved.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from fusionlab.hlo import ops
from fusionlab.hlo.diff.numbering import Digests, is_literal, literal
from fusionlab.hlo.view import FunctionView, Node, Region, Value

_MOST_ROUNDS = 8


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
        left = list(other.arguments)
        unpaired = []
        for value in region.arguments:
            found = next((one for one in left if self._digest(one, 1) == self._digest(value, 0)), None)
            if found is None:
                unpaired.append(value)
            else:
                self.values[value] = found
                left.remove(found)
        for value in unpaired:
            found = next((one for one in left if str(one.handle.type) == str(value.handle.type)), None)
            if found is not None:
                self.values[value] = found
                left.remove(found)

    def _digest(self, value: Value, side: int) -> str:
        return self._digests[side].values[value]

    def _free(self, node: Node) -> bool:
        return node not in self.ops and node not in self._taken

    def _same_digest(self, before: Iterable[Node], after: Iterable[Node]) -> list[Node]:
        """Pair ops of the same digest: first those of the same scope, then any, in order."""
        paired = []
        for scoped in (True, False):
            waiting: dict[tuple[str, str], deque[Node]] = defaultdict(deque)
            for other in filter(self._free, after):
                waiting[self._digests[1].ops[other], other.scope if scoped else ""].append(other)
            for node in filter(self._free, before):
                others = waiting.get((self._digests[0].ops[node], node.scope if scoped else ""))
                if others:
                    self._pair(node, others.popleft())
                    paired.append(node)
        return paired

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

    def _from_operands(self, before: Sequence[Node], after: Sequence[Node]) -> list[Node]:
        """Pair equal ops of corresponding operands, in program order."""
        waiting: dict[tuple[str, tuple[Value, ...]], deque[Node]] = defaultdict(deque)
        loops: dict[str, deque[Node]] = defaultdict(deque)
        for other in filter(self._free, after):
            if other.op.control_flow:
                loops[other.scope].append(other)
            else:
                waiting[self._signatures[other], tuple(map(self.origin, other.operands))].append(other)
        paired = []
        for node in filter(self._free, before):
            if node.op.control_flow:
                others = loops.get(node.scope)
            else:
                operands = tuple(self.stands_for(value) for value in node.operands)
                others = waiting.get((self._signatures[node], operands))  # type: ignore[arg-type]
            while others and not self._free(others[0]):
                others.popleft()
            if others and self._alike(node, others[0]):
                self._pair(node, others.popleft())
                paired.append(node)
        return paired

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
        old = [node for node in ops_of(before) if self._may_move(node)]
        new = [node for node in ops_of(after) if self._may_move(node)]
        self.moved.update(self._same_digest(old, new))
        self.moved.update(self._from_operands(old, new))

    def _may_move(self, node: Node) -> bool:
        return self._free(node) and not node.op.control_flow and not is_literal(node)


def ops_of(region: Region) -> Iterator[Node]:
    """Every op of ``region`` and of the loops and branches in it, without combiners of reductions."""
    for node in region.nodes:
        yield node
        if node.op.control_flow:
            for inner in node.regions:
                yield from ops_of(inner)
