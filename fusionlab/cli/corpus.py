"""``fusionlab corpus``: programs with expected launches and reference outputs, listed, unpacked, or run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.corpus.manifest import Corpus, CorpusProgram
    from fusionlab.corpus.runs import CorpusRow

    Document = tuple[dict[str, Any], int]

DEFAULT_CORPUS = "studies/corpus"
OWN_LICENCE = "Apache-2.0"
"""Of programs that were traced through no code of another project."""
_COLUMNS = ("program", "launches", "copies", "temp", "compile", "outputs")
_WIDTHS, _VERDICT_WIDTH = (8, 6, 9), len("not recorded")
"""Of the figures of a row, where nothing differs, and of the verdict on its compile."""


@click.command("corpus")
@click.argument("action", type=click.Choice(["list", "export", "run"]))
@click.option("--only", multiple=True, metavar="NAME", help="Only this program; several times for several.")
@click.option("--corpus", default=DEFAULT_CORPUS, show_default=True, metavar="DIR", help="The folder of the corpus.")
@click.option("--out", metavar="DIR", help="Where export writes.")
@click.option("--jax", "version", help="The version of JAX that run compiles with.  [default: the installed one]")
@options.target
@options.cache
@options.verb
def command(
    action: str,
    only: tuple[str, ...],
    corpus: str,
    out: str | None,
    version: str | None,
    console: Console,
    where: dict[str, Any],
) -> Document:
    """List, unpack or run programs for a compiler's nightly.

    run compiles each for a GPU that may be absent, compares launches, copies and temp memory with those recorded for
    this version of JAX, and outputs on the CPU with references.
    """
    from fusionlab.corpus.manifest import Corpus

    _require_sense(action, on_command_line=options.on_command_line(click.get_current_context()))
    found = Corpus.read(Path(corpus))
    programs = found.select(only)
    if action == "run":
        return _run(found, programs, version, console, **where)
    if action == "export":
        return _export(found, programs, str(out), console)
    return _list(found, programs, console)


def _require_sense(action: str, on_command_line: dict[str, str]) -> None:
    """InputError for an option that the action does not have, and for ``export`` without ``--out``."""
    of_run = {"version", "target", "no_cache"}
    foreign = {"list": of_run | {"out"}, "export": of_run, "run": {"out"}}[action] & set(on_command_line)
    if foreign:
        raise InputError(f"{on_command_line[min(foreign)]} is not an option of corpus {action}")
    if action == "export" and "out" not in on_command_line:
        raise InputError("corpus export: name the folder to write with --out DIR")


def _list(corpus: Corpus, programs: tuple[CorpusProgram, ...], console: Console) -> Document:
    from fusionlab.report.tables import note, print_rows
    from fusionlab.units import counted

    columns = ("program", "what it is", "ops", "outputs", "recorded")
    rows = [
        (one.name, one.about, f"{one.ops:,}", "yes" if one.outputs is not None else "no", _recorded(one))
        for one in programs
    ]
    title = f"{counted(len(programs), 'program', 'programs')} in {corpus.folder}"
    print_rows(title, columns, rows, console, words=2)
    for one in programs:
        if one.licence != OWN_LICENCE:
            note(console, f"{one.name}: licence: {one.licence}")
        if one.why_no_outputs:
            note(console, f"{one.name}: no outputs: {one.why_no_outputs}")
    return _document("list", corpus, programs=[one.to_json() for one in programs]), exit_code([])


def _recorded(one: CorpusProgram) -> str:
    """The targets with the versions of JAX that have launches."""
    return "; ".join(f"{target}: {', '.join(by_version)}" for target, by_version in one.expected.items()) or "-"


def _export(corpus: Corpus, programs: tuple[CorpusProgram, ...], out: str, console: Console) -> Document:
    from fusionlab.corpus.unpacking import unpack
    from fusionlab.units import counted

    names = unpack(corpus, programs, Path(out))
    said = f"{counted(len(names), 'file', 'files')} of {counted(len(programs), 'program', 'programs')}"
    console.print(f"written: {said} in {out}", soft_wrap=True, markup=False)
    return _document("export", corpus, files=[str(Path(out) / name) for name in names]), exit_code([])


def _run(
    corpus: Corpus,
    programs: tuple[CorpusProgram, ...],
    version: str | None,
    console: Console,
    target: str | None,
    no_cache: bool,
    progress: Callable[[str], None],
) -> Document:
    from fusionlab.cli.sources import DEFAULT_TARGET
    from fusionlab.codegen.cache import default_cache
    from fusionlab.codegen.targets import load_target
    from fusionlab.corpus.runs import run
    from fusionlab.versions.environments import NoEnvironment

    chosen, jax_version = load_target(target or DEFAULT_TARGET), _version(version)
    if chosen.kind != "cuda":
        raise InputError(f"target {chosen.name}: the corpus is for a GPU with a spec, such as a100")
    cache = None if no_cache else default_cache()
    outputs_jax = _version(None)
    width = max((len(one.name) for one in programs), default=0)
    rows: list[CorpusRow] = []
    try:
        for row in run(corpus, programs, chosen, jax_version, cache=cache, progress=progress):
            if not rows:
                console.print(_line(width, _COLUMNS), style="bold", soft_wrap=True, markup=False)
            rows.append(row)
            _print_row(row, width, console)
    except NoEnvironment as error:
        raise InputError(str(error)) from None
    wrong = [row for row in rows if row.is_wrong]
    console.print(_verdict(rows, chosen.name, jax_version, outputs_jax), style="bold", soft_wrap=True, markup=False)
    document = _document(
        "run",
        corpus,
        target=chosen.name,
        jax=jax_version,
        outputs_jax=outputs_jax,
        rows=[row.to_json() for row in rows],
        wrong=[row.name for row in wrong],
    )
    return document, exit_code(["different"] if wrong else [])


def _version(asked: str | None) -> str:
    from fusionlab.store import package_versions
    from fusionlab.versions.environments import parse_versions

    if asked is None:
        return str(package_versions("jax")["jax"])
    found = parse_versions(asked)
    if len(found) > 1:
        raise InputError(f"--jax {asked}: corpus run compiles with one version at a time")
    return found[0]


def _verdict(rows: list[CorpusRow], target: str, version: str, outputs_version: str) -> str:
    from fusionlab.units import counted

    wrong = [row.name for row in rows if row.is_wrong]
    known = sum(row.expected is not None for row in rows)
    ran = sum(row.outputs.verdict == "equal" for row in rows)
    head = f"{counted(len(rows), 'program', 'programs')} on {target}, JAX {version} (outputs: JAX {outputs_version})"
    if wrong:
        more = f" and {len(wrong) - 4} more" if len(wrong) > 4 else ""
        return f"{head}: {counted(len(wrong), 'differs', 'differ')}: {', '.join(wrong[:4])}{more}"
    return f"{head}: nothing differs ({known} with recorded launches, {ran} with equal outputs)"


def _print_row(row: CorpusRow, width: int, console: Console) -> None:
    """A row with the reasons below it."""
    from fusionlab.bytesize import size_words
    from fusionlab.corpus.manifest import COUNTS
    from fusionlab.report.tables import note

    def pair(name: str) -> str:
        words = size_words if name == "temp_bytes" else "{:,}".format
        new = row.found.counts.get(name)
        old = None if row.expected is None else row.expected.counts.get(name)
        if new is None:
            return "-"
        return words(new) if old is None or old == new else f"{words(new)} (was {words(old)})"

    cells = (row.name, *map(pair, COUNTS), row.verdict, row.outputs.verdict)
    console.print(_line(width, cells), soft_wrap=True, markup=False)
    for reason in filter(None, (row.found.reason, row.outputs.reason)):
        note(console, f"{row.name}: {reason}")


def _line(width: int, cells: Sequence[str]) -> str:
    """A line of the table, which is printed as it grows: the name left, the figures right, the verdicts left."""
    name, *figures, compiled, outputs = cells
    padded = (f"{figure:>{room}}" for figure, room in zip(figures, _WIDTHS, strict=True))
    return "  ".join((f"{name:<{width}}", *padded, f"{compiled:<{_VERDICT_WIDTH}}", outputs))


def _document(action: str, corpus: Corpus, **fields: Any) -> dict[str, Any]:
    every = dict.fromkeys(("programs", "files", "jax", "outputs_jax", "rows", "wrong"))
    return {"action": action, "corpus": str(corpus.folder), "licence": corpus.head.get("licence"), **every, **fields}
