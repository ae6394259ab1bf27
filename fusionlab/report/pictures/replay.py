"""The picture of the replay: the operations, reads and sum of one trip of the Laplacian's loop, as DOT text.

One row per scope of the wavefunction, from the direction at the top down to the determinants. The tangents of the
forward pass run down the left column; the tangents of the reverse pass come back up the right one to the sum. Each
panel lists its boxes (op families) with operations, FLOPs and bytes per trip; arrows are the tensors that pass
between panels. A program without a replay is drawn whole, by stage.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

import networkx as nx

from fusionlab.hlo.cost import Cost, node_cost, program_cost
from fusionlab.hlo.graph import graph
from fusionlab.hlo.loops import Invariant
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.view import FunctionView, Node
from fusionlab.report.pictures import dot
from fusionlab.report.pictures.drawing import PictureBlock, worth_drawing
from fusionlab.report.pictures.folding import fold
from fusionlab.report.pictures.grid import Grid, column_of, pin, polyline
from fusionlab.report.pictures.panels import Fold, Panel, flows
from fusionlab.report.pictures.scopes import scope_title
from fusionlab.report.pictures.stages import scope_drawing

_HEAD = 30
_FRAME_WIDTH = 250
_END_WORDS = {"tangent": "E: make the direction", "tangent-of-cotangent": "E: pick the element, add it"}
_SHOWN_REASONS = 3
_MOST_PANELS = 16


def replay_dot(program: Program, *, expand: bool = False) -> str:
    """DOT text of the replay of ``program``, the costliest when there are several.

    Alike layers are one panel, ×3 for three; ``expand`` draws each. A program without a replay gets the picture of its
    stages, with the reasons why no loop is one.
    """
    flat = program_view(program)
    loops = inventory(flat)
    replays = [replay for replay in loops if not replay.blockers]
    if not replays:
        stages = scope_drawing(program, 1 if fold(flat).staged else None)
        return dot.drawing_dot(replace(stages, lines=(*_why(loops), *stages.lines)))
    replay = max(replays, key=lambda found: node_cost(found.loop.node, found.loop).flops)
    return dot.digraph("replay", _Picture(program.name, flat, replay, len(replays), expand=expand).lines())


class _Picture:
    def __init__(self, name: str, flat: FunctionView, replay: Replay, replays: int, *, expand: bool) -> None:
        self.name, self.replay, self.replays = name, replay, replays
        self.trip = program_cost(replay.loop.body)
        inside = [node for node in flat.nodes if replay.loop.node not in (node, *_nested(node))]
        self.once = sum(map(node_cost, inside), Cost())
        view = graph(flat, replay.loop.body)
        fold = Fold(view, _roles(view), expand=expand)
        found = fold.panels(fold.largest(_MOST_PANELS))
        self.blocks = [_block(panel, view, replay) for panel in found]
        self.flows = flows(view, found)
        self.drawn = worth_drawing(self.flows, len(found))
        self.most = max([replay.residual_bytes, *(flow.bytes for flow in self.drawn)])
        self.rows = _rows(found, view)
        self.grid = Grid(self.blocks, self.rows, self.drawn)
        left, bottom, right, top = self.grid.bounds
        self.bounds = left, bottom, right, top + _HEAD

    def lines(self) -> Iterator[str]:
        pinned = "layout=neato, inputscale=72, splines=line, overlap=true, outputorder=breadthfirst"
        yield f'graph [{pinned}, fontname="Helvetica", labelloc=t, label=<{self._title()}>];'
        yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
        yield "edge [arrowsize=0.7];"
        yield from self._boundary()
        yield from self.grid.lines(self.most)
        yield from self._outside()

    def _title(self) -> str:
        trips = self.replay.trips or 0
        which = f" (the costliest of {self.replays} replays)" if self.replays > 1 else ""
        unmodelled = ", ".join(f"{count} {name}" for name, count in sorted(self.trip.unmodelled.items()))
        lines = [
            f"{trips} trips of {self.replay.body_ops:,} operations. One trip: {dot.flops_text(self.trip.flops)}, "
            f"{dot.bytes_text(self.trip.bytes)} moved. All trips: {dot.flops_text(self.trip.flops * trips)}, "
            f"{dot.bytes_text(self.trip.bytes * trips)}. (model: every operation on its own, nothing fused)",
            f"not modelled: {unmodelled}" if unmodelled else "",
        ]
        return dot.title_label(f"{self.name}: the Laplacian's replay loop{which}", lines)

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
        replay, (left, bottom, right, top) = self.replay, self.bounds
        shelf = top + 74
        first, second = left + _FRAME_WIDTH / 2, left + 1.5 * _FRAME_WIDTH + 80
        last = self.grid.centres[self.rows[0][-1]][0]
        once = f"{dot.flops_text(self.once.flops)}, {dot.bytes_text(self.once.bytes)}"
        carried = (
            f"{len(replay.residuals)} residuals per walker: {dot.bytes_text(replay.residual_bytes)}",
            f"{len(replay.shared)} weights and constants: {dot.bytes_text(replay.shared_bytes)}",
        )
        frames = {
            "before": ("Outside the loop, once", (once, "everything before and after it"), first),
            "residuals": ("Carried through every trip, unchanged", carried, second),
            "result": ("Accumulator out", (self._result(),), last),
        }
        for name, (title, notes, x) in frames.items():
            block = PictureBlock(title, (), notes=notes, look="gate")
            yield f"{name} [label=<{dot.block_label(block, 1)}>, {pin((x, shelf))}];"
        width = dot.pen_width(replay.residual_bytes, self.most)
        yield f'before -> residuals [penwidth={width:.1f}, color="#40404099"];'
        yield from polyline("enter", [(second, shelf - 30), (second, top)], width)
        yield from polyline("leave", [(last, top), (last, shelf - 22)], 1.5)
        notes = ("a tensor counts once for each panel that reads it", dot.not_drawn(self.flows, self.drawn))
        legend = dot.legend(self.blocks, "operations", notes)
        yield f"legend [label=<{legend}>, {pin(((left + right) / 2, bottom - 80))}];"

    def _result(self) -> str:
        loop = self.replay.loop
        kinds = {type(role).__name__ for role in loop.roles} & {"Sum", "Stacked"}
        results = zip(loop.roles, loop.node.results, strict=True)
        types = [str(result.type) for role, result in results if type(role).__name__ in kinds]
        return f"{'sum of all trips' if kinds == {'Sum'} else 'one slot per trip'}: {', '.join(types)}"


def _nested(node: Node) -> Iterator[Node]:
    return (inner for region in node.regions for inner in region.walk())


def _roles(view: nx.DiGraph) -> dict[str, str]:
    """The role of every operation; those of stage E after the network (they select and add the element) are of the
    reverse pass."""
    facts = {node: one for node, one in view.nodes(data=True) if one["kind"] == "op"}
    after: set[str] = set()
    for node in sorted(facts, key=lambda node: facts[node]["order"]):
        if facts[node]["stage"] != "E" or not after.isdisjoint(view.predecessors(node)):
            after.add(node)
    ends = {node for node, one in facts.items() if one["stage"] == "E"}
    late = {node for node in ends if node in after or not (after & ends).isdisjoint(view.successors(node))}
    reverse, forward = dict.fromkeys(late, "tangent-of-cotangent"), dict.fromkeys(ends - late, "tangent")
    return {node: one["role"] for node, one in facts.items()} | forward | reverse


def _block(panel: Panel[str], view: nx.DiGraph, replay: Replay) -> PictureBlock:
    """The block of a panel, with the residuals that it reads."""
    title = scope_title(panel.scope, panel.repeats, panel.stage, inner=True)
    block = panel.block(view, panel.group, title if panel.scope else _END_WORDS.get(panel.group, title))
    reads, size = _residual_reads(view, replay, panel.members)
    if not reads:
        return block
    note = f"reads {reads} {'residual' if reads == 1 else 'residuals'}, {dot.bytes_text(size)}"
    return replace(block, notes=(*block.notes, note))


def _rows(of: Sequence[Panel[str]], view: nx.DiGraph) -> list[list[int]]:
    """Positions of panels, those of one row together, left first: scopeless rows, then in order of the forward pass.

    The row of a scope with a reverse pass alone follows the forward passes of those whose reverse pass is later.
    """
    rows: dict[tuple[tuple[str, ...], bool], dict[int, int]] = defaultdict(dict)
    for i, panel in enumerate(of):
        rows[panel.scope, panel.group.startswith("tangent")][column_of(panel.group)] = i
    when = [median(view.nodes[node]["order"] for node in panel.members) for panel in of]

    def place(row: Mapping[int, int]) -> tuple[bool, float]:
        if 0 in row:
            return bool(of[row[0]].scope), when[row[0]]
        later = (when[other[0]] for other in rows.values() if len(other) == 2 and when[other[1]] > when[row[1]])
        return bool(of[row[1]].scope), max(later, default=0) + 0.5

    return [[row[column] for column in sorted(row)] for row in sorted(rows.values(), key=place)]


def _residual_reads(view: nx.DiGraph, replay: Replay, members: Sequence[str]) -> tuple[int, int]:
    """(number, bytes) of the residuals that the operations ``members`` read, each once."""
    residuals = set(replay.residuals)
    positions = {i for i in replay.loop.indices(Invariant) if replay.loop.node.operands[i] in residuals}
    sources = {source for member in members for source in view.predecessors(member)}
    carried = [source for source in sources if view.nodes[source]["kind"] == "argument"]
    read = [view.nodes[s]["shape_bytes"] for s in carried if int(s.rpartition(".")[2]) in positions]
    return len(read), sum(read)


def _why(loops: Sequence[Replay]) -> Iterator[str]:
    """Reasons for which each loop is not a replay, the largest loops first, identical reasons once."""
    if not loops:
        yield "There is no replay to show: the program has no loop."
    reasons: dict[tuple[int | None, str], list[Replay]] = defaultdict(list)
    for loop in sorted(loops, key=lambda loop: -loop.body_ops):
        reasons[loop.trips, "; ".join(map(str, loop.blockers))].append(loop)
    for (trips, why), same in list(reasons.items())[:_SHOWN_REASONS]:
        which = "a loop" if len(same) == 1 else f"{len(same)} loops"
        count = "an unknown number of" if trips is None else trips
        words = f"Not a replay: {which} of {count} trips, {same[0].body_ops:,} operations each: {why}."
        yield from textwrap.wrap(words, 150)
    if len(reasons) > _SHOWN_REASONS:
        yield f"{sum(map(len, list(reasons.values())[_SHOWN_REASONS:]))} more loops are no replays either."
