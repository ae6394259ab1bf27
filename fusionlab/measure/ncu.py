"""Hardware counters of kernels through NVIDIA Nsight Compute (``ncu``), where it is on the PATH (the paper's Fig. 6).

``ncu`` replays every kernel many times, so it gets a run of its own, never a timed one. The input is its CSV (``--csv
--page raw``: one line per kernel, one column per metric, a second header line with units), with the metric names of the
Nsight Compute documentation ("Metrics Decoder" and "Metrics Reference").
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fusionlab.errors import InputError
from fusionlab.subprocesses import Running, module_command

METRICS = {
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm_throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "tensor_pipe": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
}
"""Field of ``KernelCounters`` to the metric that ``ncu`` knows it by, in percent."""
DURATION = "gpu__time_duration.sum"
_NANOSECONDS = {
    "nsecond": 1.0,
    "ns": 1.0,
    "usecond": 1e3,
    "us": 1e3,
    "msecond": 1e6,
    "ms": 1e6,
    "second": 1e9,
    "s": 1e9,
}


@dataclass(frozen=True)
class KernelCounters:
    """Means over the launches of one kernel, weighted by their time; shares from 0 to 1, None where not reported."""

    name: str
    launches: int
    us: float
    achieved_occupancy: float | None
    sm_throughput: float | None
    memory_throughput: float | None
    l2_hit_rate: float | None
    tensor_pipe: float | None


def profile(module: str, arguments: Sequence[str], time_limit_s: float) -> list[KernelCounters]:
    """The counters of the kernels between ``cuProfilerStart`` and ``cuProfilerStop`` of ``python -m module arguments``,
    slowest first.

    InputError: there is no ``ncu``, it may not read the counters (that needs a permission), or it fails.
    """
    if (ncu := shutil.which("ncu")) is None:
        raise InputError("ncu (NVIDIA Nsight Compute) is not on the PATH: no hardware counters")
    metrics = ",".join([*METRICS.values(), DURATION])
    command, environment = module_command(module, arguments)
    options = ["--csv", "--page", "raw", "--metrics", metrics, "--profile-from-start", "off"]
    ended = Running([ncu, *options, *command], environment, time_limit_s).wait()
    output = ended.output.decode("utf-8", "replace")
    if ended.exit_code is None:
        raise InputError(f"ncu did not finish within {time_limit_s:.0f} s")
    if "ERR_NVGPUCTRPERM" in output + ended.errors:
        raise InputError("ncu may not read the GPU's counters (ERR_NVGPUCTRPERM): run it as root")
    if ended.exit_code:
        raise InputError(f"ncu failed: {ended.last_line or ['?', *output.splitlines()][-1]}")
    return read_counters(output.splitlines())


def read_counters(lines: Iterable[str]) -> list[KernelCounters]:
    """The counters in ``ncu``'s raw CSV; lines before the table are skipped. InputError when there is no table."""
    text = list(lines)
    start = next((at for at, line in enumerate(text) if line.startswith('"ID"')), None)
    if start is None:
        raise InputError('no table of Nsight Compute: its raw CSV starts with a column "ID"')
    header, units, *rows = csv.reader(text[start:])
    unit = dict(zip(header, units, strict=False))
    if DURATION not in unit or "Kernel Name" not in unit:
        raise InputError(f"the table of Nsight Compute has no column {DURATION}")
    kernels: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        fields = dict(zip(header, row, strict=False))
        kernels.setdefault(fields["Kernel Name"], []).append(fields)
    scale = _NANOSECONDS.get(unit[DURATION], 1.0) / 1e3
    found = [_counters(name, launches, scale) for name, launches in kernels.items()]
    return sorted(found, key=lambda one: -one.us)


def _counters(name: str, launches: Sequence[dict[str, str]], us_per_unit: float) -> KernelCounters:
    times = [(_number(one.get(DURATION)) or 0.0) * us_per_unit for one in launches]
    shares = {field: _mean([_number(one.get(metric)) for one in launches], times) for field, metric in METRICS.items()}
    return KernelCounters(name, len(launches), sum(times), **shares)


def _mean(percent: Sequence[float | None], weights: Sequence[float]) -> float | None:
    pairs = [(value, weight) for value, weight in zip(percent, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total / 100 if total else None


def _number(text: str | None) -> float | None:
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
