"""Comparisons of records as tables for a terminal, and as Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from fusionlab.measure.comparison import Comparison, kernels_of, measured_by
from fusionlab.report.bench_view import peak_mib
from fusionlab.report.tables import print_rows


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """One table per device and clock: a row per variant of a workload, its time, and the ratio to it."""
    for (device, clock, versions, of), group in by_device(comparisons).items():
        ratio = f"{of} / it [95 %]"
        columns = ("workload", "variant", "ms [95 %]", ratio, "launches", "peak MiB", "J per run", "check")
        body = [row for comparison in group for row in _variant_rows(comparison)]
        print_rows(f"{device}, {clock} time, {versions}", columns, body, console, words=2)
    for one in comparisons:
        for failure in one.record["failures"]:
            words = f"{one.title}: not measured: {failure['name']} ({failure['step']}): {failure['reason']}"
            console.print(words, style="dim", soft_wrap=True)


def _variant_rows(comparison: Comparison) -> list[list[str]]:
    rows = []
    for at, one in enumerate(comparison.timed):
        found = one.variant
        joules = found["energy_j"]
        low, value, high = (each / 1e3 for each in (one.median_us.low, one.median_us.value, one.median_us.high))
        rows.append(
            [
                comparison.title if at == 0 else "",
                one.name,
                f"{value:,.2f} [{low:,.2f}, {high:,.2f}]",
                comparison.ratios[one.name].show() if one.name in comparison.ratios else "",
                f"{found['dynamic_launches']:,}",
                peak_mib(found),
                "-" if joules is None else f"{joules:,.3f}",
                found["verdict"],
            ]
        )
    return rows


def print_rates(comparisons: Sequence[Comparison], console: Console) -> None:
    """What the device achieved, over its peaks where it has a spec, and what else a record has of each variant."""
    columns = (
        "workload",
        "variant",
        "GFLOP/s",
        "of peak",
        "GB/s",
        "of peak",
        "overhead",
        "J x s",
        "compile s",
        "joined",
    )
    body = []
    for comparison in comparisons:
        for at, one in enumerate(comparison.timed):
            found = one.variant
            body.append(
                [
                    comparison.title if at == 0 else "",
                    one.name,
                    _number(found["flops_per_s"], 1e-9),
                    _percent(found["flops_of_peak"]),
                    _number(found["bytes_per_s"], 1e-9),
                    _percent(found["bandwidth_of_peak"]),
                    _percent(found["overhead_ratio"]),
                    _number(found["energy_delay_js"], 1.0, 4),
                    _number(found["compile_s"], 1.0, 1),
                    _percent(found["kernels_joined"]),
                ]
            )
    print_rows("achieved over the device's time; FLOPs and bytes are models", columns, body, console, words=2)


def _number(value: float | None, scale: float, digits: int = 1) -> str:
    return "-" if value is None else f"{scale * value:,.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def by_device(comparisons: Iterable[Comparison]) -> dict[tuple[str, str, str, str], list[Comparison]]:
    """The comparisons by device, clock, versions and the variant that their ratios are of."""
    groups: dict[tuple[str, str, str, str], list[Comparison]] = {}
    for one in comparisons:
        groups.setdefault((one.device, one.clock, one.record["versions"]["jax"], one.of), []).append(one)
    return groups


def markdown(group: Sequence[Comparison]) -> str:
    """Two tables of one device for a page: milliseconds of every variant, and ``of / X`` with 95 % intervals."""
    names = list(dict.fromkeys(one.name for comparison in group for one in comparison.timed))
    of = group[0].of
    times, ratios = [], []
    for comparison in group:
        found = {one.name: f"{one.median_us.value / 1e3:,.2f}" for one in comparison.timed}
        over = {name: interval.show() for name, interval in comparison.ratios.items()}
        times.append([comparison.title, *_cells(names, found)])
        ratios.append([comparison.title, *_cells([name for name in names if name != of], over)])
    return "\n\n".join(
        [
            _page_table([f"{group[0].clock} ms", *names], times),
            _page_table([f"{of} / it", *(name for name in names if name != of)], ratios),
        ]
    )


def _page_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(["| " + " | ".join(row) + " |" for row in (columns, ["---"] * len(columns), *rows)])


def print_shares(comparison: Comparison, by: Sequence[str], console: Console) -> None:
    """Where the device's time of one record goes: a row per group, milliseconds and share for every variant."""
    columns, body = share_table(comparison, by)
    print_rows(f"{comparison.title} on {comparison.device}: device time by {', '.join(by)}", columns, body, console)


def share_table(comparison: Comparison, by: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of ``print_shares``, the slowest group of the first variant first, and the sum last."""
    sums = {one.name: measured_by(kernels_of(one.variant), by) for one in comparison.timed}
    keys = list(dict.fromkeys(key for groups in sums.values() for key in groups))
    body = []
    for key in keys:
        cells = [_share(groups.get(key), sum(groups.values())) for groups in sums.values()]
        body.append([" ".join(key), *cells])
    body.append(["all", *(_share(sum(groups.values()), sum(groups.values())) for groups in sums.values())])
    return [" ".join(by), *(f"{name} ms (share)" for name in sums)], body


def _share(us: float | None, total: float) -> str:
    return "-" if us is None or not total else f"{us / 1e3:,.3f} ({us / total:.0%})"


def _cells(names: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    return [str(values.get(name, "-")) for name in names]
