"""The picture of the replay: the operations, reads and sum of one trip of the Laplacian's loop, as DOT text.

One row per scope of the wavefunction, from the direction at the top down to the determinants. The tangents of the
forward pass run down the left column; the tangents of the reverse pass come back up the right one to the sum. Each
panel lists its boxes (op families) with operations, FLOPs and bytes per trip; arrows are the tensors that pass
between panels. A program without a replay is drawn whole, by phase, stage and role.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence

import networkx as nx

from fusionlab.hlo.cost import Cost, node_cost, program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.view import FunctionView, Node, view_of
from fusionlab.report.pictures import dot
from fusionlab.report.pictures.drawing import Flow, worth_drawing
from fusionlab.report.pictures.grid import Grid, grid_rows, pin, polyline, reading_order
from fusionlab.report.pictures.looks import STAGE_WORDS
from fusionlab.report.pictures.panels import Panel, collect, flows, panels
from fusionlab.report.pictures.scopes import adopt_constants

_HEAD = 30
_END_WORDS = {"tangent": "E  make the direction", "tangent-of-cotangent": "E  pick the element, add it"}
_SHOWN_REASONS = 3
_SMALLEST_FLOW = 0.02


def replay_dot(program: Program, most_boxes: int = 60, *, expand: bool = False) -> str:
    """DOT text of the replay of ``program`` (the costliest, when there are several) in at most ``most_boxes`` boxes.

    Alike layers are one panel, ×3 for three; ``expand`` draws each. A program without a replay gets a small picture of
    its stages, with the reasons why no loop is one.
    """
    flat = view_of(program.parse())
    loops = inventory(flat)
    replays = [replay for replay in loops if not replay.blockers]
    if not replays:
        return _digraph("stages", _stages(program.name, flat, loops))
    replay = max(replays, key=lambda found: node_cost(found.loop.node, found.loop).flops)
    return _digraph("replay", _Picture(program.name, flat, replay, len(replays), most_boxes, expand=expand).lines())


def _digraph(name: str, lines: Iterator[str]) -> str:
    return "\n".join([f"digraph {name} {{", *(f"  {line}" for line in lines), "}", ""])


def _head(title: str) -> Iterator[str]:
    pinned = "layout=neato, inputscale=72, splines=line, overlap=true, outputorder=breadthfirst"
    yield f'graph [{pinned}, fontname="Helvetica", labelloc=t, label=<{title}>];'
    yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
    yield "edge [arrowsize=0.7];"


def _panels(
    of: Sequence[Panel], titles: Sequence[str], grid: Grid, reads: Sequence[tuple[int, int]] = ()
) -> Iterator[str]:
    widest = max((box.bytes for panel in of for box in panel.boxes), default=0) or 1
    for i, (panel, title) in enumerate(zip(of, titles, strict=True)):
        label = dot.panel_label(panel, widest, reads[i] if reads else (0, 0), title)
        yield f"p{i} [label=<{label}>, {pin(grid.centres[i])}];"


def _legend(grid: Grid, of: Sequence[Panel], *notes: str) -> str:
    left, bottom, right, _ = grid.bounds
    return f"legend [label=<{dot.legend(of, *notes)}>, {pin(((left + right) / 2, bottom - 80))}];"


class _Picture:
    def __init__(
        self, name: str, flat: FunctionView, replay: Replay, replays: int, most_boxes: int, *, expand: bool
    ) -> None:
        self.name, self.replay, self.replays = name, replay, replays
        self.trip = program_cost(replay.loop.body)
        inside = [node for node in flat.nodes if replay.loop.node not in (node, *_nested(node))]
        self.once = sum(map(node_cost, inside), Cost())
        view = graph(flat, replay.loop.body)
        side = {node: facts["role"] for node, facts in view.nodes(data=True) if facts["kind"] == "op"}
        _split_ends(view, side)
        self.panels = panels(view, side, most_boxes, expand=expand)
        self.flows: Sequence[Flow] = flows(view, self.panels)
        self.rows = reading_order(grid_rows(self.panels), self.panels, self.flows)
        self.drawn = worth_drawing(self.flows, len(self.panels))
        self.most = max([replay.residual_bytes, *(flow.bytes for flow in self.drawn)])
        self.reads = [_residual_reads(view, replay, panel) for panel in self.panels]
        self.grid = Grid(self.panels, self.rows, self.drawn, [bool(number) for number, _ in self.reads])
        left, bottom, right, top = self.grid.bounds
        self.bounds = left, bottom, right, top + _HEAD

    def lines(self) -> Iterator[str]:
        yield from _head(self._title())
        yield from self._boundary()
        titles = ["" if panel.scope else _END_WORDS.get(panel.role, "") for panel in self.panels]
        yield from _panels(self.panels, titles, self.grid, self.reads)
        yield from self.grid.arrows(self.most)
        yield from self._outside()

    def _title(self) -> str:
        trips = self.replay.trips or 0
        which = f" (the costliest of {self.replays} replays)" if self.replays > 1 else ""
        unmodelled = ", ".join(f"{count} {name}" for name, count in sorted(self.trip.unmodelled.items()))
        return dot.title_label(
            f"{self.name}: the Laplacian's replay loop{which}",
            f"{trips} trips of {self.replay.body_ops:,} operations. One trip: {dot.flops_text(self.trip.flops)}, "
            f"{dot.bytes_text(self.trip.bytes)} moved. All trips: {dot.flops_text(self.trip.flops * trips)}, "
            f"{dot.bytes_text(self.trip.bytes * trips)}. (model: every operation on its own, nothing fused)",
            f"not modelled: {unmodelled}" if unmodelled else "",
        )

    def _boundary(self) -> Iterator[str]:
        """The loop as a box around its panels, with its head line."""
        assert self.replay.seed is not None
        left, bottom, right, top = self.bounds
        size = f"width={(right - left) / 72:.3f}, height={(top - bottom) / 72:.3f}, fixedsize=true"
        look = 'shape=box, style="rounded,filled", fillcolor="#FAFAFA", color="#202020", penwidth=2.5, label=""'
        yield f"loop [{look}, {size}, {pin(((left + right) / 2, (top + bottom) / 2))}];"
        words = f"stablehlo.while: {self.replay.trips} trips. In each: direction = {self.replay.seed.description}"
        yield f"head [label={dot.quoted(words)}, fontsize=14, {pin(((left + right) / 2, top - 20))}];"

    def _outside(self) -> Iterator[str]:
        """The surroundings of the loop: the origin of residuals, the destination of the sum, the legend."""
        replay, (left, _, _, top) = self.replay, self.bounds
        shelf = top + 74
        first, second = left + dot.FRAME_WIDTH / 2, left + 1.5 * dot.FRAME_WIDTH + 80
        last = self.grid.centres[self.rows[0][-1]][0]
        once = f"{dot.flops_text(self.once.flops)}, {dot.bytes_text(self.once.bytes)}"
        before = dot.frame_label("Outside the loop, once", [once, "everything before and after it"])
        carried = [
            f"{len(replay.residuals)} residuals per walker: {dot.bytes_text(replay.residual_bytes)}",
            f"{len(replay.shared)} weights and constants: {dot.bytes_text(replay.shared_bytes)}",
        ]
        residuals = dot.frame_label("Carried through every trip, unchanged", carried)
        yield f"before [label=<{before}>, {pin((first, shelf))}];"
        yield f"residuals [label=<{residuals}>, {pin((second, shelf))}];"
        yield f"result [label=<{dot.frame_label('Accumulator out', [self._result()])}>, {pin((last, shelf))}];"
        width = dot.pen_width(replay.residual_bytes, self.most)
        yield from polyline("carry", [(left + dot.FRAME_WIDTH, shelf), (second - dot.FRAME_WIDTH / 2, shelf)], width)
        yield from polyline("enter", [(second, shelf - 30), (second, top)], width)
        yield from polyline("leave", [(last, top), (last, shelf - 22)], 1.5)
        arrows = "arrows: tensors that one panel makes and another reads, each counted once per reader"
        yield _legend(self.grid, self.panels, arrows, dot.not_drawn(self.flows, self.drawn))

    def _result(self) -> str:
        loop = self.replay.loop
        kinds = {type(role).__name__ for role in loop.roles} & {"Sum", "Stacked"}
        results = zip(loop.roles, loop.node.results, strict=True)
        types = [str(result.type) for role, result in results if type(role).__name__ in kinds]
        return f"{'sum of all trips' if kinds == {'Sum'} else 'one slot per trip'}: {', '.join(types)}"


def _nested(node: Node) -> Iterator[Node]:
    return (inner for region in node.regions for inner in region.walk())


def _split_ends(view: nx.DiGraph, side: dict[str, str]) -> None:
    """Move stage E operations after the network (they select and add the element) to the column of the reverse pass."""
    after: set[str] = set()
    for node in sorted(side, key=lambda node: view.nodes[node]["order"]):
        if view.nodes[node]["stage"] != "E" or any(source in after for source in view.predecessors(node)):
            after.add(node)
    ends = {node for node in side if view.nodes[node]["stage"] == "E"}
    for node in ends:
        late = node in after or any(reader in after and reader in ends for reader in view.successors(node))
        side[node] = "tangent-of-cotangent" if late else "tangent"


def _residual_reads(view: nx.DiGraph, replay: Replay, panel: Panel) -> tuple[int, int]:
    """(number, bytes) of the residuals that the panel's operations read, each once."""
    residuals = set(replay.residuals)
    positions = {i for i in replay.loop.indices(Invariant) if replay.loop.node.operands[i] in residuals}
    members = set(panel.members)
    sources = {source for source, target in view.edges if target in members}
    carried = [source for source in sources if view.nodes[source]["kind"] == "argument"]
    read = [view.nodes[s]["shape_bytes"] for s in carried if int(s.rpartition(".")[2]) in positions]
    return len(read), sum(read)


