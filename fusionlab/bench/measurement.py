"""Variants on the device: compiled, checked there at full size, then timed in turn; one ``Measured`` each.

Everything is compiled on one path with the same options, gets the same arrays, and is timed by the same code on the CPU
and on a GPU.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from fusionlab.bench.compilation import ALONE, LEFT_OUT, compile_all, of_variants, without_graphs
from fusionlab.bench.prepared import TRUTH, AheadOfTime, Preparation
from fusionlab.bench.variants import Failure, Variant, attempt
from fusionlab.codegen.compile import NO_AUTOTUNING, Compiled
from fusionlab.codegen.executable import Executable
from fusionlab.codegen.targets import Target
from fusionlab.equivalence.check import compare
from fusionlab.equivalence.oracle import Runner, converted, remembered
from fusionlab.equivalence.samples import Sample
from fusionlab.equivalence.verdict import Verdict
from fusionlab.ledger.footprint import peak_bytes
from fusionlab.ledger.ledger import count_launches
from fusionlab.measure.device_time import RUNS, DeviceTime, device_time
from fusionlab.measure.environment import allocator_bytes
from fusionlab.measure.intervals import interleaved
from fusionlab.measure.ncu import KernelCounters, counters_of
from fusionlab.measure.nvml import DeviceState, Nvml
from fusionlab.measure.profiler import trace_runs
from fusionlab.study import Progress

_ENERGY_S = 2.0
_MOST_ENERGY_RUNS = 20_000
_COUNTERS_S = 600.0
"""The most seconds for the counters of one variant."""


@dataclass(frozen=True)
class MeasurementPlan:
    """The extent of the measurement: ``runs`` under the profiler (the first is dropped), ``repeats`` interleaved
    rounds, and with ``counters`` the hardware's, by Nsight Compute.

    Without ``autotune`` XLA calls its libraries with their own choice of algorithm, as it compiles for absent GPUs.
    ``time_limit`` in seconds, None for none: what has not begun then is left out, but for wall times. ``jobs`` programs
    are compiled at a time; their compile times then are those of compiles beside each other."""

    runs: int = RUNS
    repeats: int = 10
    counters: bool = False
    autotune: bool = True
    time_limit: float | None = None
    jobs: int = 1

    def options(self, target: Target) -> Mapping[str, str | int | bool]:
        """XLA's options for ``target``; for an absent GPU there is no autotuning."""
        tuned = self.autotune and target.attached
        return NO_AUTOTUNING if target.kind == "cuda" and not tuned else {}


@dataclass
class Measured:
    """One variant, its compilation by XLA, and the raw samples; None for a figure that is not available."""

    variant: Variant
    compiled: Compiled
    placed: Sequence[Any]
    device_check: Verdict | None = None
    allocator_peak_bytes: int | None = None
    wall_us: Sequence[float] = ()
    wall_without_graphs_us: Sequence[float] | None = None
    device: DeviceTime = field(default_factory=DeviceTime)
    energy_j: float | None = None
    counters: Sequence[KernelCounters] | None = None
    before: DeviceState | None = None
    after: DeviceState | None = None

    @property
    def executable(self) -> Executable:
        """The executable that is run."""
        assert self.compiled.executable is not None
        return self.compiled.executable

    def run(self) -> None:
        """Run once and wait for the device."""
        jax.block_until_ready(self.executable(self.placed))


@dataclass(frozen=True)
class Ready:
    """All that runs on the device: the variants that could be compiled, and the float64 truth if it could.

    ``ahead`` are the executables of the archive, by their keys. ``alone`` are the programs without CUDA graphs by
    name, as far as they were compiled beside the others; None for one that could not be.
    """

    variants: Sequence[Measured]
    truth: Runner | None
    ahead: Mapping[str, AheadOfTime] = field(default_factory=dict)
    alone: Mapping[str, Compiled | None] = field(default_factory=dict)


def _ran(one: Measured) -> bool:
    one.run()
    return True


