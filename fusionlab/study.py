"""The pipeline of a study, and the table of contents of the project.

    source -> lower -> measure -> rewrite -> undo_worse -> check -> measure -> outcome

Each step is one function here; its name is the name in logs, in the progress on stderr and in the documentation.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fusionlab.codegen.cache import CompileCache
from fusionlab.codegen.compile import Compiled, compile_program
from fusionlab.codegen.targets import Target
from fusionlab.device_code.findings import Findings
from fusionlab.device_code.kernel_rows import kernel_table
from fusionlab.device_code.over_fusion import over_fusions
from fusionlab.equivalence.check import check_module, check_workload, why_less_precise
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.exact.identity import Identity
from fusionlab.equivalence.few_walkers import CHECKED_WALKERS, EXACT_WALKERS, Resized, resized
from fusionlab.equivalence.isolated import check_files, compare_files
from fusionlab.equivalence.oracle import References
from fusionlab.equivalence.samples import Sample, require_fitting, sample_of
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo import lowering
from fusionlab.hlo.cost import Cost, program_cost
from fusionlab.hlo.program import Program
from fusionlab.ledger.footprint import Footprint, footprint, peak_bytes
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.ledger.time.model import LAUNCH_US, pair_error_of, roofline_us, time_by_rows
from fusionlab.passes.catalogue import is_own
from fusionlab.passes.interface import (
    Applied,
    Event,
    Figures,
    KernelFigures,
    Overfused,
    Pass,
    Result,
    Setting,
    told_faults,
)
from fusionlab.passes.pipeline import Observer, parse_pipeline, print_pipeline, resolved_pipeline, run_pipeline
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.workload import Workload

Progress = Callable[[str], None]
PassResult = tuple[Pass, Result]
"""A pass and its result, in a pipeline."""

_UNCOMPILABLE = "without the passes undone, XLA cannot compile the program"
_REWRITTEN_AGAIN = "compared with the original module, resized and rewritten again: its parts of the walkers are a loop"
_LOWERED_AGAIN = "compared at another lowering, rewritten again: the walkers of the modules are not found"
UNCHANGED = Verdict("equal", reason="no pass applied: the program is unchanged")


@dataclass(frozen=True)
class StudyCache:
    """Results of a study, shared by its targets: compilations by (program, target), verdicts by (program, rewritten),
    and what passes found out about programs (``Setting.findings``).

    Programs are identified by their digest.
    """

    compiled: dict[tuple[str, str, bool, bool, bool], Compiled] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    findings: dict[type, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Circumstances:
    """The settings of a study: the target, the number of walkers of a check (None: all), the time limits of the check
    of a file and of every exact check, and whether there is an exact check."""

    target: Target
    check_walkers: int | None = CHECKED_WALKERS
    check_time_limit_s: float = 300.0
    exact: bool = True
    cache: CompileCache | None = None
    progress: Progress = lambda line: None
    kept: StudyCache = field(default_factory=StudyCache)

    @property
    def ahead(self) -> Circumstances:
        """These with the absent target of an attached GPU, which XLA's autotuner needs for itself."""
        return replace(self, target=self.target.absent or self.target)

    def walkers_of(self, source: Workload) -> int:
        """The number of walkers at which ``source`` is checked."""
        return source.walkers if self.check_walkers is None else self.check_walkers


@dataclass(frozen=True)
class PipelineStep:
    """A pass of the pipeline, as text, and the program after it."""

    by: str
    program: Program


@dataclass(frozen=True)
class Undone:
    """A pass, as text, that made the program worse on the target, and was undone for that ``reason``."""

    by: str
    reason: str


@dataclass(frozen=True)
class StudyResult:
    """``after`` is None when the rewritten program was not shown equivalent, and then has no figures. ``before`` is
    None when XLA cannot compile the program and no pass would change it. ``undone`` are passes that changed it for the
    worse, and were undone: they are among the events as declined."""

    original: Program
    rewritten: Program
    pipeline: str
    events: tuple[Event, ...]
    pass_s: float
    before: Footprint | None
    after: Footprint | None
    equivalence: Verdict
    steps: tuple[PipelineStep, ...] = ()
    undone: tuple[Undone, ...] = ()

    @property
    def applied(self) -> bool:
        """True if any pass changed the program."""
        return any(isinstance(event, Applied) for event in self.events)

    def to_json(self) -> dict[str, Any]:
        """The ``apply`` document of the ``--json`` contract."""
        return {
            "before": self.before.to_json() if self.before else None,
            "after": self.after.to_json() if self.after else None,
            "pipeline": self.pipeline,
            "pass_s": self.pass_s,
            "events": [event.to_json() for event in self.events],
            "undone": [asdict(one) for one in self.undone],
            "equivalence": self.equivalence.to_json(),
        }


