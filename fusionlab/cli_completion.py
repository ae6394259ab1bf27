"""Shell completion: the command that prints the script, and what is offered for the values of options.

Names come from the tables (models, molecules, programs, targets, passes), which import no JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
_WHERE = {
    "bash": "~/.bashrc: eval \"$(fusionlab completion bash)\"",
    "zsh": "~/.zshrc: eval \"$(fusionlab completion zsh)\"",
    "fish": "fusionlab completion fish > ~/.config/fish/completions/fusionlab.fish",
}  # fmt: skip

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def add_to(group: click.Group) -> None:
    """Add the command to the command line."""
    group.add_command(completion)


@click.command(epilog="Where it goes: " + "; ".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--quiet", is_flag=True, help="No progress on stderr (there is none).")
def completion(shell: str, as_json: bool, quiet: bool) -> None:
    """Print the script that completes commands, options and names in a shell."""
    from fusionlab.cli_options import finish

    made = get_completion_class(shell)
    assert made is not None  # click has all of SHELLS
    root = click.get_current_context().find_root()
    script = made(root.command, {}, "fusionlab", "_FUSIONLAB_COMPLETE").source()
    finish({"shell": shell, "script": script}, as_json)
    if not as_json:
        click.echo(script)


def among(names: Callable[[], Iterable[str]]) -> Complete:
    """Offers the names that begin as what was typed."""

    def complete(_: click.Context, __: click.Parameter, typed: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in names() if name.startswith(typed)]

    return complete


def models() -> Iterable[str]:
    """Names of ansätze."""
    from workloads.catalogue import ANSATZE

    return ANSATZE


def programs() -> Iterable[str]:
    """Names of programs."""
    from workloads.catalogue import PROGRAMS

    return PROGRAMS


def molecules() -> Iterable[str]:
    """Names of molecules."""
    from workloads.molecules import MOLECULES

    return MOLECULES


def targets() -> Iterable[str]:
    """Names of targets."""
    from fusionlab.codegen.targets import target_names

    return target_names()


def passes() -> Iterable[str]:
    """Names of passes."""
    from fusionlab.passes.catalogue import PASSES

    return PASSES


def views() -> Iterable[str]:
    """The views of ``graph``; two of them go on with a name."""
    return ("stages", "replay", "clusters", "kernel:", "dataflow:")
