"""The options that several verbs have, each declared once. A decorator adds options in the order of ``--help``.

Values are validated here where that needs no program; names are completed lazily, from tables that import no JAX.
"""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Container, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from fusionlab.cli.terminal import console_for, finish, progress_for, start
from fusionlab.documents import headed
from fusionlab.errors import InputError
from fusionlab.files import require_plain_file, require_writable

MOST_SECONDS = 7 * 24 * 3600

Verb = Callable[..., Any]


def among(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """A completer of ``names``."""

    def complete(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(typed)]

    return complete


target_names = among(lambda: import_module("fusionlab.codegen.targets").target_names())
pass_names = among(lambda: import_module("fusionlab.passes.catalogue").PASSES)


def _gathered(
    name: str, made: Callable[..., Any] = dict, /, **options: Callable[[Verb], Verb]
) -> Callable[[Verb], Verb]:
    """A decorator that adds ``options``, by parameter; the verb takes what is ``made`` of their values as ``name``."""

    def decorate(verb: Verb) -> Verb:
        @functools.wraps(verb)
        def run(**given: Any) -> Any:
            values = {parameter: given.pop(parameter) for parameter in options}
            return verb(**{name: made(**values)}, **given)

        decorated: Verb = run
        for option in reversed(options.values()):
            decorated = option(decorated)
        return decorated

    return decorate


args = click.option(
    "--args",
    multiple=True,
    metavar="SHAPES",
    help="Where FILE is Python, model.py:energy: 'f32[8,3] i32[] key'.  [default: its example_args]",
)
source = _gathered(
    "source",
    file=click.argument("file", required=False),
    args=args,
    model=click.option(
        "--model",
        help="An ansatz by name; `fusionlab models` lists them.",
        shell_complete=among(lambda: import_module("fusionlab.workloads.catalogue").ANSATZE),
    ),
    molecule=click.option(
        "--molecule",
        default="CH4",
        show_default=True,
        help="LiH, CH4, C2H6, C4H4 or an XYZ file.",
        shell_complete=among(lambda: import_module("fusionlab.workloads.molecules").MOLECULES),
    ),
    charge=click.option("--charge", type=int, help="Charge of the molecule, if not its own."),
    spin=click.option("--spin", type=int, help="n_up - n_down, if not the molecule's own."),
    walkers=click.option("--walkers", default=1024, show_default=True, type=int),
    program=click.option(
        "--program",
        default="local-energy",
        show_default=True,
        help="What of the model is lowered.",
        shell_complete=among(lambda: import_module("fusionlab.workloads.catalogue").PROGRAMS),
    ),
    laplacian=click.option("--laplacian", help="Laplacian variant (default: that of the code the ansatz comes from)."),
    dtype=click.option("--dtype", default="float32", show_default=True),
    size=click.option("--size", default="full", show_default=True, help="full, or tiny for a try."),
)
"""FILE, with ``--args``, or ``--model``: the arguments of ``sources.load_source``, as ``source``."""

target = click.option(
    "--target",
    help="a100, a5000, h100, h200, cpu, gpu (the attached one) or a SPEC.txtpb.  [default: a100]",
    shell_complete=target_names,
)
targets = click.option(
    "--target",
    help="a100, a5000, h100, h200, cpu, gpu or a SPEC.txtpb; several: a5000,a100,h200.  [default: a100]",
    shell_complete=target_names,
)


def by(views: str) -> Callable[[Verb], Verb]:
    """``--by`` with the views that its help names, as a tuple of them."""
    return click.option(
        "--by",
        default="",
        metavar="VIEW,...",
        callback=lambda _, __, text: tuple(filter(None, map(str.strip, text.split(",")))),
        help=f"Totals by {views}",
    )


verbose = click.option("--verbose", is_flag=True, help="Print the evidence, too.")
cache = click.option("--no-cache", is_flag=True, help="Compile afresh.")
keep_worse = click.option(
    "--keep-worse", is_flag=True, help="Keep a pass that makes launches grow and nothing else fall."
)
json_flag = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
judgement = _gathered(
    "judgement",
    unchecked=click.option("--unchecked", is_flag=True, help="Go on when the check cannot be done within its limits."),
    require_applied=click.option("--require-applied", is_flag=True, help="Exit 1 when no pass applied."),
)
"""The arguments of ``exit_codes.endings_of``, as ``judgement``."""


def passes(one: str, several: str = "The same as 'a,b{x=1}'.", search: str = "") -> Callable[[Verb], Verb]:
    """``--pass``, ``--pipeline`` and ``--memory-budget`` with the help of the first two, as ``asked``: the arguments of
    ``pipelines.passes_of``. With ``search``, the help of ``--time-limit``, those of ``best`` too: the arguments of
    ``pipelines.planned``.
    """
    budget = "Bound on temp memory, e.g. 2GiB, for passes with that option" + (", and for best." if search else ".")
    named = {
        "passes": click.option("--pass", "passes", multiple=True, help=one, shell_complete=pass_names),
        "pipeline": click.option("--pipeline", help=several),
        "memory_budget": click.option("--memory-budget", help=budget),
    }
    searched = {
        "objective": click.option(
            "--objective", help="What best is to make small: time, launches, bytes or temp.  [default: time]"
        ),
        "time_limit": click.option("--time-limit", type=float, help=f"{search}  [default: 600]"),
        "seed": click.option("--seed", type=int, help="Decides in which order best tries passes.  [default: 0]"),
    }
    return _gathered("asked", **named, **(searched if search else {}))


def check_walkers(text: str) -> Callable[[Verb], Verb]:
    """``--check-walkers`` with its help."""
    return click.option("--check-walkers", default="16", show_default=True, metavar="N|all", help=text)


def check_limits(check_walkers: str, check_time_limit: float = MOST_SECONDS, no_exact: bool = False) -> dict[str, Any]:
    """The limits as arguments of ``sources.circumstances``; InputError unless walkers and seconds are in range."""
    if check_walkers != "all" and not (check_walkers.isdecimal() and int(check_walkers) > 0):
        raise InputError(f"--check-walkers is an integer from 1 on, or all, not {check_walkers}")
    if not 0 < check_time_limit <= MOST_SECONDS:
        raise InputError(f"--check-time-limit must be between 0 and {MOST_SECONDS} seconds, not {check_time_limit}")
    walkers = None if check_walkers == "all" else int(check_walkers)
    return {"check_walkers": walkers, "check_time_limit_s": check_time_limit, "exact": not no_exact}


check = _gathered(
    "check",
    check_limits,
    check_walkers=check_walkers("Walkers of a check in floating point."),
    check_time_limit=click.option(
        "--check-time-limit",
        default=300.0,
        show_default=True,
        type=float,
        help="Seconds a FILE's check may take, and any exact check.",
    ),
    no_exact=click.option("--no-exact", is_flag=True, help="Leave out the exact check, in prime fields."),
)
"""The limits of a check, as ``check``."""


def on_command_line(context: click.Context) -> dict[str, str]:
    """The options and arguments that are on the command line: by the parameter's name, as they are typed."""
    return {
        str(one.name): one.opts[-1]
        for one in context.command.params
        if context.get_parameter_source(one.name or "") is ParameterSource.COMMANDLINE
    }


def inputs(text: str) -> Callable[[Verb], Verb]:
    """``--inputs`` with its help."""
    return click.option("--inputs", metavar="FILE.npz", help=text)


def require_file_name(name: str, option: str) -> None:
    """InputError unless a file called ``name`` can be written, in a folder that is there; ``option`` is the option that
    named it."""
    folder = Path(name).resolve().parent
    try:
        if Path(name).is_dir():
            raise InputError(f"{name}: is a folder; {option} names the file to write")
        if not folder.is_dir():
            raise InputError(f"{name}: there is no folder {folder}; make it, or name another file with {option}")
        require_plain_file(Path(name))
    except OSError as error:
        raise InputError(f"{name}: cannot be written: {error.strerror}; name another file with {option}") from None
    require_writable(folder)


def verb(function: Verb) -> Verb:
    """The last decorator of a verb: ``--json`` and ``--quiet``. JAX is started.

    The verb takes ``console``, and as ``where`` the arguments of ``sources.circumstances``: ``progress``, with
    ``target`` and ``no_cache`` where it has these options. It returns its document, or that and the exit code.
    """

    @json_flag
    @click.option("--quiet", is_flag=True, help="No progress on stderr.")
    @functools.wraps(function)
    def run(*, as_json: bool, quiet: bool, **given: Any) -> None:
        start()
        where = {name: given.pop(name) for name in ("target", "no_cache") if name in given}
        returned = function(where={**where, "progress": progress_for(quiet)}, console=console_for(as_json), **given)
        document, code = returned if isinstance(returned, tuple) else (returned, 0)
        finish(headed(document, str(click.get_current_context().command.name)), as_json)
        sys.exit(code)

    return run


def typed(context: click.Context, names: Container[str] | None = None, **instead: Any) -> str:
    """The options of a command (``names`` of them) that are not at their defaults, ready for a shell.

    Values in ``instead`` are typed in place of those that were given.
    """
    words = []
    for parameter in context.command.params:
        name = str(parameter.name)
        value = instead.get(name, context.params.get(name))
        if (names is not None and name not in names) or value in (None, (), parameter.get_default(context)):
            continue
        for one in value if isinstance(value, tuple) else (value,):
            flags = parameter.opts if one is not False else parameter.secondary_opts
            is_word = isinstance(parameter, click.Argument)
            words += [*([] if is_word else [max(flags, key=len)]), *([] if isinstance(one, bool) else [str(one)])]
    return shlex.join(words)
