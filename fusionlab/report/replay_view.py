"""The picture of the replay: what one trip of the Laplacian's loop runs, reads and adds up, as DOT text.

One row per scope of the wavefunction, from the direction at the top down to the determinants. The tangents of the
forward pass run down the left column; the tangents of the reverse pass come back up the right one to the sum. Each
panel lists its boxes (op families) with operations, FLOPs and bytes per trip; arrows are the tensors that pass
between panels.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from fusionlab.hlo.cost import Cost, node_cost, program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.view import FunctionView, Node, view_of
from fusionlab.report.arrows import GRAPH_ATTRIBUTES, arrow_lines, pen_width, pin, place, polyline
from fusionlab.report.boxes import Panel, flows, panels
from fusionlab.report.dot import bytes_text, flops_text, quoted
from fusionlab.report.grid import grid_rows, reading_order, worth_drawing
from fusionlab.report.panel_label import FRAME_WIDTH, frame_label, legend, not_drawn, panel_label, title_label
from fusionlab.report.stage_view import stage_dot

_HEAD = 30
END_WORDS = {"tangent": "E  make the direction", "tangent-of-cotangent": "E  pick the element, add it"}


def replay_dot(program: Program, most_boxes: int = 60, *, expand: bool = False) -> str:
    """DOT text of the replay of ``program`` (the costliest, when there are several) in at most ``most_boxes`` boxes.

    Alike layers are one panel, ×3 for three; ``expand`` draws each. A program without a replay gives a small picture of
    its stages and says in words why there is nothing to replay.
    """
    flat = view_of(program.parse())
    loops = inventory(flat)
    replays = [replay for replay in loops if not replay.blockers]
    if not replays:
        return stage_dot(program.name, flat, loops)
    costs = {replay.loop.node: node_cost(replay.loop.node, replay.loop) for replay in replays}
    replay = max(replays, key=lambda found: costs[found.loop.node].flops)
    return _Picture(program.name, flat, replay, len(replays), most_boxes, expand=expand).text()


class _Picture:
    def __init__(
        self, name: str, flat: FunctionView, replay: Replay, replays: int, most_boxes: int, *, expand: bool
    ) -> None:
        self.name, self.replay, self.replays = name, replay, replays
        self.trip = program_cost(replay.loop.body)
        inside = [node for node in flat.nodes if replay.loop.node not in (node, *_nested(node))]
        self.once = sum(map(node_cost, inside), Cost())
        self.view = graph(flat, replay.loop.body)
        side = {node: facts["role"] for node, facts in self.view.nodes(data=True) if facts["kind"] == "op"}
        _split_ends(self.view, side)
        self.panels = panels(self.view, side, most_boxes, expand=expand)
        self.flows = flows(self.view, self.panels)
        self.rows = reading_order(grid_rows(self.panels), self.panels, self.flows)
        self.drawn = worth_drawing(self.flows, len(self.panels))
        self.most = max([replay.residual_bytes, *(flow.bytes for flow in self.drawn)])
        self.reads = [_residual_reads(self.view, replay, panel) for panel in self.panels]
        self.places = place(self.panels, self.rows, [bool(number) for number, _ in self.reads], self.drawn)
        self.widest = max(box.bytes for panel in self.panels for box in panel.boxes) or 1

    def text(self) -> str:
        return "\n".join(["digraph replay {", *(f"  {line}" for line in self._lines()), "}", ""])

    def _lines(self) -> Iterator[str]:
        yield f'graph [{GRAPH_ATTRIBUTES}, fontname="Helvetica", labelloc=t, label=<{self._title()}>];'
        yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
        yield "edge [arrowsize=0.7];"
        yield from self._boundary()
        for i, panel in enumerate(self.panels):
            title = "" if panel.scope else END_WORDS.get(panel.role, "")
            label = panel_label(panel, self.widest, self.reads[i], title)
            yield f"p{i} [label=<{label}>, {pin(self.places.centres[i])}];"
        yield from arrow_lines(self.places, self.drawn, self.most)
        yield from self._outside()

    def _title(self) -> str:
        trips = self.replay.trips or 0
        which = f" (the costliest of {self.replays} replays)" if self.replays > 1 else ""
        return title_label(
            f"{self.name}: the Laplacian's replay loop{which}",
            f"{trips} trips of {self.replay.body_ops:,} operations. One trip: {flops_text(self.trip.flops)}, "
            f"{bytes_text(self.trip.bytes)} moved. All trips: {flops_text(self.trip.flops * trips)}, "
            f"{bytes_text(self.trip.bytes * trips)}. (model: every operation on its own, nothing fused)",
            _unmodelled(self.trip),
        )

    def _boundary(self) -> Iterator[str]:
        """The loop as a box behind its panels, with its head line."""
        seed = self.replay.seed
        assert seed is not None
        left, bottom, right, top = self.places.bounds
        top += _HEAD
        size = f"width={(right - left) / 72:.3f}, height={(top - bottom) / 72:.3f}, fixedsize=true"
        look = 'shape=box, style="rounded,filled", fillcolor="#FAFAFA", color="#202020", penwidth=2.5, label=""'
        yield f"loop [{look}, {size}, {pin(((left + right) / 2, (top + bottom) / 2))}];"
        words = f"stablehlo.while: {self.replay.trips} trips. In each: direction = {seed.description}"
        yield f"head [label={quoted(words)}, fontsize=14, {pin(((left + right) / 2, top - 20))}];"

    def _outside(self) -> Iterator[str]:
        """What stands around the loop: where residuals come from, where the sum goes, the legend."""
        left, bottom, right, top = self.places.bounds
        top += _HEAD
        shelf = top + 74
        first, second = left + FRAME_WIDTH / 2, left + 1.5 * FRAME_WIDTH + 80
        last = self.places.centres[self.rows[0][-1]][0]
        yield f"before [label=<{self._before()}>, {pin((first, shelf))}];"
        yield f"residuals [label=<{self._residuals()}>, {pin((second, shelf))}];"
        yield f"result [label=<{self._result()}>, {pin((last, shelf))}];"
        width = pen_width(self.replay.residual_bytes, self.most)
        yield from polyline("carry", [(left + FRAME_WIDTH, shelf), (second - FRAME_WIDTH / 2, shelf)], width)
        yield from polyline("enter", [(second, shelf - 30), (second, top)], width)
        yield from polyline("leave", [(last, top), (last, shelf - 22)], 1.5)
        families = {family for panel in self.panels for box in panel.boxes for family in box.families}
        arrows = "arrows: tensors that one panel makes and another reads, each counted once per reader"
        key = legend({panel.stage for panel in self.panels}, families, arrows, not_drawn(self.flows, self.drawn))
        yield f"legend [label=<{key}>, {pin(((left + right) / 2, bottom - 80))}];"

    def _before(self) -> str:
        figures = f"{flops_text(self.once.flops)}, {bytes_text(self.once.bytes)}"
        return frame_label("Outside the loop, once", [figures, "everything before and after it"])

    def _residuals(self) -> str:
        replay = self.replay
        lines = [
            f"{len(replay.residuals)} residuals per walker: {bytes_text(replay.residual_bytes)}",
            f"{len(replay.shared)} weights and constants: {bytes_text(replay.shared_bytes)}",
        ]
        return frame_label("Carried through every trip, unchanged", lines)

    def _result(self) -> str:
        kinds = {type(role).__name__ for role in self.replay.loop.roles} & {"Sum", "Stacked"}
        how = "sum of all trips" if kinds == {"Sum"} else "one slot per trip"
        types = [
            str(result.type)
            for role, result in zip(self.replay.loop.roles, self.replay.loop.node.results, strict=True)
            if type(role).__name__ in kinds
        ]
        return frame_label("Accumulator out", [f"{how}: {', '.join(types)}"])


def _nested(node: Node) -> Iterator[Node]:
    return (inner for region in node.regions for inner in region.walk())


def _split_ends(view: nx.DiGraph, side: dict[str, str]) -> None:
    """Stage E operations behind the network (they pick the element and add it) go to the column of the reverse pass."""
    behind: set[str] = set()
    for node in sorted(side, key=lambda node: view.nodes[node]["order"]):
        reads = list(view.predecessors(node))
        if view.nodes[node]["stage"] != "E" or any(source in behind for source in reads):
            behind.add(node)
    ends = {node for node in side if view.nodes[node]["stage"] == "E"}
    for node in ends:
        late = node in behind or any(reader in behind and reader in ends for reader in view.successors(node))
        side[node] = "tangent-of-cotangent" if late else "tangent"


def _residual_reads(view: nx.DiGraph, replay: Replay, panel: Panel) -> tuple[int, int]:
    """(number, bytes) of the residuals that the panel's operations read, each once."""
    positions = {i for i in replay.loop.indices(Invariant) if replay.loop.node.operands[i] in set(replay.residuals)}
    members = set(panel.members)
    sources = {source for source, target in view.edges if target in members}
    carried = [source for source in sources if view.nodes[source]["kind"] == "argument"]
    read = [view.nodes[s]["shape_bytes"] for s in carried if int(s.rpartition(".")[2]) in positions]
    return len(read), sum(read)


def _unmodelled(cost: Cost) -> str:
    if not cost.unmodelled:
        return ""
    return "not modelled: " + ", ".join(f"{count} {name}" for name, count in sorted(cost.unmodelled.items()))
