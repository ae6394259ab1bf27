"""``bench``: make the variants, show them equal, measure them, and write one record.

source -> variants (lower, rewrite, check) -> compile -> first run -> check on the device -> time -> record
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fusionlab.bench import measurement
from fusionlab.bench.failures import Failure
from fusionlab.bench.measurement import Measured, MeasurementPlan
from fusionlab.bench.variants import Variant, make_variants
from fusionlab.bench.written import variant_record
from fusionlab.equivalence.verdict_store import VerdictStore
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.measure.device_time import DROPPED
from fusionlab.measure.environment import environment, jax_device
from fusionlab.measure.nvml import open_nvml
from fusionlab.measure.peers import Peer
from fusionlab.measure.records import FORMAT
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import print_pipeline
from fusionlab.study import Circumstances
from fusionlab.workload import Workload


@dataclass(frozen=True)
class Request:
    """The request: what to compare and measure; ``store`` keeps verdicts, and ``check_only`` stops after them."""

    passes: Sequence[Pass] = ()
    peers: Mapping[str, Peer] = field(default_factory=dict)
    plan: MeasurementPlan = field(default_factory=MeasurementPlan)
    store: VerdictStore | None = None
    check_only: bool = False


def bench(source: Workload | Program, request: Request, given: Circumstances) -> dict[str, Any]:
    """The record of one run (``measure.records`` has its fields). InputError: the target is not attached, or the source
    itself cannot be lowered, compiled and run."""
    if not given.target.attached:
        raise InputError(f"target {given.target.name} is not attached: nothing can be timed there; --device cpu or gpu")
    started = datetime.datetime.now(datetime.UTC)
    made = make_variants(source, request.passes, request.peers, given, request.store)
    failures = list(made.failures)
    _require_reference(made.variants, failures)
    measured: list[Measured] = []
    if not request.check_only:
        measured = _measured(source, made.variants, request, given, failures)
    device = jax_device(given.target)
    return {
        "format": FORMAT,
        "started_utc": started.isoformat(timespec="seconds"),
        "workload": _workload(source),
        "pipeline": print_pipeline(request.passes) if request.passes else "",
        **environment(given.target, device),
        "protocol": {**dataclasses.asdict(request.plan), "dropped": DROPPED},
        "check_walkers": given.check_walkers,
        "variants": [variant_record(one, measured[0], given.target) for one in measured],
        "checked": [_checked(one) for one in made.variants],
        "failures": [asdict(failure) for failure in failures],
    }


def _checked(variant: Variant) -> dict[str, Any]:
    return {"name": variant.name, "verdict": variant.verdict.verdict, "pipeline": variant.pipeline}


def _measured(
    source: Workload | Program,
    variants: Sequence[Variant],
    request: Request,
    given: Circumstances,
    failures: list[Failure],
) -> list[Measured]:
    """The variants that compile, run and are correct on the device, timed; the reference first."""
    sample = measurement.sample_for(source, request.plan.seed)
    measured = measurement.compile_all(variants, given.target, sample, failures, given.progress)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    measured = measurement.first_runs(measured, failures)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    given.progress("check: on the device, at full size")
    measured = measurement.check_on_device(source, measured, sample, failures)
    _require_reference([one.variant for one in measured], failures, variants[0].name)
    nvml = open_nvml() if given.target.kind == "cuda" else None
    measurement.time_all(measured, given.target, request.plan, nvml, failures, given.progress)
    if request.plan.counters:
        measurement.count_all(measured, given.target, sample, failures, given.progress)
    return measured


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
