"""``fusionlab drift``: one program by several versions of JAX, what changed between them, and what in XLA did it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.facts.drift_facts import DriftFacts
    from fusionlab.versions.drift import VersionStep

DEFAULT_VERSIONS = "0.4.35,0.6.2,0.8.0,0.9.2,0.10.2,0.11.2"


@click.command("drift")
@options.source
@options.target
@click.option(
    "--jax", "versions", default=DEFAULT_VERSIONS, show_default=True, help="Versions of JAX, 0.4.34 or newer."
)
@click.option("--nightly", is_flag=True, help="The newest nightly of JAX, too, where pip's indexes have one.")
@click.option(
    "--cause", is_flag=True, help="Name the pass or flag of XLA behind each step: a compile for each of them."
)
@click.option("--changes", default=4, show_default=True, type=click.IntRange(min=0), help="How many changes per step.")
@click.option("--kernels", is_flag=True, help="Kernel code of JAX 0.11, too, at several times the compile.")
@click.option("--out", metavar="FILE.svg", help="Write the chart over versions.")
@click.option("--clean", is_flag=True, help="Delete the environments of --jax, and do nothing else.")
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    versions: str,
    nightly: bool,
    cause: bool,
    changes: int,
    kernels: bool,
    out: str | None,
    clean: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Compare a program's kernels across versions of JAX."""
    from fusionlab.facts.drift_facts import DriftFacts
    from fusionlab.files import write_whole
    from fusionlab.report.pictures.versions import versions_svg
    from fusionlab.study import lower
    from fusionlab.versions.drift import drift, with_causes
    from fusionlab.versions.environments import nightly_version, parse_versions

    asked = parse_versions(versions)
    if clean and nightly:
        raise InputError("--nightly: name the nightly to delete with --jax")
    if clean:
        return _clean(asked, console), exit_code(["done"])
    if out is not None:
        _require_svg(out)
    if nightly:
        asked = parse_versions(f"{versions},{nightly_version()}")
    loaded = load_source(**source, target=where["target"])
    given = circumstances(loaded, **where)
    program = lower(loaded, given)
    found = drift(program, given.target, asked, ptx=kernels, cache=given.cache, progress=given.progress)
    facts = DriftFacts(found, changes)
    _print(facts, console)
    if out is not None:
        write_whole(Path(out), versions_svg(found))
        console.print(f"written: {out}", soft_wrap=True, markup=False)
    if cause:  # last: it takes long, and may be interrupted
        steps = with_causes(program, given.target, found, ptx=kernels, progress=given.progress)
        facts = replace(facts, found=replace(found, steps=tuple(_printed(steps, facts, console))))
    document = {**facts.to_dict(), "files": [] if out is None else [out]}
    return document, exit_code([] if found.compiled else ["not compiled"])


def _printed(steps: Iterable[VersionStep], facts: DriftFacts, console: Console) -> Iterator[VersionStep]:
    """The steps, the causes of each printed."""
    for step in steps:
        if lines := facts.cause_lines(step):
            title = f"causes from JAX {step.before.version} to {step.after.version}"
            console.print(title, style="bold", soft_wrap=True, markup=False)
        for line in lines:
            console.print(f"  {line}", soft_wrap=True, markup=False)
        yield step


def _print(facts: DriftFacts, console: Console) -> None:
    from fusionlab.facts.drift_facts import step_title
    from fusionlab.report.tables import note

    console.print(facts.verdict, style="bold", soft_wrap=True, markup=False)
    facts.table().print(console)
    for step in facts.found.steps:
        console.print(step_title(step), style="bold", soft_wrap=True, markup=False)
        for line in facts.step_lines(step):
            console.print(f"  {line}", soft_wrap=True, markup=False)
    for line in facts.notes:
        note(console, line)


def _require_svg(out: str) -> None:
    if Path(out).suffix != ".svg":
        raise InputError(f"{out}: the chart is SVG; name --out FILE.svg")
    options.require_file_name(out, "--out")


def _clean(versions: tuple[str, ...], console: Console) -> dict[str, Any]:
    """Delete the environments of those versions, and all that are incomplete."""
    from fusionlab.bytesize import size_words
    from fusionlab.versions.environments import environments_folder, incomplete_folders, kept_environments, remove

    kept = kept_environments()
    freed = {one.version: remove(one.folder) for one in kept if one.version in versions and one.folder is not None}
    broken = [remove(path) for path in incomplete_folders()]
    left = [one.version for one in kept_environments()]
    more = f"; left: {', '.join(left)}" if left else ""
    names = ", ".join([*freed, *[f"{len(broken)} incomplete"] * bool(broken)]) or "none"
    size = size_words(sum(freed.values()) + sum(broken))
    console.print(
        f"deleted environments: {names}, {size} in {environments_folder()}{more}",
        soft_wrap=True,
        markup=False,
    )
    return {"deleted": freed, "incomplete": len(broken), "left": left}
