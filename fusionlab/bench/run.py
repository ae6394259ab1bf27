"""``bench``: make the variants, show them equal, measure them, and write one record.

source -> variants (lower, rewrite, check) -> compile -> first run -> check on the device -> time -> record
          beside other processes (turns)      alone
"""

from __future__ import annotations

import dataclasses
import datetime
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from fusionlab.bench import measurement
from fusionlab.bench.measurement import Measured, MeasurementPlan
from fusionlab.bench.turns import NO_TURNS, Turns
from fusionlab.bench.variants import FUSED, Failure, Variant, attempt, make_variants
from fusionlab.codegen.targets import Target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.equivalence.verdict_store import VerdictStore
from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program
from fusionlab.ledger.footprint import peak_bytes
from fusionlab.ledger.ledger import count_launches
from fusionlab.measure.device_time import DROPPED, condensed, kernel_table, measured_share
from fusionlab.measure.environment import environment
from fusionlab.measure.intervals import median, ratio_of_medians
from fusionlab.measure.nvml import open_nvml
from fusionlab.measure.peers import Peer
from fusionlab.measure.records import FORMAT
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.study import Circumstances, lower, measure
from fusionlab.workload import Workload

_MOST_COUNTERS = 50
_VERDICT = (
    "verdict", "max_abs_error", "tolerance", "max_abs_error_float64", "tolerance_float64", "walkers", "reason"
)  # fmt: skip


@dataclass(frozen=True)
class Request:
    """The request: what to compare and measure; ``store`` keeps verdicts, and ``check_only`` stops after them.

    ``pipelines`` are by the names of the variants that they make; ``turns`` are taken with other processes."""

    pipelines: Mapping[str, Sequence[Pass]] = field(default_factory=dict)
    peers: Mapping[str, Peer] = field(default_factory=dict)
    plan: MeasurementPlan = field(default_factory=MeasurementPlan)
    store: VerdictStore | None = None
    check_only: bool = False
    turns: Turns = NO_TURNS


def bench(source: Workload | Program, request: Request, given: Circumstances) -> dict[str, Any]:
    """The record of one run (``measure.records`` has its fields). InputError: the target is not attached, or the source
    itself cannot be lowered, compiled and run."""
    if not (given.target.attached or request.check_only):
        raise InputError(f"target {given.target.name} is not attached: nothing can be timed there; --device cpu or gpu")
    if isinstance(source, Program) and source.devices > 1:
        raise InputError(f"{source.provenance}: a program of {source.devices} devices; only one device is timed")
    started = datetime.datetime.now(datetime.UTC)
    with request.turns.preparing():
        variants, failures = make_variants(source, request.pipelines, request.peers, given, request.store)
    _require_reference(variants, failures)
    measured, log_psi = list[Measured](), None
    if not request.check_only:
        with request.turns.alone():
            measured, log_psi = _measured(source, variants, request, given, failures)
    passes = request.pipelines.get(FUSED)
    return {
        "format": FORMAT,
        "started_utc": started.isoformat(timespec="seconds"),
        "workload": _workload(source),
        "pipeline": print_pipeline(passes) if passes else "",
        **environment(given.target),
        "protocol": {**dataclasses.asdict(request.plan), "dropped": DROPPED},
        "check_walkers": given.check_walkers,
        "log_psi": log_psi,
        "variants": [variant_record(one, measured[0], given.target) for one in measured],
        "checked": [_checked(one) for one in variants],
        "failures": [asdict(failure) for failure in failures],
    }


def _log_psi(source: Workload | Program, given: Circumstances, failures: list[Failure]) -> dict[str, float] | None:
    """FLOPs and bytes accessed (models) of log|psi| alone, and the directions of the Laplacian; None for a program
    that is no local energy."""
    if isinstance(source, Program) or source.program != "local-energy":
        return None
    alone = source.rebuild(program="log-psi", laplacian=None)
    found = attempt("log-psi", "compile", lambda: measure(alone, lower(alone, given), given), failures)
    if found is None or found.flops is None:
        return None
    return {"directions": 3 * source.electrons, "flops": found.flops, "bytes_accessed": found.bytes_accessed}


def _checked(variant: Variant) -> dict[str, Any]:
    return {"name": variant.name, "verdict": variant.verdict.verdict, "pipeline": variant.pipeline}


def _measured(
    source: Workload | Program,
    variants: Sequence[Variant],
    request: Request,
    given: Circumstances,
    failures: list[Failure],
) -> tuple[list[Measured], dict[str, float] | None]:
    """The variants that compile, run and are correct on the device, timed, the reference first; and ``_log_psi``."""
    sample, reference = measurement.sample_for(source, request.plan.seed), variants[0]
    with ThreadPoolExecutor(max_workers=1) as beside:  # XLA's compiles leave the interpreter free
        of_truth = partial(measurement.truth_on_device, source, reference.program, given.target, sample)
        truth = beside.submit(attempt, reference.name, "truth in float64", of_truth, failures)
        log_psi = beside.submit(_log_psi, source, given, failures)
        measured = measurement.compile_all(variants, given.target, sample, failures, given.progress)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    measured = measurement.first_runs(measured, failures)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    if (known := truth.result()) is not None:  # else the check at few walkers has to suffice, and the record says so
        given.progress("check: on the device, at full size")
        measured = measurement.check_on_device(source, measured, sample, known, failures)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    nvml = open_nvml() if given.target.kind == "cuda" else None
    measurement.time_all(measured, given.target, request.plan, nvml, failures, given.progress)
    if request.plan.counters:
        measurement.count_all(measured, given.target, sample, failures, given.progress)
    return measured, log_psi.result()


