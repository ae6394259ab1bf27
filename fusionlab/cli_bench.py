"""The commands that time programs on a device that is there, and read what was measured: bench, compare."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from fusionlab.cli_options import (
    MOST_SECONDS,
    cache_option,
    checking,
    circumstances,
    console_for,
    finish,
    load_source_of,
    output_options,
    require_limits,
    source_options,
    start,
)


def add_to(group: click.Group) -> None:
    """Add the commands of measurement to the command line."""
    group.add_command(bench)
    group.add_command(compare)


@click.command()
@source_options
@click.option("--device", type=click.Choice(["gpu", "cpu"]), help="Where to run.  [default: gpu where there is one]")
@click.option("--pass", "passes", multiple=True, help="Time the source after this pass; repeatable.")
@click.option("--pipeline", help="The same as 'a,b{x=1}', or none.  [default: fuse-jvp-replay]")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option.")
@click.option("--against", help="Peers: replay,vmap,folx,folx-sparse,jet,enzyme, or none.  [default: all]")
@click.option("--runs", default=11, show_default=True, type=int, help="Traced runs; the first is dropped.")
@click.option("--repeats", default=10, show_default=True, type=int, help="Interleaved rounds for wall times.")
@click.option("--seed", default=1, show_default=True, type=int, help="Seed of the inputs.")
@click.option("--records", default="studies/bench", show_default=True, help="Folder for the record; none: no record.")
@click.option("--verdicts", help="Folder that keeps verdicts.  [default: beside the compile cache]")
@click.option("--counters", is_flag=True, help="Hardware counters of every kernel, by Nsight Compute (ncu).")
@click.option("--check-only", is_flag=True, help="Only check, and keep the verdicts for a run to come.")
@click.option("--check-walkers", default=16, show_default=True, type=int, help="Walkers of the equivalence check.")
@cache_option
@output_options
def bench(
    device: str | None,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    against: str | None,
    runs: int,
    repeats: int,
    seed: int,
    records: str,
    verdicts: str | None,
    counters: bool,
    check_only: bool,
    check_walkers: int,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Time a program, its rewriting and its peers side by side, after a check that they are equal; keep a record."""
    require_limits(check_walkers, MOST_SECONDS)
    start()
    from fusionlab.commands import bench as command
    from fusionlab.commands.apply import ApplyOptions, passes_of

    target = command.device_target(device)
    context = click.get_current_context()
    if target.kind == "cpu" and context.get_parameter_source("walkers") == ParameterSource.DEFAULT:
        source["walkers"] = command.CPU_WALKERS
    if source["laplacian"] is None:
        source["laplacian"] = "replay"
    asked = pipeline or (None if passes else "fuse-jvp-replay")
    chosen = () if asked == "none" else passes_of(ApplyOptions(passes, asked, memory_budget))
    loaded = load_source_of(source)
    options = command.BenchOptions(
        chosen, against, None if records == "none" else records, verdicts, runs, repeats, seed, check_only, counters
    )
    given = checking(circumstances(loaded, target.name, quiet, no_cache), check_walkers, MOST_SECONDS)
    document, code = command.run_bench(loaded, options, given, console_for(as_json))
    finish(document, as_json)
    sys.exit(code)


@click.command()
@click.argument("records", nargs=-1, required=True)
@click.option(
    "--time", "clock", type=click.Choice(["wall", "device"]), help="[default: device on a GPU, wall on a CPU]"
)
@click.option("--of", default="fused", show_default=True, help="The variant that ratios are of.")
@click.option("--by", help="Add up device time by these: phase,stage,role,family,name.")
@click.option("--rates", is_flag=True, help="FLOP/s, byte/s, overhead, energy x delay, compile seconds.")
@click.option("--calibrate", "calibrated", is_flag=True, help="Set the model of times against what was measured.")
@click.option("--what-if", help="Predict other hardware: h200, or bandwidth_gb_s=4800,sms=132,launch_us=3.")
@click.option("--every", is_flag=True, help="Older records of the same, too.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The table for a page.")
@output_options
def compare(
    records: tuple[str, ...],
    clock: str | None,
    of: str,
    by: str | None,
    rates: bool,
    calibrated: bool,
    what_if: str | None,
    every: bool,
    as_markdown: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Read records of `bench` (files or folders) into tables: times, ratios with 95 % intervals, where time goes."""
    start()
    from fusionlab.commands import compare as command

    columns = tuple(word.strip() for word in by.split(",")) if by else ()
    options = command.CompareOptions(clock, of, columns, rates, every, calibrated, what_if, as_markdown)
    finish(command.compare(records, options, console_for(as_json)), as_json)
