"""``fusionlab study``: the whole line for every target, as one folder with a report that opens in a browser."""

from __future__ import annotations

import base64
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.targets import Target
from fusionlab.commands.apply import ApplyOptions, passes_of
from fusionlab.commands.best import fixed_part, require_search, searched
from fusionlab.commands.replays import replays
from fusionlab.commands.source import SourceOptions
from fusionlab.commands.typed import check_arguments, pass_arguments, source_arguments
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from fusionlab.measure.environment import software
from fusionlab.measure.records import read_records
from fusionlab.output import Own, require_own_folder, write_folder
from fusionlab.passes.interface import told_faults
from fusionlab.report.document import ORIGINAL, Studied, commands, measured_document, rewritten_file, study_document
from fusionlab.report.page import page
from fusionlab.report.pictures.files import rendered_svg
from fusionlab.report.pictures.replay import replay_dot
from fusionlab.report.tables.programs import print_outcome
from fusionlab.study import Circumstances, Kept, Outcome, compiled, lower, study
from fusionlab.workload import Workload

REPORT, DOCUMENT = "report.html", "study.json"
_OWN = Own((REPORT, DOCUMENT, ORIGINAL, "original-*.mlir", "rewritten-*.mlir"), DOCUMENT, "fusionlab-study-")


@dataclass(frozen=True)
class StudyOptions:
    """``source`` is how the program was named, for the report's commands; ``records`` are paths of measurements."""

    folder: str
    source: SourceOptions
    apply: ApplyOptions = field(default_factory=ApplyOptions)
    records: Sequence[str] = ()


def run_study(
    source: Workload | Program,
    targets: Sequence[Target],
    options: StudyOptions,
    given: Circumstances,
    console: Console,
) -> tuple[dict[str, Any], int]:
    """Write the folder; print the table of every target. The document of ``--json`` and the exit code.

    A rewritten program that is different, or could not be checked, has no figures in the report; the exit code is 1.
    """
    folder = Path(options.folder)
    require_own_folder(folder, _OWN)
    if options.source.file is not None and Path(options.source.file).resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{options.source.file}: lies in {folder}, which is replaced as a whole; name another folder")
    require_search(options.apply.pipeline or ",".join(options.apply.passes), options.apply.search)
    records = read_records(options.records) if options.records else []
    with tempfile.TemporaryDirectory(prefix="fusionlab-study-") as scratch:
        cache = given.cache or CompileCache(Path(scratch))  # --no-cache: afresh, but each program once
        given = replace(given, cache=cache, kept=Kept())
        studied = [_study(source, replace(given, target=target), options.apply, console) for target in targets]
        given.progress("report: joining ops, launches and source")
        document = study_document(source, studied, _beside(source, studied, options, records, given))
    files = _files(document, studied)
    write_folder(folder, files, _OWN)
    for one in studied:
        print_outcome(one.outcome, console)
    size = len(files[REPORT].encode()) / 1e6
    console.print(f"written: {folder / REPORT} ({size:.1f} MB; open it in a browser)", soft_wrap=True)
    summary = {
        "folder": str(folder),
        "files": [str(folder / name) for name in files],
        "report_bytes": len(files[REPORT].encode()),
        "targets": [{"target": one.before.target.name, **one.outcome.to_json()} for one in studied],
    }
    return summary, _exit_code([one.outcome for one in studied], options.apply)


def _study(source: Workload | Program, given: Circumstances, options: ApplyOptions, console: Console) -> Studied:
    original = lower(source, given)
    text = options.pipeline or ",".join(options.passes)
    fixed = fixed_part(text)
    if fixed is None:
        passes = passes_of(options)
    else:
        passes, _ = searched(original, fixed, options.search, options.memory_budget, given, console)
    outcome = study(source, passes, given, unchecked=options.unchecked, original=original)
    if outcome.before is None:
        raise CompileError(f"{original.provenance}: XLA cannot compile it for {given.target.name}: nothing to report")
    after = compiled(outcome.rewritten, given) if outcome.after is not None else None
    return Studied(outcome, compiled(outcome.original, given), after)


def _beside(
    source: Workload | Program,
    studied: Sequence[Studied],
    options: StudyOptions,
    records: Sequence[dict[str, Any]],
    given: Circumstances,
) -> dict[str, Any]:
    first = studied[0].outcome
    pipelines = {one.before.target.name: one.outcome.pipeline for one in studied}
    rewritten = [one.before.target.name for one in studied if one.outcome.applied and one.after is not None]
    arguments = source_arguments(options.source)
    given = replace(given, target=studied[0].before.target)
    return {
        "replays": replays(first.original, False, given, Console(quiet=True)),
        "pictures": _pictures(first),
        "measured": measured_document(source, records),
        "measured_by": f"fusionlab bench {arguments}",
        "environment": software(),
        "commands": commands(
            arguments, pass_arguments(options.apply), check_arguments(given), pipelines, rewritten, options.folder
        ),
    }


def _pictures(outcome: Outcome) -> list[dict[str, str]]:
    """The replay, and the program that took its place, drawn by Graphviz where it is installed."""
    programs = [("before", outcome.original)]
    if outcome.applied:
        programs.append(("after", outcome.rewritten))
    drawn = []
    for side, program in programs:
        picture = rendered_svg(replay_dot(program))
        if picture is not None:
            content = base64.b64encode(picture).decode()
            drawn.append({"caption": f"{program.name}, {side}", "svg_base64": content})
    return drawn


def _files(document: dict[str, Any], studied: Sequence[Studied]) -> dict[str, str]:
    files = {REPORT: page(document), DOCUMENT: json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"}
    for one in studied:
        original, target = one.outcome.original, one.before.target.name
        files.setdefault(ORIGINAL, original.text)
        if original.text != files[ORIGINAL]:
            files[f"original-{target}.mlir"] = original.text
        if one.outcome.applied and one.after is not None:
            files[rewritten_file(target)] = one.outcome.rewritten.text
    return files


def _exit_code(outcomes: Sequence[Outcome], options: ApplyOptions) -> int:
    code = 0
    for outcome in outcomes:
        verdict, target = outcome.equivalence, outcome.before.target if outcome.before else "-"
        if fault := told_faults(outcome.events):
            _say(f"{target}: {fault}")
            code = 1
        if verdict.verdict == "different":
            _say(f"{target}: the rewritten program is different and was not measured; worst: {verdict.worst}")
            code = 1
        elif verdict.verdict == "not-checked" and not options.unchecked and not fault:
            _say(f"{target}: not checked, and not measured ({verdict.reason}); --unchecked measures it all the same")
            code = 1
        elif not outcome.applied and not fault:
            reasons = "; ".join(dict.fromkeys(getattr(event, "reason", "") for event in outcome.events))
            _say(f"{target}: nothing was applied: {reasons or 'there is no loop in the program'}")
            code = max(code, int(options.require_applied))
    return code


def _say(line: str) -> None:
    print(f"fusionlab: {line}", file=sys.stderr)