def study(
    source: Workload | Program,
    passes: Sequence[Pass],
    given: Circumstances,
    *,
    unchecked: bool,
    original: Program | None = None,
    keep_worse: bool = False,
) -> StudyResult:
    """Lower, measure, rewrite, check and measure again. ``unchecked`` also measures a program not checked.

    A pass that the figures show to be worse is undone, unless ``keep_worse``.
    ``original`` is the result of ``lower`` for ``source``, if already computed. A program found different is never
    measured. CompileError where XLA cannot compile a model's program, or a file's that a pass would change.
    """
    original = lower(source, given) if original is None else original
    before, refused = None, None
    try:
        before = measure(source, original, given)
    except CompileError as error:
        if isinstance(source, Workload):
            raise
        refused = error
    steps: list[PassResult] = []
    result, pass_s = rewrite(
        original, passes, given, lambda by, made, _: steps.append((by, made)), compiles=refused is None
    )
    if refused is not None:
        if result.applied:
            raise refused
        given.progress(f"measure: no figures: {refused}")
    undone: tuple[Undone, ...] = ()
    if before is not None and not keep_worse:
        steps, undone = undo_worse(original, steps, given)
        result = _together(original, steps)
    key = (original.digest, result.program.digest)
    verdict = given.kept.verdicts.get(key) or judge(source, original, result, given)
    given.kept.verdicts[key] = verdict
    trusted = verdict.passed or (unchecked and verdict.verdict == "not-checked")
    after = measure(source, result.program, given) if trusted and before is not None else None
    pipeline, made = print_pipeline(passes), tuple(PipelineStep(str(by), each.program) for by, each in steps)
    return StudyResult(original, result.program, pipeline, result.events, pass_s, before, after, verdict, made, undone)


def event_documents(events: Sequence[Event], target: Target) -> list[dict[str, Any]]:
    """The events as data, with the time on ``target`` that a model gives to the directions of a forward Laplacian."""
    time = time_by_rows(target)
    found: list[dict[str, Any]] = []
    for event in events:
        document: dict[str, Any] = {**event.to_json()}
        if isinstance(event, Applied) and event.sparsity is not None:
            document["sparsity"] = event.sparsity.to_json(time)
        found.append(document)
    return found


def _together(original: Program, steps: Sequence[PassResult]) -> Result:
    program = steps[-1][1].program if steps else original
    return Result(program, tuple(event for _, made in steps for event in made.events))


def _of_unchanged(events: Sequence[Event]) -> Verdict:
    """The verdict where no pass applied: ``not-checked`` if a pass failed."""
    fault = told_faults(events)
    return Verdict("not-checked", reason=fault) if fault else UNCHANGED


def lower(source: Workload | Program, given: Circumstances) -> Program:
    """The source as StableHLO for the target's platform; InputError for a file that was lowered for another one."""
    if isinstance(source, Workload):
        given.progress(f"lower: {source.title} for {given.target.name}")
        return lowering.lower(source, given.target.kind)
    if source.platform not in ("any", given.target.kind):
        raise InputError(
            f"{source.provenance}: lowered for {source.platform} (it calls that platform's libraries), but target "
            f"{given.target.name} is {given.target.kind}; choose another --target or lower the program for it"
        )
    return source


def compiled(
    program: Program, given: Circumstances, *, dump: bool = False, fusions: bool = False, ptx: bool = False
) -> Compiled:
    """XLA's compilation of ``program`` for the target, made once (or read from the cache when it holds one).

    ``dump``, ``fusions`` and ``ptx`` are as for ``compile_program``.
    """
    key, kept = (program.digest, given.target.name, dump, fusions and given.target.kind == "cpu"), given.kept.compiled
    if (*key, ptx) not in kept:
        made = compile_program(program, given.target, dump=dump, fusions=fusions, ptx=ptx, cache=given.cache)
        serves = {ptx, False, bool(made.ptx)}  # code that was not asked for, and a compile with code, are at hand
        kept.update({(*key, one): made for one in serves if (*key, one) not in kept})
    return kept[*key, ptx]


