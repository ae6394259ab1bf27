"""``fusionlab study``: the whole pipeline for every target, as one folder with a report that opens in a browser."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options, paper
from fusionlab.cli.exit_codes import endings_of, say_endings
from fusionlab.cli.pipelines import pipeline_text, planned, searched
from fusionlab.cli.replays import replays
from fusionlab.cli.sources import load_facts, require_program
from fusionlab.errors import CompileError, InputError
from fusionlab.files import Own, require_own_folder, write_folder

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Pass
    from fusionlab.report.document import Studied
    from fusionlab.search.best import Goal
    from fusionlab.study import Circumstances, StudyResult
    from fusionlab.workload import Workload

REPORT, DOCUMENT = "report.html", "study.json"
_LINES = {
    "pass failed": "{}",
    "different": "the rewritten program is different and was not measured",
    "not checked": "not checked, and not measured; --unchecked measures it all the same",
    "not applied": "nothing was applied",
}


@click.command("study")
@options.source
@options.targets
@click.option("-o", "--out", help="Folder to write: report.html, study.json and the programs.  [required]")
@click.option("--paper", "whole_matrix", is_flag=True, help="The characterisation's whole matrix: `fusionlab paper`.")
@options.passes(
    "A pass, name or name{option=value}; repeatable.",
    "Passes in order, layout, or best.  [default: fuse-jvp-replay]",
    search="Seconds that best may search.",
)
@click.option("--records", multiple=True, help="Records of bench (files or folders) to show measured times from.")
@options.check
@options.judgement
@options.keep_worse
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    out: str | None,
    whole_matrix: bool,
    asked: dict[str, Any],
    records: tuple[str, ...],
    check: dict[str, Any],
    judgement: dict[str, bool],
    keep_worse: bool,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Write a report for the browser, its data and the programs. All of it is in one folder."""
    # A rewritten program that differs, or could not be checked, has no figures in the report.
    from rich.console import Console

    from fusionlab.bytesize import size_words
    from fusionlab.codegen.cache import CompileCache
    from fusionlab.measure.environment import software
    from fusionlab.measure.records import read_records
    from fusionlab.report.document import ORIGINAL, measured_document, study_document
    from fusionlab.report.tables.programs import print_outcome

    context = click.get_current_context()
    if whole_matrix:
        return _whole_matrix(context)
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out'.")
    found, given, targets = load_facts(source, several=True, **where, **check)
    loaded = require_program(found, "study")
    folder = Path(out)
    own = Own((REPORT, DOCUMENT, ORIGINAL, "original-*.mlir", "rewritten-*.mlir"), DOCUMENT, "fusionlab-study-")
    require_own_folder(folder, own)
    if source["file"] is not None and Path(source["file"]).resolve().is_relative_to(folder.resolve()):
        raise InputError(f"{source['file']}: lies in {folder}, which is replaced as a whole; name another folder")
    asked["pipeline"] = text = pipeline_text(**asked) or "fuse-jvp-replay"
    chosen, goal = planned(**asked | {"passes": ()})
    measured = read_records(records) if records else []
    with tempfile.TemporaryDirectory(prefix="fusionlab-study-") as scratch:
        cache = given.cache or CompileCache(Path(scratch))  # --no-cache: recompiled, but each program once
        given = replace(given, cache=cache)
        studied = [
            _study(loaded, chosen, goal, replace(given, target=target), console, judgement["unchecked"], keep_worse)
            for target in targets
        ]
        given.progress("report: joining ops, launches and source")
        naming = options.typed(context, source)
        document = study_document(
            loaded,
            studied,
            {
                "replays": replays(
                    studied[0].outcome.original, False, replace(given, target=targets[0]), Console(quiet=True)
                ),
                "pictures": _pictures(studied[0].outcome),
                "measured": measured_document(loaded, measured),
                "measured_by": f"fusionlab bench {naming}",
                "environment": software(),
                "commands": _commands(studied, naming, text, out, context),
            },
        )
    files = _files(document, studied)
    write_folder(folder, files, own)
    for one in studied:
        print_outcome(one.outcome, console, verbose=verbose)
    report_bytes = len(files[REPORT].encode())
    console.print(f"written: {folder / REPORT} ({size_words(report_bytes)}; open it in a browser)", soft_wrap=True)
    code = 0
    for one in studied:
        endings = endings_of(one.outcome, **judgement)
        code = max(code, say_endings(endings, _LINES, f"{one.before.target.name}: ", with_reasons=console.quiet))
    summary = {
        "folder": str(folder),
        "files": [str(folder / name) for name in files],
        "report_bytes": report_bytes,
        "targets": [{"target": one.before.target.name, **one.outcome.to_json()} for one in studied],
    }
    return summary, code


