"""What a program's picture by scope has as blocks: operations of one scope down to a depth, of one role and loop.

A loop with enough inside is a frame; a small one belongs to the block that it stands in. Layers without scopes of their
own (``parts``) get some. What does next to nothing is part of the scope around it, and what repeats (``repeats``) is
one block.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fusionlab.hlo.graph import graph, nodes_by_id
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.view import FunctionView
from fusionlab.report.boxes import BOX_FAMILIES, adopt_constants, named_scopes
from fusionlab.report.drawing import Row
from fusionlab.report.parts import with_parts
from fusionlab.report.repeats import Repeat, Scope, find_repeats

_LEAST_INSIDE = 100
"""Operations that a loop must hold to be a frame."""
_SMALLEST_SHARE = 0.0005
"""Of all bytes: a scope under it is no block of its own."""

Key = tuple[tuple[str, ...], str, tuple[str, ...], str]
"""Loops around it (node ids), phase, scope, role."""


@dataclass
class ScopeLeaf:
    """``members`` are graph node ids; ``sizes`` how many operations, but constants, each part of a repeat has."""

    key: Key
    members: list[str] = field(default_factory=list)
    repeat: Repeat | None = None
    sizes: tuple[int, ...] = ()


class ScopeLeaves:
    """The leaves of a program, ``depth`` scopes down, and where they stand among its loops."""

    def __init__(self, flat: FunctionView, depth: int, *, expand: bool) -> None:
        self.depth = depth
        self.view = graph(flat)
        self.replays = _loops(flat)
        self.inside = Counter(
            loop for node, facts in self.view.nodes(data=True) if facts["kind"] == "op" for loop in self.around(node)
        )
        leaves = self._folded(self._leaves())
        self.leaves = leaves if expand else list(self._collapsed(leaves))

    def around(self, node: str) -> tuple[str, ...]:
        """The loops and branches around ``node``, outermost first."""
        found: list[str] = []
        parent = self.view.nodes[node]["parent"]
        while parent:
            found.append(parent)
            parent = self.view.nodes[parent]["parent"]
        return tuple(reversed(found))

    def is_frame(self, loop: str) -> bool:
        """Whether ``loop`` is drawn as a frame: a loop with enough inside."""
        return self.view.nodes[loop]["name"] == "stablehlo.while" and self.inside[loop] >= _LEAST_INSIDE

    def _stands_in(self, node: str) -> tuple[str, tuple[str, ...]]:
        """The node that says where ``node`` belongs (itself, or the small loop around it), and the frames around."""
        frames: list[str] = []
        for loop in self.around(node):
            if not self.is_frame(loop):
                return loop, tuple(frames)
            frames.append(loop)
        return node, tuple(frames)

    def _leaves(self) -> dict[Key, ScopeLeaf]:
        keys: dict[str, Key] = {}
        stands_in: dict[str, str] = {}
        for node, facts in self.view.nodes(data=True):
            if facts["kind"] != "op" or self.is_frame(node):
                continue
            stands_in[node], loops = self._stands_in(node)
            there = self.view.nodes[stands_in[node]]
            scope = named_scopes(there["scope"])
            keys[node] = loops, there["phase"], scope, there["role"]
        if self.depth > 1:
            divided = self._with_parts({node: key for node, key in keys.items() if stands_in[node] == node})
            keys = {node: divided.get(stands_in[node], key) for node, key in keys.items()}
        keys = {node: (loops, phase, scope[: self.depth], role) for node, (loops, phase, scope, role) in keys.items()}
        adopt_constants(self.view, keys)
        found: dict[Key, ScopeLeaf] = {}
        for node, key in keys.items():
            found.setdefault(key, ScopeLeaf(key)).members.append(node)
        return found

    def _with_parts(self, keys: dict[str, Key]) -> dict[str, Key]:
        """Keys with a scope ``part_1``, ``part_2``, ... in stages whose layers have no scopes of their own."""
        paths = {node: scope for node, (_, _, scope, _) in keys.items()}
        groups = {node: (loops, phase, role) for node, (loops, phase, _, role) in keys.items()}
        found = with_parts(self.view, paths, groups)
        return {node: (keys[node][0], keys[node][1], path, keys[node][3]) for node, path in found.items()}

    def _folded(self, found: dict[Key, ScopeLeaf]) -> list[ScopeLeaf]:
        """The leaves without those that do next to nothing: these are part of the scope around them, if it is drawn."""
        work = {key: sum(row.bytes for row in self.rows(leaf)) for key, leaf in found.items()}
        least = _SMALLEST_SHARE * sum(work.values())
        for key in sorted(found, key=lambda key: -len(key[2])):
            loops, phase, scope, role = key
            outer = (loops, phase, scope[:-1], role)
            is_part = bool(scope) and not scope[-1].startswith("stage_")
            if is_part and work[key] < least and outer in found:
                found[outer].members += found.pop(key).members
                work[outer] += work[key]
        return list(found.values())

    def _collapsed(self, leaves: Iterable[ScopeLeaf]) -> Iterator[ScopeLeaf]:
        siblings: dict[tuple[object, ...], list[ScopeLeaf]] = defaultdict(list)
        for leaf in leaves:
            loops, phase, scope, role = leaf.key
            siblings[loops, phase, scope[:-1], role].append(leaf)
        merged: dict[int, ScopeLeaf] = {}
        gone: set[int] = set()
        for group in siblings.values():
            by_name = {leaf.key[2][-1]: leaf for leaf in group if leaf.key[2]}
            for repeat in find_repeats({name: self._scope(leaf) for name, leaf in by_name.items()}):
                parts = [by_name[name] for name in repeat.names]
                members = [node for part in parts for node in part.members]
                loops, phase, scope, role = parts[0].key
                sizes = tuple(self._scope(part).size for part in parts)
                key = loops, phase, (*scope[:-1], repeat.title), role
                merged[id(parts[0])] = ScopeLeaf(key, members, repeat, sizes)
                gone |= {id(part) for part in parts[1:]}
        for leaf in leaves:
            if id(leaf) not in gone:
                yield merged.get(id(leaf), leaf)

    def _scope(self, leaf: ScopeLeaf) -> Scope:
        facts = [self.view.nodes[node] for node in leaf.members if self.view.nodes[node]["family"] != "constant"]
        return Scope.of(facts)

    def trips(self, loops: Iterable[str]) -> int:
        """How often what is inside of all ``loops`` runs; a loop of unknown trips counts once."""
        runs = 1
        for loop in loops:
            replay = self.replays.get(loop)
            runs *= (replay.trips if replay else None) or 1
        return runs

    def rows(self, leaf: ScopeLeaf) -> tuple[Row, ...]:
        """A row per op family, figures of all trips, the largest first."""
        runs = self.trips(leaf.key[0])
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for node in leaf.members:
            facts = self.view.nodes[node]
            if facts["family"] == "control":
                continue
            mine = totals[BOX_FAMILIES.get(facts["family"], facts["family"])]
            mine[0] += 1
            mine[1] += facts["flops"] * runs
            mine[2] += facts["bytes"] * runs
        rows = [Row(family, *figures) for family, figures in totals.items()]
        return tuple(sorted(rows, key=lambda row: (-row.bytes, row.family)))


def _loops(flat: FunctionView) -> dict[str, Replay]:
    """Node id of every loop to what the inventory says of it."""
    known = {replay.loop.node: replay for replay in inventory(flat)}
    return {name: known[node] for name, node in nodes_by_id(flat, flat.name).items() if node in known}