def measure(source: Workload | Program, program: Program, given: Circumstances) -> Footprint:
    """Compile for the target and count: launches, memory, FLOPs, bytes."""
    given.progress(f"measure: compiling {program.name} ({program.ops:,} ops) for {given.target.name}")
    return _footprint(program, given, source.walkers if isinstance(source, Workload) else None)


def _footprint(program: Program, given: Circumstances, walkers: int | None = None) -> Footprint:
    return footprint(program, compiled(program, given), flops=program_cost(program).flops, walkers=walkers)


@dataclass
class CandidateCosts:
    """XLA's costs of the candidates that a pass asks about; ``seconds`` were spent on them."""

    given: Circumstances
    seconds: float = 0.0

    @property
    def has_code(self) -> bool:
        """Whether XLA writes the code of kernels for the target, and its rates are known."""
        target = self.given.target
        return target.unit_rates is not None and not target.attached

    def temp_bytes(self, candidate: Program) -> int:
        """The temp memory of the compiled candidate."""
        with self._timed(candidate, "temp bytes"):
            return compiled(candidate, self.given).memory.temp_bytes

    def figures(self, candidate: Program) -> Figures:
        """The figures of the compiled candidate, with the time that its roofline models."""
        with self._timed(candidate, "figures"):
            found, cost = _footprint(candidate, self.given), program_cost(candidate)
        launches = found.dynamic_launches
        roofline = roofline_us(self.given.target, cost, found.bytes_accessed, launches)
        return Figures(
            dynamic_launches=launches,
            dynamic_copies=found.dynamic_copies,
            temp_bytes=found.temp_bytes,
            flops=cost.flops,
            bytes_accessed=found.bytes_accessed,
            model_us=roofline,
            launch_us=launches * LAUNCH_US,
        )

    def why_worse(self, candidate: Program, before: Program) -> str:
        """``Figures.why_worse_than``: time is that of the code of kernels where XLA writes it, else the roofline, which
        is not tested. Code is read only where launches grow."""
        new, old = self.figures(candidate), self.figures(before)
        if new.dynamic_launches <= old.dynamic_launches or new.temp_bytes < old.temp_bytes:
            return ""
        if self.has_code:
            new, old = new.by_code(self.kernels(candidate)), old.by_code(self.kernels(before))
        return new.why_worse_than(old)

    def kernels(self, candidate: Program) -> KernelFigures:
        """The figures by the code of the candidate's kernels."""
        with self._timed(candidate, "kernels"):
            made = compiled(candidate, self.given, ptx=True)
            table = kernel_table(made)
            rows = (*(row.launch for row in table.rows), *table.without_code)
            over = over_fusions(made.target, table.rows, Findings(made.module))
        return KernelFigures(
            model_us=sum(_at_least_us(row, made.target) for row in rows),
            peak_bytes=peak_bytes(made.memory),
            dynamic_launches=sum(row.dynamic_launches for row in rows),
            overfused=tuple(
                Overfused(
                    one.row.name,
                    one.parts[0].source or one.place,
                    tuple(part.op_name for part in one.parts),
                    one.lost_us,
                )
                for one in over
            ),
            pair_error=pair_error_of(row for row in rows if row.dynamic_launches),
        )

    @contextlib.contextmanager
    def _timed(self, candidate: Program, what: str) -> Iterator[None]:
        started = time.perf_counter()
        self.given.progress(f"rewrite: compiling a candidate ({candidate.ops:,} ops) for its {what}")
        yield
        self.seconds += time.perf_counter() - started


def _at_least_us(row: LaunchRow, target: Target) -> float:
    """The modelled time of a launch site's runs; without one its roofline: what is not known is not free."""
    if row.model_us is not None:
        return row.model_us
    cost = Cost(flops=row.flops, tf32_flops=row.tf32_flops)
    return roofline_us(target, cost, row.bytes, row.dynamic_launches) or row.dynamic_launches * LAUNCH_US


