"""``fusionlab graph``: a picture of a program, or its graph for another tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.pipelines import passes_of, pipeline_text
from fusionlab.cli.sources import circumstances, load_source, make
from fusionlab.errors import InputError, unknown
from fusionlab.files import require_writable, write_whole
from fusionlab.workload import Workload

if TYPE_CHECKING:
    import networkx as nx
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Pass
    from fusionlab.report.pictures.drawing import Drawing
    from fusionlab.study import Circumstances

_BY_SCOPE = ("scopes", "stages")
"""Two names of one view: scopes are stages where the program has these."""
VIEWS = ("replay", *_BY_SCOPE, "clusters", "kernel", "dataflow")
_OF_LAUNCHES = ("clusters", "kernel")
_EXPORTS = (".graphml", ".json")


@click.command("graph")
@options.source
@click.option(
    "--view",
    help="scopes (or stages), replay, clusters, kernel:NAME, dataflow:VALUE.  [default: replay if there is one]",
    shell_complete=options.among(lambda: ("scopes", "stages", "replay", "clusters", "kernel:", "dataflow:")),
)
@click.option("--platform", type=click.Choice(["cuda", "cpu"]), help="Lowered for.  [default: the target's]")
@click.option(
    "--target",
    help="Compiled for (clusters, kernel): a100, a5000, h100, h200, cpu, ...  [default: a100]",
    shell_complete=options.target_names,
)
@click.option("--depth", type=click.IntRange(min=1), help="scopes: levels of them.  [default: what can be read]")
@click.option("--expand", is_flag=True, help="scopes, replay: draw what repeats one by one.")
@click.option("--constants", is_flag=True, help="scopes: draw constants and broadcasts, too.")
@click.option("--steps", default=3, show_default=True, type=click.IntRange(min=1), help="dataflow: operations around.")
@click.option("--clusters", default=8, show_default=True, type=click.IntRange(min=0), help="How many clusters.")
@options.passes("scopes, clusters: before and after it; repeatable.")
@click.option("--out", help="FILE.svg, .png or .pdf (and .dot beside it), .dot, .graphml, or .json for Model Explorer.")
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    view: str | None,
    platform: str | None,
    asked: dict[str, Any],
    out: str | None,
    console: Console,
    where: dict[str, Any],
    **drawn: Any,
) -> dict[str, Any]:
    """Draw a program: scopes, replay, clusters, a kernel or a value."""
    from fusionlab.report.pictures.files import PICTURES, write_graph
    from fusionlab.study import lower

    target = where["target"]
    if platform is not None and target is not None and (platform == "cpu") != (target == "cpu"):
        raise InputError(f"--platform {platform} and --target {target} do not go together")
    chosen = passes_of(**asked) if pipeline_text(**asked) else ()
    where = where | {"target": target or ("cpu" if platform == "cpu" else None)}
    loaded = load_source(**source, target=where["target"])
    given = circumstances(loaded, **where)
    name = loaded.title if isinstance(loaded, Workload) else loaded.name
    if view is not None:
        _view(view, chosen)
    path = Path(out or f"{name}.svg")
    require_writable(path.resolve().parent)
    if path.suffix and path.suffix not in (*PICTURES, *_EXPORTS, ".dot"):
        known = ", ".join((*PICTURES, ".dot", *_EXPORTS))
        raise InputError(f"--out {path}: no such kind of file; known: {known}")
    program = lower(loaded, given)
    view = view or _default_view(program, chosen)
    view_name, what = _view(view, chosen)
    path = path if out else Path(f"{name}-{view_name}.svg")
    given.progress(f"draw: {view} of {program.name} ({program.ops:,} ops)")
    if path.suffix in _EXPORTS:
        if chosen:
            raise InputError(f"{path}: holds one program; export the rewritten one with `apply --out` and draw that")
        files = _export(program, view_name, what, path, drawn["steps"], given)
    else:
        written = write_graph(_dot(program, view_name, what, chosen, given, drawn), path)
        files = [str(file) for file in written.paths]
        if written.hint:
            given.progress(written.hint)
    for file in files:
        console.print(f"written: {file}", soft_wrap=True)
    return {"name": program.name, "target": given.target.name, "view": view, "files": files}


def _default_view(program: Program, passes: Sequence[Pass]) -> str:
    """The replay where there is one to draw, and no other program beside it; else the scopes."""
    from fusionlab.hlo.program import program_view
    from fusionlab.hlo.replay import find_replays

    return "replay" if not passes and find_replays(program_view(program)) else "scopes"


def _view(view: str, passes: Sequence[Pass]) -> tuple[str, str]:
    """The name of the view and its subject."""
    name, _, what = view.partition(":")
    if name not in VIEWS:
        raise unknown("view", name, VIEWS)
    if (name in ("kernel", "dataflow")) != bool(what):
        raise InputError(f"--view {view}: " + ("this view takes no name" if what else f"say {name}:NAME"))
    if passes and name not in (*_BY_SCOPE, "clusters"):
        raise InputError(f"--view {view}: before and after are drawn by --view scopes and --view clusters")
    return name, what


def _dot(
    program: Program, view: str, what: str, passes: Sequence[Pass], given: Circumstances, drawn: Mapping[str, Any]
) -> str:
    from fusionlab.passes.pipeline import print_pipeline
    from fusionlab.report.pictures.dot import drawing_dot
    from fusionlab.report.pictures.drawing import side_by_side
    from fusionlab.report.pictures.replay import replay_dot
    from fusionlab.study import rewrite

    if view == "replay":
        return replay_dot(program, expand=drawn["expand"])
    drawing = _drawing(program, view, what, given, **drawn)
    if passes:
        result, _ = rewrite(program, passes, given)
        after = _drawing(result.program, view, what, given, **drawn)
        how = print_pipeline(passes) + ("" if result.applied else ": nothing applied")
        drawing = side_by_side(drawing, after, how)
    return drawing_dot(drawing)


def _drawing(
    program: Program,
    view: str,
    what: str,
    given: Circumstances,
    *,
    depth: int | None,
    expand: bool,
    constants: bool,
    steps: int,
    clusters: int,
) -> Drawing:
    from fusionlab.report.pictures.dataflow import dataflow_drawing
    from fusionlab.report.pictures.launches import cluster_drawing, kernel_drawing
    from fusionlab.report.pictures.stages import scope_drawing

    if view in _BY_SCOPE:
        return scope_drawing(program, depth, expand=expand, constants=constants)
    if view == "dataflow":
        return dataflow_drawing(program, what, steps)
    made = make(program, given).compiled
    return kernel_drawing(made, what) if view == "kernel" else cluster_drawing(made, clusters)


def _export(program: Program, view: str, what: str, path: Path, steps: int, given: Circumstances) -> Sequence[str]:
    """The graph that the view is drawn from: operations, or launches; both in Model Explorer's JSON."""
    from fusionlab.hlo.graph import graph
    from fusionlab.hlo.program import program_view
    from fusionlab.report.pictures.dataflow import dataflow_graph
    from fusionlab.report.pictures.files import graphml, model_explorer, node_data, of_all_trips
    from fusionlab.report.pictures.launches import launch_graph

    graphs: dict[str, nx.DiGraph] = {}
    if view not in _OF_LAUNCHES or path.suffix == ".json":
        graphs["operations"] = dataflow_graph(program, what, steps) if view == "dataflow" else graph(program)
    if view in _OF_LAUNCHES or path.suffix == ".json":
        graphs["launches"] = launch_graph(make(program, given).compiled)
    if path.suffix == ".graphml":
        contents = {path: graphml(next(iter(graphs.values())))}
    else:
        if "operations" in graphs:
            graphs["operations"] = of_all_trips(graphs["operations"], program_view(program))
        contents = {path: model_explorer(program.name, graphs).encode()}
        contents |= {path.with_suffix(f".{name}.json"): text.encode() for name, text in node_data(graphs).items()}
    for written in contents:
        if written.is_dir():
            raise InputError(f"{written}: is a directory; give another name")
    for written, content in contents.items():
        write_whole(written, content)
    return [str(written) for written in contents]
