"""``fusionlab passes``: the catalogue of passes and presets, printed from their docstrings."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.errors import unknown
from fusionlab.passes.catalogue import ALIASES, PASSES, PIPELINES, SEARCHED, find_pass

if TYPE_CHECKING:
    from rich.console import Console

_PART = re.compile(r"^(rewrite|requires|exact|hopes):[ \n]", re.MULTILINE)


@click.command("passes")
@click.argument("name", required=False, shell_complete=options.pass_names)
@options.verb
def command(name: str | None, console: Console, **_: Any) -> list[dict[str, Any]]:
    """List the passes and their options, or show one. With NAME, the pass is shown as it is documented."""
    # Of passes outside the catalogue (a file's, an installed package's) only the named one is imported.
    from rich.padding import Padding
    from rich.text import Text

    from fusionlab.passes import plugins
    from fusionlab.search.space import moves

    points = plugins.installed()
    name = ALIASES.get(name, name) if name is not None else None
    if name is not None and (plugins.is_reference(name) or (name in points and name not in PASSES)):
        return [_of_ones_own(name, console)]
    if name is not None and name not in (*PASSES, *PIPELINES, SEARCHED):
        raise unknown("pass", name, [*PASSES, *PIPELINES, SEARCHED, *points])
    chosen = [one for one in sorted(PASSES) if name in (None, one)]
    listed = [_described(one) for one in chosen]
    presets = [
        {"name": preset, "pipeline": text, "does": "preset"}
        for preset, text in PIPELINES.items()
        if name in (None, preset)
    ]
    searched = [{"name": SEARCHED, "does": f"searched by apply, among {len(moves())} passes and options"}]
    searched = searched if name in (None, SEARCHED) else []
    if name in PASSES:
        console.print(inspect.getdoc(_module(name)), soft_wrap=True)
    else:
        for one in listed:
            options = ", ".join(f"{option}={value or '-'}" for option, value in one["options"].items())
            console.print(f"{one['name']}{options and '{' + options + '}'}", style="bold")
            for line in (one["does"], f"numbers: {one['exact']}"):
                console.print(Padding(Text(line), (0, 0, 0, 4)))
    for preset in presets:
        console.print(f"preset {preset['name']}: {preset['pipeline']}", soft_wrap=True)
    for one in searched:
        console.print(f"{one['name']}: {one['does']} (apply --pipeline {SEARCHED})", soft_wrap=True)
    others = [{"name": one, "does": f"of {_package(point)}"} for one, point in points.items() if name is None]
    for one in others:
        console.print(f"{one['name']}: {one['does']}", soft_wrap=True)
    return [*listed, *presets, *searched, *others]


def _of_ones_own(name: str, console: Console) -> dict[str, Any]:
    """Print the documentation of a pass outside the catalogue; its code is imported."""
    from fusionlab.passes import plugins

    class_ = find_pass(name)
    text = plugins.documentation(class_)
    console.print(text, soft_wrap=True)
    options = {field.name: str(field.default) for field in dataclasses.fields(class_)}  # type: ignore[arg-type]
    return {"name": name, "does": text.partition("\n")[0], "options": options}


def _package(point: Any) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _described(name: str) -> dict[str, Any]:
    """The docstring by part, and the options with their defaults."""
    text = inspect.getdoc(_module(name)) or ""
    head, *rest = _PART.split(text)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    return {
        "name": name,
        "does": head.partition("\n\n")[0].partition(": ")[2].replace("\n", " ").strip(),
        "exact": " ".join(parts["exact"].split()),
        "requires": " ".join(parts["requires"].split()),
        "options": {field.name: str(field.default) for field in dataclasses.fields(find_pass(name))},  # type: ignore[arg-type]
    }


def _module(name: str) -> Any:
    return importlib.import_module(PASSES[name][0])
