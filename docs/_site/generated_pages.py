"""Pages of the site that are generated while it is built.

A hook of MkDocs (mkdocs.yml). The command line is generated from click, the pass catalogue and the Python interface
from docstrings; README.md is the first page; tables that commands write are taken from studies/.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from fusionlab.cli import main

ROOT = Path(__file__).parents[2]
INTERFACE = (
    ("fusionlab", "Names that are not listed here may change without notice."),
    ("fusionlab.facts", "What `launches`, `kernels`, `explain` and `diff` return ([how to](python.md))."),
    ("fusionlab.testing", "Assertions for the tests of other projects ([how to](testing.md))."),
    ("fusionlab.passes.matcher", "For passes of your own ([how to](own-passes.md))."),
)
"""The modules whose ``__all__`` is the public interface, as pinned by tests/test_public_api.py."""

COPIED = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "paper.md": "studies/paper.md",
    "slowest-tests.md": "studies/slowest-tests.md",
    "exact-catalogue.md": "studies/exact-catalogue.md",
    "exact-ops.md": "studies/exact-ops.md",
    "layout-a100.md": "studies/layout-a100.md",
    "programs-a100.md": "studies/programs-a100.md",
}
"""Page of the site: the file that it is."""


def on_config(config: Any) -> Any:
    """Put pages that mkdocs.yml does not name into its menu: decisions to the decisions, others to the reference."""
    sections = {name: pages for item in config.nav for name, pages in item.items() if isinstance(pages, list)}
    named = {page for item in config.nav for page in _pages_of(item)}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        page = path.relative_to(ROOT / "docs").as_posix()
        if page not in named:
            sections["Decisions" if page.startswith("decisions/") else "Reference"].append(page)
    return config


def _pages_of(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    for inner in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
        yield from _pages_of(inner)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the files of the site."""
    from mkdocs.structure.files import File

    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def pages() -> dict[str, str]:
    """Name of each generated page to its Markdown."""
    generated = {"cli.md": command_line_page(), "passes.md": passes_page(), "api.md": interface_page()}
    return generated | {page: copied(path) for page, path in COPIED.items()}


def copied(path: str) -> str:
    """A file of the repository with the addresses that its links have in the site."""
    text = (ROOT / path).read_text()
    for page, source in COPIED.items():
        text = text.replace(f"]({source})", f"]({page})")
    return text.replace("](docs/", "](")


def command_line_page() -> str:
    """Every command with its one line and its options; options that commands share are listed once."""
    context = click.Context(main, info_name="fusionlab")
    commands = [(name, main.get_command(context, name)) for name in main.list_commands(context)]
    options = {name: dict(map(_option, command.params)) for name, command in commands if command is not None}
    shared = {row for rows in options.values() for row in rows.items() if _users(row, options) > 2}
    lines = ["# Command line", "", f"{_sentence(main)} Exit codes: [on the terminal](features.md).", ""]
    lines += ["Options of several commands:", "", *_table(dict(sorted(shared)))]
    for name, command in commands:
        if command is not None:
            own = {option: what for option, what in options[name].items() if (option, what) not in shared}
            others = [f"`{option}`" for option in options[name] if option not in own and option.startswith("-")]
            usage = " ".join(command.collect_usage_pieces(click.Context(command, parent=context)))
            lines += ["", f"## {name}", "", f"`fusionlab {name} {usage}`: {_sentence(command)}", ""]
            lines += [f"Shared options: {', '.join(others)}.", ""] if others else []
            lines += _table(own) if own else []
    return "\n".join(lines) + "\n"


def _option(parameter: click.Parameter) -> tuple[str, str]:
    """The names of an option and its help with choices and default; an argument has no help."""
    what = ""
    if isinstance(parameter, click.Option):
        record = parameter.get_help_record(click.Context(main))
        choices = f"One of {', '.join(parameter.type.choices)}. " if isinstance(parameter.type, click.Choice) else ""
        what = choices + (record[1] if record is not None else "")
    return ", ".join([*parameter.opts, *parameter.secondary_opts]), what


