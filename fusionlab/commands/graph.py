"""``fusionlab graph``: a picture of a program, or its graph for another tool."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError
from fusionlab.hlo.graph import graph as op_graph
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.output import require_writable, write_whole
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.report.pictures.dataflow import dataflow_drawing, dataflow_graph
from fusionlab.report.pictures.dot import drawing_dot
from fusionlab.report.pictures.drawing import Drawing, side_by_side
from fusionlab.report.pictures.files import PICTURES, graphml, model_explorer, node_data, of_all_trips, write_graph
from fusionlab.report.pictures.launches import cluster_drawing, kernel_drawing, launch_graph
from fusionlab.report.pictures.replay import replay_dot
from fusionlab.report.pictures.stages import scope_drawing
from fusionlab.study import Circumstances, compiled, lower, rewrite
from fusionlab.workload import Workload

if TYPE_CHECKING:
    import networkx as nx

VIEWS = ("replay", "stages", "clusters", "kernel", "dataflow")
_OF_LAUNCHES = ("clusters", "kernel")
_EXPORTS = (".graphml", ".json")


@dataclass(frozen=True)
class GraphOptions:
    """``view`` is one of VIEWS, ``kernel:NAME`` or ``dataflow:VALUE``; ``passes`` draw the program before and after.

    ``depth`` are the levels of scopes in ``stages``, ``expand`` draws what repeats one by one, ``steps`` is how far
    ``dataflow`` goes, ``clusters`` how many are drawn.
    """

    view: str = "replay"
    out: str | None = None
    passes: tuple[Pass, ...] = ()
    depth: int = 2
    expand: bool = False
    steps: int = 3
    clusters: int = 8


def graph(source: Workload | Program, options: GraphOptions, given: Circumstances, console: Console) -> dict[str, Any]:
    """Draw the view and write ``.dot`` and, where Graphviz is installed, the picture; or write the graph for another
    tool where ``out`` ends in ``.graphml`` or ``.json`` (Model Explorer). Only ``clusters``, ``kernel`` and the JSON
    compile. InputError for a view, a kernel or a value that is not there.
    """
    view, what = _view(options)
    name = source.title if isinstance(source, Workload) else source.name
    path = Path(options.out) if options.out else Path(f"{name}-{view}.svg")
    require_writable(path.resolve().parent)
    if path.suffix and path.suffix not in (*PICTURES, *_EXPORTS, ".dot"):
        known = ", ".join((*PICTURES, ".dot", *_EXPORTS))
        raise InputError(f"--out {path}: no such kind of file; known: {known}")
    program = lower(source, given)
    given.progress(f"draw: {options.view} of {program.name} ({program.ops:,} ops)")
    if path.suffix in _EXPORTS:
        files = _export(program, view, what, path, options, given)
    else:
        written = write_graph(_dot(program, view, what, options, given), path)
        files = [str(file) for file in written.paths]
        if written.hint:
            print(f"fusionlab: {written.hint}", file=sys.stderr)
    for file in files:
        console.print(f"written: {file}", soft_wrap=True)
    return {"name": program.name, "view": options.view, "files": files}


def _view(options: GraphOptions) -> tuple[str, str]:
    """Name of the view and what it is of."""
    name, _, what = options.view.partition(":")
    if name not in VIEWS:
        from fusionlab.errors import unknown

        raise unknown("view", name, VIEWS)
    if (name in ("kernel", "dataflow")) != bool(what):
        raise InputError(f"--view {options.view}: " + ("this view takes no name" if what else f"say {name}:NAME"))
    if options.passes and name not in ("stages", "clusters"):
        raise InputError(f"--view {options.view}: before and after are drawn by --view stages and --view clusters")
    return name, what


def _dot(program: Program, view: str, what: str, options: GraphOptions, given: Circumstances) -> str:
    if view == "replay":
        return replay_dot(program, expand=options.expand)
    drawing = _drawing(program, view, what, options, given)
    if options.passes:
        result, _ = rewrite(program, options.passes, given)
        after = _drawing(result.program, view, what, options, given)
        how = print_pipeline(options.passes) if result.applied else f"{print_pipeline(options.passes)}: nothing applied"
        drawing = side_by_side(drawing, after, how)
    return drawing_dot(drawing)


def _drawing(program: Program, view: str, what: str, options: GraphOptions, given: Circumstances) -> Drawing:
    if view == "stages":
        return scope_drawing(program, options.depth, expand=options.expand)
    if view == "dataflow":
        return dataflow_drawing(program, what, options.steps)
    made = _compiled(program, given)
    return kernel_drawing(made, what) if view == "kernel" else cluster_drawing(made, options.clusters)


def _compiled(program: Program, given: Circumstances) -> Compiled:
    given.progress(f"compile: {program.name} ({program.ops:,} ops) for {given.target.name}")
    return compiled(program, given)


def _export(
    program: Program, view: str, what: str, path: Path, options: GraphOptions, given: Circumstances
) -> Sequence[str]:
    """The graph that the view is drawn from: operations, or launches; both in Model Explorer's JSON."""
    if options.passes:
        raise InputError(f"{path}: holds one program; export the rewritten one with `apply --out` and draw that")
    graphs: dict[str, nx.DiGraph] = {}
    if view not in _OF_LAUNCHES or path.suffix == ".json":
        operations = dataflow_graph(program, what, options.steps) if view == "dataflow" else op_graph(program)
        graphs["operations"] = operations
    if view in _OF_LAUNCHES or path.suffix == ".json":
        graphs["launches"] = launch_graph(_compiled(program, given))
    if path.suffix == ".graphml":
        return _write({path: graphml(next(iter(graphs.values())))})
    if "operations" in graphs:
        graphs["operations"] = of_all_trips(graphs["operations"], view_of(program.parse()))
    texts = {path: model_explorer(program.name, graphs).encode()}
    texts |= {path.with_suffix(f".{name}.json"): content.encode() for name, content in node_data(graphs).items()}
    return _write(texts)


def _write(contents: Mapping[Path, bytes]) -> list[str]:
    for path in contents:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give another name")
    for path, content in contents.items():
        write_whole(path, content)
    return [str(path) for path in contents]
