"""``fusionlab bisect``: the step of a pipeline, or the XLA pass, that makes a program differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code, failed_passes
from fusionlab.cli.pipelines import passes_of, pipeline_text
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.cli.terminal import say
from fusionlab.errors import CompileError, InputError
from fusionlab.files import require_writable
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.bisection.steps import Judge, Step
    from fusionlab.equivalence.counterexample import Counterexample
    from fusionlab.equivalence.verdict import Verdict
    from fusionlab.hlo.program import Program
    from fusionlab.passes.interface import Declined, Pass
    from fusionlab.study import Circumstances


@click.command("bisect")
@options.source
@options.target
@options.passes("The passes that make the program differ; repeatable.")
@click.option("--xla", is_flag=True, help="Bisect XLA's own passes (on the CPU) in place of ours.")
@options.check
@options.inputs("Judge on these inputs only: a worst walker that check saved, or arrays of numpy.savez in order.")
@click.option(
    "--trials", default=24, show_default=True, type=click.IntRange(min=0), help="Attempts at a smaller module."
)
@click.option("--out", help="Folder for module and test.  [default: fusionlab-bisect/<program>]")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    asked: dict[str, Any],
    xla: bool,
    check: dict[str, Any],
    inputs: str | None,
    trials: int,
    out: str | None,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> tuple[dict[str, Any], int]:
    """Find the pass, or XLA's pass, that makes a program differ. Exit 0 none, 1 found or not checked, 2 bad input."""
    from fusionlab.equivalence.counterexample import Counterexample

    if xla == bool(pipeline_text(**asked)):
        raise InputError("name what to bisect: --pass or --pipeline for our passes, or --xla for XLA's")
    where = where | {"target": where["target"] or ("cpu" if xla else None)}
    loaded = load_source(**source, target=where["target"])
    chosen = () if xla else passes_of(**asked)
    given = circumstances(loaded, **where, **check)
    name = loaded.title if isinstance(loaded, Workload) else loaded.name
    folder = Path(out) if out else Path("fusionlab-bisect") / name
    if folder.is_file():
        raise InputError(f"{folder}: is a file; --out names a folder")
    point = None if inputs is None else Counterexample.load(Path(inputs))
    if xla:
        found = _bisect_xla(loaded, given, folder, point, str(inputs))
    else:
        found = _bisect_passes(loaded, chosen, trials, given, folder, point, str(inputs))
    endings = failed_passes(found.pop("faults", ()))
    for why in endings.values():
        say(why)
    for line in (*found.pop("lines"), *(found.pop("evidence") if verbose else ())):
        console.print(line, soft_wrap=True, markup=False)
    found.pop("evidence", None)
    ended = {"different": found["different"], "not checked": found["not_checked"]}
    found = {"name": name, "target": given.target.name, **found}
    return found, exit_code([*endings, *(ending for ending, is_so in ended.items() if is_so)])


def _bisect_passes(
    source: Workload | Program,
    passes: Sequence[Pass],
    trials: int,
    given: Circumstances,
    folder: Path,
    point: Counterexample | None,
    inputs: str,
) -> dict[str, Any]:
    """``point`` are the only inputs, if there are any, of the file ``inputs``. Then nothing is compared exactly, and no
    smaller module is looked for: it would have other arguments."""
    from fusionlab.bisection.reduction import Reduced, reduce_program
    from fusionlab.bisection.steps import judge_steps, steps_of
    from fusionlab.bisection.written import write_case
    from fusionlab.equivalence.samples import require_fitting
    from fusionlab.hlo import lowering
    from fusionlab.passes.interface import Setting, faults
    from fusionlab.passes.pipeline import parse_pipeline, resolved_pipeline
    from fusionlab.study import lower, rewrite

    failed: tuple[Declined, ...] = ()
    setting = Setting(platform=given.target.kind)
    if not isinstance(source, Workload):
        program = lower(source, given)
        judge = _judge_of_files(given, point)
    else:
        # Choices made at the full number of walkers are repeated at a number that a check can afford.
        events = rewrite(lower(source, given), passes, given)[0].events
        chosen, failed = resolved_pipeline(events), faults(events)
        passes = parse_pipeline(chosen) if chosen else ()
        small = source.rebuild(walkers=given.walkers_of(source))
        program = lowering.lower(small, given.target.kind)
        judge = _judge_of_workload(small, point)
    if point is not None:
        require_fitting(point, inputs, program)
    given.progress("bisect: applying the passes one at a time")
    steps, failed_here = steps_of(program, passes, setting)
    failed = (*failed, *failed_here)
    given.progress(f"bisect: judging {len(steps)} steps")
    judged = judge_steps(steps, _with_exact(judge, given) if point is None else judge)
    found = _found(
        not_checked=len(judged.unknown),
        faults=failed,
        evidence=[f"{step}: {verdict.line}" for step, verdict in judged.steps if verdict.verdict != "not-checked"],
        steps=[str(step) for step in steps],
        verdicts=[
            {"step": str(step), "verdict": verdict.verdict, "exact": verdict.exact.to_json() if verdict.exact else None}
            for step, verdict in judged.steps
        ],
    )
    if judged.wrong is None:
        unknown = f"; {len(judged.unknown)} could not be checked" if judged.unknown else ""
        on = _on(point, inputs, [verdict for _, verdict in judged.steps])
        return found | {
            "lines": [
                f"none of {len(steps)} steps differs{unknown}{_in_floats_only(judged.steps)}{on}",
                *(f"not checked: {step}: {verdict.line}" for step, verdict in judged.unknown),
            ]
        }
    step, verdict = judged.wrong
    require_writable(folder)
    if point is None:
        given.progress(f"bisect: {step} differs; looking for a smaller module")
        reduced = reduce_program(step, setting, _judge_of_files(given), most_trials=trials)
    else:
        reduced = Reduced(step.before, step.before.ops, 0)
    module, test, *others = write_case(folder, reduced.program, step.by, given.target.kind, point)
    return found | {
        "different": True,
        "guilty": str(step.by),
        "application": step.number or None,
        "applications": step.of,
        "location": step.location,
        "worst_walker": verdict.worst,
        "ops_before": reduced.ops_before,
        "ops_after": reduced.program.ops,
        "files": [str(module), str(test), *map(str, others)],
        "lines": [
            f"guilty: {step}",
            f"worst: {verdict.worst or verdict.reason}",
            f"module: {module}; fails: {test}"
            if others
            else f"reduced from {reduced.ops_before:,} to {reduced.program.ops:,} ops: {module}; fails: {test}",
        ],
    }


