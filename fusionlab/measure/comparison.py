"""Records read into comparisons: times of variants side by side, ratios with their intervals, and where time goes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fusionlab.errors import InputError, unknown
from fusionlab.measure.device_time import KERNEL_COLUMNS, MeasuredKernel
from fusionlab.measure.intervals import Interval, median, ratio_of_medians
from fusionlab.measure.records import Record

COLUMNS = ("phase", "stage", "role", "family", "name")
"""Columns by which measured kernels can be totalled."""
CLOCKS = ("wall", "device")
RATES = (
    "energy_j", "energy_delay_js", "overhead_ratio", "flops_per_s", "bytes_per_s", "flops_of_peak", "bandwidth_of_peak",
)  # fmt: skip
"""Figures of a variant that are shown beside its times."""


@dataclass(frozen=True)
class Timed:
    """One variant of one record: its samples in microseconds on one clock, their median with its interval."""

    name: str
    samples_us: tuple[float, ...]
    median_us: Interval
    variant: Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """One record on one clock. ``ratios`` are of the variant ``of`` to every other, by that one's name."""

    record: Record
    clock: str
    timed: tuple[Timed, ...]
    of: str
    ratios: Mapping[str, Interval]

    @property
    def title(self) -> str:
        """The workload that was run."""
        return str(self.record["workload"]["title"])

    @property
    def device(self) -> str:
        """The device, by its own name."""
        return str(self.record["device"]["name"])

    def to_json(self) -> dict[str, Any]:
        """The figures of the comparison, by variant."""
        return {
            "workload": self.record["workload"],
            "device": self.record["device"],
            "versions": self.record["versions"],
            "commit": self.record["commit"],
            "started_utc": self.record["started_utc"],
            "clock": self.clock,
            "of": self.of,
            "variants": [
                {
                    "name": one.name,
                    "median_us": asdict(one.median_us),
                    "mean_us": sum(one.samples_us) / len(one.samples_us),
                    "ratio": asdict(self.ratios[one.name]) if one.name in self.ratios else None,
                    "verdict": one.variant["verdict"],
                    "dynamic_launches": one.variant["dynamic_launches"],
                    "peak_bytes": one.variant["peak_bytes"],
                    "assigned_bytes": one.variant["assigned_bytes"],
                    **{name: one.variant[name] for name in RATES},
                }
                for one in self.timed
            ],
            "failures": self.record["failures"],
        }


def compiler_of(record: Mapping[str, Any]) -> str:
    """The versions of JAX that compiled the programs of ``record``; not autotuned: no kernel was chosen by clock."""
    alone = record["device"]["platform"] == "cuda" and record.get("protocol", {}).get("autotune") is False
    return str(record["versions"]["jax"]) + ", not autotuned" * alone


def latest(records: Iterable[Record]) -> tuple[list[Record], int]:
    """The newest record of every workload on every device under every compiler, and how many older ones there are.

    In input order. Records without a measured variant count as neither.
    """
    newest: dict[tuple[str, str, str], Record] = {}
    measured = [record for record in records if record["variants"]]
    for record in measured:
        key = (record["workload"]["title"], record["device"]["name"], compiler_of(record))
        newest[key] = max(record, newest.get(key, record), key=lambda one: one["started_utc"])
    return list(newest.values()), len(measured) - len(newest)


def compare_record(record: Record, clock: str | None = None, of: str = "fused") -> Comparison:
    """``record`` on ``clock``; None selects device time on a GPU, or wall time where a variant has none, and wall time
    on the CPU, where tracing costs as much as the small thunks it times.

    ``of`` is the variant that ratios are of; the first one where the record does not have it. InputError: no variant
    has samples of that clock.
    """
    if clock is not None and clock not in CLOCKS:
        raise unknown("clock", clock, CLOCKS)
    traced = record["device"]["platform"] == "cuda" and all(_samples(one, "device") for one in record["variants"])
    clock = clock or ("device" if traced else "wall")
    timed = tuple(found for one in record["variants"] if (found := _timed(one, clock)) is not None)
    if not timed:
        raise InputError(f"{record.get('path', 'the record')}: no variant has samples of {clock} time")
    chosen = next((one for one in timed if one.name == of), timed[0])
    paired = clock == "wall"
    ratios = {
        one.name: ratio_of_medians(chosen.samples_us, one.samples_us, paired=paired)
        for one in timed
        if one is not chosen
    }
    return Comparison(record, clock, timed, chosen.name, ratios)


def has_samples(record: Record, clock: str) -> bool:
    """True if some variant of ``record`` was timed on ``clock``."""
    return any(_samples(one, clock) for one in record["variants"])


def kernels_of(variant: Mapping[str, Any]) -> tuple[MeasuredKernel, ...]:
    """The measured kernels of a variant of a record, without unknown columns; the inverse of ``kernel_table``.

    Older records do not say which products may use TF32: there ``tf32_flops`` is 0."""
    table = variant["kernels"]
    places = [(name, table["columns"].index(name)) for name in KERNEL_COLUMNS if name in table["columns"]]
    return tuple(MeasuredKernel(**{name: row[at] for name, at in places}) for row in table["rows"])


def measured_by(kernels: Iterable[MeasuredKernel], columns: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Measured microseconds per combination of ``columns``, in descending order; unknown values are ``-``.

    InputError for a name that is not one of COLUMNS.
    """
    for column in columns:
        if column not in COLUMNS:
            raise unknown("column", column, COLUMNS)
    groups: dict[tuple[str, ...], float] = {}
    for one in kernels:
        key = tuple(str(getattr(one, column)) or "-" for column in columns)
        groups[key] = groups.get(key, 0.0) + one.measured_us
    return dict(sorted(groups.items(), key=lambda item: -item[1]))


def _timed(variant: Mapping[str, Any], clock: str) -> Timed | None:
    samples = _samples(variant, clock)
    return Timed(variant["name"], tuple(samples), median(samples), variant) if samples else None


def _samples(variant: Mapping[str, Any], clock: str) -> Sequence[float]:
    found: Sequence[float] = variant["samples_us"] if clock == "wall" else variant["device_time"]["sum_us"]
    return found
