"""The picture of a whole program by scope: phases and loops as frames, scopes down to a depth as blocks.

A loop with enough inside is a frame, with a gate where its values enter (residuals and weights that every trip reads,
by bytes) and one where its result leaves; a small one belongs to the block that it stands in. Figures are of all
trips. What repeats (``repeats``) is one block.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fusionlab.hlo.flat import FlatFunction, flatten
from fusionlab.hlo.graph import graph, nodes_by_id
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.report.boxes import BOX_FAMILIES, Flow, adopt_constants, scope_path
from fusionlab.report.dot import bytes_text, flops_text
from fusionlab.report.drawing import Block, Drawing, Group, Row
from fusionlab.report.panel_label import STAGE_WORDS
from fusionlab.report.repeats import Repeat, Scope, find_repeats

_LEAST_INSIDE = 100
"""Operations that a loop must hold to be a frame."""
_SMALLEST_SHARE = 0.0005
"""Of all bytes: a scope under it is no block of its own."""
_NAME = re.compile(r"[A-Za-z]\w*")
_PHASES = {"": "outside of every scope", "mcmc": "sampling"}

Key = tuple[tuple[str, ...], str, tuple[str, ...], str]
"""Loops around it (node ids), phase, scope, role."""


@dataclass
class _Leaf:
    key: Key
    members: list[str] = field(default_factory=list)
    repeat: Repeat | None = None


def scope_drawing(program: Program, depth: int = 2, *, expand: bool = False) -> Drawing:
    """The drawing of ``program`` with scopes down to ``depth`` (1: stages; 2: what is in them; ...).

    ``expand`` draws what repeats one by one.
    """
    flat = flatten(program.parse())
    return _View(program.name, flat, depth, expand).drawing()


class _View:
    def __init__(self, name: str, flat: FlatFunction, depth: int, expand: bool) -> None:
        self.name, self.depth, self.expand = name, depth, expand
        self.view = graph(flat)
        self.replays = _loops(flat)
        self.inside = Counter(
            loop for node, facts in self.view.nodes(data=True) if facts["kind"] == "op" for loop in self._around(node)
        )
        self.leaves = self._leaves()
        self.position = {node: i for i, leaf in enumerate(self.leaves) for node in leaf.members}

    def drawing(self) -> Drawing:
        gates = [loop for loop in self.inside if self._is_frame(loop)]
        first = len(self.leaves)
        entry = {loop: first + 2 * i for i, loop in enumerate(gates)}
        leave = {loop: first + 2 * i + 1 for i, loop in enumerate(gates)}
        flows = self._flows(entry, leave)
        blocks = [self._block(leaf) for leaf in self.leaves]
        for loop in gates:
            blocks += [self._entry(loop), Block("results of the loop", self._groups(loop), look="gate")]
        order = self._reading_order(gates)
        place = {old: new for new, old in enumerate(order)}
        moved = tuple(Flow(place[f.source], place[f.target], f.bytes, f.values) for f in flows)
        return Drawing(
            f"{self.name}: the program by scope",
            (self._figures(),),
            self._frames(gates),
            tuple(blocks[old] for old in order),
            moved,
            notes=("figures are of all trips of a loop (model: every operation on its own, nothing fused)",),
        )

    def _around(self, node: str) -> tuple[str, ...]:
        """The loops and branches around ``node``, outermost first."""
        found: list[str] = []
        parent = self.view.nodes[node]["parent"]
        while parent:
            found.append(parent)
            parent = self.view.nodes[parent]["parent"]
        return tuple(reversed(found))

    def _is_frame(self, loop: str) -> bool:
        return self.view.nodes[loop]["name"] == "stablehlo.while" and self.inside[loop] >= _LEAST_INSIDE

    def _stands_in(self, node: str) -> tuple[str, tuple[str, ...]]:
        """The node that says where ``node`` belongs (itself, or the small loop around it), and the frames around."""
        frames: list[str] = []
        for loop in self._around(node):
            if not self._is_frame(loop):
                return loop, tuple(frames)
            frames.append(loop)
        return node, tuple(frames)

    def _leaves(self) -> list[_Leaf]:
        keys: dict[str, Key] = {}
        for node, facts in self.view.nodes(data=True):
            if facts["kind"] != "op" or self._is_frame(node):
                continue
            at, loops = self._stands_in(node)
            there = self.view.nodes[at]
            scope = tuple(name for name in scope_path(there["scope"]) if _NAME.fullmatch(name))
            keys[node] = loops, there["phase"], scope[: self.depth], there["role"]
        adopt_constants(self.view, keys)
        found: dict[Key, _Leaf] = {}
        for node, key in keys.items():
            found.setdefault(key, _Leaf(key)).members.append(node)
        leaves = self._folded(found)
        return leaves if self.expand else list(self._collapsed(leaves))

    def _folded(self, found: dict[Key, _Leaf]) -> list[_Leaf]:
        """The leaves without those that do next to nothing: these are part of the scope around them, if it is drawn."""
        work = {key: sum(row.bytes for row in self._rows(leaf)) for key, leaf in found.items()}
        least = _SMALLEST_SHARE * sum(work.values())
        for key in sorted(found, key=lambda key: -len(key[2])):
            loops, phase, scope, role = key
            outer = (loops, phase, scope[:-1], role)
            is_part = bool(scope) and not scope[-1].startswith("stage_")
            if is_part and work[key] < least and outer in found:
                found[outer].members += found.pop(key).members
                work[outer] += work[key]
        return list(found.values())

    def _collapsed(self, leaves: Iterable[_Leaf]) -> Iterator[_Leaf]:
        siblings: dict[tuple[object, ...], list[_Leaf]] = defaultdict(list)
        for leaf in leaves:
            loops, phase, scope, role = leaf.key
            siblings[loops, phase, scope[:-1], role].append(leaf)
        merged: dict[int, _Leaf] = {}
        gone: set[int] = set()
        for group in siblings.values():
            by_name = {leaf.key[2][-1]: leaf for leaf in group if leaf.key[2]}
            for repeat in find_repeats({name: self._scope(leaf) for name, leaf in by_name.items()}):
                parts = [by_name[name] for name in repeat.names]
                members = [node for part in parts for node in part.members]
                loops, phase, scope, role = parts[0].key
                merged[id(parts[0])] = _Leaf((loops, phase, (*scope[:-1], repeat.title), role), members, repeat)
                gone |= {id(part) for part in parts[1:]}
        for leaf in leaves:
            if id(leaf) not in gone:
                yield merged.get(id(leaf), leaf)

    def _scope(self, leaf: _Leaf) -> Scope:
        facts = [self.view.nodes[node] for node in leaf.members if self.view.nodes[node]["family"] != "constant"]
        return Scope(Counter(one["name"] for one in facts), Counter(one["family"] for one in facts))

    def _trips(self, loops: Iterable[str]) -> int:
        """How often what is inside of all ``loops`` runs; a loop of unknown trips counts once."""
        trips = 1
        for loop in loops:
            replay = self.replays.get(loop)
            trips *= (replay.trips if replay else None) or 1
        return trips

    def _rows(self, leaf: _Leaf) -> tuple[Row, ...]:
        runs = self._trips(leaf.key[0])
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

    def _block(self, leaf: _Leaf) -> Block:
        loops, phase, scope, role = leaf.key
        stages = Counter(self.view.nodes[node]["stage"] for node in leaf.members)
        stage = stages.most_common(1)[0][0]
        title = _title(scope) or _PHASES.get(phase, phase)
        notes = []
        if leaf.repeat is not None:
            sizes = [self._size(leaf, name) for name in leaf.repeat.names]
            alike = "identical" if leaf.repeat.identical else f"alike: {min(sizes):,} to {max(sizes):,} operations each"
            notes.append(f"{len(leaf.repeat.names)} times, {alike}; figures are of all")
        groups = (f"phase {phase}", *loops)
        repeats = len(leaf.repeat.names) if leaf.repeat else 1
        return Block(title, groups, self._rows(leaf), stage, role, tuple(notes), repeats)

    def _size(self, leaf: _Leaf, name: str) -> int:
        return sum(
            name in scope_path(self.view.nodes[node]["scope"]) and self.view.nodes[node]["family"] != "constant"
            for node in leaf.members
        )

    def _groups(self, loop: str) -> tuple[str, ...]:
        return (f"phase {self._phase_of(loop)}", *self._around_frames(loop), loop)

    def _around_frames(self, loop: str) -> tuple[str, ...]:
        return tuple(outer for outer in self._around(loop) if self._is_frame(outer))

    def _phase_of(self, loop: str) -> str:
        phases = Counter(leaf.key[1] for leaf in self.leaves if loop in leaf.key[0])
        return phases.most_common(1)[0][0] if phases else str(self.view.nodes[loop]["phase"])

    def _frames(self, gates: Iterable[str]) -> dict[str, Group]:
        frames = {f"phase {leaf.key[1]}": Group(_PHASES.get(leaf.key[1], leaf.key[1])) for leaf in self.leaves}
        for loop in gates:
            replay = self.replays.get(loop)
            trips = "unknown" if replay is None or replay.trips is None else f"{replay.trips:,}"
            what = "the Laplacian's replay" if replay is not None and not replay.blockers else "a loop"
            frames[loop] = Group(f"{what}: stablehlo.while, {trips} trips", "loop")
            frames.setdefault(f"phase {self._phase_of(loop)}", Group(self._phase_of(loop)))
        return frames

    def _entry(self, loop: str) -> Block:
        replay = self.replays.get(loop)
        notes = []
        if replay is not None:
            kinds = ((len(replay.residuals), replay.residual_bytes, "residuals per walker"),
                     (len(replay.shared), replay.shared_bytes, "weights and constants"))  # fmt: skip
            notes = [
                f"{number} {what}: {bytes_text(size)}, read in every trip" for number, size, what in kinds if number
            ]
        return Block("into the loop", self._groups(loop), notes=tuple(notes), look="gate")

    def _figures(self) -> str:
        rows = [row for leaf in self.leaves for row in self._rows(leaf)]
        count, flops, moved = (sum(getattr(row, what) for row in rows) for what in ("count", "flops", "bytes"))
        return f"{count:,} operations, {flops_text(flops)}, {bytes_text(moved)} moved"

    def _flows(self, entry: Mapping[str, int], leave: Mapping[str, int]) -> list[Flow]:
        """Bytes between blocks: each value once per block that reads it, times the trips in which it does."""
        moved: dict[tuple[int, int], dict[str, int]] = defaultdict(dict)
        for source, target, data in self.view.edges(data=True):
            start, end = self._ends(source, target, entry, leave)
            if start is not None and end is not None and start != end:
                runs = self._trips(self._runs_in(source, target))
                known = moved[start, end].get(source, 0)
                moved[start, end][source] = max(known, data["bytes"] * runs)
        return [Flow(*pair, bytes=sum(sizes.values()), values=len(sizes)) for pair, sizes in sorted(moved.items())]

    def _reading_order(self, gates: list[str]) -> list[int]:
        """Positions of leaves and gates as they stand in the program, a loop's between its gates."""
        places = [self._place(leaf) for leaf in self.leaves]
        for loop in gates:
            outer = tuple(float(self.view.nodes[one]["order"]) for one in (*self._around_frames(loop), loop))
            places += [(*outer, -1.0), (*outer, float("inf"))]
        return sorted(range(len(places)), key=lambda i: places[i])

    def _place(self, leaf: _Leaf) -> tuple[float, ...]:
        own = [self.view.nodes[n]["order"] for n in leaf.members if self.view.nodes[n]["family"] != "constant"]
        loops = [self.view.nodes[loop]["order"] for loop in leaf.key[0]]
        return (*map(float, loops), float(min(own, default=0)))

    def _ends(
        self, source: str, target: str, entry: Mapping[str, int], leave: Mapping[str, int]
    ) -> tuple[int | None, int | None]:
        start, end = self.position.get(source), self.position.get(target)
        facts = self.view.nodes[source]
        if source in leave:
            start = leave[source]
        elif facts["kind"] == "argument" and facts["parent"] in entry:
            start = entry[facts["parent"]]
        if target in entry:
            end = entry[target]
        elif self.view.nodes[target]["kind"] == "return" and self.view.nodes[target]["parent"] in leave:
            end = leave[self.view.nodes[target]["parent"]] if "/body/" in target else None
            end = end if start != entry.get(self.view.nodes[target]["parent"]) else None
        return start, end

    def _runs_in(self, source: str, target: str) -> tuple[str, ...]:
        """The frames that both ends are in: the value passes once per trip of these."""
        facts = self.view.nodes[source]
        around = self._around(source) if facts["parent"] else ()
        other = self._around(target) if self.view.nodes[target]["parent"] else ()
        return tuple(loop for loop in around if loop in other and self._is_frame(loop))


def _title(scope: tuple[str, ...]) -> str:
    """``B: interaction 1``, ``A: features``, ``potential``: the stage's letter, and the scopes or what the stage is."""
    words = [name.replace("_", " ") for name in scope]
    stage = scope[0].removeprefix("stage_").upper() if scope and scope[0].startswith("stage_") else ""
    if stage not in STAGE_WORDS or not stage:
        return ", ".join(words)
    return f"{stage}: {', '.join(words[1:]) or STAGE_WORDS[stage]}"


def _loops(flat: FlatFunction) -> dict[str, Replay]:
    """Node id of every loop to what the inventory says of it."""
    known = {replay.loop.node: replay for replay in inventory(flat)}
    return {name: known[node] for name, node in nodes_by_id(flat, flat.name).items() if node in known}
