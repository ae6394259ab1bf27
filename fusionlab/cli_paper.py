"""The command that runs the characterisation's experiment over again: paper."""

from __future__ import annotations

import sys
from typing import Any

import click

from fusionlab.cli_options import MOST_SECONDS, console_for, finish, output_options, start
from fusionlab.errors import InputError


def add_to(group: click.Group) -> None:
    """Add the command to the command line."""
    group.add_command(paper)


@click.command()
@click.option("--models", help="Only these: paulinet,ferminet,psiformer,orbformer.")
@click.option("--molecules", help="Only these: LiH,CH4,C2H6,C4H4.")
@click.option("--programs", help="Only these: inference-step,train-step.")
@click.option("--targets", help="Only these: a5000,a100,h200.")
@click.option("--record", default="studies/paper.json", show_default=True, help="What was measured; it goes on there.")
@click.option(
    "--bench-records", help="Folder (or record) with measured times.  [default: studies/bench, if it is there]"
)
@click.option("--page", help="Write the tables and claims as Markdown.")
@click.option("--run/--no-run", default=True, help="Measure what the record lacks, or only show it.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at a time.  [default: by cores and memory]")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers measure: tcp://HOST:8786.")
@click.option("--most", type=click.IntRange(min=0), help="Measure at most so many cells now.")
@click.option("--time-limit", default=1800.0, show_default=True, type=float, help="Seconds one cell may take.")
@click.option("--again", is_flag=True, help="Measure also what is in the record, and compile afresh.")
@click.option("--retry-failed", is_flag=True, help="Try the cells that failed once more.")
@click.option("--walkers", default=1024, show_default=True, type=click.IntRange(min=1))
@click.option("--size", default="full", show_default=True, type=click.Choice(["full", "tiny"]))
@click.option("--no-cache", is_flag=True, help="Compile afresh.")
@output_options
def paper(
    run: bool,
    time_limit: float,
    walkers: int,
    size: str,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> None:
    """The characterisation's tables and claims with our figures: 4 ansätze x 4 molecules x 3 GPUs, both programs.

    Hours of compiling for everything; what is finished is kept, and an interrupted run goes on where it was.
    """
    if not 0 < time_limit <= MOST_SECONDS:
        raise InputError(f"--time-limit must be above 0 seconds and at most {MOST_SECONDS}, not {time_limit}")
    start()
    from fusionlab.commands import paper as command
    from fusionlab.paper.matrix import Circumstances
    from fusionlab.report.matrix_progress import MatrixProgress

    options = command.PaperOptions(
        run=run,
        limit_s=time_limit,
        use_cache=not no_cache,
        circumstances=Circumstances(walkers=walkers, size=size),
        **given,
    )
    try:
        with MatrixProgress(quiet=quiet, terminal=sys.stderr.isatty()) as progress:
            document, code = command.paper(options, progress, console_for(as_json))
    except KeyboardInterrupt:
        click.echo(f"fusionlab: stopped; what was finished is in {options.record}: run again to go on", err=True)
        sys.exit(130)
    finish(document, as_json)
    sys.exit(code)