def rewrite(
    program: Program,
    passes: Sequence[Pass],
    given: Circumstances,
    observer: Observer | None = None,
    *,
    compiles: bool = True,
) -> tuple[Result, float]:
    """Run the passes; return the result and the seconds they took without XLA's compiles (for memory budgets).

    Without ``compiles`` no pass learns what a candidate costs.
    """
    costs = CandidateCosts(given)
    setting = _setting(costs) if compiles else Setting(platform=given.target.kind, findings=given.kept.findings)
    given.progress(f"rewrite: {print_pipeline(passes)}")
    started = time.perf_counter()
    result = run_pipeline(program, passes, setting, observer)
    return result, time.perf_counter() - started - costs.seconds


def _setting(costs: CandidateCosts) -> Setting:
    target = costs.given.target
    memory = None if target.peaks is None else target.peaks.memory_bytes
    by_code = costs.kernels if costs.has_code else None
    return Setting(costs.temp_bytes, target.kind, costs.figures, memory, costs.given.kept.findings, by_code)


def undo_worse(
    original: Program, steps: Sequence[PassResult], given: Circumstances
) -> tuple[list[PassResult], tuple[Undone, ...]]:
    """``steps`` without the passes that make the program worse on the target (``Figures.why_worse_than``).

    Single passes are measured only if all together are worse; those after an undone one run again. Where the rest is
    still worse than ``original``, or XLA cannot compile it, all are undone.
    """
    final = _together(original, steps)
    if not final.applied:
        return list(steps), ()
    costs = CandidateCosts(replace(given, progress=lambda line: None))
    worse = _why_worse(costs, final, original)
    if not worse:
        return list(steps), ()
    given.progress(f"undo_worse: {worse}; measuring pass by pass")
    kept, undone = list[PassResult](), list[Undone]()
    program = now = read = original
    for pass_, made in steps:
        result = made if program is read else run_pipeline(program, (pass_,), _setting(costs))
        read = made.program
        if reason := _why_worse(costs, result, now):
            undone.append(Undone(str(pass_), reason))
            result = _without(result, program, reason)
        elif result.applied:
            program = result.program
            with contextlib.suppress(CompileError):  # between two that compile: the next is compared with the last
                costs.figures(program)
                now = program
        kept.append((pass_, result))
    if still := _why_worse(costs, _together(original, kept), original, _UNCOMPILABLE):
        undone += [Undone(str(pass_), still) for pass_, result in kept if result.applied]
        kept = [(pass_, _without(result, original, still)) for pass_, result in kept]
    return kept, tuple(undone)


def _why_worse(costs: CandidateCosts, result: Result, before: Program, uncompilable: str = "") -> str:
    """``CandidateCosts.why_worse`` of the changed program; ``uncompilable`` if XLA cannot compile it."""
    if not result.applied:
        return ""
    with contextlib.suppress(CompileError):
        return costs.why_worse(result.program, before)
    return uncompilable


def _without(result: Result, program: Program, reason: str) -> Result:
    """``program`` as a result of the pass of ``result``, its applications refused for ``reason``."""
    refusal = Refusal(Ground.WORSE, f"undone: {reason}")
    events = [refusal.of(e.pass_name, e.location) if isinstance(e, Applied) else e for e in result.events]
    return Result(program, tuple(dict.fromkeys(events)))


def check(
    source: Workload | Program,
    original: Program,
    result: Result,
    given: Circumstances,
    *,
    inputs: Counterexample | None = None,
    oracles: bool = False,
) -> Verdict:
    """Compare original and rewritten in floating point.

    Both modules are resized to few walkers if these are found in them (``few_walkers``); else a workload is lowered
    there and rewritten again (``at_walkers``), and a file is compared at its own shapes. A file is checked under
    limits. ``inputs`` replace random ones; ``oracles`` are asked about the original.
    """
    if not result.applied:
        if inputs is not None and isinstance(source, Program):
            _require_inputs_of(original, given, inputs)
        return _of_unchanged(result.events)
    if isinstance(source, Program):
        return _check_file(original, result, given, inputs, oracles)
    if (less := why_less_precise(original, result.program)) is not None:
        return Verdict("different", reason=less)
    walkers = given.walkers_of(source)
    given.progress(f"check: {walkers} walkers in {source.dtype} and float64")
    again = at_walkers(source, original, result, walkers)
    samples = None if inputs is None else [sample_of(inputs)]
    return again if isinstance(again, Verdict) else again.verdict(samples, oracles=oracles)


