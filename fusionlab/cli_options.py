"""What commands of the command line share: options, the start of JAX, where results go."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli_completion import among, models, molecules, programs, targets
from fusionlab.cli_terminal import keep_native_log, steps
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.study import Circumstances
    from fusionlab.workload import Workload


MOST_SECONDS = 7 * 24 * 3600


def _options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


source_options = _options(
    click.argument("file", required=False),
    click.option("--model", help="An ansatz by name; `fusionlab models` lists them.", shell_complete=among(models)),
    click.option(
        "--molecule",
        default="CH4",
        show_default=True,
        help="LiH, CH4, C2H6, C4H4 or an XYZ file.",
        shell_complete=among(molecules),
    ),
    click.option("--charge", type=int, help="Charge of the molecule, if not its own."),
    click.option("--spin", type=int, help="n_up - n_down, if not the molecule's own."),
    click.option("--walkers", default=1024, show_default=True, type=int),
    click.option(
        "--program",
        default="local-energy",
        show_default=True,
        help="What of the model is lowered.",
        shell_complete=among(programs),
    ),
    click.option("--laplacian", help="Laplacian variant (default: that of the code the ansatz comes from)."),
    click.option("--dtype", default="float32", show_default=True),
    click.option("--size", default="full", show_default=True, help="full, or tiny for a try."),
)
check_options = _options(
    click.option("--check-walkers", default=16, show_default=True, type=int, help="Walkers of a model's check."),
    click.option(
        "--check-time-limit",
        default=300.0,
        show_default=True,
        type=float,
        help="Seconds a FILE's check may take, and any exact check.",
    ),
    click.option("--no-exact", is_flag=True, help="Leave out the exact check, in prime fields."),
)
target_option = click.option(
    "--target",
    help="a100, a5000, h200, cpu, gpu (the attached one) or a SPEC.txtpb.  [default: a100]",
    shell_complete=among(targets),
)
output_options = _options(
    click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    click.option("--quiet", is_flag=True, help="No progress on stderr."),
)
cache_option = click.option("--no-cache", is_flag=True, help="Compile afresh.")


def start() -> None:
    """Import JAX once, without the noise of its plugins; what XLA writes from now on goes to its log."""
    from fusionlab import quiet_start

    keep_native_log()
    quiet_start.load_jax()


def load_source_of(given: dict[str, Any]) -> Workload | Program:
    from fusionlab.commands.source import SourceOptions, load_source

    return load_source(SourceOptions(**given))


def circumstances(source: object, target_name: str | None, quiet: bool, no_cache: bool) -> Circumstances:
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.targets import load_target
    from fusionlab.commands.source import default_target
    from fusionlab.study import Circumstances

    target = load_target(target_name or default_target(source))
    return Circumstances(target, cache=None if no_cache else default_cache(), progress=progress_for(quiet))


def checking(
    given: Circumstances, check_walkers: int, check_time_limit: float, no_exact: bool = False
) -> Circumstances:
    """``given`` with the walkers and seconds of its checks, and without an exact one where it is left out."""
    return replace(given, check_walkers=check_walkers, check_time_limit_s=check_time_limit, exact=not no_exact)


def require_limits(check_walkers: int, check_time_limit: float) -> None:
    """InputError unless the walkers and seconds of a check are possible."""
    if check_walkers < 1:
        raise InputError(f"--check-walkers must be at least 1, not {check_walkers}")
    if not 0 < check_time_limit <= MOST_SECONDS:
        raise InputError(f"--check-time-limit must be between 0 and {MOST_SECONDS} seconds, not {check_time_limit}")


def progress_for(quiet: bool) -> Callable[[str], None]:
    """Prints a line of progress on stderr (on a terminal with the seconds since), or nothing."""
    return (lambda line: None) if quiet else steps


def console_for(as_json: bool) -> Console:
    """Where tables go: stdout, or nowhere when stdout is for JSON. Wide enough when stdout is not a terminal."""
    from rich.console import Console

    class Results(Console):
        """Prints below the progress, not into it."""

        def print(self, *objects: Any, **how: Any) -> None:
            steps.clear()
            super().print(*objects, **how)

    if as_json:
        return Console(quiet=True)
    # What is printed has names and shapes in brackets, which are no markup: fusionlab[deepqmc].
    return Results(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else 160)


def finish(document: Any, as_json: bool) -> None:
    steps.clear()
    if as_json:
        click.echo(json.dumps(document, indent=2, allow_nan=False, default=str))
