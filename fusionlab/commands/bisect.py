"""``fusionlab bisect``: which step of a pipeline, or which pass of XLA, makes a program differ."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.bisection.reduction import reduce_program
from fusionlab.bisection.steps import Judge, judge_steps, steps_of
from fusionlab.bisection.written import write_case, write_xla_case
from fusionlab.bisection.xla_passes import TrialError, guilty_passes, judge_xla
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.isolated import check_files
from fusionlab.equivalence.samples import workload_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.output import require_writable
from fusionlab.passes.interface import Declined, Pass, Setting, faults, told_faults
from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline
from fusionlab.study import Circumstances, check_pair_exactly, lower, rewrite
from fusionlab.workload import Workload


@dataclass(frozen=True)
class BisectOptions:
    """``passes`` of ours, or ``xla``; ``trials`` attempts at a smaller module, which goes to the folder ``out``."""

    passes: Sequence[Pass] = ()
    xla: bool = False
    trials: int = 24
    out: str | None = None


def run_bisect(
    source: Workload | Program, options: BisectOptions, given: Circumstances, console: Console
) -> tuple[dict[str, Any], int]:
    """Find the step, reduce its program, write both; print it in words. Gives the document and the exit code."""
    name = source.title if isinstance(source, Workload) else source.name
    folder = Path(options.out) if options.out else Path("fusionlab-bisect") / name
    if folder.is_file():
        raise InputError(f"{folder}: is a file; --out names a folder")
    found = (_bisect_xla if options.xla else _bisect_passes)(source, options, given, folder)
    if fault := told_faults(found.pop("faults", ())):
        print(f"fusionlab: {fault}", file=sys.stderr)
    for line in found.pop("lines"):
        console.print(line, soft_wrap=True)
    return {"name": name, **found}, 1 if fault or found["different"] or found["not_checked"] else 0


def _bisect_passes(
    source: Workload | Program, options: BisectOptions, given: Circumstances, folder: Path
) -> dict[str, Any]:
    passes = options.passes
    failed: tuple[Declined, ...] = ()
    setting = Setting(platform=given.target.kind)
    if isinstance(source, Program):
        program = lower(source, given)
        judge = _judge_of_files(given)
    else:
        # What is chosen at the full number of walkers is repeated where a check is affordable.
        events = rewrite(lower(source, given), passes, given)[0].events
        chosen, failed = resolved_pipeline(events), faults(events)
        passes = parse_pipeline(chosen) if chosen else ()
        small = source.rebuild(walkers=given.check_walkers)
        program = lowering.lower(small, given.target.kind)
        judge = _judge_of_workload(small, program)
    given.progress("bisect: applying the passes one at a time")
    steps, failed_here = steps_of(program, passes, setting)
    failed = (*failed, *failed_here)
    given.progress(f"bisect: judging {len(steps)} steps")
    judged = judge_steps(steps, _with_exact(judge, given))
    unknown = len(judged.unknown)
    told = [f"{step}: {verdict.line}" for step, verdict in judged.steps]
    verdicts = [
        {"step": str(step), "verdict": verdict.verdict, "exact": verdict.exact.to_json() if verdict.exact else None}
        for step, verdict in judged.steps
    ]
    found = {"steps": [str(step) for step in steps], "verdicts": verdicts, "not_checked": unknown, "faults": failed}
    if judged.wrong is None:
        lines = [f"none of {len(steps)} steps differs" + (f"; {unknown} could not be checked" if unknown else "")]
        return {**_nothing(), **found, "lines": [*lines, *told]}
    step, verdict = judged.wrong
    require_writable(folder)
    given.progress(f"bisect: {step} differs; looking for a smaller module")
    reduced = reduce_program(step, setting, _judge_of_files(given), most_trials=options.trials)
    module, test = write_case(folder, reduced.program, step.by, given.target.kind)
    return {
        **found,
        "different": True,
        "guilty": str(step.by),
        "application": step.number or None,
        "applications": step.of,
        "location": step.location,
        "worst_walker": verdict.worst,
        "ops_before": reduced.ops_before,
        "ops_after": reduced.program.ops,
        "files": [str(module), str(test)],
        "lines": [
            f"guilty: {step}",
            *told,
            f"worst: {verdict.worst or verdict.reason}",
            f"reduced from {reduced.ops_before:,} to {reduced.program.ops:,} ops: {module}; fails: {test}",
        ],
    }


def _with_exact(judge: Judge, given: Circumstances) -> Judge:
    """``judge``, which decides, with the exact verdict beside it where that is asked for."""
    if not given.exact:
        return judge
    return lambda before, after: replace(judge(before, after), exact=check_pair_exactly(before, after, given))


def _judge_of_files(given: Circumstances) -> Judge:
    return lambda before, after: check_files(before, after, time_limit_s=given.check_time_limit_s)


def _judge_of_workload(small: Workload, program: Program) -> Judge:
    samples = list(workload_samples(small))

    def judge(before: Program, after: Program) -> Verdict:
        return check_programs(before, after, samples)

    return judge


def _bisect_xla(
    source: Workload | Program, options: BisectOptions, given: Circumstances, folder: Path
) -> dict[str, Any]:
    if given.target.kind != "cpu":
        raise InputError(f"--xla runs what XLA compiles, on the CPU; --target {given.target.name} cannot be run here")
    program = lower(source.rebuild(walkers=given.check_walkers) if isinstance(source, Workload) else source, given)
    given.progress("bisect: XLA's program beside the same program op by op")
    try:
        verdict = judge_xla(program)
    except TrialError as error:
        raise CompileError(f"{program.name}: {error}") from None
    if verdict.verdict == "not-checked":
        return {**_nothing(), "not_checked": 1, "lines": [f"XLA's program could not be checked: {verdict.reason}"]}
    if verdict.verdict != "different":
        return {**_nothing(), "lines": [f"XLA's program does not differ: {verdict.verdict} {verdict.reason}".strip()]}
    guilty = guilty_passes(program, given.progress)
    document = {"different": True, "not_checked": 0, "guilty": guilty, "worst_walker": verdict.worst, "files": []}
    if not guilty:
        return {**document, "lines": ["XLA's program differs, and with no single pass off does it compute the same"]}
    module, test = write_xla_case(folder, program, guilty[0])
    lines = [f"guilty: XLA's {', '.join(guilty)} (without it, the same numbers)", f"worst: {verdict.worst}"]
    return {**document, "files": [str(module), str(test)], "lines": [*lines, f"module: {module}; fails: {test}"]}


def _nothing() -> dict[str, Any]:
    return {"different": False, "not_checked": 0, "guilty": None, "files": []}