def _check_file(
    original: Program, result: Result, given: Circumstances, inputs: Counterexample | None, oracles: bool
) -> Verdict:
    """The rewritten module itself at few walkers, or, where it does not treat them alike (parts of them in a loop),
    the original at few walkers with the same choices. InputError for ``inputs`` of neither."""
    pair, limit_s, began, few = (original, result.program), given.check_time_limit_s, time.monotonic(), None
    where = "the file's own shapes"
    if (walkers := given.check_walkers) is not None:
        few, again = at_few_walkers(original, result.program, _choices(result), result.events, walkers)
        if few is not None:
            rewritten = "the file's module, rewritten again by the same choices" if again else "both modules"
            where = f"{walkers} walkers of {rewritten}"
    if inputs is not None:
        sizes = (original,) if few is None else (original, few.programs[0])
        if require_fitting(inputs, "--inputs", *sizes) is original:
            few, where = None, "the file's own shapes"
    samples = None if inputs is None else [sample_of(inputs)]
    given.progress(f"check: at {where}, at most {limit_s:.0f} s")
    verdict = check_files(
        *(pair if few is None else few.programs), samples=samples, oracles=oracles, time_limit_s=limit_s, began=began
    )
    return verdict if few is None else replace(verdict, walkers=few.walkers)


def _require_inputs_of(original: Program, given: Circumstances, inputs: Counterexample) -> None:
    """InputError unless ``inputs`` are of ``original``, at its own shapes or at the few walkers of a check."""
    few = None if given.check_walkers is None else resized((original,), given.check_walkers)
    require_fitting(inputs, "--inputs", original, *(() if few is None else few.programs))


def at_few_walkers(
    original: Program,
    rewritten: Program,
    passes: Sequence[Pass],
    events: Sequence[Event],
    walkers: int,
    *,
    grow: bool = False,
) -> tuple[Resized | None, bool]:
    """(both programs at ``walkers`` walkers, whether the second was rewritten again); None if that is not possible.

    Where ``rewritten`` does not treat walkers alike (parts of them in a loop), the resized original is rewritten by
    ``passes``, with the choices of ``events``; not by passes of a user's own, which may decide by size. ``grow`` as in
    ``resized``.
    """
    if (few := resized((original, rewritten), walkers, grow=grow)) is not None:
        return few, False
    if not all(map(is_own, passes)) or (few := resized((original,), walkers, grow=grow)) is None:
        return None, False
    again = _repeated(few.programs[0], passes, events)
    return (None, False) if isinstance(again, str) else (replace(few, programs=(*few.programs, again)), True)


def _choices(result: Result) -> tuple[Pass, ...]:
    """The passes with the choices that they made."""
    return parse_pipeline(resolved_pipeline(result.events))


def check_exactly(source: Workload | Program, original: Program, result: Result, given: Circumstances) -> Identity:
    """Compare original and rewritten in prime fields, without a tolerance, in a process of its own under limits.

    A workload is compared at two walkers (``at_walkers``); a file by ``compare_files``.
    """
    return _exact_check(source, original, result, given)(None)


def _exact_check(
    source: Workload | Program, original: Program, result: Result, given: Circumstances
) -> Callable[[threading.Event | None], Identity]:
    """``check_exactly`` with its programs made: what is left waits for a process, until an event."""
    if isinstance(source, Program):
        return _exact_check_of_pair(original, result.program, given)
    limit_s, began = given.check_time_limit_s, time.monotonic()
    given.progress(f"check: exactly, {EXACT_WALKERS} walkers, at most {limit_s:.0f} s")
    again = at_walkers(source, original, result, EXACT_WALKERS)

    def compared(stop: threading.Event | None) -> Identity:
        if isinstance(again, Verdict):
            return Identity("not-covered", 0, 0, 1.0, again.reason, walkers=EXACT_WALKERS)
        identity = compare_files(*again.programs, limit_s, stop, began=began)
        reason = "; ".join(filter(None, (identity.reason, again.instead)))
        return replace(identity, walkers=EXACT_WALKERS, reason=reason)

    return compared


def check_pair_exactly(original: Program, rewritten: Program, given: Circumstances) -> Identity:
    """``check_exactly`` of two programs as they stand."""
    return _exact_check_of_pair(original, rewritten, given)(None)


def _exact_check_of_pair(
    original: Program, rewritten: Program, given: Circumstances
) -> Callable[[threading.Event | None], Identity]:
    """``_exact_check`` of two programs as they stand."""
    limit_s, began = given.check_time_limit_s, time.monotonic()
    given.progress(f"check: exactly, at most {limit_s:.0f} s")
    return lambda stop: compare_files(original, rewritten, limit_s, stop, began=began)


