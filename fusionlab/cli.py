"""The command line. It reads options, prints results and sets exit codes; what commands do is in fusionlab.commands.

Exit codes: 0 done, 1 a check failed, 2 the input was wrong. ``--json`` puts one JSON document on stdout.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from fusionlab import __version__, cli_bench, cli_completion, cli_facts, cli_graph, cli_paper, cli_study, cli_trust
from fusionlab.cli_completion import among
from fusionlab.cli_completion import passes as pass_names
from fusionlab.cli_options import (
    cache_option,
    check_options,
    checking,
    circumstances,
    console_for,
    finish,
    load_source_of,
    output_options,
    progress_for,
    require_limits,
    source_options,
    start,
    target_option,
)
from fusionlab.cli_terminal import steps
from fusionlab.errors import CompileError, InputError, NotStudied, missing_package


class _Group(click.Group):
    """A group that turns InputError and CompileError into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, CompileError) as error:
            raise click.exceptions.Exit(_fail(str(error), 2)) from None
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("fusionlab", "workloads"):
                raise
            raise click.exceptions.Exit(_fail(missing_package(error), 2)) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(1) from None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from fusionlab.errors import unknown

            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def _fail(message: str, code: int) -> int:
    steps.clear()
    click.echo(f"fusionlab: {message}", err=True)
    return code


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fusionlab")
def main() -> None:
    """Study and rewrite the compiled programs of neural-network variational Monte Carlo, GPU present or absent."""


@main.command()
@source_options
@target_option
@click.option("--out", help="Folder to write into.  [default: fusionlab-dump/<program>-<target>]")
@cache_option
@output_options
def dump(target: str | None, out: str | None, no_cache: bool, as_json: bool, quiet: bool, **source: Any) -> None:
    """Lower and compile a program; write jaxpr, StableHLO, optimised HLO and launch list; print what it costs."""
    start()
    from fusionlab.commands import dump as command

    loaded = load_source_of(source)
    finish(command.dump(loaded, out, circumstances(loaded, target, quiet, no_cache), console_for(as_json)), as_json)


@main.command()
@source_options
@target_option
@click.option(
    "--pass",
    "passes",
    multiple=True,
    help="A pass: name, name{option=value} or FILE.py:NAME; repeatable.",
    shell_complete=among(pass_names),
)
@click.option("--pipeline", help="Passes in order: 'a,b{x=1}'; a preset: layout, kernels; or searched: best.")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option, and for best.")
@click.option("--objective", help="What best is to make small: time, launches, bytes or temp.  [default: time]")
@click.option("--time-limit", type=float, help="Seconds that best may search; it goes on next time.  [default: 600]")
@click.option("--seed", type=int, help="Decides in which order best tries passes.  [default: 0]")
@click.option("--out", help="Write the rewritten StableHLO here.")
@check_options
@click.option("--unchecked", is_flag=True, help="Go on when the check cannot be done within its limits.")
@click.option("--require-applied", is_flag=True, help="Exit 1 when no pass applied.")
@click.option("--diff", is_flag=True, help="Show which ops each pass removed, added, moved and rewired.")
@click.option("--diff-lines", type=click.IntRange(min=0), help="Lines of --diff per pass; 0: all.  [default: 60]")
@cache_option
@output_options
def apply(
    target: str | None,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    objective: str | None,
    time_limit: float | None,
    seed: int | None,
    out: str | None,
    check_walkers: int,
    check_time_limit: float,
    no_exact: bool,
    unchecked: bool,
    require_applied: bool,
    diff: bool,
    diff_lines: int | None,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Rewrite a program, check the rewrite on real numbers, recompile, and show before and after."""
    require_limits(check_walkers, check_time_limit)
    start()
    from fusionlab.commands import apply as command
    from fusionlab.commands.best import SearchOptions

    if diff and diff_lines is None:
        diff_lines = command.DIFF_LINES
    search = SearchOptions(objective, time_limit, seed)
    options = command.ApplyOptions(passes, pipeline, memory_budget, out, unchecked, require_applied, diff_lines, search)
    from fusionlab.commands.pass_through import pass_through, require_one_device

    try:
        loaded = load_source_of(source)
        require_one_device(loaded)
    except NotStudied as found:
        circumstances(None, target, quiet, no_cache)  # a target that there is not is an error here too
        document, code = pass_through(found, options, console_for(as_json))
        finish(document, as_json)
        sys.exit(code)
    given = checking(circumstances(loaded, target, quiet, no_cache), check_walkers, check_time_limit, no_exact)
    document, code = command.apply(loaded, options, given, console_for(as_json))
    finish(document, as_json)
    sys.exit(code)


@main.command()
@click.argument("name", required=False, shell_complete=among(pass_names))
@output_options
def passes(name: str | None, as_json: bool, quiet: bool) -> None:
    """List the passes, what they do to the numbers, and their options; with NAME, one pass as it is documented."""
    start()
    from fusionlab.commands import passes as command

    finish(command.passes(name, console_for(as_json)), as_json)


@main.command()
@click.option("--model", help="Only this model.")
@click.option("--molecule", help="Only this molecule: a name or an XYZ file.")
@click.option("--charge", type=int, help="Charge of the molecules, if not their own.")
@click.option("--spin", type=int, help="n_up - n_down, if not the molecules' own.")
@click.option(
    "--ops", "recount", is_flag=True, help="Count the StableHLO ops now (minutes), not from the stored table."
)
@output_options
def models(as_json: bool, quiet: bool, **options: Any) -> None:
    """List the models that can be lowered by name: electrons, parameters and StableHLO ops per molecule and program."""
    start()
    from fusionlab.commands import models as command

    listed = command.models(command.ModelsOptions(**options), progress_for(quiet), console_for(as_json))
    finish(listed, as_json)


cli_facts.add_to(main)
cli_trust.add_to(main)
cli_bench.add_to(main)
cli_graph.add_to(main)
cli_paper.add_to(main)
cli_completion.add_to(main)
cli_study.add_to(main)

if __name__ == "__main__":
    main()
