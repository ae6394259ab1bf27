"""Pictures and graphs as files: DOT and its rendering by Graphviz, GraphML, and Google Model Explorer's JSON.

Model Explorer reads a collection ``{"label", "graphs": [{"id", "nodes"}]}``; a node has ``namespace`` (its nested
layers), ``attrs`` and ``incomingEdges``. Node data come in files of their own, ``{graph id: {"results": {node id:
{"value"}}, "gradient"}}``, one per figure; an unknown figure has no entry. Source of both: ``graph_builder.py`` and
``node_data_builder.py`` of github.com/google-ai-edge/model-explorer.
"""

from __future__ import annotations

import io
import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx

from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole
from fusionlab.hlo import ops
from fusionlab.hlo.graph import nodes_by_id
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.view import FunctionView
from fusionlab.report.pictures.scopes import scope_path

HINT = (
    "no Graphviz on this machine: install it (Debian: apt-get install graphviz), then run: "
    "dot -T{format} {dot} -o {picture}"
)

_GRADIENT = [{"stop": 0, "bgColor": "#FFFFFF"}, {"stop": 1, "bgColor": "#D55E00"}]
"""White to vermilion (Okabe and Ito), distinguishable also without colour vision."""

NODE_DATA = {"bytes": "bytes", "flops": "flops", "launches": "launches", "time_us": "model_us"}
"""Name of a node data file to the attribute of a node that it holds."""


@dataclass(frozen=True)
class Written:
    """The files of a picture; ``hint`` is the way to render it when no renderer was found, else empty."""

    paths: tuple[Path, ...]
    hint: str


PICTURES = (".svg", ".png", ".pdf")
"""Formats that Graphviz renders a DOT file to here."""


def write_graph(dot_text: str, out: str | Path) -> Written:
    """Write ``out`` with suffix .dot and, with Graphviz on PATH, the picture next to it: .svg, or .png or .pdf if
    ``out`` ends so. Existing files are replaced whole.

    InputError when one of the files cannot be written, if possible before anything is written;
    ``graphviz.CalledProcessError`` when Graphviz refuses the text, with nothing written.
    """
    if Path(out).is_dir():
        raise InputError(f"{out}: is a directory; give the name of a file")
    suffix = Path(out).suffix if Path(out).suffix in PICTURES else ".svg"
    dot_path, picture_path = (Path(out).with_suffix(one) for one in (".dot", suffix))
    picture = _rendered(dot_text, suffix[1:])
    contents = {dot_path: dot_text.encode()} | ({} if picture is None else {picture_path: picture})
    for path in contents:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give another name")
    require_writable(dot_path.parent)
    for path, content in contents.items():
        write_whole(path, content)
    hint = HINT.format(format=suffix[1:], dot=dot_path, picture=picture_path)
    return Written(tuple(contents), hint if picture is None else "")


def rendered_svg(dot_text: str) -> bytes | None:
    """The picture as SVG; None without Graphviz on PATH."""
    return _rendered(dot_text, "svg")


def _rendered(dot_text: str, format_: str) -> bytes | None:
    if shutil.which("dot") is None:
        return None
    import graphviz

    return bytes(graphviz.Source(dot_text).pipe(format=format_))


def graphml(graph: nx.DiGraph) -> bytes:
    """The graph with all attributes of nodes and edges."""
    content = io.BytesIO()
    nx.write_graphml(graph, content)
    return content.getvalue()


def of_all_trips(operations: nx.DiGraph, flat: FunctionView) -> nx.DiGraph:
    """The graph with FLOPs and bytes of all trips at the operations inside a loop, and none (-1) at the loop itself.

    Figures can then be summed. A loop of unknown trips counts once, and a branch as both its sides.
    """
    known = nodes_by_id(flat, flat.name)
    trips = {one: analyse(node).trips or 1 for one, node in known.items() if node.op is ops.WHILE}
    shown_inside = {facts["parent"] for _, facts in operations.nodes(data=True)}
    found = operations.copy()
    for node, facts in found.nodes(data=True):
        runs = math.prod(trips.get(node[:at], 1) for at, letter in enumerate(node) if letter == "/")
        for figure in ("flops", "bytes"):
            facts[figure] = -1 if node in shown_inside else facts[figure] * runs
    return found


def model_explorer(label: str, graphs: Mapping[str, nx.DiGraph]) -> str:
    """The collection ``label`` of ``graphs`` (by their ids) as Model Explorer's JSON."""
    found = [{"id": name, "nodes": [_node(one, node) for node in one]} for name, one in graphs.items()]
    return json.dumps({"label": label, "graphs": found}, indent=1)


def node_data(graphs: Mapping[str, nx.DiGraph]) -> dict[str, str]:
    """The text of the node data file of each figure that any node has, by name."""
    texts = {}
    for name, attribute in NODE_DATA.items():
        data = {}
        for graph, one in graphs.items():
            known = {node: facts[attribute] for node, facts in one.nodes(data=True) if facts.get(attribute, -1) >= 0}
            if known:
                results = {node: {"value": value} for node, value in known.items()}
                data[graph] = {"results": results, "gradient": _GRADIENT}
        if data:
            texts[name] = json.dumps(data, indent=1)
    return texts


def _node(graph: nx.DiGraph, node: str) -> dict[str, Any]:
    facts = graph.nodes[node]
    shown = ("type", "stage", "role", "family", "flops", "bytes", "launches", "model_us", "scope", "source")
    attributes = [
        {"key": key, "value": str(facts[key])} for key in shown if facts.get(key) not in (None, "") and facts[key] != -1
    ]
    return {
        "id": node,
        "label": str(facts["name"]).removeprefix("stablehlo."),
        "namespace": _namespace(graph, facts),
        "attrs": attributes,
        "incomingEdges": [
            {"sourceNodeId": source, "sourceNodeOutputId": "0", "targetNodeInputId": str(number)}
            for number, source in enumerate(graph.predecessors(node))
        ],
    }


def _namespace(graph: nx.DiGraph, facts: Mapping[str, Any]) -> str:
    """Phase, loop, scopes and role, as nested layers; operands and results of a loop stand in the loop."""
    parent = facts.get("parent") or ""
    loop = str(facts.get("loop") or parent).replace("/", " ")
    known = graph.nodes[parent] if parent in graph else facts
    worded = facts["kind"] in ("op", "launch") or parent
    phase = (facts["phase"] or known["phase"] or "outside of every scope") if worded else ""
    parts = [phase, loop, *(name.replace("/", " ") for name in scope_path(facts["scope"]) if name), facts["role"]]
    return "/".join(part for part in parts if part)