def _stages(name: str, flat: FunctionView, loops: Sequence[Replay]) -> Iterator[str]:
    """A panel per phase, stage and role of ``flat``'s top level; a loop is one operation of it."""
    view = graph(flat)
    top = {node: facts for node, facts in view.nodes(data=True) if facts["kind"] == "op" and not facts["parent"]}
    stages = {node: (f"stage_{facts['stage'].lower()}",) if facts["stage"] else () for node, facts in top.items()}
    owners = {node: (facts["phase"] or "outside of every scope", *stages[node]) for node, facts in top.items()}
    roles = {node: facts["role"] for node, facts in top.items()}
    adopt_constants(view, owners, roles)
    found = collect(view, roles, owners)
    moved = flows(view, found)
    drawn = worth_drawing(moved, len(found), _SMALLEST_FLOW)
    grid = Grid(found, sorted(grid_rows(found), key=lambda row: _stage_place(found[row[0]])), drawn)
    done, size = (sum(facts[figure] for facts in top.values()) for figure in ("flops", "bytes"))
    figures = f"{len(top):,} operations, {dot.flops_text(done)}, {dot.bytes_text(size)} moved (model, nothing fused)"
    yield from _head(dot.title_label(f"{name}: the whole program by stage", *_why(loops), figures))
    yield from _panels(found, [_stage_title(panel) for panel in found], grid)
    yield from grid.arrows(max((flow.bytes for flow in drawn), default=0))
    yield _legend(grid, found, dot.not_drawn(moved, drawn))


