"""The command line: each verb is the module of its name, with its options, its code and its output.

Help and completion load the modules of verbs, so these import JAX, NumPy and rich inside functions only. Exit codes
are in ``exit_codes``; ``--json`` puts one JSON document on stdout.
"""

from __future__ import annotations

import errno
import importlib
from typing import Any

import click

from fusionlab import __version__
from fusionlab.cli.exit_codes import EXIT_CODES
from fusionlab.cli.interrupts import Interruption
from fusionlab.cli.terminal import drop_stdout, say
from fusionlab.errors import CompileError, InputError, missing_package, unknown
from fusionlab.jax_setup import set_environment

VERBS = (
    "apply", "bench", "bisect", "check", "clusters", "compare", "completion", "corpus", "diff", "drift", "dump",
    "explain", "graph", "kernels", "launches", "memory", "models", "paper", "passes", "replays", "roofline", "study",
)  # fmt: skip

_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class _Verbs(click.Group):
    """Loads a verb when it is used; bad usage, InputError, CompileError and Ctrl-C are one line on stderr and an exit
    code."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The command as a process: Ctrl-C ends it even while native code runs."""
        interruption = Interruption()
        with interruption.ending_promptly():
            return super().__call__(*args, obj=interruption, **kwargs)

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        alone = not args  # which prints the help
        try:
            return super().make_context(info_name, args, *rest, **extra)
        except click.UsageError as error:
            if alone:
                raise
            _say_usage(error, None)
            ending = "bad input"
        except OSError as error:  # of the help or the version, which click has printed
            ending = _ending_of(error)
        raise click.exceptions.Exit(EXIT_CODES[ending])

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"fusionlab.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise unknown("command", args[0], VERBS)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (InputError, CompileError) as error:
            say(str(error))
            ending = "bad input"
        except click.UsageError as error:
            _say_usage(error, ctx.invoked_subcommand)
            ending = "bad input"
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "fusionlab":
                raise
            say(missing_package(error))
            ending = "bad input"
        except OSError as error:
            ending = _ending_of(error)
        except (KeyboardInterrupt, click.Abort) as error:
            if isinstance(error, click.Abort):  # the cursor is behind a question
                click.echo(err=True)
            (ctx.obj or Interruption()).tell(str(error))
            ending = "interrupted"
        raise click.exceptions.Exit(EXIT_CODES[ending])


def _ending_of(error: OSError) -> str:
    """The ending by an output that nobody reads or no disk takes, or by a name too long; other errors are raised."""
    if isinstance(error, BrokenPipeError):
        drop_stdout()
        return "broken pipe"
    if error.errno == errno.ENAMETOOLONG:
        say(f"{error.filename}: {error.strerror}")
    elif error.errno in _NOT_WRITTEN:
        drop_stdout()
        say(f"{error.filename or 'a file, or standard output'}: cannot be written: {error.strerror}")
    else:
        raise error
    return "bad input"


def _say_usage(error: click.UsageError, verb: str | None) -> None:
    """click's message in the form of all others: what is wrong, where, and what to do."""
    what = error.format_message().rstrip(".").replace(". (Did you", " (did you")
    where, command = (f"{verb}: ", f"fusionlab {verb}") if verb else ("", "fusionlab")
    say(f"{where}{what[:1].lower()}{what[1:]}; see `{command} --help`")


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Begin with: fusionlab launches model.py:f --args 'f32[8,3]' --by source",
)
@click.version_option(__version__, prog_name="fusionlab")
def main() -> None:
    """Study the compiled program of a JAX function, for a GPU that may be absent; rewrite those of neural-network
    variational Monte Carlo.
    """
    set_environment()
