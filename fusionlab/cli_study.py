"""``fusionlab study``: one folder and one report for a program, on one target or several."""

from __future__ import annotations

import sys
from typing import Any

import click
from click.core import ParameterSource

from fusionlab import cli_paper
from fusionlab.cli_options import (
    cache_option,
    check_options,
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
from fusionlab.errors import InputError


def add_to(group: click.Group) -> None:
    """Add the command to the command line."""
    group.add_command(study)


@click.command()
@source_options
@click.option(
    "--target", help="a100, a5000, h200, cpu, gpu or a SPEC.txtpb; several: a5000,a100,h200.  [default: a100]"
)
@click.option("-o", "--out", help="Folder to write: report.html, study.json and the programs.  [required]")
@click.option("--paper", is_flag=True, help="The characterisation's whole matrix: `fusionlab paper`.")
@click.option("--pass", "passes", multiple=True, help="A pass, name or name{option=value}; repeatable.")
@click.option("--pipeline", help="Passes in order: 'a,b{x=1}'; layout; or best.  [default: fuse-jvp-replay]")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option, and for best.")
@click.option("--objective", help="What best is to make small: time, launches, bytes or temp.  [default: time]")
@click.option("--time-limit", type=float, help="Seconds that best may search.  [default: 600]")
@click.option("--seed", type=int, help="Decides in which order best tries passes.  [default: 0]")
@click.option("--records", multiple=True, help="Records of bench (files or folders) to show measured times from.")
@check_options
@click.option("--unchecked", is_flag=True, help="Go on when the check cannot be done within its limits.")
@click.option("--require-applied", is_flag=True, help="Exit 1 when no pass applied.")
@cache_option
@output_options
def study(
    target: str | None,
    out: str | None,
    paper: bool,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    objective: str | None,
    time_limit: float | None,
    seed: int | None,
    records: tuple[str, ...],
    check_walkers: int,
    check_time_limit: float,
    no_exact: bool,
    unchecked: bool,
    require_applied: bool,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Everything about a program in one folder: a report for the browser, its data, the programs before and after."""
    if paper:
        _paper(click.get_current_context(), as_json, quiet)
        return
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out'.")
    require_limits(check_walkers, check_time_limit)
    start()
    from fusionlab.codegen.targets import load_target
    from fusionlab.commands import study as command
    from fusionlab.commands.apply import ApplyOptions
    from fusionlab.commands.best import SearchOptions
    from fusionlab.commands.source import SourceOptions, default_target

    loaded = load_source_of(source)
    names = list(dict.fromkeys(filter(None, map(str.strip, (target or default_target(loaded)).split(",")))))
    if not names:
        raise InputError("--target names no target")
    targets = [load_target(name) for name in names]
    text = ",".join([*passes, *([pipeline] if pipeline else [])]) or "fuse-jvp-replay"
    options = command.StudyOptions(
        folder=out,
        source=SourceOptions(**source),
        apply=ApplyOptions(
            pipeline=text,
            memory_budget=memory_budget,
            unchecked=unchecked,
            require_applied=require_applied,
            search=SearchOptions(objective, time_limit, seed),
        ),
        records=records,
    )
    given = checking(circumstances(loaded, names[0], quiet, no_cache), check_walkers, check_time_limit, no_exact)
    document, code = command.run_study(loaded, targets, options, given, console_for(as_json))
    finish(document, as_json)
    sys.exit(code)


def _paper(context: click.Context, as_json: bool, quiet: bool) -> None:
    """``fusionlab paper`` with its defaults. InputError for any option of one program's study."""
    typed = [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name not in ("paper", "as_json", "quiet")
        and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    ]
    if typed:
        raise InputError(f"--paper is of the whole matrix, without {', '.join(typed)}: see fusionlab paper --help")
    context.invoke(cli_paper.paper, as_json=as_json, quiet=quiet)
