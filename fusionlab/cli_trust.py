"""The commands that say whether a rewrite is right, and which step is wrong: check, bisect."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

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
    target_option,
)
from fusionlab.errors import InputError


def add_to(group: click.Group) -> None:
    """Add the commands of trust to the command line."""
    group.add_command(check)
    group.add_command(bisect)


@click.command()
@source_options
@click.argument("other", required=False)
@target_option
@click.option("--pass", "passes", multiple=True, help="Compare with the source after this pass; repeatable.")
@click.option("--pipeline", help="Compare with the source after these passes: 'a,b{x=1}'.")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option.")
@click.option("--against-laplacian", "other_laplacian", help="Compare with the same model and this Laplacian.")
@check_options
@click.option("--inputs", help="Compare on the inputs of this file only (a worst walker that was saved).")
@click.option("--worst", default="worst-walker.npz", show_default=True, help="Where the worst walker is saved.")
@click.option("--oracles/--no-oracles", default=True, help="Ask brute force and the reference interpreter too.")
@click.option("--exact", is_flag=True, help="Compare in prime fields alone: no tolerance, steered predicates.")
@cache_option
@output_options
def check(
    other: str | None,
    target: str | None,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    other_laplacian: str | None,
    check_walkers: int,
    check_time_limit: float,
    no_exact: bool,
    inputs: str | None,
    worst: str,
    oracles: bool,
    exact: bool,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Are two programs equal? Two files, a model and a file, or a source and passes; exit 0 yes, 1 no, 2 bad input."""
    require_limits(check_walkers, check_time_limit)
    start()
    from fusionlab.commands import check as command
    from fusionlab.commands.apply import ApplyOptions, passes_of
    from fusionlab.commands.source import load_program

    if source["model"] is not None and source["file"] is not None and other is None:
        source["file"], other = None, source["file"]
    loaded = load_source_of(source)
    asked = bool(passes or pipeline)
    options = command.CheckOptions(
        passes_of(ApplyOptions(passes, pipeline, memory_budget)) if asked else (),
        load_program(other) if other is not None else None,
        other_laplacian,
        inputs,
        worst,
        command_line(click.get_current_context(), without=("inputs", "worst", "as_json")),
        oracles,
        exact,
    )
    given = checking(circumstances(loaded, target, quiet, no_cache), check_walkers, check_time_limit, no_exact)
    document, code = command.run_check(loaded, options, given, console_for(as_json))
    finish(document, as_json)
    sys.exit(code)


@click.command()
@source_options
@target_option
@click.option("--pass", "passes", multiple=True, help="The passes that make the program differ; repeatable.")
@click.option("--pipeline", help="The same as 'a,b{x=1}'.")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option.")
@click.option("--xla", is_flag=True, help="Bisect XLA's own passes (on the CPU) in place of ours.")
@check_options
@click.option(
    "--trials", default=24, show_default=True, type=click.IntRange(min=0), help="Attempts at a smaller module."
)
@click.option("--out", help="Folder for the reduced module and its test.  [default: fusionlab-bisect/<program>]")
@cache_option
@output_options
def bisect(
    target: str | None,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    xla: bool,
    check_walkers: int,
    check_time_limit: float,
    no_exact: bool,
    trials: int,
    out: str | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Which pass, application of it, or XLA pass makes a program differ; exit 0 none, 1 found or not checked, 2 bad
    input."""
    require_limits(check_walkers, check_time_limit)
    start()
    from fusionlab.commands import bisect as command
    from fusionlab.commands.apply import ApplyOptions, passes_of

    if xla == bool(passes or pipeline):
        raise InputError("name what to bisect: --pass or --pipeline for our passes, or --xla for XLA's")
    loaded = load_source_of(source)
    options = command.BisectOptions(
        () if xla else passes_of(ApplyOptions(passes, pipeline, memory_budget)), xla, trials, out
    )
    where = "cpu" if xla and target is None else target
    given = checking(circumstances(loaded, where, quiet, no_cache), check_walkers, check_time_limit, no_exact)
    document, code = command.run_bisect(loaded, options, given, console_for(as_json))
    finish(document, as_json)
    sys.exit(code)


def command_line(context: click.Context, without: tuple[str, ...]) -> str:
    """The command with the options that are not at their defaults, ready for a shell."""
    words = ["fusionlab", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in without or value == parameter.get_default(context) or value in (None, ()):
            continue
        for one in value if isinstance(value, tuple) else (value,):
            flags = [*parameter.opts] if one is not False else [*parameter.secondary_opts]
            if isinstance(parameter, click.Argument):
                words.append(str(one))
            else:
                words += [max(flags, key=len), *([] if isinstance(one, bool) else [str(one)])]
    return shlex.join(words)
