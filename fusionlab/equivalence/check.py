"""Compare original and rewritten in floating point, with float64 as truth; errors of one output are in
``output_errors``, the inputs in ``samples``."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jax import lax

from fusionlab.codegen.raising import RaiseError
from fusionlab.codegen.raising.rules.contraction import least_precise
from fusionlab.equivalence.brute_force import ask_brute_force
from fusionlab.equivalence.counterexample import Counterexample
from fusionlab.equivalence.interpreter import ask_interpreter
from fusionlab.equivalence.oracle import (
    References,
    Runner,
    RunnerOfRoundings,
    program_runner,
    runner_of_roundings,
    workload_runner,
    xla_runner,
)
from fusionlab.equivalence.output_errors import Columns, WorstElement, agrees, compare_output, needs_more_roundings
from fusionlab.equivalence.samples import Sample, roundings_of, signature_samples, workload_samples
from fusionlab.equivalence.scales import can_be_scaled, out_of_range
from fusionlab.equivalence.tolerances import Pairs, largest_loss, largest_value
from fusionlab.equivalence.verdict import OracleAgreement, OutputError, Verdict
from fusionlab.errors import CompileError
from fusionlab.hlo.constants import constant_divided_by_zero
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program, program_view
from fusionlab.host_settings import own_settings
from fusionlab.workload import Workload


def check_workload(
    workload: Workload,
    rewritten: Program,
    rewritten_float64: Program,
    samples: Iterable[Sample] | None = None,
    *,
    oracles: bool = False,
    references: References | None = None,
) -> Verdict:
    """Compare rewritings of ``workload`` (as it stands: walkers, dtype) with the workload's own function.

    ``rewritten`` comes from the workload lowered in its own dtype, ``rewritten_float64`` from the same workload lowered
    in float64 (widening the float32 program instead would keep its rounded constants). The reference runs under plain
    ``jax.jit`` and shares no code with raising or passes. With ``oracles``, the reference is compared with brute force.
    ``references`` of this workload are passed where several rewritings are compared with them.
    """
    references = references or References.of(workload)
    return compare(
        workload_samples(workload) if samples is None else samples,
        truth=references.truth,
        original=references.original,
        rewritten=program_runner(rewritten),
        rewritten_float64=program_runner(rewritten_float64, dtype="float64"),
        walkers=workload.walkers,
        rounded=lambda: runner_of_roundings(lower(workload, "cpu")),
        scales=samples is None and can_be_scaled(rewritten),
        oracles=(functools.partial(ask_brute_force, workload),) if oracles else (),
    )


def check_module(
    workload: Workload,
    original: Program,
    rewritten: Program,
    samples: Iterable[Sample] | None = None,
    *,
    oracles: bool = False,
    references: References | None = None,
) -> Verdict:
    """Compare ``rewritten``, a rewriting of the module ``original`` of ``workload`` (as it stands: walkers, dtype).

    Truth is the module in float64: its constants are rounded, as those of its rewriting are. The module must agree with
    the workload's own function under plain ``jax.jit``, which is the original in its own dtype, or the verdict is
    ``not-checked``. With ``oracles``, the workload's own function in float64 is compared with brute force.
    ``references`` are ``References.of_module``.
    """
    references = references or References.of_module(workload, original)
    is_float64 = workload.dtype == "float64"
    run = program_runner(rewritten)

    def by_brute_force(sample: Sample, *_: list[np.ndarray]) -> OracleAgreement:
        return ask_brute_force(workload, sample, workload_runner(workload, "float64")(sample.arrays))

    return compare(
        workload_samples(workload) if samples is None else samples,
        truth=references.truth,
        original=references.original,
        rewritten=run,
        rewritten_float64=run if is_float64 else program_runner(rewritten, widen=True),
        walkers=workload.walkers,
        raised=references.raised,
        rounded=lambda: runner_of_roundings(original),
        scales=samples is None and can_be_scaled(rewritten),
        oracles=(by_brute_force,) if oracles else (),
    )


@own_settings()
def check_programs(
    original: Program, rewritten: Program, samples: Iterable[Sample] | None = None, *, oracles: bool = False
) -> Verdict:
    """Compare two programs of one signature on random inputs; truth is the original raised and computed in float64.

    In their own dtype both are run by XLA as they stand, and the original must agree with its raised form, or else
    truth is not its truth: then the verdict is ``not-checked``. Programs lowered for CUDA cannot be run by XLA here;
    both are run raised, as the verdict's reason states. With ``oracles``, the original is compared with StableHLO's
    reference interpreter. A rewriting that contracts at a lower precision is different, whatever its numbers.
    """
    if (unlike := _other_signature(original, rewritten)) is not None:
        return Verdict("different", reason=unlike)
    if (less := why_less_precise(original, rewritten)) is not None:
        return Verdict("different", reason=less)
    if (narrow := next((t.dtype for t in original.inputs if t.dtype not in NUMPY), None)) is not None:
        raise RaiseError(f"no inputs of element type {narrow} can be made")
    for program in (original, rewritten):
        if (node := constant_divided_by_zero(program_view(program))) is not None:
            raise RaiseError("XLA ends the process where integer constants are divided by 0", node)
    raised_only = _raised_only(original, rewritten)
    run = program_runner if raised_only else xla_runner
    verdict = compare(
        signature_samples(original, rewritten) if samples is None else samples,
        truth=program_runner(original, widen=True),
        original=run(original),
        rewritten=run(rewritten),
        rewritten_float64=program_runner(rewritten, widen=True),
        walkers=None,
        raised=None if raised_only else program_runner(original),
        rounded=lambda: runner_of_roundings(original),
        oracles=(functools.partial(ask_interpreter, original),) if oracles else (),
        scales=samples is None and can_be_scaled(original),
    )
    return replace(verdict, reason="; ".join(filter(None, (verdict.reason, _RAISED)))) if raised_only else verdict


def _other_signature(original: Program, rewritten: Program) -> str | None:
    """The difference in types of the arguments or results, in words; None if there is none."""
    for kind, ours, theirs in (
        ("argument", original.inputs, rewritten.inputs),
        ("result", original.outputs, rewritten.outputs),
    ):
        if len(ours) != len(theirs):
            return f"the signatures differ: the original has {len(ours)} {kind}s, the other {len(theirs)}"
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one != other:
                return f"the signatures differ: {kind} {index} is {one} in the original, {other} in the other"
    return None


Oracle = Callable[[Sample, list[np.ndarray], list[np.ndarray]], OracleAgreement]
"""(sample, float64 truth, the original's results) to the agreement of an independent computation."""

_ROUNDINGS_INSIDE = 3
_RAISED = "lowered for CUDA: run through the raised program"


def compare(
    samples: Iterable[Sample],
    *,
    truth: Runner,
    original: Runner,
    rewritten: Runner,
    rewritten_float64: Runner,
    walkers: int | None,
    raised: Runner | None = None,
    rounded: Callable[[], RunnerOfRoundings] | None = None,
    oracles: Sequence[Oracle] = (),
    scales: bool = False,
) -> Verdict:
    """Run everything on every sample; return the verdict over all of them.

    With ``scales``, a rewritten program that passes is run at the first sample scaled by powers of ten, too, and is
    ``different`` where it leaves the range of its floats and the original does not (``scales.out_of_range``).

    ``rounded`` makes the original with its intermediate results rounded otherwise, asked for where float64 outputs are
    off; where it cannot be raised or compiled, its inputs alone are rounded otherwise.

    ``raised`` is the raised original, which must agree with ``original``; ``oracles`` are asked about truth at the
    first sample, and the verdict is ``not-checked`` where one disagrees.
    """
    said: list[OracleAgreement] = []
    found: list[_Entry] = []
    evidence: dict[int, Evidence] = {}
    rounded = functools.cache(rounded) if rounded is not None else None
    first: Sample | None = None
    for given in samples:
        first = first or given
        sample, known = _with_digits(given, truth, original)
        columns = [*known, *(run(sample.arrays) for run in (rewritten, rewritten_float64))]
        if (unlike := _other_types(columns)) is not None:
            return Verdict("different", walkers=walkers, reason=unlike)
        nearby = _Nearby(sample, truth, original, rounded)
        if raised is not None and not _reproduced(columns, raised(sample.arrays), nearby):
            return Verdict("not-checked", reason="raising does not reproduce the original")
        said += [ask(sample, columns[0], columns[1]) for ask in oracles if len(said) < len(oracles)]
        for index, values in enumerate(zip(*columns, strict=True)):
            of_output = replace(Columns(*values), spread_factor=sample.spread_factor)
            if needs_more_roundings(of_output):
                of_output = _with_roundings(of_output, index, nearby)
            furthest = compare_output(f"output {index}", of_output, typical=sample.typical)
            placed = replace(furthest, error=replace(furthest.error, place=_walker(sample, furthest.at)))
            found.append(_Entry(sample, index, of_output, placed))
            evidence[index] = evidence.get(index, Evidence()).after(values[0], values[1])
    outputs = tuple(_of_all_samples(index, found) for index in sorted({entry.output for entry in found}))
    failed = [entry for entry in found if not entry.found.error.passed]
    if failed:
        worst = max(failed, key=lambda entry: entry.found.error.used)
        return Verdict(
            "different",
            outputs,
            walkers,
            worst=_describe(worst),
            oracles=tuple(said),
            counterexample=_counterexample(worst),
        )
    lacking = next((f"{why} in output {i}" for i, seen in evidence.items() if (why := seen.lacks)), None)
    if lacking is not None:
        return Verdict("not-checked", outputs, walkers, reason=lacking, undecided=True)
    if (other := next((oracle for oracle in said if oracle.agrees is False), None)) is not None:
        reason = f"{other.name} is {other.max_abs_error:.3g} off the original (tolerance {other.tolerance:.3g})"
        return Verdict("not-checked", outputs, walkers, reason=reason, oracles=tuple(said))
    if scales and first is not None and (lost := out_of_range(first, truth, original, rewritten)) is not None:
        values = {"original": lost.original, "rewritten": lost.rewritten, "truth": lost.truth}
        inputs = Counterexample(lost.sample.label, tuple(lost.sample.arrays), lost.output, lost.index, **values)
        return Verdict("different", outputs, walkers, worst=lost.line, oracles=tuple(said), counterexample=inputs)
    bitwise = all(entry.found.error.bitwise for entry in found)
    return Verdict("equal" if bitwise else "within-bound", outputs, walkers, oracles=tuple(said))


def without_digits(truth: Sequence[np.ndarray], original: Sequence[np.ndarray]) -> bool:
    """True if the original's loss exceeds all values of some output: such arguments say nothing of a rewriting."""
    floats = [pair for pair in zip(truth, original, strict=True) if np.issubdtype(pair[0].dtype, np.inexact)]
    return any(largest_loss(*pair) > largest_value(*pair) for pair in floats)


def _with_digits(given: Sample, truth: Runner, original: Runner) -> tuple[Sample, list[list[np.ndarray]]]:
    """The sample, or its milder one where the original has lost all digits; with truth and the original's results."""
    known = [run(given.arrays) for run in (truth, original)]
    if given.milder is None or not without_digits(*known):
        return given, known
    milder = given.milder()
    return milder, [run(milder.arrays) for run in (truth, original)]


class _Nearby:
    """(truth, original) of all outputs at other roundings of a sample's inputs, as many as are needed.

    After them of its intermediate results, for outputs of float64: their originals are their own truth.
    """

    def __init__(
        self, sample: Sample, truth: Runner, original: Runner, rounded: Callable[[], RunnerOfRoundings] | None
    ) -> None:
        self._truth, self._original, self._rounded = truth, original, rounded
        self._sample, self._left = sample, roundings_of(sample)
        self._found: list[tuple[list[np.ndarray], list[np.ndarray]]] = []

    def _until(self, count: int) -> Sequence[tuple[list[np.ndarray], list[np.ndarray]]]:
        """The first ``count`` roundings; fewer if there are fewer."""
        missing = max(count - len(self._found), 0)
        self._found += [(self._truth(at), self._original(at)) for at in itertools.islice(self._left, missing)]
        return self._found[:count]

    @functools.cached_property
    def _inside(self) -> list[list[np.ndarray]]:
        """All outputs with intermediate results rounded otherwise, a few times; empty where that cannot be computed."""
        if self._rounded is None:
            return []
        try:
            return [self._rounded()(self._sample.arrays, seed) for seed in range(_ROUNDINGS_INSIDE)]
        except (CompileError, RaiseError):
            return []

    def of(self, output: int) -> Iterator[Pairs]:
        """The pairs of one output, at more and more roundings."""
        pairs: Pairs = ()
        for count in itertools.count(1):
            if len(found := self._until(count)) < count:
                break
            pairs = tuple((truth[output], original[output]) for truth, original in found)
            yield pairs
        if all(original.dtype in (np.float64, np.complex128) for _, original in pairs):
            inside = tuple((results[output], results[output]) for results in self._inside)
            if inside:
                yield (*pairs, *inside)


def _with_roundings(columns: Columns, output: int, nearby: _Nearby) -> Columns:
    """The columns of one output, at as many roundings as it needs."""
    for pairs in nearby.of(output):
        columns = replace(columns, nearby=pairs)
        if not needs_more_roundings(columns):
            break
    return columns


def _reproduced(columns: Sequence[list[np.ndarray]], raised: Sequence[np.ndarray], nearby: _Nearby) -> bool:
    """True if the original, run by XLA, agrees with its raised form; ill-conditioned outputs get a second look."""

    def close(index: int, truth: np.ndarray, original: np.ndarray, again: np.ndarray) -> bool:
        # By how far truth moves, never by the original's loss there: where raising is wrong, that allows everything.
        return agrees(truth, original, again) or any(
            agrees(truth, original, again, nearby=tuple((moved, moved) for moved, _ in pairs))
            for pairs in nearby.of(index)
        )

    return all(close(i, *triple) for i, triple in enumerate(zip(*columns[:2], raised, strict=True)))


def _other_types(columns: Sequence[list[np.ndarray]]) -> str | None:
    """The output at which the rewritten program returns other shapes or types, in words; None if there is none."""
    _, original, rewritten, wide = columns
    if len(rewritten) != len(original):
        return f"it gives {len(rewritten)} outputs, the original {len(original)}"
    for index, (ours, theirs, widened) in enumerate(zip(original, rewritten, wide, strict=True)):
        have, need = f"{theirs.dtype}{list(theirs.shape)}", f"{ours.dtype}{list(ours.shape)}"
        if have != need or widened.shape != ours.shape:
            return f"output {index} is {have}, of the original {need}"
    return None


@dataclass(frozen=True)
class _Entry:
    """One output of one sample."""

    sample: Sample
    output: int
    columns: Columns
    found: WorstElement


def _of_all_samples(index: int, found: Sequence[_Entry]) -> OutputError:
    """The errors of the worst sample, the mean that is furthest off, and histograms over all samples."""
    entries = [entry for entry in found if entry.output == index]
    worst = max(entries, key=lambda entry: entry.found.error.used).found.error
    if worst.max_ulp is None:
        return worst
    ulps = np.sum([entry.found.ulps for entry in entries], axis=0)
    counts = sum((entry.found.decades for entry in entries), Counter[int]())
    means = [entry.found.error for entry in entries if entry.found.error.mean_tolerance]
    shifted = max(means, key=lambda e: abs(e.mean_shift or 0.0) / (e.mean_tolerance or 1.0), default=worst)
    return replace(
        worst,
        max_ulp=max(entry.found.error.max_ulp or 0.0 for entry in entries),
        ulp_histogram=tuple(int(count) for count in ulps),
        abs_histogram=tuple(sorted(counts.items())),
        mean_shift=shifted.mean_shift,
        standard_error=shifted.standard_error,
        mean_tolerance=shifted.mean_tolerance,
    )


def _walker(sample: Sample, index: tuple[int, ...]) -> str:
    """The sample, and the walker of the element ``index`` with its kind."""
    walker = index[0] if index else 0
    kind = f" ({sample.kinds[walker]})" if walker < len(sample.kinds) else ""
    return f"{sample.label}, walker {walker}{kind}"


def _describe(entry: _Entry) -> str:
    error = entry.found.error
    mean = ""
    if error.mean_shifted:
        mean = f"; the mean shifts by {error.mean_shift:.3g}, its Monte-Carlo error is {error.standard_error:.3g}"
    return (
        f"{_walker(entry.sample, entry.found.index)}, output {entry.output}: error {error.max_abs_error:.3g} "
        f"(tolerance {error.tolerance:.3g}), in float64 {error.max_abs_error_float64:.3g} "
        f"({error.tolerance_float64:.3g}){mean}"
    )


def _counterexample(entry: _Entry) -> Counterexample:
    columns, at = entry.columns, entry.found.index
    values = (columns.original, columns.rewritten, columns.truth)
    original, rewritten, truth = (_number(array[at]) if array.size else np.nan for array in values)
    return Counterexample(entry.sample.label, entry.sample.arrays, entry.output, at, original, rewritten, truth)


def _number(value: np.generic) -> float:
    """A real number for the record; of a complex one its absolute value."""
    return float(np.abs(value)) if np.iscomplexobj(value) else float(value)


LEAST_PART = 0.5
"""The share of an output's elements that must be a number, or an infinity, at some input."""


@dataclass(frozen=True)
class Evidence:
    """The evidence on one output from the samples so far: its elements that were numbers at some input, and whether any
    was finite."""

    numbers: np.ndarray | None = None
    finite: bool = False

    def after(self, truth: np.ndarray, original: np.ndarray) -> Evidence:
        """This evidence with one more sample's values in both precisions."""
        numbers = ~(np.isnan(truth) | np.isnan(original))
        finite = bool((np.isfinite(truth) & np.isfinite(original)).any() or not truth.size)
        return Evidence(numbers if self.numbers is None else self.numbers | numbers, self.finite or finite)

    @property
    def lacks(self) -> str:
        """The missing evidence in words; empty if there is none."""
        if not self.finite:
            return "no input gave a finite value"
        if self.numbers is not None and self.numbers.size and self.numbers.mean() < LEAST_PART:
            return f"{np.count_nonzero(~self.numbers)} of {self.numbers.size} elements were NaN at every input"
        return ""


def why_less_precise(original: Program, rewritten: Program) -> str | None:
    """The contraction of ``rewritten`` below the lowest precision in ``original``, in words; None if there is none.

    A program without contractions counts as full precision, and so do three products of TF32 in float32 where both
    programs are run raised, which computes their rounding.
    """
    tf32x3 = lax.Precision.HIGHEST if _raised_only(original, rewritten) else lax.Precision.HIGH
    least, where = _least(original, tf32x3)
    found, at = _least(rewritten, tf32x3)
    if found.value >= least.value:
        return None
    theirs = f"at {least.name} or above" if where is not None else "nothing"
    return f"it contracts at precision {found.name} (at {at or 'no scope'}), the original {theirs}"


def _raised_only(original: Program, rewritten: Program) -> bool:
    """True if XLA cannot run one of them here: both are run raised."""
    return "cuda" in (original.platform, rewritten.platform)


def _least(program: Program, tf32x3: lax.Precision) -> tuple[lax.Precision, str | None]:
    """The lowest precision of the contractions of ``program``, and the scope of the first that has it."""
    found = least_precise(program_view(program).walk(), tf32x3=tf32x3)
    return (lax.Precision.HIGHEST, None) if found is None else (found[0], found[1].scope)
