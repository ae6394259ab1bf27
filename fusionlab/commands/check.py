"""``fusionlab check``: are two programs equal, on walkers of every kind, judged by float64 and by other oracles."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.commands.apply import require_file_name
from fusionlab.equivalence.check import check_workload
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.isolated import check_files
from fusionlab.equivalence.samples import Sample, require_fitting, sample_of, workload_samples
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.optimizing.decision import event_of_json
from fusionlab.passes.interface import Event, Pass, told_faults
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.report.tables.programs import print_verdict
from fusionlab.study import Circumstances, check_exactly, check_pair_exactly, judge, lower, rewrite
from fusionlab.workload import Workload

_ANOTHER_ALGORITHM = "it compares rewritings; another Laplacian (--against-laplacian) is another algorithm"


@dataclass(frozen=True)
class CheckOptions:
    """What the source is compared with: another program, the source rewritten by ``passes``, or the same model with
    another Laplacian. ``exact`` compares in prime fields alone. ``inputs`` names the
    file of a counterexample, ``worst`` where one is written, ``command`` the command line without these two."""

    passes: Sequence[Pass] = ()
    other: Program | None = None
    laplacian: str | None = None
    inputs: str | None = None
    worst: str = "worst-walker.npz"
    command: str = "fusionlab check"
    oracles: bool = True
    exact: bool = False


@dataclass(frozen=True)
class Checked:
    """A verdict, and what was done to get a second program."""

    verdict: Verdict
    events: tuple[Event, ...] = ()


def run_check(
    source: Workload | Program, options: CheckOptions, given: Circumstances, console: Console
) -> tuple[dict[str, Any], int]:
    """Check; print the verdict; write the worst walker of a difference. Gives the document and the exit code."""
    if sum((bool(options.passes), options.other is not None, options.laplacian is not None)) != 1:
        raise InputError("name one thing to compare with: a second FILE, --pass or --pipeline, or --against-laplacian")
    if options.exact:
        document, code = _run_exact(source, options, given, console)
        return document, _exit_code(map(event_of_json, document["events"]), code)
    require_file_name(options.worst, "--worst")
    checked = compare_source(source, options, given)
    verdict, saved = checked.verdict, None
    if verdict.counterexample is not None:
        command = f"{options.command} --inputs {options.worst}"
        replace(verdict.counterexample, command=command).save(Path(options.worst))
        saved = options.worst
        print(f"fusionlab: the worst walker is in {saved}; again: {command}", file=sys.stderr)
    code = _exit_code(checked.events, 0 if verdict.passed else 1)
    print_verdict(verdict, console)
    document = {
        "name": source.title if isinstance(source, Workload) else source.name,
        "pipeline": print_pipeline(options.passes),
        **verdict.to_json(),
        "worst_walker": verdict.worst or None,
        "worst_walker_file": saved,
        "events": [event.to_json() for event in checked.events],
    }
    return document, code


def _exit_code(events: Iterable[Event], code: int) -> int:
    """``code``; 1, with a line on stderr, where a pass failed: what was compared then is not what was asked for."""
    if fault := told_faults(events):
        print(f"fusionlab: {fault}", file=sys.stderr)
        return 1
    return code


def _run_exact(
    source: Workload | Program, options: CheckOptions, given: Circumstances, console: Console
) -> tuple[dict[str, Any], int]:
    """The exact check alone: the document has no floating-point verdict."""
    if not given.exact:
        raise InputError("--exact asks for the check that --no-exact leaves out")
    if options.inputs is not None:
        raise InputError("--inputs are numbers of a floating-point check; --exact draws its own points")
    if options.laplacian is not None:
        raise InputError(f"--exact: {_ANOTHER_ALGORITHM}")
    original, result = lower(source, given), None
    if options.other is None:
        result, _ = rewrite(original, options.passes, given)
        identity = check_exactly(source, original, result, given)
    else:
        identity = check_pair_exactly(original, options.other, given)
    console.print(identity.line, soft_wrap=True)
    document = {
        "name": source.title if isinstance(source, Workload) else source.name,
        "pipeline": print_pipeline(options.passes),
        "verdict": "not-checked",
        "reason": "--exact: nothing was compared in floating point",
        "exact": identity.to_json(),
        "events": [event.to_json() for event in result.events] if result is not None else [],
    }
    return document, 0 if identity.result == "identical" else 1


def compare_source(source: Workload | Program, options: CheckOptions, given: Circumstances) -> Checked:
    """The verdict on the source beside what the options say."""
    inputs = None if options.inputs is None else Counterexample.load(Path(options.inputs))
    if options.passes:
        return _against_pipeline(source, options, inputs, given)
    if options.laplacian is not None:
        return Checked(_against_laplacian(source, options, inputs, given))
    assert options.other is not None
    if isinstance(source, Program):
        _require(inputs, source, options)
        return _beside_file(source, options.other, None if inputs is None else [sample_of(inputs)], options, given)
    platform = given.target.kind if options.other.platform == "any" else options.other.platform
    given.progress(f"lower: {source.title} for {platform}, to stand beside {options.other.provenance}")
    original = lowering.lower(source, platform)
    _require(inputs, original, options)
    samples = workload_samples(source) if inputs is None else [sample_of(inputs)]
    return _beside_file(original, options.other, samples, options, given)


def _beside_file(
    original: Program, other: Program, samples: Iterable[Sample] | None, options: CheckOptions, given: Circumstances
) -> Checked:
    """In processes of their own: a file may end them, or never end."""
    limit_s = given.check_time_limit_s
    identity = check_pair_exactly(original, other, given) if given.exact and options.inputs is None else None
    given.progress(f"check: at the files' own shapes, at most {limit_s:.0f} s")
    verdict = check_files(original, other, samples=samples, oracles=options.oracles, time_limit_s=limit_s)
    return Checked(replace(verdict, exact=identity))


def _against_pipeline(
    source: Workload | Program, options: CheckOptions, inputs: Counterexample | None, given: Circumstances
) -> Checked:
    original = lower(source, given)
    small = original
    if isinstance(source, Workload) and inputs is not None:
        small = lowering.lower(source.rebuild(walkers=given.check_walkers), given.target.kind)
    _require(inputs, small, options)
    result, _ = rewrite(original, options.passes, given)
    verdict = judge(source, original, result, given, inputs=inputs, oracles=options.oracles)
    return Checked(verdict, result.events)


def _against_laplacian(
    source: Workload | Program, options: CheckOptions, inputs: Counterexample | None, given: Circumstances
) -> Verdict:
    if isinstance(source, Program):
        raise InputError("--against-laplacian is for a model; a FILE has no other Laplacian")
    small = source.rebuild(walkers=given.check_walkers)
    other = small.rebuild(laplacian=options.laplacian)
    if other.argument_names != small.argument_names:
        raise InputError(
            f"--against-laplacian {options.laplacian}: it takes other arguments ({', '.join(other.argument_names)})"
        )
    given.progress(f"check: {given.check_walkers} walkers in {small.dtype} and float64")
    _require(inputs, lowering.lower(small, given.target.kind), options)
    lowered = [lowering.lower(other.rebuild(dtype=dtype), given.target.kind) for dtype in (small.dtype, "float64")]
    samples = None if inputs is None else [sample_of(inputs)]
    identity = Identity("not-covered", 0, 0, 1.0, _ANOTHER_ALGORITHM) if given.exact and inputs is None else None
    return replace(check_workload(small, lowered[0], lowered[1], samples, oracles=options.oracles), exact=identity)


def _require(inputs: Counterexample | None, program: Program, options: CheckOptions) -> None:
    if inputs is not None:
        require_fitting(inputs, program.inputs, str(options.inputs))
