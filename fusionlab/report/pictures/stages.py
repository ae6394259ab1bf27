"""The picture of a whole program by scope: phases and loops as frames, scopes down to a depth as blocks.

A loop with enough inside is a frame; a small one belongs to the block around it. A frame has a gate where values enter
(residuals and weights that every trip reads, by bytes) and one where its result leaves. A negligible scope is part of
the scope around it, and repeats are one block. Figures are of all trips.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import networkx as nx

from fusionlab.errors import InputError
from fusionlab.hlo.graph import graph, nodes_by_id
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.replay import inventory
from fusionlab.hlo.view import FunctionView, Node
from fusionlab.report.pictures.dot import bytes_text, flops_text
from fusionlab.report.pictures.drawing import Box, Drawing, DrawingGroup, PictureBlock, boxes_of, gathered
from fusionlab.report.pictures.folding import fold, is_hidden, transform_label
from fusionlab.report.pictures.panels import Fold, Panel
from fusionlab.report.pictures.scopes import scope_title

_PHASES = {"": "outside of every scope", "mcmc": "sampling"}
_DEPTH = 2
"""Levels of scopes in a program with stages, by default."""
_MOST_AT_FIRST = 24
"""Blocks of any other program, by default."""
_MOST_BLOCKS = 300
_LEAST_INSIDE = 100
"""Operations that a loop must hold to be a frame."""
_SMALLEST_SHARE = 0.0005
"""The share of all bytes below which a scope is no block of its own."""


def scope_drawing(
    program: Program, depth: int | None = None, *, expand: bool = False, constants: bool = False
) -> Drawing:
    """The drawing of ``program`` with scopes down to ``depth`` (1: stages; 2: their scopes; ...).

    Without ``depth``: 2 in a program with stages, else what fits in few blocks. ``expand`` draws repeats one by one,
    ``constants`` also constants and broadcasts. InputError for more blocks than can be read.
    """
    return _View(program.name, program_view(program), depth, expand, constants).drawing()


@dataclass(frozen=True)
class _Group:
    """What is drawn apart whatever its scope: by the frames around it (node ids), phase and role."""

    frames: tuple[str, ...]
    phase: str
    role: str


class _View:
    def __init__(self, name: str, flat: FunctionView, depth: int | None, expand: bool, constants: bool) -> None:
        self.name = name
        self.view = graph(flat)
        known = {replay.loop.node: replay for replay in inventory(flat)}
        nodes = nodes_by_id(flat, flat.name)
        self.replays = {name: known[node] for name, node in nodes.items() if node in known}
        self.folding = fold(flat)
        ops = [node for node, facts in self.view.nodes(data=True) if facts["kind"] == "op"]
        inside = Counter(loop for node in ops for loop in self._around(node))
        self.frames = [loop for loop, count in inside.items() if loop in self.replays and count >= _LEAST_INSIDE]
        groups: dict[str, _Group] = {}
        homes: dict[str, str] = {}
        for node in (node for node in ops if node not in self.frames):
            around = self._around(node)
            small = next((i for i, loop in enumerate(around) if loop not in self.frames), len(around))
            homes[node] = (*around, node)[small]
            groups[node] = self._group(homes[node], around[:small])
        self.hidden: list[Box] = []
        for node in [] if constants else [node for node in groups if is_hidden(nodes[node])]:
            self.hidden += boxes_of([self.view.nodes[node]], self._trips(groups.pop(node).frames))
            del homes[node]
            _bypass(self.view, node)
        paths = None if self.folding.staged else {home: self._path(nodes[home]) for home in homes.values()}
        found = Fold(self.view, groups, homes, paths, expand=expand)
        if depth is None and not self.folding.staged:
            scopes = found.largest(_MOST_AT_FIRST)
        else:
            scopes = found.down_to(depth or _DEPTH)
        self.panels = found.panels(scopes, _SMALLEST_SHARE, lambda group: self._trips(group.frames))
        if len(self.panels) > _MOST_BLOCKS:
            fewer = "leave out --expand or ask" if expand else "ask"
            raise InputError(
                f"{name}: {len(self.panels):,} blocks at this --depth, more than the {_MOST_BLOCKS} of a readable "
                f"picture; {fewer} for fewer levels, or unfold the graph in the report of `fusionlab study`"
            )

    def _group(self, node: str, frames: tuple[str, ...]) -> _Group:
        """The group of an operation whose scope is that of ``node``: by phase and role where there are stages."""
        facts = self.view.nodes[node]
        if self.folding.staged:
            return _Group(frames, facts["phase"], facts["role"])
        return _Group(frames, "", transform_label(read_name(facts["scope"]).transform) if facts["scope"] else "")

    def _path(self, node: Node) -> tuple[str, ...]:
        """The scopes, source line and run of an operation, without its transformation and loops."""
        steps = self.folding.paths.get(node, ())
        return tuple(step.label for step in steps if step.kind in ("scope", "source", "run"))

    def _around(self, node: str) -> tuple[str, ...]:
        """The loops and branches around ``node``, outermost first."""
        parent = self.view.nodes[node]["parent"]
        return (*self._around(parent), parent) if parent else ()

    def _frames_around(self, node: str) -> tuple[str, ...]:
        return tuple(outer for outer in self._around(node) if outer in self.frames)

    def _trips(self, loops: Iterable[str]) -> int:
        """Runs of an operation inside all of ``loops``; a loop of unknown trips counts once."""
        return math.prod(self.replays[loop].trips or 1 for loop in loops)

    def drawing(self) -> Drawing:
        blocks = [self._block(panel) for panel in self.panels]
        for loop in self.frames:
            groups = (f"phase {self._phase_of(loop)}", *self._frames_around(loop), loop)
            blocks.append(PictureBlock("into the loop", groups, notes=tuple(self._entry_notes(loop)), look="gate"))
            blocks.append(PictureBlock("results of the loop", groups, look="gate"))
        order = self._reading_order()
        place = {old: new for new, old in enumerate(order)}
        flows = gathered(self._edges())
        whole = Box.total([*self.hidden, *(box for block in blocks for box in block.rows)])
        count = sum(box.count for box in self.hidden)
        hidden = f"not drawn: {count:,} constants and broadcasts (--constants draws them)" if count else ""
        return Drawing(
            f"{self.name}: the program by scope",
            (f"{whole.count:,} operations, {flops_text(whole.flops)}, {bytes_text(whole.bytes)} moved",),
            self._groups(),
            tuple(blocks[old] for old in order),
            tuple(replace(flow, source=place[flow.source], target=place[flow.target]) for flow in flows),
            notes=("figures are of all trips of a loop (model: every operation on its own, nothing fused)", hidden),
        )

    def _block(self, panel: Panel[_Group]) -> PictureBlock:
        group = panel.group
        phase = _PHASES.get(group.phase, group.phase)
        title = scope_title(panel.scope, panel.repeats, panel.stage) if panel.scope else phase
        groups = (f"phase {group.phase}", *group.frames)
        return panel.block(self.view, group.role, title, groups=groups, runs=self._trips(group.frames))

    def _phase_of(self, loop: str) -> str:
        phases = Counter(panel.group.phase for panel in self.panels if loop in panel.group.frames)
        return phases.most_common(1)[0][0] if phases else str(self.view.nodes[loop]["phase"])

    def _groups(self) -> dict[str, DrawingGroup]:
        phases = [*(panel.group.phase for panel in self.panels), *map(self._phase_of, self.frames)]
        top = _PHASES if self.folding.staged else {"": self.name}
        groups = {f"phase {phase}": DrawingGroup(top.get(phase, phase)) for phase in phases}
        for loop in self.frames:
            replay = self.replays[loop]
            trips = "unknown" if replay.trips is None else f"{replay.trips:,}"
            what = "a loop" if replay.blockers else "the Laplacian's replay"
            groups[loop] = DrawingGroup(f"{what}: stablehlo.while, {trips} trips", "loop")
        return groups

    def _entry_notes(self, loop: str) -> Iterator[str]:
        replay = self.replays[loop]
        for values, size, what in (
            (replay.residuals, replay.residual_bytes, "residuals per walker"),
            (replay.shared, replay.shared_bytes, "weights and constants"),
        ):
            if values:
                yield f"{len(values)} {what}: {bytes_text(size)}, read in every trip"

    def _reading_order(self) -> list[int]:
        """Positions of leaves and gates in program order, a loop's between its gates."""

        def orders(nodes: Iterable[str], but: str = "") -> tuple[float, ...]:
            facts = (self.view.nodes[node] for node in nodes)
            return tuple(float(one["order"]) for one in facts if one["family"] != but)

        places = [
            (*orders(panel.group.frames), min(orders(panel.members, "constant"), default=0.0)) for panel in self.panels
        ]
        for loop in self.frames:
            outer = orders((*self._frames_around(loop), loop))
            places += [(*outer, -1.0), (*outer, math.inf)]
        return sorted(range(len(places)), key=places.__getitem__)

    def _edges(self) -> Iterator[tuple[int, int, str, int]]:
        """Flows between blocks (leaves, then gates of loops): bytes of a value in all trips that read it."""
        position = {node: i for i, panel in enumerate(self.panels) for node in panel.members}
        entry = {loop: len(self.panels) + 2 * i for i, loop in enumerate(self.frames)}
        for source, target, size in self.view.edges(data="bytes"):
            facts, read = self.view.nodes[source], self.view.nodes[target]
            start, end = position.get(source), position.get(target)
            if source in entry:
                start = entry[source] + 1
            elif facts["kind"] == "argument" and facts["parent"] in entry:
                start = entry[facts["parent"]]
            if target in entry:
                end = entry[target]
            elif read["kind"] == "return" and read["parent"] in entry:
                passed_on = "/body/" not in target or start == entry[read["parent"]]
                end = None if passed_on else entry[read["parent"]] + 1
            if start is not None and end is not None:
                both = set(self._frames_around(source)) & set(self._frames_around(target))
                yield start, end, source, size * self._trips(both)


def _bypass(view: nx.DiGraph, node: str) -> None:
    """Take ``node`` out of ``view``: its readers read what it reads."""
    for source, _, read in [*view.in_edges(node, data=True)]:
        for reader in view.successors(node):
            if not view.has_edge(source, reader):
                view.add_edge(source, reader, **read)
    view.remove_node(node)