def _users(row: tuple[str, str], options: dict[str, dict[str, str]]) -> int:
    return sum(row in rows.items() for rows in options.values())


def _table(options: dict[str, str]) -> list[str]:
    """A row per option; arguments are in the usage."""
    rows = [f"| `{name}` | {_cell(what)} |" for name, what in options.items() if name.startswith("-")]
    return ["| option | |", "|---|---|", *rows] if rows else []


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def _sentence(command: click.Command) -> str:
    return _cell((command.help or "").partition("\n\n")[0])


def passes_page() -> str:
    """The catalogue: every pass with its options and its module's docstring, then the presets."""
    from fusionlab.passes.catalogue import PASSES, PIPELINES, find_pass

    lines = [
        "# Pass catalogue",
        "",
        "Every pass takes a program and returns a program and events, with the reason where it declines. The",
        "same texts are printed by `fusionlab passes NAME`. `exact:` says what a pass does to the numbers.",
        "Passes of your own: [how to](own-passes.md).",
        "",
        "| pass | what it does |",
        "|---|---|",
    ]
    texts = {name: inspect.getdoc(importlib.import_module(PASSES[name][0])) or "" for name in sorted(PASSES)}
    lines += [f"| [{name}](#{name}) | {_first_sentence(text)} |" for name, text in texts.items()]
    lines += [f"| `{name}` (preset) | `{pipeline}` |" for name, pipeline in PIPELINES.items()]
    for name, text in texts.items():
        options = dataclasses.fields(find_pass(name))  # type: ignore[arg-type]
        lines += ["", f"## {name}", ""]
        if options:
            lines += ["| option | default |", "|---|---|"]
            lines += [f"| `{option.name}` | `{option.default}` |" for option in options]
            lines.append("")
        lines += _code(text)
    return "\n".join(lines) + "\n"


def interface_page() -> str:
    """Every public name with its signature and docstring."""
    version = importlib.import_module("fusionlab").__version__
    lines = [
        "# Python interface",
        "",
        f"Version {version}. The names on this page and the options and `--json` documents of the command line are the",
        "public interface; a test pins them name by name (`tests/public_api.txt`). Before 1.0 a change that breaks a",
        "user raises the minor version and stands in the [changelog](changelog.md); fields may be added at any time.",
        "Types are shipped (`py.typed`).",
    ]
    for module_name, what in INTERFACE:
        module = importlib.import_module(module_name)
        lines += ["", f"## {module_name}", "", what]
        for name in module.__all__:
            if not name.startswith("_"):
                lines += ["", f"### {module_name}.{name}", "", *_entry(name, getattr(module, name))]
    return "\n".join(lines) + "\n"


def _entry(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield from (*_code(f"class {name}{_parameters(value)}"), "", inspect.getdoc(value) or "", "")
        for member, one in sorted(vars(value).items()):
            function = getattr(one, "__func__", getattr(one, "fget", getattr(one, "func", one)))
            if not member.startswith("_") and inspect.isfunction(function):
                shown = f"{member}{_signature(function)}" if inspect.isfunction(getattr(value, member)) else member
                yield f"- `{shown}`: {_first_sentence(inspect.getdoc(function) or '')}"
    else:
        yield from (*_code(f"{name}{_signature(value)}"), "", inspect.getdoc(value) or "")


def _parameters(class_: type) -> str:
    own = dataclasses.is_dataclass(class_) and "__init__" in vars(class_)
    return _signature(class_).partition(" -> ")[0] if own else ""


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split()).partition(": ")[2 if ": " in text.partition("\n")[0] else 0]


def _code(text: str) -> list[str]:
    return ["```text", *text.replace("``", "`").rstrip().splitlines(), "```"]