def _require_reference(variants: Sequence[Variant], failures: Sequence[Failure], name: str = "") -> None:
    """InputError unless the first variant was made: everything is compared with it."""
    if not variants or (name and variants[0].name != name):
        reasons = "; ".join(f"{one.name}, {one.step}: {one.reason}" for one in failures[-1:])
        raise InputError(f"the source cannot be measured as it stands ({reasons})")


def _workload(source: Workload | Program) -> dict[str, Any]:
    if isinstance(source, Program):
        return {"title": source.name, "name": source.name, "file": source.provenance, "digest": source.digest}
    fields = ("title", "name", "molecule", "electrons", "program", "laplacian", "walkers", "dtype", "variant")
    return {name: getattr(source, name) for name in fields}


def variant_record(one: Measured, first: Measured, target: Target) -> dict[str, Any]:
    """The record of ``one``; ratios are to ``first``. Unknown figures are None."""
    counts = count_launches(one.compiled)
    flops, moved = program_cost(one.variant.program).flops, counts.bytes_accessed
    wall = statistics.median(one.wall_us)
    device_us = one.device.mean_us
    peaks = target.peaks
    rates = _rates(flops, moved, device_us)
    return {
        "name": one.variant.name,
        "what": one.variant.what,
        "pipeline": one.variant.pipeline,
        "verdict": one.variant.verdict.verdict,
        "equivalence": _verdict(one.variant.verdict),
        "device_check": _verdict(one.device_check) if one.device_check else None,
        "samples_us": _rounded(one.wall_us),
        "mean_us": statistics.fmean(one.wall_us),
        "median_us": wall,
        "median_interval_us": asdict(median(one.wall_us)),
        "ratio_to_first": wall / statistics.median(first.wall_us),
        "ratio_interval": asdict(ratio_of_medians(one.wall_us, first.wall_us, paired=True)),
        "samples_without_graphs_us": _rounded(one.wall_without_graphs_us),
        "device_time": _device_time(one, first),
        "overhead_ratio": overhead_ratio(one),
        "kernels": kernel_table(condensed(one.device.kernels)),
        "kernels_joined": measured_share(one.device.kernels),
        "static_launches": counts.static_launches,
        "dynamic_launches": counts.dynamic_launches,
        "dynamic_copies": counts.dynamic_copies,
        "flops": flops,
        "bytes_accessed": moved,
        **rates,
        "flops_of_peak": _share(rates["flops_per_s"], peaks.fp32_flops_per_s if peaks else None),
        "bandwidth_of_peak": _share(rates["bytes_per_s"], peaks.memory_bytes_per_s if peaks else None),
        "peak_bytes": one.allocator_peak_bytes,
        "assigned_bytes": peak_bytes(one.compiled.memory),
        "temp_bytes": one.compiled.memory.temp_bytes,
        "compile_s": one.compiled.compile_s,
        "lower_s": one.variant.lower_s,
        "rewrite_s": one.variant.rewrite_s,
        "stablehlo_ops": one.variant.program.ops,
        "compile_options": dict(one.compiled.options),
        "counters": None if one.counters is None else [asdict(found) for found in one.counters[:_MOST_COUNTERS]],
        "energy_j": one.energy_j,
        "energy_delay_js": None if one.energy_j is None else one.energy_j * wall * 1e-6,
        "state_before": asdict(one.before) if one.before else None,
        "state_after": asdict(one.after) if one.after else None,
    }


def overhead_ratio(one: Measured) -> float | None:
    """1 - kernel time / total time, as in the paper: the share of the host, copies and waiting.

    Both without CUDA graphs where the two can be told apart, because a trace has none; kernel time is the union. None
    without a trace, and where traced kernels took longer than an untraced run (the CPU, where tracing a thunk costs as
    much as a small one).
    """
    if not one.device.union_us:
        return None
    total = one.wall_without_graphs_us or one.wall_us
    ratio = 1 - statistics.median(one.device.union_us) / statistics.median(total)
    return ratio if ratio >= 0 else None


def _device_time(one: Measured, first: Measured) -> dict[str, Any]:
    found, other = one.device, first.device
    document = found.to_json()
    for name in ("sum_us", "union_us", "copies_us"):
        document[name] = _rounded(document[name])
    ratio = None
    if found.mean_us is not None and other.mean_us is not None:
        ratio = found.mean_us / other.mean_us
    interval = None
    if found.sum_us and other.sum_us:
        interval = asdict(ratio_of_medians(found.sum_us, other.sum_us, paired=False))
    return {**document, "ratio_to_first": ratio, "ratio_interval": interval}


def _rates(flops: float, moved: int, device_us: float | None) -> dict[str, float | None]:
    """Achieved rates over the device's time; FLOPs and bytes are fusionlab's rules."""
    if not device_us:
        return {"flops_per_s": None, "bytes_per_s": None}
    return {"flops_per_s": flops / device_us * 1e6, "bytes_per_s": moved / device_us * 1e6}


def _share(value: float | None, peak: float | None) -> float | None:
    return value / peak if value is not None and peak else None


def _verdict(verdict: Verdict) -> dict[str, Any]:
    document = verdict.to_json()
    return {name: document[name] for name in _VERDICT}


def _rounded(samples: Sequence[float] | None) -> list[float] | None:
    return None if samples is None else [round(one, 3) for one in samples]
