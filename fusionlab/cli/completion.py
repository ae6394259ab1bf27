"""``fusionlab completion``: the script that completes the command line in a shell."""

from __future__ import annotations

from typing import Any

import click
from click.shell_completion import get_completion_class

from fusionlab.cli.options import json_flag
from fusionlab.cli.terminal import finish

_WHERE = {
    "bash": "~/.bashrc: eval \"$(fusionlab completion bash)\"",
    "zsh": "~/.zshrc: eval \"$(fusionlab completion zsh)\"",
    "fish": "fusionlab completion fish > ~/.config/fish/completions/fusionlab.fish",
}  # fmt: skip


@click.command("completion", epilog="Where it goes: " + "; ".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(list(_WHERE)))
@json_flag
@click.option("--quiet", is_flag=True, help="No progress on stderr (there is none).")
def command(shell: str, as_json: bool, **_: Any) -> None:
    """Print the script that completes commands and names in a shell."""
    made = get_completion_class(shell)
    assert made is not None  # all shells are click's
    root = click.get_current_context().find_root()
    script = made(root.command, {}, "fusionlab", "_FUSIONLAB_COMPLETE").source()
    finish({"shell": shell, "script": script}, as_json)
    if not as_json:
        click.echo(script)
