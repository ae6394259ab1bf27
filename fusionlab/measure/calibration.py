"""The ledger's model against measured kernels: a fit per family, its error, and what it predicts for other figures.

The model of one launch site, all its launches together, is a roofline with two numbers per family fitted to what was
measured on one device:

    t = launches * overhead + max(FLOPs / peak, bytes / bandwidth) / efficiency

``overhead`` is the fixed cost of a launch, ``efficiency`` the share of the roof that the family reaches beyond it. Peak
and bandwidth are those of the device's spec, or where it has none (the CPU) the best rates that any of its kernels
achieved. The fit is least squares with weights 1 / measured time and no negative number. It leaves the sum slightly
low. Weights by the fitted time would fix that, but then a single kernel tens of times slower than its family (batched
triangular solves on a busy CPU, say) dominates the fit.

A prediction for other hardware keeps overheads and efficiencies and changes the roofs. It is no better than the error
stated beside it, which is an error on the measured hardware.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fusionlab.codegen.targets import Target, load_target
from fusionlab.errors import InputError
from fusionlab.ledger.time.model import Ceilings, ceilings_of
from fusionlab.measure.comparison import kernels_of
from fusionlab.measure.device_time import MeasuredKernel
from fusionlab.measure.records import Record

_LEAST_SHARE = 0.01
"""Share of a program's time below which a kernel does not set the ceilings of a device without a spec."""


@dataclass(frozen=True)
class FamilyFit:
    """One family: microseconds per launch, the share of the roof reached beyond it (None: no work to tell by), what was
    measured and the fitted times of the same kernels, and its error kernel by kernel, weighted by time."""

    family: str
    overhead_us: float
    efficiency: float | None
    launches: float
    measured_us: float
    roofline_us: float
    fitted_us: float
    kernel_error: float

    def time_us(self, launches: float, roof_us: float) -> float:
        """The modelled time of ``launches`` launches with this work."""
        return launches * self.overhead_us + (roof_us / self.efficiency if self.efficiency else 0.0)


@dataclass(frozen=True)
class Calibration:
    """The fits of one device. ``error`` is |fitted - measured| / measured of whole programs, on average, each fitted
    without the records of its own workload (``held_out``) where there are others, else with them."""

    device: str
    platform: str
    ceilings: Ceilings
    fits: Mapping[str, FamilyFit]
    programs: int
    error: float
    held_out: bool

    def time_us(self, kernels: Iterable[MeasuredKernel], ceilings: Ceilings | None = None) -> float:
        """The modelled time of a program under ``ceilings`` (its own device's unless given). A family without a fit
        counts by its roofline."""
        return _time_us(self.fits, kernels, ceilings or self.ceilings)

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class WhatIf:
    """Figures of other hardware; None leaves the device's. ``launch_us`` is the host's gap between two launches."""

    label: str
    bandwidth_gb_s: float | None = None
    tflops: float | None = None
    sms: int | None = None
    clock_ghz: float | None = None
    launch_us: float | None = None
    target: Target | None = None


def calibrate(records: Sequence[Record]) -> Calibration:
    """The fit to all variants of ``records``, which are of one device. InputError: no kernels were measured."""
    named = [(record["workload"]["name"], kernels_of(one)) for record in records for one in record["variants"]]
    programs = [(name, usable) for name, kernels in named if (usable := _usable(kernels))]
    if not programs:
        raise InputError("no kernels were measured: there is nothing to calibrate the model with")
    device = records[0]["device"]
    ceilings = _ceilings(records[0], [kernels for _, kernels in programs])
    held_out = len({name for name, _ in programs}) > 1
    errors = []
    for name, kernels in programs:
        fits = _fits([each for other, each in programs if other != name or not held_out], ceilings)
        fitted, measured = _time_us(fits, kernels, ceilings), sum(one.measured_us for one in kernels)
        errors.append(abs(fitted - measured) / measured)
    fits = _fits([kernels for _, kernels in programs], ceilings)
    return Calibration(
        device["name"], device["platform"], ceilings, fits, len(programs), float(np.mean(errors)), held_out
    )


def predicted_us(
    calibration: Calibration, kernels: Sequence[MeasuredKernel], what_if: WhatIf
) -> tuple[float, float | None]:
    """(device time, wall time) of a program on other hardware; wall time is None without ``launch_us``.

    Wall time is device time plus the gaps between launches: launches one by one, as without CUDA graphs. InputError
    when a GPU is predicted from a CPU.
    """
    if calibration.platform == "cpu" and what_if.target is not None:
        raise InputError(
            f"{calibration.device}: efficiencies that were measured on a CPU say nothing about {what_if.label}"
        )
    usable = _usable(kernels)
    device = calibration.time_us(usable, changed(calibration.ceilings, what_if))
    launches = sum(one.dynamic_launches for one in usable)
    return device, None if what_if.launch_us is None else device + launches * what_if.launch_us


