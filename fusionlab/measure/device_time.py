"""Device time of a program: its traced runs, joined to the ledger, so that every launch has measured microseconds.

The paper's protocol (Section III-A) is followed: 11 runs, the first dropped, the mean of 10; the time of a run is the
sum of its kernels' durations, without the host, copies and compilation. The union of the kernels' intervals, which
counts overlaps once, is recorded as well.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.ledger import launches
from fusionlab.measure.profiler import Event, Trace

RUNS, DROPPED = 11, 1
CONTROL = "control"
LEAST_SHARE = 0.002
"""Share of a program's time below which kernels are merged into one row per origin and family in a record."""


@dataclass(frozen=True)
class MeasuredKernel:
    """One launch site of the ledger with its measured time, per run of the program.

    ``measured_us`` is the mean over the kept runs of the time of all its launches; ``measured_launches`` how often it
    ran. FLOPs, bytes and ``model_us`` (None: no model) are the ledger's, of all its launches. A kernel that is not in
    the ledger has family ``unknown``; the loops of the CPU, whose own time is bookkeeping, have family ``control``.
    """

    name: str
    phase: str
    stage: str
    role: str
    family: str
    dynamic_launches: int
    measured_launches: float
    flops: int
    bytes: int
    model_us: float | None
    measured_us: float
    tf32_flops: int = 0


KERNEL_COLUMNS = tuple(one.name for one in dataclasses.fields(MeasuredKernel))
REQUIRED_COLUMNS = {one.name for one in dataclasses.fields(MeasuredKernel) if one.default is dataclasses.MISSING}
"""Those that every record has; others came later."""
_FIGURES = [name for name in KERNEL_COLUMNS if name not in ("name", "phase", "stage", "role", "family")]


@dataclass(frozen=True)
class DeviceTime:
    """Times of the traced runs, the first dropped; one sample per kept run, in microseconds.

    ``sum_us`` is the paper's definition: the kernels' durations added up. ``union_us`` counts overlapping time once.
    ``copies_us`` has the copies and memsets, which neither includes. ``problem`` is the reason if there are no samples.
    """

    sum_us: tuple[float, ...] = ()
    union_us: tuple[float, ...] = ()
    copies_us: tuple[float, ...] = ()
    launches: int | None = None
    kernels: tuple[MeasuredKernel, ...] = ()
    problem: str = ""

    @property
    def mean_us(self) -> float | None:
        """The paper's figure: the mean of ``sum_us``."""
        return statistics.fmean(self.sum_us) if self.sum_us else None

    def to_json(self) -> dict[str, Any]:
        """Everything but the kernels, which are a table of their own (``kernel_table``)."""
        fields = {one.name: getattr(self, one.name) for one in dataclasses.fields(self) if one.name != "kernels"}
        return {**fields, "mean_us": self.mean_us}


def device_time(trace: Trace, compiled: Compiled) -> DeviceTime:
    """The times of ``trace``, whose runs executed ``compiled``."""
    if trace.problem:
        return DeviceTime(problem=trace.problem)
    copies = frozenset(site.hlo_name for site in launches(compiled) if site.is_copy)
    runs = trace.runs[DROPPED:]
    kernels = [[event for event in run if not _is_copy(event, copies)] for run in runs]
    return DeviceTime(
        sum_us=tuple(sum(event.self_us for event in run) for run in kernels),
        union_us=tuple(union_us(run) for run in kernels),
        copies_us=tuple(sum(event.self_us for event in run if _is_copy(event, copies)) for run in runs),
        launches=round(statistics.median(sum(not event.is_container for event in run) for run in kernels)),
        kernels=tuple(join(launch_rows(compiled), kernels)),
    )


def union_us(events: Iterable[Event]) -> float:
    """The time during which at least one of ``events`` was running."""
    total, until = 0.0, float("-inf")
    for event in sorted(events, key=lambda one: one.start_us):
        total += max(0.0, event.end_us - max(event.start_us, until))
        until = max(until, event.end_us)
    return total


def join(rows: Sequence[LaunchRow], runs: Sequence[Sequence[Event]]) -> list[MeasuredKernel]:
    """Ledger and trace by the name of the HLO instruction, the slowest first; entries of only one are kept too.

    A kernel whose event does not name its instruction is found by its own name, which XLA derives from the
    instruction's. Rows of one name (an instruction reached from two loops) share its time by their launches.
    """
    spent, counted, containers = defaultdict[str, float](float), Counter[str](), set[str]()
    of_kernel = {re.sub(r"[.-]", "_", row.name): row.name for row in rows}
    for event in (event for run in runs for event in run):
        label = event.hlo_op or of_kernel.get(event.name, event.name)
        spent[label] += event.self_us / len(runs)
        counted[label] += 1
        if event.is_container:
            containers.add(label)
    of_name = Counter[str]()
    for row in rows:
        of_name[row.name] += row.dynamic_launches
    found = []
    for row in rows:
        if row.dynamic_launches or row.name in spent:
            share = row.dynamic_launches / of_name[row.name] if of_name[row.name] else 1.0
            facts = {name: getattr(row, name) for name in KERNEL_COLUMNS if not name.startswith("measured")}
            number, us = share * counted[row.name] / len(runs), share * spent[row.name]
            found.append(MeasuredKernel(**facts, measured_launches=number, measured_us=us))
    for label in sorted(spent.keys() - of_name.keys()):
        family = CONTROL if label in containers else "unknown"
        number = counted[label] / len(runs)
        found.append(MeasuredKernel(label, "", "", "", family, 0, number, 0, 0, None, spent[label]))
    return sorted(found, key=lambda one: -one.measured_us)


def measured_share(kernels: Sequence[MeasuredKernel]) -> float | None:
    """The share of the measured time that belongs to launches of the ledger; None when nothing was measured."""
    total = sum(one.measured_us for one in kernels)
    return sum(one.measured_us for one in kernels if one.dynamic_launches) / total if total else None


def condensed(kernels: Sequence[MeasuredKernel], least_share: float = LEAST_SHARE) -> tuple[MeasuredKernel, ...]:
    """The kernels that take ``least_share`` of the time or more, and the others of each origin and family as one row.

    Sums are preserved. The name of such a row is ``N others``; its model time is None if one of theirs is.
    """
    total = sum(one.measured_us for one in kernels)
    kept = [one for one in kernels if one.measured_us >= least_share * total]
    groups: dict[tuple[str, str, str, str], list[MeasuredKernel]] = defaultdict(list)
    for one in kernels[len(kept) :]:
        groups[one.phase, one.stage, one.role, one.family].append(one)
    for key, found in groups.items():
        name = f"{len(found)} others" if len(found) > 1 else found[0].name
        kept.append(MeasuredKernel(name, *key, **{figure: _sum_of(found, figure) for figure in _FIGURES}))
    return tuple(sorted(kept, key=lambda one: -one.measured_us))


def _sum_of(kernels: Sequence[MeasuredKernel], figure: str) -> Any:
    values = [getattr(one, figure) for one in kernels]
    return None if None in values else sum(values)


def _is_copy(event: Event, copies: frozenset[str]) -> bool:
    return event.is_copy or event.hlo_op in copies


def kernel_table(kernels: Iterable[MeasuredKernel]) -> dict[str, Any]:
    """The kernels as ``{"columns": [...], "rows": [[...], ...]}``, times rounded to a nanosecond."""
    rows = [[_rounded(getattr(one, name)) for name in KERNEL_COLUMNS] for one in kernels]
    return {"columns": list(KERNEL_COLUMNS), "rows": rows}


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