def _stage_title(panel: Panel) -> str:
    phase = panel.scope[0]
    return f"{panel.stage}  {phase}: {STAGE_WORDS[panel.stage]}" if panel.stage else phase


def _stage_place(panel: Panel) -> tuple[str, ...]:
    return (panel.stage or "Z", *panel.scope, "after" if panel.role.startswith("tangent") else "")


def _why(loops: Sequence[Replay]) -> Iterator[str]:
    """Reasons for which each loop is not a replay, the largest loops first, identical reasons once."""
    if not loops:
        yield "There is no replay to show: the program has no loop."
    reasons: dict[tuple[int | None, str], list[Replay]] = defaultdict(list)
    for loop in sorted(loops, key=lambda loop: -loop.body_ops):
        reasons[loop.trips, "; ".join(loop.blockers)].append(loop)
    for (trips, why), same in list(reasons.items())[:_SHOWN_REASONS]:
        which = "a loop" if len(same) == 1 else f"{len(same)} loops"
        count = "an unknown number of" if trips is None else trips
        words = f"Not a replay: {which} of {count} trips, {same[0].body_ops:,} operations each: {why}."
        yield from textwrap.wrap(words, 150)
    if len(reasons) > _SHOWN_REASONS:
        yield f"{sum(map(len, list(reasons.values())[_SHOWN_REASONS:]))} more loops are no replays either."