def changed(ceilings: Ceilings, what_if: WhatIf) -> Ceilings:
    """``ceilings`` with the figures of ``what_if``. SM count and clock scale the peak, and the peak of TF32 scales with
    it; InputError without a spec that has both."""
    if what_if.target is not None:
        ceilings = ceilings_of(what_if.target, ceilings.tf32_flops_per_s != ceilings.flops_per_s) or ceilings
    flops, moved = ceilings.flops_per_s, ceilings.bytes_per_s
    in_tf32 = (ceilings.tf32_flops_per_s or flops) / flops
    if what_if.sms is not None or what_if.clock_ghz is not None:
        name = ceilings.source.removeprefix("spec of ")
        now = load_target(name).peaks if ceilings.source.startswith("spec of ") else None
        if now is None:
            raise InputError("sms and clock_ghz scale a spec's peak, and this device has none: give tflops")
        flops *= (what_if.sms or now.cores) / now.cores * (what_if.clock_ghz or now.clock_ghz) / now.clock_ghz
    if what_if.tflops is not None:
        flops = what_if.tflops * 1e12
    if what_if.bandwidth_gb_s is not None:
        moved = what_if.bandwidth_gb_s * 1e9
    return Ceilings(flops, moved, what_if.label, tf32_flops_per_s=in_tf32 * flops)


def parse_what_if(text: str) -> WhatIf:
    """``h200``, ``sms=132,bandwidth_gb_s=4800``, or both: ``a100,bandwidth_gb_s=2000``. InputError on anything else."""
    values: dict[str, Any] = {}
    for word in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in word.partition("="))
        name, given = (key, _figure(key, value)) if equals else ("target", _device(key))
        if name in values:
            raise InputError(f"--what-if {text}: there are two of {name}; give one")
        values[name] = given
    if not values:
        raise InputError("--what-if needs figures: a target's name, or bandwidth_gb_s=...,sms=...,launch_us=...")
    return WhatIf(text, **values)


_RANGES: Mapping[str, tuple[type[float], float, float]] = {
    "bandwidth_gb_s": (float, 1, 1e6),
    "tflops": (float, 1e-3, 1e9),
    "sms": (int, 1, 100_000),
    "clock_ghz": (float, 0.01, 100),
    "launch_us": (float, 1e-3, 1e9),
}
"""The type of each figure, the least and the most that hardware can have."""


def _figure(key: str, value: str) -> float:
    if key not in _RANGES:
        raise InputError(f"--what-if: unknown figure {key!r}; there are {', '.join(_RANGES)}, and names of targets")
    kind, least, most = _RANGES[key]
    try:
        found = kind(value)
    except ValueError:
        raise InputError(f"--what-if: {key}={value} is not a number") from None
    if not least <= found <= most:
        raise InputError(f"--what-if: {key} must be from {least:,} to {most:,.0f}, not {value}")
    return found


def _device(name: str) -> Target:
    target = load_target(name)
    if target.peaks is None:
        raise InputError(f"--what-if {name}: that device has no spec")
    return target


def _time_us(fits: Mapping[str, FamilyFit], kernels: Iterable[MeasuredKernel], roofs: Ceilings) -> float:
    total = 0.0
    for one in kernels:
        roof_us, fit = roofs.least_us(one.flops, one.bytes, one.tf32_flops), fits.get(one.family)
        total += fit.time_us(one.dynamic_launches, roof_us) if fit else roof_us
    return total


def _usable(kernels: Iterable[MeasuredKernel]) -> list[MeasuredKernel]:
    """The kernels that are in the ledger and ran."""
    return [one for one in kernels if one.dynamic_launches and one.measured_us > 0]


def _ceilings(record: Record, programs: Sequence[Sequence[MeasuredKernel]]) -> Ceilings:
    tf32 = record.get("flags", {}).get("NVIDIA_TF32_OVERRIDE") != "0"
    if (name := record["device"].get("spec")) and (spec := ceilings_of(load_target(name), tf32)):
        return spec
    weighty = [
        one
        for kernels in programs
        for one in kernels
        if one.measured_us >= _LEAST_SHARE * sum(each.measured_us for each in kernels)
    ]
    flops = max((one.flops / one.measured_us for one in weighty), default=0.0)
    moved = max((one.bytes / one.measured_us for one in weighty), default=0.0)
    if not flops or not moved:
        raise InputError("no measured kernel computes and moves anything: there is no roof to calibrate against")
    roofs = Ceilings(1e6 * flops, 1e6 * moved, "best rates that any kernel achieved", measured=True)
    return roofs if tf32 else dataclasses.replace(roofs, tf32_flops_per_s=roofs.flops_per_s)


def _fits(programs: Iterable[Sequence[MeasuredKernel]], ceilings: Ceilings) -> dict[str, FamilyFit]:
    """Family to its fit, those with most time first."""
    families: dict[str, list[MeasuredKernel]] = defaultdict(list)
    for one in itertools.chain.from_iterable(programs):
        families[one.family].append(one)
    fits = [_fit(family, kernels, ceilings) for family, kernels in families.items()]
    return {fit.family: fit for fit in sorted(fits, key=lambda fit: -fit.measured_us)}


def _fit(family: str, kernels: Sequence[MeasuredKernel], ceilings: Ceilings) -> FamilyFit:
    from scipy.optimize import nnls  # here: it takes half a second to import

    measured = np.array([one.measured_us for one in kernels])
    launches = np.array([float(one.dynamic_launches) for one in kernels])
    roofs = np.array([ceilings.least_us(one.flops, one.bytes, one.tf32_flops) for one in kernels])
    root = np.sqrt(1 / measured)
    (overhead, slope), _ = nnls(np.stack([launches, roofs], axis=1) * root[:, None], measured * root)
    fitted = overhead * launches + slope * roofs
    return FamilyFit(
        family=family,
        overhead_us=float(overhead),
        efficiency=1 / float(slope) if slope else None,
        launches=float(launches.sum()),
        measured_us=float(measured.sum()),
        roofline_us=float(roofs.sum()),
        fitted_us=float(fitted.sum()),
        kernel_error=float(np.abs(fitted - measured).sum() / measured.sum()),
    )
