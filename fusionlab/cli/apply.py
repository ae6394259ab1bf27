"""``fusionlab apply``: rewrite a program, check the rewritten one, and show the costs before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import endings_of, exit_code, say_endings
from fusionlab.cli.pipelines import pipeline_text, planned, searched
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.cli.terminal import say
from fusionlab.errors import InputError, NotStudied
from fusionlab.files import read_file, write_whole
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Pass
    from fusionlab.study import StudyResult

_DIFF_LINES = 60
_LINES = {
    "pass failed": "{}; nothing was written",
    "different": "the rewritten program is different and was not written",
    "not checked": "not checked, and not written; --unchecked writes it all the same",
    "not applied": "nothing was applied, the output equals the input",
}


@click.command("apply")
@options.source
@options.target
@options.passes(
    "A pass: name, name{option=value} or FILE.py:NAME; repeatable.",
    "Passes in order: 'a,b{x=1}'; a preset: layout, kernels; or searched: best.",
    search="Seconds that best may search; it goes on next time.",
)
@click.option("--out", help="Write the rewritten StableHLO here.")
@options.check
@options.judgement
@options.keep_worse
@click.option("--diff", is_flag=True, help="Show which ops each pass removed, added, moved and rewired.")
@click.option("--diff-lines", type=click.IntRange(min=0), help="Lines of --diff per pass; 0: all.  [default: 60]")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    asked: dict[str, Any],
    check: dict[str, Any],
    out: str | None,
    judgement: dict[str, bool],
    keep_worse: bool,
    diff: bool,
    diff_lines: int | None,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Rewrite a program, check it, and show costs before and after."""
    from fusionlab.ledger.time.model import time_by_rows
    from fusionlab.report.tables.programs import print_outcome, print_sparsity
    from fusionlab.study import event_documents, lower, study

    loaded: Workload | Program | NotStudied
    try:
        loaded = load_source(**source, target=where["target"], whole=True)
        require_shardy(loaded)
    except NotStudied as found:
        loaded = found
    given = circumstances(loaded, **where, **check)
    chosen, goal = planned(**asked)
    if out:
        options.require_file_name(out, "--out")
    if isinstance(loaded, NotStudied):
        asked_for = pipeline_text(**asked)
        return pass_through(loaded, asked_for, chosen, console, out, judgement["require_applied"], verbose)
    original, front = None, None
    if goal is not None:
        original = lower(loaded, given)
        chosen, front = searched(original, chosen, goal, given, console)
    keep_worse = keep_worse or goal is not None  # best has measured every pipeline
    outcome = study(loaded, chosen, given, unchecked=judgement["unchecked"], original=original, keep_worse=keep_worse)
    document = {"name": outcome.original.name, "target": given.target.name, **outcome.to_json()}
    if front is not None:
        document["search"] = front.to_json()
    if diff or diff_lines is not None:
        document["diff"] = _diff(outcome, _DIFF_LINES if diff_lines is None else diff_lines, console)
    print_outcome(outcome, console, verbose=verbose)
    print_sparsity(outcome.events, time_by_rows(given.target), console, verbose=verbose)
    if not outcome.applied and (advice := no_replay(loaded, chosen)):
        console.print(advice, soft_wrap=True, markup=False)
    document["events"] = event_documents(outcome.events, given.target)
    endings = endings_of(outcome, **judgement)
    code = say_endings(endings, _LINES, with_reasons=console.quiet)
    if out and endings.keys().isdisjoint({"pass failed", "different", "not checked"}):
        unchanged = not isinstance(loaded, Workload) and not outcome.applied
        write_whole(Path(out), _as_read(loaded) if unchanged else outcome.rewritten.text)  # type: ignore[arg-type]
    return document, code


def no_replay(source: Workload | Program, passes: Sequence[Pass]) -> str:
    """The advice where ``passes`` rewrite replays, and the model has a forward Laplacian instead; else nothing."""
    from fusionlab.passes.catalogue import FORWARD_LAPLACIANS

    if not isinstance(source, Workload) or not source.laplacian.startswith("forward"):
        return ""
    if {*FORWARD_LAPLACIANS, "batch-replay"}.isdisjoint(one.name for one in passes):
        return ""
    own = f"{source.name} has a forward Laplacian already (--laplacian {source.laplacian})"
    return f"no replay to rewrite: {own}; for a replay, pass --laplacian replay"


def _diff(outcome: StudyResult, most_lines: int, console: Console) -> list[dict[str, Any]]:
    """The changes of each pass: ``most_lines`` of them printed, all of them as data."""
    from fusionlab.hlo.diff.hunks import diff_programs
    from fusionlab.report.tables.diff import print_diffs

    names = [step.by for step in outcome.steps]
    diffs = diff_programs([outcome.original, *(step.program for step in outcome.steps)])
    print_diffs(names, diffs, console, most_lines=most_lines)
    return [{"pass": name, **diff.to_json()} for name, diff in zip(names, diffs, strict=True)]


def _as_read(program: Program) -> bytes:
    """The bytes of the file that ``program`` was read from; its text where the file can no longer be read the same."""
    from fusionlab.hlo.optimised.saved import content_as_saved

    path = Path(program.provenance)
    with contextlib.suppress(InputError):
        content = read_file(path)
        if getattr(content_as_saved(content, path, whole=True), "digest", None) == program.digest:
            return content
    return program.text.encode()


def require_shardy(source: Workload | Program) -> None:
    """NotStudied for a file's ``shard_map`` that was lowered for another partitioner."""
    from fusionlab.hlo.program import of_gspmd

    if not isinstance(source, Workload) and (found := of_gspmd(source)) is not None:
        path = Path(source.provenance)
        content = read_file(path) if path.is_file() else source.bytecode  # a pipe has been consumed
        raise NotStudied(source.provenance, *found, content)


def pass_through(
    found: NotStudied,
    pipeline: str,
    passes: Sequence[Pass],
    console: Console,
    out: str | None = None,
    require_applied: bool = False,
    verbose: bool = False,
) -> tuple[dict[str, Any], int]:
    """Leave a valid module that is not studied unchanged: refuse every pass, and copy the file to ``out``.

    The document is that of ``apply``, without figures.
    """
    from fusionlab.passes.catalogue import SEARCHED
    from fusionlab.passes.refusals import Ground, Refusal
    from fusionlab.report.tables.programs import print_events
    from fusionlab.study import UNCHANGED

    names = [pass_.name for pass_ in passes] + [SEARCHED] * (pipeline.rpartition(",")[2].strip() == SEARCHED)
    events = [Refusal(Ground.SHARD_MAP, found.what).of(name, found.where) for name in names]
    if out:
        write_whole(Path(out), found.content)
    said = f"{found}; passed through untouched"
    if console.quiet:
        say(said)
    console.print(f"nothing applied: {said}", soft_wrap=True, markup=False)
    if verbose:
        print_events(events, console)
    document = {
        "name": Path(found.path).stem,
        "before": None,
        "after": None,
        "pipeline": pipeline,
        "pass_s": 0.0,
        "events": [event.to_json() for event in events],
        "equivalence": UNCHANGED.to_json(),
    }
    return document, exit_code(["not applied, and required" if require_applied else "not applied"])
