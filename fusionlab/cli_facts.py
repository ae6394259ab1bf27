"""The commands that turn a program into facts: launches, roofline, clusters, explain, replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli_options import (
    cache_option,
    circumstances,
    console_for,
    finish,
    output_options,
    source_options,
    start,
)
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from fusionlab.commands.facts import Source
    from fusionlab.study import Circumstances

targets_option = click.option(
    "--target", "target", help="a100, a5000, h200, cpu, gpu or a SPEC.txtpb; several: a5000,a100,h200.  [default: a100]"
)


def add_to(group: click.Group) -> None:
    """Add the fact commands to the command line."""
    for command in (launches, roofline, clusters, explain, replays):
        group.add_command(command)


@click.command()
@source_options
@targets_option
@click.option(
    "--by", default="", help="Totals by columns: phase, stage, role, family, name, kind, trip_count, in_cuda_graph, ..."
)
@click.option(
    "--sites", default=15, show_default=True, type=click.IntRange(min=0), help="How many launch sites to list."
)
@cache_option
@output_options
def launches(
    target: str | None, by: str, sites: int, no_cache: bool, as_json: bool, quiet: bool, **source: Any
) -> None:
    """Every kernel launch with phase, stage, derivative role, family, FLOPs, bytes and modelled time."""
    loaded, given, targets = _given(source, target, quiet, no_cache)
    from fusionlab.commands import launches as command

    columns = [column.strip() for column in by.split(",") if column.strip()]
    finish(command.launches(loaded, targets, columns, sites, given, console_for(as_json)), as_json)


@click.command()
@source_options
@targets_option
@click.option("--out", help="Write the plot: FILE.svg (one per target) or a folder.")
@click.option("--kernels", default=10, show_default=True, type=click.IntRange(min=0), help="How many kernels to list.")
@click.option("--peak-tflops", type=float, help="Measured FP32 ceiling in TFLOP/s, in place of the spec's.")
@click.option("--bandwidth", type=float, help="Measured memory ceiling in GB/s, in place of the spec's.")
@cache_option
@output_options
def roofline(
    target: str | None,
    out: str | None,
    kernels: int,
    peak_tflops: float | None,
    bandwidth: float | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Kernel families and kernels on the roofline of a target, as numbers and as a plot."""
    loaded, given, targets = _given(source, target, quiet, no_cache)
    from fusionlab.commands import roofline as command

    options = command.RooflineOptions(out, kernels, peak_tflops, bandwidth)
    finish(command.roofline(loaded, targets, options, given, console_for(as_json)), as_json)


@click.command()
@source_options
@targets_option
@click.option("--criteria", default="trace", show_default=True, type=click.Choice(["trace", "pim"]))
@click.option("--link", type=float, help="pim: GB/s across a cluster's boundary.  [default: the target's memory]")
@click.option("--sync-us", default=1.0, show_default=True, type=float, help="pim: microseconds per boundary crossed.")
@click.option(
    "--shown", default=10, show_default=True, type=click.IntRange(min=0), help="How many clusters of each kind to list."
)
@cache_option
@output_options
def clusters(
    target: str | None,
    criteria: str,
    link: float | None,
    sync_us: float,
    shown: int,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Groups of elementwise and layout work that could be one kernel, ranked, with what that can give at most."""
    loaded, given, _ = _given(source, target, quiet, no_cache, several=False)
    from fusionlab.commands import clusters as command

    options = command.ClusterOptions(criteria, link, sync_us, shown)
    finish(command.clusters(loaded, options, given, console_for(as_json)), as_json)


@click.command()
@source_options
@targets_option
@click.option("--kernel", help="What is inside this kernel (its HLO name) and why its neighbours are not.")
@click.option("--refused", default=10, show_default=True, type=click.IntRange(min=0), help="How many refusals to list.")
@cache_option
@output_options
def explain(
    target: str | None, kernel: str | None, refused: int, no_cache: bool, as_json: bool, quiet: bool, **source: Any
) -> None:
    """Why XLA did not fuse: refusals by cause, with scope, source line and what the boundary costs."""
    loaded, given, _ = _given(source, target, quiet, no_cache, several=False)
    from fusionlab.commands import explain as command

    finish(command.explain(loaded, kernel, refused, given, console_for(as_json)), as_json)


@click.command()
@source_options
@targets_option
@click.option("--rewrites/--no-rewrites", default=True, help="Try each rewrite and say what blocks it.")
@output_options
def replays(target: str | None, rewrites: bool, as_json: bool, quiet: bool, **source: Any) -> None:
    """The inventory of loops: trips, seed, residuals, what is recomputed, and what blocks each rewrite."""
    loaded, given, _ = _given(source, target, quiet, no_cache=True, several=False)
    from fusionlab.commands import replays as command

    finish(command.replays(loaded, rewrites, given, console_for(as_json)), as_json)


def _given(
    source: dict[str, Any], target: str | None, quiet: bool, no_cache: bool, *, several: bool = True
) -> tuple[Source, Circumstances, list[Any]]:
    """Source, circumstances (with the first target) and all targets, from the options."""
    start()
    from fusionlab.codegen.targets import load_target
    from fusionlab.commands.facts import load_facts_source
    from fusionlab.commands.source import SourceOptions, default_target

    loaded = load_facts_source(SourceOptions(**source))
    asked = (target or default_target(loaded)).split(",")
    names = list(dict.fromkeys(name.strip() for name in asked if name.strip()))
    if not names:
        raise InputError("--target names no target")
    targets = [load_target(name) for name in names]
    if len(targets) > 1 and not several:
        raise InputError(f"--target {target}: this command takes one target")
    return loaded, circumstances(loaded, names[0], quiet, no_cache), targets
