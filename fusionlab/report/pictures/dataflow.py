"""The picture of a value's producers and consumers: the operations some steps around one of them."""

from __future__ import annotations

from typing import Any

import networkx as nx

from fusionlab.errors import InputError, unknown
from fusionlab.hlo.graph import graph
from fusionlab.hlo.program import Program
from fusionlab.report.pictures.drawing import Drawing, DrawingGroup, Flow, PictureBlock, boxes_of

_MOST = 60
_SHOWN = 6


def dataflow_graph(program: Program, value: str, steps: int = 3) -> nx.DiGraph:
    """The operations at most ``steps`` before and after the operation ``value``, with their attributes (``hlo.graph``).

    ``value`` is a node's id (``main/17``, ``main/2355/body/12``) or the end of one scope
    (``interaction_1/dot_general``). InputError: there is no such operation, or several, which the message names.
    """
    view = graph(program)
    chosen = _find(view, value)
    kept = {chosen}
    for forward in (True, False):
        at = {chosen}
        for _ in range(steps):
            step = view.successors if forward else view.predecessors
            at = {other for node in at for other in step(node) if other not in kept}
            at = set(sorted(at, key=lambda node: -view.nodes[node]["shape_bytes"])[: max(0, _MOST - len(kept))])
            kept |= at
    found = view.subgraph(sorted(kept, key=lambda node: view.nodes[node]["order"])).copy()
    found.graph["chosen"] = chosen
    return found


def dataflow_drawing(program: Program, value: str, steps: int = 3) -> Drawing:
    """The drawing of ``dataflow_graph``; the requested value has a frame of its own."""
    view = dataflow_graph(program, value, steps)
    chosen = view.graph["chosen"]
    nodes = sorted(view, key=lambda node: view.nodes[node]["order"])
    position = {node: i for i, node in enumerate(nodes)}
    edges = sorted((position[one], position[other], data) for one, other, data in view.edges(data=True))
    regions = dict.fromkeys(view.nodes[node]["region"] for node in nodes)
    facts = view.nodes[chosen]
    return Drawing(
        f"{program.name}: {facts['name'].removeprefix('stablehlo.')} {chosen}",
        (facts["scope"], f"{len(nodes)} operations, at most {steps} steps before and after; bytes of one run"),
        {
            "chosen": DrawingGroup("asked for", "kernel"),
            **{region: DrawingGroup(region) for region in regions if region},
        },
        tuple(_block(node, view.nodes[node], node == chosen) for node in nodes),
        tuple(Flow(source, target, data["bytes"], data["values"]) for source, target, data in edges),
    )


def _block(node: str, facts: dict[str, Any], chosen: bool) -> PictureBlock:
    title = f"{facts['name'].removeprefix('stablehlo.')} {facts['type']}"
    groups = ((facts["region"],) if facts["region"] else ()) + (("chosen",) if chosen else ())
    if facts["kind"] != "op":
        return PictureBlock(title, groups, notes=(node,), look="gate")
    role = facts["role"] if facts["stage"] or facts["phase"] else ""
    return PictureBlock(title, groups, tuple(boxes_of([facts])), facts["stage"], role, (node,))


def _find(view: nx.DiGraph, value: str) -> str:
    if value in view:
        return value
    ops: dict[str, str] = {node: facts["scope"] for node, facts in view.nodes(data=True) if facts["kind"] == "op"}
    found = [node for node, scope in ops.items() if scope == value or scope.endswith(f"/{value}")]
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise InputError(f"{len(found)} operations have a scope that ends with {value!r}; name one by its id: {some}")
    raise unknown("value", value, [*ops, *dict.fromkeys(scope for scope in ops.values() if scope)])
