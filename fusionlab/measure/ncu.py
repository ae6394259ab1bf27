"""Hardware counters of kernels through NVIDIA Nsight Compute (``ncu``), where it is on the PATH (the paper's Fig. 6).

    python -m fusionlab.measure.ncu PROGRAM.mlirbc INPUTS.npz gpu|cpu OPTIONS

is the process that is profiled: it compiles the program, runs it once, and once more between ``cuProfilerStart`` and
``cuProfilerStop``. Kernels are launched one by one (no CUDA graphs). ``ncu`` replays every kernel many times, so it
gets a run of its own, never a timed one. Its CSV is read (``--csv --page raw``: one line per kernel, one column per
metric, a second header line with units), with the metric names of the Nsight Compute documentation ("Metrics Decoder"
and "Metrics Reference").
"""

from __future__ import annotations

import csv
import ctypes
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.subprocesses import Running, module_command

WITHOUT_GRAPHS: dict[str, str | int | bool] = {"xla_gpu_enable_command_buffer": ""}
"""Compile options under which every kernel is launched by itself."""
METRICS = {
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm_throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1_throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "tensor_pipe": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
}
"""Field of ``KernelCounters`` to the metric that ``ncu`` knows it by, in percent."""
DURATION = "gpu__time_duration.sum"
_NANOSECONDS = {"n": 1.0, "u": 1e3, "m": 1e6, "s": 1e9}  # by the first letter of ncu's word: "ns" or "nsecond"


@dataclass(frozen=True)
class KernelCounters:
    """Means over the launches of one kernel, weighted by their time; shares from 0 to 1, None where not reported.

    ``memory_throughput`` is the largest of all levels of memory, ``dram_throughput`` and ``l1_throughput`` are of two
    of them: a kernel that reads again what caches hold has little of the first and much of the second.
    """

    name: str
    launches: int
    us: float
    achieved_occupancy: float | None
    sm_throughput: float | None
    memory_throughput: float | None
    dram_throughput: float | None
    l1_throughput: float | None
    l2_hit_rate: float | None
    tensor_pipe: float | None


def counters_of(
    program: Program,
    arrays: Sequence[np.ndarray],
    target: str,
    limit_s: float = 600.0,
    *,
    compile_options: Mapping[str, str | int | bool] | None = None,
) -> list[KernelCounters]:
    """The counters of every kernel of one run, slowest first; compiled by ``compile_options``, without CUDA graphs.

    InputError: there is no ``ncu``, it may not read the counters (that needs a permission), or it fails.
    """
    if (ncu := shutil.which("ncu")) is None:
        raise InputError("ncu (NVIDIA Nsight Compute) is not on the PATH: no hardware counters")
    options = ["--csv", "--page", "raw", "--metrics", ",".join([*METRICS.values(), DURATION])]
    options += ["--clock-control", "none"]  # at the clocks of the timed runs, and the card stays as it is
    with tempfile.TemporaryDirectory(prefix="fusionlab-counters-") as folder:
        path, inputs = Path(folder) / "program.mlirbc", Path(folder) / "inputs.npz"
        path.write_bytes(program.bytecode)
        np.savez(inputs, *arrays)
        asked = json.dumps(dict(compile_options or {}))
        command, environment = module_command(__name__, [str(path), str(inputs), target, asked])
        ended = Running([ncu, *options, "--profile-from-start", "off", *command], environment, limit_s).wait()
    output = ended.output.decode("utf-8", "replace")
    if ended.exit_code is None:
        raise InputError(f"ncu did not finish within {limit_s:.0f} s")
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
    scale = _NANOSECONDS.get(unit[DURATION][:1], 1.0) / 1e3
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


def main(arguments: list[str]) -> None:
    """Compile, run once, and run once more between the marks."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    import jax

    from fusionlab.codegen.compile import compile_program
    from fusionlab.codegen.targets import load_target

    target = load_target(arguments[2])
    on_gpu = target.kind == "cuda"
    options = json.loads(arguments[3]) | (WITHOUT_GRAPHS if on_gpu else {})
    executable = compile_program(Program.from_file(arguments[0]), target, options=options).executable
    assert executable is not None
    with np.load(arguments[1], allow_pickle=False) as stored:
        placed = executable.place([stored[f"arr_{at}"] for at in range(len(stored.files))])
    jax.block_until_ready(executable(placed))
    profiled(lambda: jax.block_until_ready(executable(placed)), ctypes.CDLL("libcuda.so.1") if on_gpu else None)


def profiled(run: Callable[[], object], driver: Any | None) -> None:
    """``run`` between the marks of the CUDA ``driver`` (None: without marks).

    The marks need a current context, and XLA leaves this thread none: its own, the device's primary one, is made
    current. SystemExit with the code of the CUDA error, where a mark fails: nothing would be profiled.
    """
    if driver is None:
        run()
        return
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _succeeds("cuDeviceGet", driver.cuDeviceGet(ctypes.byref(device), 0))
    _succeeds("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
    _succeeds("cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    _succeeds("cuProfilerStart", driver.cuProfilerStart())
    run()
    _succeeds("cuProfilerStop", driver.cuProfilerStop())


def _succeeds(what: str, code: int) -> None:
    if code:
        sys.exit(f"{what} returned the CUDA error {code}")


if __name__ == "__main__":
    main(sys.argv[1:])