def judge(
    source: Workload | Program,
    original: Program,
    result: Result,
    given: Circumstances,
    *,
    inputs: Counterexample | None = None,
    oracles: bool = False,
) -> Verdict:
    """The verdict of ``check``, which decides, together with that of ``check_exactly``, which runs beside it.

    The exact verdict is None if it is disabled, if no pass applied, or if ``inputs`` are given.
    """
    if not (given.exact and inputs is None and result.applied):
        return check(source, original, result, given, inputs=inputs, oracles=oracles)
    stop, exact = threading.Event(), _exact_check(source, original, result, given)
    with ThreadPoolExecutor(1, "fusionlab-exact") as beside:
        identity = beside.submit(exact, stop)
        try:
            verdict = check(source, original, result, given, oracles=oracles)
            return replace(verdict, exact=identity.result())
        except BaseException:
            stop.set()
            raise


@dataclass(frozen=True)
class SmallModel:
    """A model at the few walkers of a check: ``programs`` are its original and its rewritten module there.

    ``workload`` is the model at these walkers. ``instead`` tells what they are if not the very modules of the study,
    resized. ``in_float64`` lowers the model in float64 and rewrites that by the same choices; in words why not.
    """

    workload: Workload
    programs: tuple[Program, Program]
    instead: str
    in_float64: Callable[[], Program | str]

    def verdict(
        self,
        samples: list[Sample] | None = None,
        *,
        oracles: bool = False,
        references: Callable[[Program | None], References | None] = lambda module: None,
    ) -> Verdict:
        """The verdict in floating point. ``references`` are those of a module, or of the workload (None).

        The constants that a pass folds stay rounded in the float64 version of its output. So a module that is not shown
        equal is compared once more, where the float64 version is a rewriting of the model in float64.
        """
        original, rewritten = self.programs
        found = check_module(
            self.workload, original, rewritten, samples, oracles=oracles, references=references(original)
        )
        if not found.passed and not isinstance(wide := self.in_float64(), str):
            found = check_workload(
                self.workload, rewritten, wide, samples, oracles=oracles, references=references(None)
            )
        return replace(found, reason="; ".join(filter(None, (found.reason, self.instead))))


def at_walkers(source: Workload, original: Program, result: Result, walkers: int) -> SmallModel | Verdict:
    """The model at ``walkers`` walkers: the modules of the study, resized.

    Where the rewritten one does not treat walkers alike (parts of them in a loop), the resized original is rewritten
    again by the same choices; where the original does not either (an optimiser's step), the model is lowered again for
    so many walkers. Returns a verdict, ``different``, if the passes decide otherwise there.
    """
    small, passes, platform = source.rebuild(walkers=walkers), _choices(result), original.platform

    def in_float64() -> Program | str:
        return _repeated(lowering.lower(small.rebuild(dtype="float64"), platform), passes, result.events)

    if source.walkers == walkers:
        return SmallModel(small, (original, result.program), "", in_float64)
    few, again = at_few_walkers(original, result.program, passes, result.events, walkers, grow=True)
    if few is not None:
        first, second = few.programs
        return SmallModel(small, (first, second), _REWRITTEN_AGAIN if again else "", in_float64)
    lowered = lowering.lower(small, platform)
    repeated = _repeated(lowered, passes, result.events)
    if isinstance(repeated, str):
        reason = f"at {walkers} walkers in {small.dtype} {repeated}"
        return Verdict("different", walkers=walkers, worst="none: the passes took other decisions", reason=reason)
    return SmallModel(small, (lowered, repeated), _LOWERED_AGAIN, in_float64)


def _repeated(program: Program, passes: Sequence[Pass], events: Sequence[Event]) -> Program | str:
    """``program`` rewritten by ``passes``, which apply where they did in ``events``; in words the difference if not."""
    again = run_pipeline(program, passes, Setting(platform=program.platform))
    if fault := told_faults(again.events):
        return fault
    if _signature(again.events) != _signature(events):
        return f"the events differ: {_signature(again.events)}"
    return again.program


def _signature(events: Sequence[Event]) -> list[tuple[str, str, str]]:
    """The events that must agree between two runs of one pipeline: which pass applied where."""
    return [("applied", event.pass_name, event.location) for event in events if isinstance(event, Applied)]
