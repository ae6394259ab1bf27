"""A run of ``bench`` as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from fusionlab.measure.intervals import Interval
from fusionlab.report.tables import print_rows

COLUMNS = (
    "variant", "wall ms", "/ first [95 %]", "device ms", "/ first [95 %]", "launches", "peak MiB", "compile s", "check",
)  # fmt: skip


def print_run(record: Mapping[str, Any], console: Console) -> None:
    """The variants of one record, a row each; what failed; and how it was measured."""
    if not record["variants"]:
        for one in record["checked"]:
            console.print(f"{one['name']}: {one['verdict']} {one['pipeline']}", soft_wrap=True)
    else:
        title = f"{record['workload']['title']} on {record['device']['name']}"
        print_rows(title, COLUMNS, [_row(one) for one in record["variants"]], console)
        _print_notes(record, console)
    for failure in record["failures"]:
        console.print(f"not measured: {failure['name']} ({failure['step']}): {failure['reason']}", soft_wrap=True)


def _row(variant: Mapping[str, Any]) -> list[str]:
    device = variant["device_time"]
    return [
        variant["name"],
        f"{variant['median_us'] / 1e3:,.3f}",
        ratio(variant["ratio_interval"]),
        "-" if device["mean_us"] is None else f"{device['mean_us'] / 1e3:,.3f}",
        ratio(device["ratio_interval"]),
        f"{variant['dynamic_launches']:,}",
        peak_mib(variant),
        f"{variant['compile_s']:,.1f}",
        variant["verdict"],
    ]


def peak_mib(variant: Mapping[str, Any]) -> str:
    """The allocator's peak in MiB; where it says nothing, XLA's buffer assignment, named so."""
    if variant["peak_bytes"] is None:
        return f"{variant['assigned_bytes'] / 2**20:,.1f} (XLA)"
    return f"{variant['peak_bytes'] / 2**20:,.1f}"


def ratio(interval: Mapping[str, Any] | None) -> str:
    """A ratio with its bounds; ``-`` for unknown."""
    return "-" if interval is None else Interval(**interval).show(3)


def _print_notes(record: Mapping[str, Any], console: Console) -> None:
    protocol, device = record["protocol"], record["device"]
    kept = protocol["runs"] - protocol["dropped"]
    console.print(
        f"wall: median of {protocol['repeats']} interleaved runs; device: sum of kernel times without copies, mean of "
        f"{kept} traced runs after one dropped"
        + (", CUDA graphs off while tracing" if device["platform"] == "cuda" else "")
        + "; peak (XLA): its buffer assignment, where the allocator says nothing"
        + ("; no energy, clock or temperature: NVML does not answer" if _without_nvml(device) else ""),
        style="dim",
        soft_wrap=True,
    )
    console.print(
        f"{record['versions']['jax']}, Python {record['versions']['python']}, commit {record['commit'] or 'unknown'}",
        style="dim",
        soft_wrap=True,
    )


def _without_nvml(device: Mapping[str, Any]) -> bool:
    return device["platform"] == "cuda" and device["driver"] is None
