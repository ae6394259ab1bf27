"""``fusionlab apply``: rewrite a program, prove the rewrite equal, and show what it costs before and after."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.bytesize import ByteSize
from fusionlab.commands.best import SearchOptions, fixed_part, require_search, searched
from fusionlab.errors import InputError
from fusionlab.hlo.diff.hunks import diff_programs
from fusionlab.hlo.program import Program
from fusionlab.hlo.saved import content_as_saved
from fusionlab.output import require_plain_file, require_writable, write_whole
from fusionlab.passes.interface import Pass, told_faults
from fusionlab.passes.pipeline import parse_pipeline
from fusionlab.reading import read_file
from fusionlab.report.tables.diff import print_diffs
from fusionlab.report.tables.programs import print_outcome
from fusionlab.study import Circumstances, Outcome, lower, study, with_memory_budget
from fusionlab.workload import Workload

DIFF_LINES = 60
"""About how many lines ``--diff`` prints for each pass."""


@dataclass(frozen=True)
class ApplyOptions:
    """The options of ``apply`` beside those that name the source."""

    passes: Sequence[str] = ()
    pipeline: str | None = None
    memory_budget: str | None = None
    out: str | None = None
    unchecked: bool = False
    require_applied: bool = False
    diff_lines: int | None = None
    """About how many lines of each pass's diff are printed; 0: all; None: no diff is made."""
    search: SearchOptions = field(default_factory=SearchOptions)


def apply(
    source: Workload | Program, options: ApplyOptions, given: Circumstances, console: Console
) -> tuple[dict[str, Any], int]:
    """Run the study; print the table; write ``out`` if the result may be trusted. Gives the document and exit code."""
    passes, searches = planned(options)
    original, found = None, None
    if searches:
        original = lower(source, given)
        passes, found = searched(original, passes, options.search, options.memory_budget, given, console)
    outcome = study(source, passes, given, unchecked=options.unchecked, original=original)
    document = outcome.to_json()
    if found is not None:
        document["search"] = found.to_json()
    if options.diff_lines is not None:
        document["diff"] = _diff(outcome, options.diff_lines, console)
    print_outcome(outcome, console)
    return document, _finish(source, options, outcome)


def planned(options: ApplyOptions) -> tuple[tuple[Pass, ...], bool]:
    """The passes that the options name, without a ``best`` at their end, and whether it is there.

    InputError for options that cannot be followed, whatever the program is.
    """
    fixed = fixed_part(pipeline_text(options))
    require_search(pipeline_text(options), options.search, options.memory_budget)
    passes = passes_of(options) if fixed is None else fixed
    if options.out:
        require_file_name(options.out, "--out")
    return passes, fixed is not None


def _diff(outcome: Outcome, most_lines: int, console: Console) -> list[dict[str, Any]]:
    """Print what each pass changed, and give the whole of it as data."""
    names = [step.by for step in outcome.steps]
    diffs = diff_programs([outcome.original, *(step.program for step in outcome.steps)])
    print_diffs(names, diffs, console, most_lines=most_lines)
    return [{"pass": name, **diff.to_json()} for name, diff in zip(names, diffs, strict=True)]


def require_file_name(name: str, option: str) -> None:
    """InputError unless a file called ``name`` can be written; ``option`` is where the name was given."""
    if Path(name).is_dir():
        raise InputError(f"{name}: is a folder; {option} names the file to write")
    require_plain_file(Path(name))
    require_writable(Path(name).resolve().parent)


def passes_of(options: ApplyOptions) -> tuple[Pass, ...]:
    """The passes that the options name, in order; InputError when they name none."""
    text = pipeline_text(options)
    if not text:
        raise InputError("name what to apply: --pass NAME (repeatable) or --pipeline 'a,b{x=1}'")
    passes = parse_pipeline(text)
    return with_memory_budget(passes, ByteSize.parse(options.memory_budget)) if options.memory_budget else passes


def pipeline_text(options: ApplyOptions) -> str:
    """The pipeline that the options name, as text."""
    return ",".join([*options.passes, *([options.pipeline] if options.pipeline else [])])


def _finish(source: Workload | Program, options: ApplyOptions, outcome: Outcome) -> int:
    """Write the output and say on stderr what a person must know; the exit code."""
    verdict = outcome.equivalence
    if fault := told_faults(outcome.events):
        _say(f"{fault}; nothing was written")
    if verdict.verdict == "different":
        _say(f"the rewritten program is different and was not written; worst: {verdict.worst or verdict.reason}")
        return 1
    if fault:
        return 1
    if verdict.verdict == "not-checked" and not options.unchecked:
        _say(f"not checked, and not written ({verdict.reason}); --unchecked writes it all the same")
        return 1
    if not outcome.applied:
        reasons = "; ".join(dict.fromkeys(getattr(event, "reason", "") for event in outcome.events))
        _say(f"nothing was applied, the output equals the input: {reasons or 'there is no loop in the program'}")
    if options.out:
        unchanged = isinstance(source, Program) and not outcome.applied
        content = _as_read(source) if unchanged else outcome.rewritten.text  # type: ignore[arg-type]
        write_whole(Path(options.out), content)
    return 1 if options.require_applied and not outcome.applied else 0


def _as_read(program: Program) -> bytes:
    """The bytes of the file that ``program`` was read from; its text where the file can no longer be read the same."""
    path = Path(program.provenance)
    with contextlib.suppress(InputError):
        content = read_file(path)
        if getattr(content_as_saved(content, path), "digest", None) == program.digest:
            return content
    return program.text.encode()


def _say(line: str) -> None:
    print(f"fusionlab: {line}", file=sys.stderr)