def _found(**found: Any) -> dict[str, Any]:
    """The document of a program in which nothing differs, with ``found``.

    ``lines`` are for the terminal, and ``evidence`` with ``--verbose``.
    """
    return {"different": False, "not_checked": 0, "guilty": None, "files": [], "evidence": []} | found


def _in_floats_only(steps: Sequence[tuple[Step, Verdict]]) -> str:
    """The number of steps that the exact check did not accept; "" if it accepted all, or was left out."""
    count = sum(one.exact is not None and one.exact.result != "identical" and one.passed for _, one in steps)
    return f"; {count} accepted by the float verdict only (--verbose says why)" if count else ""


def _on(point: Counterexample | None, inputs: str, verdicts: Sequence[Verdict]) -> str:
    """The inputs that verdicts in floating point are about; "" for what is identical at all inputs."""
    in_floats = (one for one in verdicts if one.exact is None or one.exact.result != "identical")
    if all(verdict.verdict == "not-checked" for verdict in in_floats):
        return ""
    if point is not None:
        return f"; judged on the inputs of {inputs}"
    return "; only drawn inputs were tried: --inputs FILE.npz judges on others"


def _with_exact(judge: Judge, given: Circumstances) -> Judge:
    """``judge``, which decides, with the exact verdict beside it if requested."""
    from fusionlab.study import check_pair_exactly

    if not given.exact:
        return judge
    return lambda before, after: replace(judge(before, after), exact=check_pair_exactly(before, after, given))


def _judge_of_files(given: Circumstances, point: Counterexample | None = None) -> Judge:
    from fusionlab.equivalence.isolated import check_files
    from fusionlab.equivalence.samples import sample_of

    walkers, samples = (given.check_walkers, None) if point is None else (None, [sample_of(point)])
    return lambda before, after: check_files(
        before, after, walkers=walkers, samples=samples, time_limit_s=given.check_time_limit_s
    )


def _judge_of_workload(small: Workload, point: Counterexample | None) -> Judge:
    from fusionlab.equivalence.check import check_programs
    from fusionlab.equivalence.samples import sample_of, workload_samples

    samples = list(workload_samples(small)) if point is None else [sample_of(point)]
    return lambda before, after: check_programs(before, after, samples)


def _bisect_xla(
    source: Workload | Program, given: Circumstances, folder: Path, point: Counterexample | None, inputs: str
) -> dict[str, Any]:
    from fusionlab.bisection.written import write_xla_case
    from fusionlab.bisection.xla_passes import TrialError, guilty_passes, judge_xla
    from fusionlab.equivalence.samples import require_fitting, sample_of
    from fusionlab.study import lower

    if given.target.kind != "cpu":
        raise InputError(f"--xla runs what XLA compiles, on the CPU; --target {given.target.name} cannot be run here")
    program = lower(source.rebuild(walkers=given.walkers_of(source)) if isinstance(source, Workload) else source, given)
    if point is not None:
        require_fitting(point, inputs, program)
    sample = None if point is None else sample_of(point)
    given.progress("bisect: XLA's program beside the same program op by op")
    try:
        verdict = judge_xla(program, inputs=sample)
    except TrialError as error:
        raise CompileError(f"{program.name}: {error}") from None
    if verdict.verdict == "not-checked":
        return _found(not_checked=1, lines=[f"XLA's program could not be checked: {verdict.reason}"])
    if verdict.verdict != "different":
        on = _on(point, inputs, [verdict])
        return _found(lines=[f"XLA's program does not differ: {verdict.verdict} {verdict.reason}".strip() + on])
    guilty = guilty_passes(program, given.progress, sample)
    found = _found(different=True, guilty=guilty, worst_walker=verdict.worst)
    if not guilty:
        return found | {"lines": ["XLA's program differs, and with no single pass off does it compute the same"]}
    module, test, *others = write_xla_case(folder, program, guilty[0], point)
    lines = [f"guilty: XLA's {', '.join(guilty)} (without it, the same numbers)", f"worst: {verdict.worst}"]
    files = list(map(str, (module, test, *others)))
    return found | {"files": files, "lines": [*lines, f"module: {module}; fails: {test}"]}
