"""Original against rewritten on real numbers, with float64 as truth.

The tolerance in float32 is a small multiple of what the *original* loses to float32 on the same inputs: random
parameters give ill-conditioned Slater matrices, where honest errors reach 0.1 hartree. Because that leaves room for a
small mistake, the rewritten program is also computed in float64, where the tolerance shrinks by the ratio of the two
machine epsilons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.oracle import Runner, program_runner, workload_runner, xla_runner
from fusionlab.equivalence.samples import Sample, signature_samples, workload_samples
from fusionlab.equivalence.verdict import OutputError, Verdict
from fusionlab.hlo.program import Program
from fusionlab.workload import Workload

SPREAD_FACTOR = 4.0
"""The rewritten program may be this many times further from truth than the original is at its worst walker."""
FLOAT64_FACTOR = 1000.0
"""Room over (eps64 / eps32) x the float32 tolerance: float64 rounding of a reassociated sum, not of a mistake."""


def check_workload(workload: Workload, rewritten: Program, rewritten_float64: Program) -> Verdict:
    """Compare rewritings of ``workload`` (as it stands: walkers, dtype) with the workload's own function.

    ``rewritten`` comes from the workload lowered in its own dtype, ``rewritten_float64`` from the same workload
    lowered in float64 (widening the float32 program instead would keep its rounded constants). The reference runs
    under plain ``jax.jit`` and shares no code with raising or passes.
    """
    return compare(
        workload_samples(workload),
        truth=workload_runner(workload, "float64"),
        original=workload_runner(workload, workload.dtype),
        rewritten=program_runner(rewritten),
        rewritten_float64=program_runner(rewritten_float64, dtype="float64"),
        walkers=workload.walkers,
    )


def check_programs(original: Program, rewritten: Program) -> Verdict:
    """Compare two programs of one signature on random inputs; truth is the original raised and computed in float64.

    In their own dtype both are run by XLA as they stand, and the original must do what its raising does, or else
    truth is not its truth: then the verdict is ``not-checked``. Programs lowered for CUDA cannot be run by XLA here;
    both are run raised, which the reason of the verdict says.
    """
    if (original.inputs, original.outputs) != (rewritten.inputs, rewritten.outputs):
        return Verdict("different", reason="the signatures differ")
    raised_only = "cuda" in (original.platform, rewritten.platform)
    run = program_runner if raised_only else xla_runner
    verdict = compare(
        signature_samples(original),
        truth=program_runner(original, widen=True),
        original=run(original),
        rewritten=run(rewritten),
        rewritten_float64=program_runner(rewritten, widen=True),
        walkers=None,
        raised=None if raised_only else program_runner(original),
    )
    return replace(verdict, reason="; ".join(filter(None, (verdict.reason, _RAISED)))) if raised_only else verdict


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
) -> Verdict:
    """Run everything on every sample; the verdict over all of them.

    ``raised`` is the original as raising understands it, which must agree with ``original``.
    """
    found: list[tuple[Sample, int, OutputError, int]] = []
    evidence: dict[int, bool] = {}
    for sample in samples:
        columns = [run(sample.arrays) for run in (truth, original, rewritten, rewritten_float64)]
        triples = zip(*columns[:2], raised(sample.arrays), strict=True) if raised is not None else ()
        if not all(_agrees(*triple) for triple in triples):
            return Verdict("not-checked", reason="raising does not reproduce the original")
        for index, values in enumerate(zip(*columns, strict=True)):
            error, walker = _compare_output(f"output {index}", *values)
            found.append((sample, index, error, walker))
            finite = np.isfinite(values[0]) & np.isfinite(values[1])
            evidence[index] = evidence.get(index, False) or bool(finite.any() or not finite.size)
    outputs = tuple(_worst_of(index, found) for index in sorted({index for _, index, _, _ in found}))
    failed = [entry for entry in found if not entry[2].passed]
    if failed:
        sample, index, error, walker = max(failed, key=_severity)
        return Verdict("different", outputs, walkers, worst=_describe(sample, index, error, walker))
    if (empty := next((index for index, seen in evidence.items() if not seen), None)) is not None:
        return Verdict("not-checked", outputs, walkers, reason=f"random inputs gave no finite value in output {empty}")
    bitwise = all(error.bitwise for _, _, error, _ in found)
    return Verdict("equal" if bitwise else "within-bound", outputs, walkers)


def _compare_output(
    name: str, truth: np.ndarray, original: np.ndarray, rewritten: np.ndarray, rewritten64: np.ndarray
) -> tuple[OutputError, int]:
    """The errors of one output on one sample, and the row (walker) where the rewritten program is furthest off."""
    bitwise = original.dtype == rewritten.dtype and np.array_equal(original, rewritten, equal_nan=True)
    if not jnp.issubdtype(original.dtype, np.inexact):
        wrong = _integer_distance(original, rewritten)
        error = float(np.max(wrong, initial=0.0))
        return OutputError(name, error, 0.0, error, 0.0, bitwise), _row(wrong)
    tolerance = _tolerance(truth, original)
    epsilon, epsilon64 = float(jnp.finfo(original.dtype).eps), float(np.finfo(np.float64).eps)
    tolerance64 = FLOAT64_FACTOR * (epsilon64 / epsilon) * tolerance if epsilon > epsilon64 else tolerance
    errors, errors64 = _errors(rewritten, truth, original), _errors(rewritten64, truth, truth)
    ratio = np.maximum(errors / (tolerance or 1.0), errors64 / (tolerance64 or 1.0))
    worst, worst64 = float(np.max(errors, initial=0.0)), float(np.max(errors64, initial=0.0))
    return OutputError(name, worst, tolerance, worst64, tolerance64, bitwise), _row(ratio)


def _tolerance(truth: np.ndarray, original: np.ndarray) -> float:
    """What ``original`` loses against truth, with room; for a float64 original, which is its own truth, a rounding."""
    finite = np.isfinite(truth) & np.isfinite(original)
    scale = float(np.max(np.abs(truth), where=np.isfinite(truth), initial=0.0))
    epsilon = float(jnp.finfo(original.dtype).eps)
    if epsilon <= np.finfo(np.float64).eps:
        return FLOAT64_FACTOR * epsilon * scale
    with np.errstate(invalid="ignore"):  # inf - inf
        spread = float(np.max(np.abs(original - truth), where=finite, initial=0.0))
    return SPREAD_FACTOR * (spread + epsilon * scale)


def _agrees(truth: np.ndarray, original: np.ndarray, raised: np.ndarray) -> bool:
    """Whether ``original`` (run by XLA) is ``raised`` within the tolerance that follows from what ``raised`` loses.

    What ``original`` loses would not do: where raising is wrong, it is as far from truth as from ``raised``.
    """
    if not jnp.issubdtype(original.dtype, np.inexact):
        return bool(np.array_equal(original, raised))
    wide = raised.astype(truth.dtype)
    return bool(np.all(_errors(original, wide, wide) <= _tolerance(truth, raised)))


def _integer_distance(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """|left - right| of integers or booleans as float64, zero only where they are equal."""
    wide = np.uint64 if jnp.issubdtype(left.dtype, np.unsignedinteger) else np.int64
    a, b = left.astype(wide).view(np.uint64), right.astype(wide).view(np.uint64)
    return np.where(left > right, a - b, b - a).astype(np.float64)


def _errors(values: np.ndarray, truth: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """|values - truth|; infinite where ``values`` is finite and ``pattern`` is not, or the other way round.

    Where truth is not finite either, ``values`` must be the very infinity (or NaN) that ``pattern`` is.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values.astype(truth.dtype) - truth)
    error = np.where(np.isfinite(values) & np.isfinite(truth), error, 0.0)
    same = np.where(
        np.isfinite(truth),
        np.isfinite(values) == np.isfinite(pattern),
        (values == pattern) | (np.isnan(values) & np.isnan(pattern)) | (np.isfinite(values) & np.isfinite(pattern)),
    )
    return np.where(same, error, np.inf)


def _row(error: np.ndarray) -> int:
    return int(np.unravel_index(np.argmax(error), error.shape)[0]) if error.ndim and error.size else 0


def _worst_of(index: int, found: Sequence[tuple[Sample, int, OutputError, int]]) -> OutputError:
    return max((entry for entry in found if entry[1] == index), key=_severity)[2]


def _severity(entry: tuple[Sample, int, OutputError, int]) -> float:
    error = entry[2]
    pairs = (
        (error.max_abs_error, error.tolerance),
        (error.max_abs_error_float64, error.tolerance_float64),
    )
    return max(e / t if t else (np.inf if e else 0.0) for e, t in pairs)


def _describe(sample: Sample, index: int, error: OutputError, walker: int) -> str:
    return (
        f"{sample.label}, walker {walker}, output {index}: error {error.max_abs_error:.3g} (tolerance "
        f"{error.tolerance:.3g}), in float64 {error.max_abs_error_float64:.3g} ({error.tolerance_float64:.3g})"
    )
