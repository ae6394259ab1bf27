"""The picture of a whole program by scope: phases and loops as frames, scopes down to a depth as blocks.

A loop with enough inside is a frame; a small one belongs to the block around it. A frame has a gate where values enter
(residuals and weights that every trip reads, by bytes) and one where its result leaves. A negligible scope is part of
the scope around it, and repeats are one block. Figures are of all trips.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from fusionlab.hlo.graph import graph, nodes_by_id
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import inventory
from fusionlab.hlo.view import FunctionView, view_of
from fusionlab.report.pictures.dot import bytes_text, flops_text
from fusionlab.report.pictures.drawing import Box, Drawing, DrawingGroup, PictureBlock, boxes_of, gathered
from fusionlab.report.pictures.looks import STAGE_WORDS
from fusionlab.report.pictures.scopes import Path, Repeat, adopt_constants, find_repeats, named_scopes, with_parts

_PHASES = {"": "outside of every scope", "mcmc": "sampling"}
_LEAST_INSIDE = 100
"""Operations that a loop must hold to be a frame."""
_SMALLEST_SHARE = 0.0005
"""The share of all bytes below which a scope is no block of its own."""


def scope_drawing(program: Program, depth: int = 2, *, expand: bool = False) -> Drawing:
    """The drawing of ``program`` with scopes down to ``depth`` (1: stages; 2: their scopes; ...).

    ``expand`` draws repeats one by one.
    """
    return _View(program.name, view_of(program.parse()), depth, expand).drawing()


@dataclass(frozen=True)
class _Key:
    """Frames around it (node ids), phase, scope, role."""

    loops: tuple[str, ...]
    phase: str
    scope: Path
    role: str


@dataclass
class _Leaf:
    """A block to be: ``members`` are graph node ids."""

    key: _Key
    members: list[str] = field(default_factory=list)
    repeat: Repeat | None = None


class _View:
    def __init__(self, name: str, flat: FunctionView, depth: int, expand: bool) -> None:
        self.name, self.depth = name, depth
        self.view = graph(flat)
        known = {replay.loop.node: replay for replay in inventory(flat)}
        self.replays = {name: known[node] for name, node in nodes_by_id(flat, flat.name).items() if node in known}
        ops = [node for node, facts in self.view.nodes(data=True) if facts["kind"] == "op"]
        self.inside = Counter(loop for node in ops for loop in self._around(node))
        leaves = self._folded(self._leaves(ops))
        self.leaves = leaves if expand else list(self._collapsed(leaves))

    def _facts(self, nodes: Iterable[str], but: str) -> list[dict[str, Any]]:
        """Attributes of ``nodes`` that are not of the family ``but``."""
        return [self.view.nodes[node] for node in nodes if self.view.nodes[node]["family"] != but]

    def _around(self, node: str) -> tuple[str, ...]:
        """The loops and branches around ``node``, outermost first."""
        parent = self.view.nodes[node]["parent"]
        return (*self._around(parent), parent) if parent else ()

    def _is_frame(self, loop: str) -> bool:
        """True for a loop that is drawn as a frame: one with enough inside."""
        return self.view.nodes[loop]["name"] == "stablehlo.while" and self.inside[loop] >= _LEAST_INSIDE

    def _frames_around(self, node: str) -> tuple[str, ...]:
        return tuple(outer for outer in self._around(node) if self._is_frame(outer))

    def _leaves(self, ops: Iterable[str]) -> dict[_Key, _Leaf]:
        keys: dict[str, _Key] = {}
        stands_in: dict[str, str] = {}
        for node in ops:
            if self._is_frame(node):
                continue
            around = self._around(node)
            small = next((i for i, loop in enumerate(around) if not self._is_frame(loop)), len(around))
            stands_in[node] = (*around, node)[small]
            there = self.view.nodes[stands_in[node]]
            keys[node] = _Key(around[:small], there["phase"], named_scopes(there["scope"]), there["role"])
        if self.depth > 1:
            own = {node: key for node, key in keys.items() if stands_in[node] == node}
            groups = {node: (key.loops, key.phase, key.role) for node, key in own.items()}
            parts = with_parts(self.view, {node: key.scope for node, key in own.items()}, groups)
            divided = {node: replace(own[node], scope=path) for node, path in parts.items()}
            keys = {node: divided.get(stands_in[node], key) for node, key in keys.items()}
        keys = {node: replace(key, scope=key.scope[: self.depth]) for node, key in keys.items()}
        adopt_constants(self.view, keys)
        found: dict[_Key, _Leaf] = {}
        for node, key in keys.items():
            found.setdefault(key, _Leaf(key)).members.append(node)
        return found

    def _folded(self, found: dict[_Key, _Leaf]) -> list[_Leaf]:
        """The leaves, with negligible ones merged into the scope around them, if it is drawn."""
        work = {key: sum(box.bytes for box in self._boxes(leaf)) for key, leaf in found.items()}
        least = _SMALLEST_SHARE * sum(work.values())
        for key in sorted(found, key=lambda key: -len(key.scope)):
            outer = replace(key, scope=key.scope[:-1])
            is_part = bool(key.scope) and not key.scope[-1].startswith("stage_")
            if is_part and work[key] < least and outer in found:
                found[outer].members += found.pop(key).members
                work[outer] += work[key]
        return list(found.values())

    def _collapsed(self, leaves: Iterable[_Leaf]) -> Iterator[_Leaf]:
        siblings: dict[_Key, dict[str, _Leaf]] = defaultdict(dict)
        for leaf in leaves:
            if leaf.key.scope:
                siblings[replace(leaf.key, scope=leaf.key.scope[:-1])][leaf.key.scope[-1]] = leaf
        merged: dict[_Key, _Leaf | None] = {}
        for around, by_name in siblings.items():
            contents = {name: self._facts(leaf.members, "constant") for name, leaf in by_name.items()}
            for repeat in find_repeats(contents):
                parts = [by_name[name] for name in repeat.names]
                merged |= dict.fromkeys(part.key for part in parts)
                members = [node for part in parts for node in part.members]
                merged[parts[0].key] = _Leaf(replace(around, scope=(*around.scope, repeat.title)), members, repeat)
        for leaf in leaves:
            if (drawn := merged.get(leaf.key, leaf)) is not None:
                yield drawn

    def _trips(self, loops: Iterable[str]) -> int:
        """Runs of an operation inside all of ``loops``; a loop of unknown trips counts once."""
        runs = 1
        for loop in loops:
            runs *= (self.replays[loop].trips if loop in self.replays else None) or 1
        return runs

    def _boxes(self, leaf: _Leaf) -> tuple[Box, ...]:
        """A box per op family, figures of all trips, the largest first."""
        found = boxes_of(self._facts(leaf.members, "control"), self._trips(leaf.key.loops))
        return tuple(sorted(found, key=lambda box: (-box.bytes, box.families)))

    def drawing(self) -> Drawing:
        gates = [loop for loop in self.inside if self._is_frame(loop)]
        boxes = [self._boxes(leaf) for leaf in self.leaves]
        blocks = [self._block(leaf, rows) for leaf, rows in zip(self.leaves, boxes, strict=True)]
        for loop in gates:
            groups = (f"phase {self._phase_of(loop)}", *self._frames_around(loop), loop)
            blocks.append(PictureBlock("into the loop", groups, notes=tuple(self._entry_notes(loop)), look="gate"))
            blocks.append(PictureBlock("results of the loop", groups, look="gate"))
        order = self._reading_order(gates)
        place = {old: new for new, old in enumerate(order)}
        flows = gathered(self._edges(gates))
        whole = Box.total([box for rows in boxes for box in rows])
        return Drawing(
            f"{self.name}: the program by scope",
            (f"{whole.count:,} operations, {flops_text(whole.flops)}, {bytes_text(whole.bytes)} moved",),
            self._frames(gates),
            tuple(blocks[old] for old in order),
            tuple(replace(flow, source=place[flow.source], target=place[flow.target]) for flow in flows),
            notes=("figures are of all trips of a loop (model: every operation on its own, nothing fused)",),
        )

    def _block(self, leaf: _Leaf, rows: tuple[Box, ...]) -> PictureBlock:
        key, repeat = leaf.key, leaf.repeat
        stage = Counter(self.view.nodes[node]["stage"] for node in leaf.members).most_common(1)[0][0]
        title = _title(key.scope) or _PHASES.get(key.phase, key.phase)
        notes = (f"{repeat.words}; figures are of all",) if repeat else ()
        groups = (f"phase {key.phase}", *key.loops)
        return PictureBlock(title, groups, rows, stage, key.role, notes, len(repeat.names) if repeat else 1)

    def _phase_of(self, loop: str) -> str:
        phases = Counter(leaf.key.phase for leaf in self.leaves if loop in leaf.key.loops)
        return phases.most_common(1)[0][0] if phases else str(self.view.nodes[loop]["phase"])

    def _frames(self, gates: Iterable[str]) -> dict[str, DrawingGroup]:
        phases = [leaf.key.phase for leaf in self.leaves]
        frames = {f"phase {phase}": DrawingGroup(_PHASES.get(phase, phase)) for phase in phases}
        for loop in gates:
            replay = self.replays.get(loop)
            trips = "unknown" if replay is None or replay.trips is None else f"{replay.trips:,}"
            what = "the Laplacian's replay" if replay is not None and not replay.blockers else "a loop"
            frames[loop] = DrawingGroup(f"{what}: stablehlo.while, {trips} trips", "loop")
            frames.setdefault(f"phase {self._phase_of(loop)}", DrawingGroup(self._phase_of(loop)))
        return frames

    def _entry_notes(self, loop: str) -> Iterator[str]:
        if (replay := self.replays.get(loop)) is not None:
            kinds = ((len(replay.residuals), replay.residual_bytes, "residuals per walker"),
                     (len(replay.shared), replay.shared_bytes, "weights and constants"))  # fmt: skip
            for number, size, what in kinds:
                if number:
                    yield f"{number} {what}: {bytes_text(size)}, read in every trip"

    def _reading_order(self, gates: list[str]) -> list[int]:
        """Positions of leaves and gates in program order, a loop's between its gates."""

        def orders(nodes: Iterable[str]) -> tuple[float, ...]:
            return tuple(float(self.view.nodes[node]["order"]) for node in nodes)

        places = []
        for leaf in self.leaves:
            own = min((one["order"] for one in self._facts(leaf.members, "constant")), default=0)
            places.append((*orders(leaf.key.loops), float(own)))
        for loop in gates:
            outer = orders((*self._frames_around(loop), loop))
            places += [(*outer, -1.0), (*outer, float("inf"))]
        return sorted(range(len(places)), key=places.__getitem__)

    def _edges(self, gates: Iterable[str]) -> Iterator[tuple[int, int, str, int]]:
        """Flows between blocks (leaves, then gates of loops): bytes of a value in all trips that read it."""
        position = {node: i for i, leaf in enumerate(self.leaves) for node in leaf.members}
        entry = {loop: len(self.leaves) + 2 * i for i, loop in enumerate(gates)}
        leave = {loop: gate + 1 for loop, gate in entry.items()}
        for source, target, size in self.view.edges(data="bytes"):
            facts, read = self.view.nodes[source], self.view.nodes[target]
            start, end = position.get(source), position.get(target)
            if source in leave:
                start = leave[source]
            elif facts["kind"] == "argument" and facts["parent"] in entry:
                start = entry[facts["parent"]]
            if target in entry:
                end = entry[target]
            elif read["kind"] == "return" and read["parent"] in leave:
                passed_on = "/body/" not in target or start == entry[read["parent"]]
                end = None if passed_on else leave[read["parent"]]
            if start is not None and end is not None:
                both = set(self._frames_around(source)) & set(self._frames_around(target))
                yield start, end, source, size * self._trips(both)


def _title(scope: Path) -> str:
    """``B: interaction 1``, ``A: features``, ``potential``: the stage's letter, and the scopes or its meaning."""
    words = [name.replace("_", " ") for name in scope]
    stage = scope[0].removeprefix("stage_").upper() if scope and scope[0].startswith("stage_") else ""
    if stage not in STAGE_WORDS or not stage:
        return ", ".join(words)
    return f"{stage}: {', '.join(words[1:]) or STAGE_WORDS[stage]}"
