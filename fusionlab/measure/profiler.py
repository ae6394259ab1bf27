"""Events on the device and their durations, from JAX's profiler; the only file that knows the form of its traces.

Two shapes of trace are read (``jax.profiler.ProfileData``):

- a GPU: a plane ``/device:GPU:N`` with a line per stream (``Stream #13(Compute)``); every event is a kernel, a copy
  or a memset. Statistics ``hlo_op`` and ``hlo_module`` name the instruction that launched it, ``memcpy_details`` and
  ``memset_details`` mark what is no kernel. Other lines of the plane are derived from these and left out.
- the CPU: the plane ``/host:CPU`` with a line per thread; the events that have ``hlo_op`` are XLA's thunks, those of a
  loop lie inside the event of the loop, and ``run_id`` tells executions apart.

XLA does not launch CUDA graphs while a profiler is attached (unless ``xla_enable_command_buffers_during_profiling`` is
set), so these are the times of kernels launched one by one. The savings of graphs show in wall times only.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax

_RUN_MARK = "fusionlab run"
_DEVICE_PLANE = re.compile(r"/device:GPU:\d+$")
_STREAM = re.compile(r"Stream\b")
_COPY = re.compile(r"(?i)mem(cpy|set)")
_COPY_STATS = ("memcpy_details", "memset_details")


@dataclass(frozen=True)
class Event:
    """One event on the device; times in microseconds, ``start_us`` from the start of the trace.

    ``hlo_op`` is the HLO instruction that launched it ("" when the trace does not say); ``self_us`` excludes events
    nested in it (the CPU's loops); ``is_container`` is True if there are any. ``run`` is XLA's number of the execution.
    """

    hlo_op: str
    name: str
    start_us: float
    duration_us: float
    self_us: float
    is_copy: bool = False
    is_container: bool = False
    run: int | None = None

    @property
    def end_us(self) -> float:
        """The end of the event."""
        return self.start_us + self.duration_us


@dataclass(frozen=True)
class Trace:
    """The events of every run, in order; ``problem`` is the reason if there are none."""

    runs: tuple[tuple[Event, ...], ...]
    problem: str = ""


def trace_runs(run: Callable[[], None], runs: int, module: str) -> Trace:
    """Call ``run`` (which waits for the device) ``runs`` times under the profiler.

    ``module`` is the name of the HLO module that it executes; events of other modules are left out.
    """
    with tempfile.TemporaryDirectory(prefix="fusionlab-trace-") as folder:
        try:
            with _profiling(folder):
                for index in range(runs):
                    with jax.profiler.TraceAnnotation(f"{_RUN_MARK} {index}"):
                        run()
        except RuntimeError as error:
            return Trace((), f"the profiler failed: {str(error).splitlines()[0]}")
        found = sorted(Path(folder).rglob("*.xplane.pb"))
        if not found:
            return Trace((), "the profiler wrote no trace")
        with warnings.catch_warnings():
            # jaxlib 0.11 makes the types of its iterators when they are first used, on Python 3.12 with a warning;
            # where warnings are errors, that ends the process.
            warnings.simplefilter("ignore", DeprecationWarning)
            profile = jax.profiler.ProfileData.from_file(str(found[-1]))
            return split_runs(device_events(profile, module), run_windows(profile), runs)


def _profiling(folder: str) -> Any:
    """The profiler without Python tracing, which would dominate the trace and slow the runs down."""
    if not hasattr(jax.profiler, "ProfileOptions"):
        return jax.profiler.trace(folder)
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    return jax.profiler.trace(folder, profiler_options=options)


def device_events(profile: Any, module: str) -> list[Event]:
    """Every event of the devices of ``profile``, by start; on the CPU those of ``module``."""
    planes = list(profile.planes)
    gpu = [plane for plane in planes if _DEVICE_PLANE.match(plane.name)]
    if gpu:
        found = _of_module([pair for plane in gpu for line in _streams(plane) for pair in _of_stream(line)], module)
    else:
        cpu = [plane for plane in planes if plane.name == "/host:CPU"]
        found = [event for plane in cpu for line in plane.lines for event in _of_thread(line, module)]
    return sorted(found, key=lambda event: (event.start_us, -event.duration_us))


def run_windows(profile: Any) -> list[tuple[float, float]]:
    """(start, end) of every marked run in microseconds, on the host's clock, in order."""
    marks = [
        (event.start_ns / 1e3, (event.start_ns + event.duration_ns) / 1e3)
        for plane in profile.planes
        if plane.name.startswith("/host:")
        for line in plane.lines
        for event in line.events
        if event.name.startswith(_RUN_MARK)
    ]
    return sorted(marks)


def split_runs(events: Sequence[Event], windows: Sequence[tuple[float, float]], runs: int) -> Trace:
    """The events by run: by XLA's number of the execution; else as ``runs`` equal parts; else by the marks on the host.

    Every run launches the same kernels, so equal parts that hold the same instructions are the runs. Marks come last,
    because the device's clock only approximates the host's.
    """
    if not events:
        return Trace((), "the trace has no event of a device in it")
    numbers = list(dict.fromkeys(event.run for event in events))
    if None not in numbers and len(numbers) == runs:
        return Trace(tuple(tuple(event for event in events if event.run == number) for number in numbers))
    if len(events) % runs == 0:
        size = len(events) // runs
        parts = tuple(tuple(events[at : at + size]) for at in range(0, len(events), size))
        kinds = [Counter((event.hlo_op, event.name) for event in part) for part in parts]
        if all(kind == kinds[0] for kind in kinds):
            return Trace(parts)
    if len(windows) == runs:
        inside = tuple(
            tuple(event for event in events if start <= event.start_us + event.duration_us / 2 <= end)
            for start, end in windows
        )
        if all(inside):
            return Trace(inside)
    return Trace((), f"the {len(events)} events of the trace cannot be told apart into {runs} runs")


def _streams(plane: Any) -> Iterable[Any]:
    return [line for line in plane.lines if _STREAM.match(line.name)]


def _of_module(found: Sequence[tuple[Event, str]], module: str) -> list[Event]:
    """The events of ``module`` and those that name none; all of them where no event names it (it has another name)."""
    if all(name != module for _, name in found):
        return [event for event, _ in found]
    return [event for event, name in found if name in (module, "")]


def _of_stream(line: Any) -> Iterator[tuple[Event, str]]:
    """The events of one stream, each with the module that it names ("": none)."""
    for event in line.events:
        stats = _statistics(event)
        duration = event.duration_ns / 1e3
        copy = any(name in stats for name in _COPY_STATS) or _COPY.match(event.name) is not None
        op = str(stats.get("hlo_op", "")).rpartition("::")[2]
        found = Event(op, event.name, event.start_ns / 1e3, duration, duration, is_copy=copy)
        yield found, str(stats.get("hlo_module", "")).partition("(")[0]


def _of_thread(line: Any, module: str) -> Iterator[Event]:
    """XLA's thunks of one thread, with the time of nested events subtracted."""
    found = []
    for event in line.events:
        stats = _statistics(event)
        if "hlo_op" in stats and stats.get("hlo_module") == module:
            found.append((event.start_ns / 1e3, event.duration_ns / 1e3, str(stats["hlo_op"]), stats.get("run_id")))
    found.sort(key=lambda one: (one[0], -one[1]))
    inner, holds, open_ = [0.0] * len(found), [False] * len(found), list[int]()
    for index, (start, duration, _, _) in enumerate(found):
        while open_ and found[open_[-1]][0] + found[open_[-1]][1] < start + duration:
            open_.pop()
        if open_:
            inner[open_[-1]] += duration
            holds[open_[-1]] = True
        open_.append(index)
    for index, (start, duration, op, run) in enumerate(found):
        number = None if run is None else int(run)
        own = max(0.0, duration - inner[index])
        yield Event(op, op, start, duration, own, is_container=holds[index], run=number)


def _statistics(event: Any) -> dict[str, Any]:
    return {str(name): value for name, value in event.stats if name is not None}