def compiled(
    found: Preparation, target: Target, plan: MeasurementPlan, until: float, failures: list[Failure], progress: Progress
) -> Ready:
    """Compile for the attached ``target``, and place the arguments there, once for all.

    What has not begun at ``until`` is left out, but for the reference. Where several programs are compiled at a time,
    those without CUDA graphs are compiled here, too, after the others: one round of compiles instead of two."""
    asked = of_variants(found, target, plan.options(target))
    together = target.kind == "cuda" and plan.jobs > 1
    later = without_graphs(found.variants, plan.options(target)) if together else []
    made = compile_all([*asked, *later], found.executables, target, plan.jobs, until, failures, progress)
    alone = {each.name: one for each, one in zip(later, made[len(asked) :], strict=True)}
    made = made[: len(asked)]
    truth = made.pop() if found.truth is not None else None
    ready: list[Measured] = []
    for variant, one in zip(found.variants, made, strict=True):
        if one is not None:
            assert one.executable is not None
            arrays = ready[0].placed if ready else found.sample.arrays
            ready.append(Measured(variant, one, one.executable.place(arrays)))
    return Ready(ready, remembered(_in_float64(truth)) if truth else None, found.executables, alone)


def _in_float64(truth: Compiled) -> Runner:
    return lambda arrays: truth.run(*(converted(array, "float64") for array in arrays))


def first_runs(measured: Sequence[Measured], failures: list[Failure]) -> list[Measured]:
    """Run each once in ascending order of memory and read the allocator's peak; variants that cannot run are left out.

    The allocator reports only its high-water mark, so in this order every new peak belongs to the variant that ran
    last; where there is no new one (compiling needed more), the peak stays unknown. Of the bytes in use before, the
    variant's arguments count as its own.
    """
    ready: list[Measured] = []
    for one in sorted(measured, key=lambda each: peak_bytes(each.compiled.memory)):
        device = one.executable.devices[0]
        before = allocator_bytes(device)
        if attempt(one.variant.name, "run", partial(_ran, one), failures) is None:
            continue
        after = allocator_bytes(device)
        if before is not None and after is not None and after[1] > before[1]:
            one.allocator_peak_bytes = after[1] - before[0] + one.compiled.memory.argument_bytes
        ready.append(one)
    return [one for one in measured if any(one is each for each in ready)]


def check_on_device(
    measured: Sequence[Measured], sample: Sample, truth: Runner, failures: list[Failure], *, decides: bool
) -> list[Measured]:
    """The variants whose results on the device, at full size, are as near to float64 truth as the reference's.

    ``truth`` is the source's own function in float64 on the same device. The check covers the executables that are
    timed, and so XLA's GPU compiler, its autotuner and the libraries.

    Where the program samples, one rounding can turn a walker's acceptance and everything after it, so among a thousand
    walkers some differ between two correct programs: there the verdict is recorded and reported, and does not decide.
    """
    reference = measured[0]
    kept = []
    with jax.default_device(reference.executable.devices[0]):
        if attempt(reference.variant.name, TRUTH, lambda: truth(sample.arrays), failures) is None:
            return list(measured)  # out of memory, say: the check at few walkers has to suffice, and the record says so
        original = remembered(_runner(reference))
        for one in measured:
            compared = partial(_compared, one, sample, truth, original)
            verdict = attempt(one.variant.name, "check on the device", compared, failures)
            if verdict is None:
                continue
            one.device_check = verdict
            if verdict.passed or not decides:
                kept.append(one)
            if not verdict.passed:
                words = f"{verdict.verdict}: {verdict.worst or verdict.reason}"
                failures.append(Failure(one.variant.name, "check on the device", words))
    return kept


