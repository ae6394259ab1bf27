"""``bench``: make the variants, show them equal, measure them, and write one record.

source -> variants (lower, rewrite, check) -> compile -> first run -> check on the device -> time -> record
          without the device (``prepared``)      with it
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from fusionlab.bench import measurement
from fusionlab.bench.measurement import Measured, MeasurementPlan, Ready, compiled
from fusionlab.bench.prepared import Preparation
from fusionlab.bench.variants import Failure, Variant, last_of
from fusionlab.codegen.compile import versions
from fusionlab.codegen.targets import Target
from fusionlab.equivalence.verdict import Verdict
from fusionlab.errors import InputError
from fusionlab.hlo.cost import program_cost
from fusionlab.ledger.footprint import peak_bytes
from fusionlab.ledger.ledger import count_launches
from fusionlab.measure.device_time import DROPPED, condensed, kernel_table, measured_share
from fusionlab.measure.environment import environment
from fusionlab.measure.intervals import median, ratio_of_medians
from fusionlab.measure.nvml import open_nvml
from fusionlab.measure.records import FORMAT
from fusionlab.study import Progress

_MOST_COUNTERS = 50
_VERDICT = (
    "verdict", "max_abs_error", "tolerance", "max_abs_error_float64", "tolerance_float64", "walkers", "reason"
)  # fmt: skip


def bench(
    prepare_it: Callable[[], Preparation],
    target: Target,
    plan: MeasurementPlan,
    progress: Progress,
    *,
    verdicts_only: bool = False,
) -> dict[str, Any]:
    """The record of one run (``measure.records`` has its fields) of what ``prepare_it`` makes or reads.

    InputError: the target is not attached or of another platform, or the source itself cannot be compiled and run."""
    if not (target.attached or verdicts_only):
        raise InputError(f"target {target.name} is not attached: nothing can be timed there; --device cpu or gpu")
    started = datetime.datetime.now(datetime.UTC)
    until = time.monotonic() + (math.inf if plan.time_limit is None else plan.time_limit)
    found = prepare_it()
    found.require_platform(target)
    if (others := found.prepared_with["versions"]["jax"]) != versions():
        progress(f"prepared with {others}, measured with {versions()}")
    failures, measured = list(found.failures), list[Measured]()
    if not verdicts_only:
        ready = compiled(found, target, plan, until, failures, progress)
        measured = _measured(found, ready, target, plan, until, failures, progress)
    return {
        "format": FORMAT,
        "started_utc": started.isoformat(timespec="seconds"),
        "workload": found.workload,
        "pipeline": found.pipeline,
        **environment(target),
        "protocol": {**dataclasses.asdict(plan), "seed": found.seed, "dropped": DROPPED},
        "check_walkers": found.check_walkers,
        "prepared_with": found.prepared_with,
        "log_psi": found.log_psi if measured else None,
        "variants": [variant_record(one, measured[0], target) for one in measured],
        "checked": [_checked(one) for one in found.variants],
        "failures": [asdict(failure) for failure in failures],
    }


def _checked(variant: Variant) -> dict[str, Any]:
    return {"name": variant.name, "verdict": variant.verdict.verdict, "pipeline": variant.pipeline}


def _measured(
    found: Preparation,
    ready: Ready,
    target: Target,
    plan: MeasurementPlan,
    until: float,
    failures: list[Failure],
    progress: Progress,
) -> list[Measured]:
    """The variants that run and are correct on the device, timed; the reference first."""
    name = found.variants[0].name
    _require_reference(name, ready.variants, failures)
    measured = measurement.first_runs(ready.variants, failures)
    _require_reference(name, measured, failures)
    if ready.truth is not None:  # else the check at few walkers has to suffice, and the record says so
        progress("check: on the device, at full size")
        decides = not found.samples_walkers
        measured = measurement.check_on_device(measured, found.sample, ready.truth, failures, decides=decides)
    _require_reference(name, measured, failures)
    nvml = open_nvml() if target.kind == "cuda" else None
    measurement.time_all(measured, target, plan, until, nvml, failures, progress, ready)
    return measured


def _require_reference(name: str, measured: Sequence[Measured], failures: Sequence[Failure]) -> None:
    """InputError, with the last failure of the reference ``name``, unless it is the first of ``measured``."""
    if not measured or measured[0].variant.name != name:
        raise InputError(f"the source cannot be measured as it stands ({last_of(name, failures)})")


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
        "overhead_ratio": overhead_ratio(one, target),
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
        "compiled_ahead": one.compiled.from_cache,
        "counters": None if one.counters is None else [asdict(found) for found in one.counters[:_MOST_COUNTERS]],
        "energy_j": one.energy_j,
        "energy_delay_js": None if one.energy_j is None else one.energy_j * wall * 1e-6,
        "state_before": asdict(one.before) if one.before else None,
        "state_after": asdict(one.after) if one.after else None,
    }


def overhead_ratio(one: Measured, target: Target) -> float | None:
    """1 - kernel time / total time, as in the paper: the share of the host, copies and waiting.

    Both without CUDA graphs, because a trace has none; kernel time is the union. None without either, and where traced
    kernels took longer than an untraced run (the CPU, where tracing a thunk costs as much as a small one).
    """
    if not one.device.union_us:
        return None
    total = one.wall_us if target.kind == "cpu" else one.wall_without_graphs_us
    if not total:
        return None
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
