"""The command that draws: graph."""

from __future__ import annotations

from typing import Any

import click

from fusionlab.cli_completion import among, views
from fusionlab.cli_options import (
    cache_option,
    circumstances,
    console_for,
    finish,
    load_source_of,
    output_options,
    source_options,
    start,
)
from fusionlab.errors import InputError


def add_to(group: click.Group) -> None:
    """Add the command to the command line."""
    group.add_command(graph)


@click.command()
@source_options
@click.option(
    "--view",
    default="replay",
    show_default=True,
    help="stages, replay, clusters, kernel:NAME or dataflow:VALUE.",
    shell_complete=among(views),
)
@click.option("--platform", type=click.Choice(["cuda", "cpu"]), help="Lowered for.  [default: the target's]")
@click.option("--target", help="Compiled for (clusters, kernel): a100, a5000, h200, cpu, ...  [default: a100]")
@click.option("--depth", default=2, show_default=True, type=click.IntRange(min=1), help="stages: levels of scopes.")
@click.option("--expand", is_flag=True, help="stages, replay: draw what repeats one by one.")
@click.option("--steps", default=3, show_default=True, type=click.IntRange(min=1), help="dataflow: operations around.")
@click.option("--clusters", default=8, show_default=True, type=click.IntRange(min=0), help="How many clusters.")
@click.option("--pass", "passes", multiple=True, help="stages, clusters: before and after it; repeatable.")
@click.option("--pipeline", help="The same as 'a,b{x=1}'.")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option.")
@click.option("--out", help="FILE.svg, .png or .pdf (and .dot beside it), .dot, .graphml, or .json for Model Explorer.")
@cache_option
@output_options
def graph(
    view: str,
    platform: str | None,
    target: str | None,
    depth: int,
    expand: bool,
    steps: int,
    clusters: int,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    out: str | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Draw a program: its scopes, its replay, its clusters, one kernel, or what a value is made of."""
    start()
    from fusionlab.commands import graph as command
    from fusionlab.commands.apply import ApplyOptions, passes_of

    if platform is not None and target is not None and (platform == "cpu") != (target == "cpu"):
        raise InputError(f"--platform {platform} and --target {target} do not go together")
    chosen = passes_of(ApplyOptions(passes, pipeline, memory_budget)) if passes or pipeline else ()
    options = command.GraphOptions(view, out, tuple(chosen), depth, expand, steps, clusters)
    loaded = load_source_of(source)
    where = target or ("cpu" if platform == "cpu" else None)
    given = circumstances(loaded, where, quiet, no_cache)
    finish(command.graph(loaded, options, given, console_for(as_json)), as_json)
