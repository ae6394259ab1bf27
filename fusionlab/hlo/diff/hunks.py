"""From programs to the hunks of their difference: pair ops, group connected changes, name and print them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import networkx as nx

from fusionlab.hlo.diff.lines import Names, line_of, loop_label
from fusionlab.hlo.diff.matching import Matching
from fusionlab.hlo.diff.numbering import Digests, is_literal
from fusionlab.hlo.diff.records import Hunk, ModuleDiff, Moved, OpLine, Rewired
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Region, view_of


@dataclass(frozen=True)
class ComparedPrograms:
    """``diffs`` from each program to the next, the views of all programs, and the names that their values have."""

    diffs: tuple[ModuleDiff, ...]
    views: tuple[Digests, ...]
    names: Names


def diff_programs(programs: Sequence[Program]) -> tuple[ModuleDiff, ...]:
    """The changes from each of ``programs`` to the next; values keep their names through all of them."""
    return compare_programs(programs).diffs if programs else ()


def compare_programs(programs: Sequence[Program]) -> ComparedPrograms:
    """The changes from each of ``programs`` (at least one) to the next, with the views that the names belong to."""
    before = Digests(view_of(programs[0].parse()))  # own views: a program may be among them twice, with other names
    names = Names(before.flat)
    diffs, views = [], [before]
    for last, program in itertools.pairwise(programs):
        after = before if program.bytecode == last.bytecode else Digests(view_of(program.parse()))
        diffs.append(_Diff(before, after, names).diff)
        before = after
        views.append(after)
    return ComparedPrograms(tuple(diffs), tuple(views), names)


class _Diff:
    def __init__(self, old: Digests, new: Digests, names: Names) -> None:
        before, after = old.flat, new.flat
        self.diff = ModuleDiff((), sum(not is_literal(node) for node in before.operations()))
        if before is after:
            return
        self._match = Matching(old, new)
        names.adopt(self._match.values, after)
        self._names = names
        self._order = {node: i for i, node in enumerate((*before.operations(), *after.operations()))}
        self._loops = dict((*_loops(before), *_loops(after)))
        self._labels: dict[Node, str] = {}
        paired = self._match.ops
        stays = set(paired.values())
        self._removed = {node for node in before.operations() if node not in paired and not is_literal(node)}
        self._added = {node for node in after.operations() if node not in stays and not is_literal(node)}
        self._rewired = {node for node, other in paired.items() if self._reads_another(node, other)}
        changed = [*self._removed, *self._added, *self._match.moved, *self._rewired]
        self._there = {other: node for node, other in paired.items()}
        self._changes: nx.Graph[Node] = nx.Graph()
        self._changes.add_nodes_from(sorted(changed, key=self._order.__getitem__))
        self._connect()
        groups = [sorted(group, key=self._order.__getitem__) for group in nx.connected_components(self._changes)]
        hunks = tuple(self._hunk(group) for group in sorted(groups, key=lambda group: self._order[group[0]]))
        same = [n for n in paired if not is_literal(n) and n in self._order and n not in self._changes]
        self.diff = ModuleDiff(hunks, len(same))

    def _reads_another(self, node: Node, other: Node) -> bool:
        if node.op.control_flow:
            return False
        pairs = zip(node.operands, other.operands, strict=True)
        return any(not self._match.same(value, read) for value, read in pairs)

    def _join(self, first: Node | None, second: Node | None) -> None:
        if first in self._changes and second in self._changes:
            self._changes.add_edge(first, second)

    def _connect(self) -> None:
        """Connect changes along operands, from a replaced op to its replacement, and within a loop."""
        places: dict[tuple[Node | None, Node | None], Node] = {}
        for node in list(self._changes):
            other = self._match.ops.get(node)
            for value in (*node.operands, *(other.operands if other else ())):
                producer = self._match.origin(value).producer
                self._join(node, self._there.get(producer, producer) if producer else None)
            owner = self._loops.get(node)
            if node not in self._match.moved:
                self._join(node, owner)
            else:
                assert other is not None
                self._join(node, places.setdefault((owner, self._loops.get(other)), node))
        for value, other_value in self._match.replaced.items():
            self._join(value.producer, other_value.producer)

    def _hunk(self, group: Sequence[Node]) -> Hunk:
        removed = [node for node in group if node in self._removed]
        added = [node for node in group if node in self._added]
        moved = [node for node in group if node in self._match.moved]
        rewired = [node for node in group if node in self._rewired and node not in self._match.moved]
        first = group[0]
        return Hunk(
            scope=common_scope([node.scope for node in group]),
            loop=self._label(first),
            reads=self._read_by((*removed, *added)),
            removed=tuple(map(self._line, removed)),
            added=tuple(map(self._line, added)),
            moved=tuple(Moved(self._line(node), self._label(self._match.ops[node])) for node in moved),
            rewired=tuple(map(self._rewiring, rewired)),
        )

    def _rewiring(self, node: Node) -> Rewired:
        now = tuple(self._names[self._match.origin(value)] for value in self._match.ops[node].operands)
        return Rewired(self._line(node), now)

    def _read_by(self, nodes: Sequence[Node]) -> tuple[OpLine, ...]:
        """The unchanged ops that ``nodes`` read, each once, in order."""
        found: dict[Node, None] = {}
        for node in nodes:
            for value in map(self._match.origin, node.operands):
                producer = value.producer
                unchanged = self._there.get(producer, producer) if producer else None
                if unchanged is not None and unchanged not in self._changes and not is_literal(unchanged):
                    found[unchanged] = None
        return tuple(self._line(node) for node in sorted(found, key=self._order.__getitem__))

    def _line(self, node: Node) -> OpLine:
        return line_of(node, self._names, self._match.origin, self._label(node))

    def _label(self, node: Node) -> str:
        owner = self._loops.get(node)
        if owner is None:
            return ""
        if owner not in self._labels:
            self._labels[owner] = loop_label(owner, self._names)
        return self._labels[owner]


def common_scope(scopes: Sequence[str]) -> str:
    """The longest common prefix of ``scopes``, in parts of name stacks, without the last part, which names the op."""
    paths = [scope.split("/")[:-1] for scope in scopes if "/" in scope]
    common = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return "/".join(parts[0] for parts in common)


def _loops(region: Region, owner: Node | None = None) -> Iterator[tuple[Node, Node]]:
    """Every op in a loop or branch, with the innermost one around it."""
    for node in region.nodes:
        if owner is not None:
            yield node, owner
        if node.op.control_flow:
            for inner in node.regions:
                yield from _loops(inner, node)