def _whole_matrix(context: click.Context) -> tuple[dict[str, Any], int]:
    """``fusionlab paper`` with its defaults. InputError for any option of one program's study."""
    shared = ("as_json", "quiet")
    given = options.on_command_line(context)
    if typed := [word for name, word in given.items() if name not in ("whole_matrix", *shared)]:
        raise InputError(f"--paper is of the whole matrix, without {', '.join(typed)}: see fusionlab paper --help")
    done: tuple[dict[str, Any], int] = context.invoke(paper.command, **{name: context.params[name] for name in shared})
    return done


def _study(
    source: Workload | Program,
    passes: tuple[Pass, ...],
    goal: Goal | None,
    given: Circumstances,
    console: Console,
    unchecked: bool,
    keep_worse: bool,
) -> Studied:
    from fusionlab.report.document import Studied
    from fusionlab.study import compiled, lower, study

    original = lower(source, given)
    if goal is not None:
        passes, _ = searched(original, passes, goal, given, console)
    keep_worse = keep_worse or goal is not None  # best has measured every pipeline
    outcome = study(source, passes, given, unchecked=unchecked, original=original, keep_worse=keep_worse)
    if outcome.before is None:
        raise CompileError(f"{original.provenance}: XLA cannot compile it for {given.target.name}: nothing to report")
    after = compiled(outcome.rewritten, given) if outcome.after is not None else None
    return Studied(outcome, compiled(outcome.original, given), after)


def _commands(
    studied: Sequence[Studied], naming: str, pipeline: str, folder: str, context: click.Context
) -> list[dict[str, str]]:
    """The command lines that reproduce each table; ``naming`` are the options that name the program."""
    from fusionlab.report.document import commands

    pipelines = {one.before.target.name: one.outcome.pipeline for one in studied}
    rewritten = [one.before.target.name for one in studied if one.outcome.applied and one.after is not None]
    given = ("pipeline", "memory_budget", "objective", "time_limit", "seed", "keep_worse")
    asked = options.typed(context, given, pipeline=pipeline)
    limit_s = int(context.params["check_time_limit"])
    checking = options.typed(context, ("check_walkers", "check_time_limit", "no_exact"), check_time_limit=limit_s)
    return commands(naming, asked, checking, pipelines, rewritten, folder, studied[0].view)


def _pictures(outcome: StudyResult) -> list[dict[str, str]]:
    """The replay and its replacement, drawn by Graphviz if it is installed."""
    from fusionlab.report.pictures.files import rendered_svg
    from fusionlab.report.pictures.replay import replay_dot

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
    from fusionlab.report.document import ORIGINAL, rewritten_file
    from fusionlab.report.page import page

    files = {REPORT: page(document), DOCUMENT: json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"}
    for one in studied:
        original, target = one.outcome.original, one.before.target.name
        files.setdefault(ORIGINAL, original.text)
        if original.text != files[ORIGINAL]:
            files[f"original-{target}.mlir"] = original.text
        if one.outcome.applied and one.after is not None:
            files[rewritten_file(target)] = one.outcome.rewritten.text
    return files