def time_all(
    measured: Sequence[Measured], target: Target, plan: MeasurementPlan, until: float, nvml: Nvml | None,
    failures: list[Failure], progress: Progress, ready: Ready | None = None,
) -> None:  # fmt: skip
    """Fill in wall time, device time, wall time without CUDA graphs, energy, and the device's state, in this order; but
    for wall time, what has not begun at ``until`` is left out."""
    in_time = partial(_in_time, until=until, failures=failures, progress=progress)
    progress(f"wall time: {plan.repeats} interleaved rounds of {len(measured)}")
    _time_walls(measured, plan, nvml)
    alone = {one.variant.name: one for one in measured}
    if target.kind == "cuda":
        alone = _alone(measured, target, plan, until, failures, progress, ready or Ready(measured, None))
    traceable = [one for one in measured if one.variant.name in alone]
    for one in in_time("trace", traceable):
        again = alone[one.variant.name]
        one.device = device_time(trace_runs(again.run, plan.runs, again.compiled.module.name), again.compiled)
        if one.device.problem:
            failures.append(Failure(one.variant.name, "trace", one.device.problem))
    if target.kind == "cuda":
        begun = in_time("wall time without CUDA graphs", traceable)
        runs = {one.variant.name: alone[one.variant.name].run for one in begun}
        samples = interleaved(runs, plan.repeats) if runs else {}
        for one in measured:
            one.wall_without_graphs_us = samples.get(one.variant.name)
    for one in in_time("energy", measured if nvml else ()):
        assert nvml is not None
        one.energy_j = energy_per_run(one.run, statistics.median(one.wall_us), nvml)
    for one in in_time("counters", sorted(measured, key=_launches) if plan.counters else ()):
        arrays, options = [*map(np.asarray, one.placed)], plan.options(target)
        limit_s = min(_COUNTERS_S, until - time.monotonic())
        ask = partial(counters_of, one.variant.program, arrays, target.name, limit_s, compile_options=options)
        one.counters = attempt(one.variant.name, "counters", ask, failures)


def _in_time(
    step: str, measured: Iterable[Measured], *, until: float, failures: list[Failure], progress: Progress
) -> Iterator[Measured]:
    """The variants in turn, as far as their ``step`` begins before ``until``; the others are failures."""
    for one in measured:
        if time.monotonic() > until:
            failures.append(Failure(one.variant.name, step, LEFT_OUT))
        else:
            progress(f"{step}: {one.variant.name}")
            yield one


def _time_walls(measured: Sequence[Measured], plan: MeasurementPlan, nvml: Nvml | None) -> None:
    """Fill in wall times of interleaved rounds, and the device's state before and after them."""
    if nvml:
        for one in measured:
            one.before = nvml.state()
    samples = interleaved({one.variant.name: one.run for one in measured}, plan.repeats)
    for one in measured:
        one.wall_us = samples[one.variant.name]
        one.after = nvml.state() if nvml else None


def _launches(one: Measured) -> int:
    return count_launches(one.compiled).dynamic_launches


def _alone(
    measured: Sequence[Measured], target: Target, plan: MeasurementPlan, until: float, failures: list[Failure],
    progress: Progress, ready: Ready,
) -> dict[str, Measured]:  # fmt: skip
    """The same programs compiled without CUDA graphs, by name. What cannot be compiled or run is left out."""
    missing = [one.variant for one in measured if one.variant.name not in ready.alone]
    asked = without_graphs(missing, plan.options(target))
    more = compile_all(asked, ready.ahead, target, plan.jobs, until, failures, progress)
    compiled_alone = {**ready.alone, **{each.name: made for each, made in zip(asked, more, strict=True)}}
    found: dict[str, Measured] = {}
    for one in measured:
        name = one.variant.name
        if (made := compiled_alone[name]) is None:
            continue
        again = replace(one, compiled=made)
        if attempt(name, ALONE, partial(_ran, again), failures):
            found[name] = again
    return found


def energy_per_run(run: Callable[[], None], run_us: float, nvml: Nvml, seconds: float | None = None) -> float | None:
    """Joules per run, from the GPU's own counter over ``seconds`` of runs (default two); None where it has none."""
    number = min(_MOST_ENERGY_RUNS, max(1, math.ceil((seconds or _ENERGY_S) * 1e6 / run_us)))
    before = nvml.state().energy_j
    for _ in range(number):
        run()
    after = nvml.state().energy_j
    return None if before is None or after is None else (after - before) / number


def _compared(one: Measured, sample: Sample, truth: Runner, original: Runner) -> Verdict:
    return compare(
        [sample],
        truth=truth,
        original=original,
        rewritten=_runner(one),
        rewritten_float64=truth,  # the float64 comparison was made at few walkers, where it is cheap
        walkers=None,
    )


def _runner(one: Measured) -> Runner:
    executable = one.executable
    return lambda arrays: [np.asarray(result) for result in executable(executable.place(arrays))]
