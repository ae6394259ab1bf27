"""The command line. It reads options, prints results and sets exit codes; what commands do is in fusionlab.commands.

Exit codes: 0 done, 1 a check failed, 2 the input was wrong. ``--json`` puts one JSON document on stdout.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fusionlab import __version__
from fusionlab.errors import CompileError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.study import Circumstances
    from fusionlab.workload import Workload


MOST_SECONDS = 7 * 24 * 3600


class _Group(click.Group):
    """A group that turns InputError and CompileError into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, CompileError) as error:
            raise click.exceptions.Exit(_fail(str(error), 2)) from None
        except BrokenPipeError:
            raise click.exceptions.Exit(1) from None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            from fusionlab.errors import unknown

            raise unknown("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def _fail(message: str, code: int) -> int:
    click.echo(f"fusionlab: {message}", err=True)
    return code


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="fusionlab")
def main() -> None:
    """Study and rewrite the compiled programs of neural-network variational Monte Carlo, GPU present or absent."""


def _options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


source_options = _options(
    click.argument("file", required=False),
    click.option("--model", help="An ansatz by name; `fusionlab models` lists them."),
    click.option("--molecule", default="CH4", show_default=True, help="LiH, CH4, C2H6, C4H4 or an XYZ file."),
    click.option("--charge", type=int, help="Charge of the molecule, if not its own."),
    click.option("--spin", type=int, help="n_up - n_down, if not the molecule's own."),
    click.option("--walkers", default=1024, show_default=True, type=int),
    click.option("--program", default="local-energy", show_default=True, help="What of the model is lowered."),
    click.option("--laplacian", help="Laplacian variant (default: that of the code the ansatz comes from)."),
    click.option("--dtype", default="float32", show_default=True),
    click.option("--size", default="full", show_default=True, help="full, or tiny for a try."),
)
target_option = click.option(
    "--target", help="a100, a5000, h200, cpu, gpu (the attached one) or a SPEC.txtpb.  [default: a100]"
)
output_options = _options(
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    click.option("--quiet", is_flag=True, help="No progress on stderr."),
)
cache_option = click.option("--no-cache", is_flag=True, help="Compile afresh.")


@main.command()
@source_options
@target_option
@click.option("--out", help="Folder to write into.  [default: fusionlab-dump/<program>-<target>]")
@cache_option
@output_options
def dump(target: str | None, out: str | None, no_cache: bool, as_json: bool, quiet: bool, **source: Any) -> None:
    """Lower and compile a program; write jaxpr, StableHLO, optimised HLO and launch list; print what it costs."""
    _start()
    from fusionlab.commands import dump as command

    loaded = _source(source)
    _finish(command.dump(loaded, out, _circumstances(loaded, target, quiet, no_cache), _console(as_json)), as_json)


@main.command()
@source_options
@target_option
@click.option("--pass", "passes", multiple=True, help="A pass, name or name{option=value}; repeatable.")
@click.option("--pipeline", help="Passes in order: 'a,b{x=1}'.")
@click.option("--memory-budget", help="Bound on temp memory, e.g. 2GiB, for passes with that option.")
@click.option("--out", help="Write the rewritten StableHLO here.")
@click.option("--check-walkers", default=16, show_default=True, type=int, help="Walkers of the equivalence check.")
@click.option(
    "--check-time-limit", default=300.0, show_default=True, type=float, help="Seconds a FILE's check may take."
)
@click.option("--unchecked", is_flag=True, help="Go on when the check cannot be done within its limits.")
@click.option("--require-applied", is_flag=True, help="Exit 1 when no pass applied.")
@cache_option
@output_options
def apply(
    target: str | None,
    passes: tuple[str, ...],
    pipeline: str | None,
    memory_budget: str | None,
    out: str | None,
    check_walkers: int,
    check_time_limit: float,
    unchecked: bool,
    require_applied: bool,
    no_cache: bool,
    as_json: bool,
    quiet: bool,
    **source: Any,
) -> None:
    """Rewrite a program, check the rewrite on real numbers, recompile, and show before and after."""
    if check_walkers < 1:
        raise InputError(f"--check-walkers must be at least 1, not {check_walkers}")
    if not 0 < check_time_limit <= MOST_SECONDS:
        raise InputError(f"--check-time-limit must be between 0 and {MOST_SECONDS} seconds, not {check_time_limit}")
    _start()
    from dataclasses import replace

    from fusionlab.commands import apply as command

    options = command.ApplyOptions(passes, pipeline, memory_budget, out, unchecked, require_applied)
    loaded = _source(source)
    given = replace(
        _circumstances(loaded, target, quiet, no_cache),
        check_walkers=check_walkers,
        check_time_limit_s=check_time_limit,
    )
    document, code = command.apply(loaded, options, given, _console(as_json))
    _finish(document, as_json)
    sys.exit(code)


@main.command()
@source_options
@click.option("--view", default="replay", show_default=True, type=click.Choice(["replay"]))
@click.option("--platform", default="cuda", show_default=True, type=click.Choice(["cuda", "cpu"]))
@click.option("--out", help="Where to write: FILE.svg or FILE.dot (both are written).")
@output_options
def graph(view: str, platform: str, out: str | None, as_json: bool, quiet: bool, **source: Any) -> None:
    """Draw a program: the replay's body as boxes by stage and op family, its boundary, what enters and leaves."""
    _start()
    from fusionlab.commands import graph as command

    _finish(command.graph(_source(source), out, platform, _console(as_json)), as_json)


@main.command()
@click.option("--model", help="Only this model.")
@click.option("--molecule", help="Only this molecule.")
@output_options
def models(model: str | None, molecule: str | None, as_json: bool, quiet: bool) -> None:
    """List the models that can be lowered by name, with electrons and parameters per molecule."""
    _start()
    from fusionlab.commands import models as command

    _finish(command.models(model, molecule, _console(as_json)), as_json)


def _start() -> None:
    """Import JAX once, without the noise of its plugins."""
    from fusionlab import quiet_start

    quiet_start.load_jax()


def _source(given: dict[str, Any]) -> Workload | Program:
    from fusionlab.commands.source import SourceOptions, load_source

    return load_source(SourceOptions(**given))


def _circumstances(source: Workload | Program, target_name: str | None, quiet: bool, no_cache: bool) -> Circumstances:
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.targets import load_target
    from fusionlab.commands.source import default_target
    from fusionlab.study import Circumstances

    target = load_target(target_name or default_target(source))
    progress = (lambda line: None) if quiet else (lambda line: click.echo(line, err=True))
    return Circumstances(target, cache=None if no_cache else default_cache(), progress=progress)


def _console(as_json: bool) -> Console:
    """Where tables go: stdout, or nowhere when stdout is for JSON. Wide enough when stdout is not a terminal."""
    from rich.console import Console

    if as_json:
        return Console(quiet=True)
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _finish(document: Any, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(document, indent=2, allow_nan=False, default=str))


importlib.import_module("fusionlab.cli_facts").add_to(main)  # at the end: it uses the options above

if __name__ == "__main__":
    main()
