"""The picture of a whole program by phase, stage and role: what is shown where there is no replay loop."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence

from fusionlab.hlo.graph import graph
from fusionlab.hlo.replay import Replay
from fusionlab.hlo.view import FunctionView
from fusionlab.report.arrows import GRAPH_ATTRIBUTES, arrow_lines, pin, place
from fusionlab.report.boxes import Panel, adopt_constants, collect, flows
from fusionlab.report.dot import bytes_text, flops_text
from fusionlab.report.grid import grid_rows, worth_drawing
from fusionlab.report.panel_label import STAGE_WORDS, legend, not_drawn, panel_label, title_label

_SHOWN_REASONS = 3
_SMALLEST_FLOW = 0.02


def stage_dot(name: str, flat: FunctionView, loops: Sequence[Replay]) -> str:
    """DOT text: a panel per phase, stage and role of ``flat``'s top level (a loop is one operation of it).

    ``loops`` is the inventory of ``flat``; the title says in words what keeps each loop from being a replay.
    """
    return "\n".join(["digraph stages {", *(f"  {line}" for line in _lines(name, flat, loops)), "}", ""])


def _lines(name: str, flat: FunctionView, loops: Sequence[Replay]) -> Iterator[str]:
    view = graph(flat)
    top = {node: facts for node, facts in view.nodes(data=True) if facts["kind"] == "op" and not facts["parent"]}
    owners = {node: _scope(facts) for node, facts in top.items()}
    roles = {node: facts["role"] for node, facts in top.items()}
    adopt_constants(view, owners, roles)
    panels = collect(view, roles, owners)
    moved = flows(view, panels)
    drawn = worth_drawing(moved, len(panels), _SMALLEST_FLOW)
    rows = sorted(grid_rows(panels), key=lambda row: _place(panels[row[0]]))
    places = place(panels, rows, [False] * len(panels), drawn)
    total = (sum(facts["flops"] for facts in top.values()), sum(facts["bytes"] for facts in top.values()))
    figures = f"{len(top):,} operations, {flops_text(total[0])}, {bytes_text(total[1])} moved (model, nothing fused)"
    head = title_label(f"{name}: the whole program by stage", *_why(loops), figures)
    yield f'graph [{GRAPH_ATTRIBUTES}, fontname="Helvetica", labelloc=t, label=<{head}>];'
    yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
    yield "edge [arrowsize=0.7];"
    widest = max((box.bytes for panel in panels for box in panel.boxes), default=0) or 1
    for i, panel in enumerate(panels):
        yield f"p{i} [label=<{panel_label(panel, widest, title=_title(panel))}>, {pin(places.centres[i])}];"
    yield from arrow_lines(places, drawn, max((flow.bytes for flow in drawn), default=0))
    families = {family for panel in panels for box in panel.boxes for family in box.families}
    key = legend({panel.stage for panel in panels}, families, not_drawn(moved, drawn))
    left, bottom, right, _ = places.bounds
    yield f"legend [label=<{key}>, {pin(((left + right) / 2, bottom - 80))}];"


def _scope(facts: dict[str, str]) -> tuple[str, ...]:
    phase = facts["phase"] or "outside of every scope"
    return (phase, f"stage_{facts['stage'].lower()}") if facts["stage"] else (phase,)


def _place(panel: Panel) -> tuple[str, ...]:
    return (panel.stage or "Z", *panel.scope, "after" if panel.role.startswith("tangent") else "")


def _title(panel: Panel) -> str:
    phase = panel.scope[0]
    return f"{panel.stage}  {phase}: {STAGE_WORDS[panel.stage]}" if panel.stage else phase


def _why(loops: Sequence[Replay]) -> Iterator[str]:
    """What keeps each loop from being a replay, the largest loops first, the same words said once."""
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
