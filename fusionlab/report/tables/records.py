"""Records of measurements as tables: one run of ``bench``, comparisons, a calibration and its predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console

from fusionlab.bytesize import size_words
from fusionlab.measure.calibration import Calibration
from fusionlab.measure.comparison import Comparison, Timed, compiler_of, kernels_of, measured_by
from fusionlab.measure.intervals import Interval
from fusionlab.report.tables import UNKNOWN, Cell, Table, field, note, number, shown


def peak_words(variant: Mapping[str, Any]) -> str:
    """The allocator's peak; without one, XLA's buffer assignment, named so."""
    if variant["peak_bytes"] is None:
        return f"{size_words(variant['assigned_bytes'])} (XLA)"
    return size_words(variant["peak_bytes"])


def _interval(found: Mapping[str, Any] | None) -> str:
    return UNKNOWN if found is None else Interval(**found).show(3)


_VARIANT: tuple[tuple[str, Cell], ...] = (
    ("variant", field("name")),
    ("wall ms", number("median_us", 3, 1e3)),
    ("/ first [95 %]", lambda one: _interval(one["ratio_interval"])),
    ("device ms", lambda one: shown(one["device_time"]["mean_us"], 3, 1e3)),
    ("/ first [95 %]", lambda one: _interval(one["device_time"]["ratio_interval"])),
    ("launches", number("dynamic_launches")),
    ("peak", peak_words),
    ("compile s", number("compile_s", 1)),
    ("check", field("verdict")),
)


def print_run(record: Mapping[str, Any], console: Console) -> None:
    """The variants of one record, a row each; what failed; and how it was measured."""
    if record["variants"]:
        title = f"{record['workload']['title']} on {record['device']['name']}"
        Table.of(title, record["variants"], _columns(record["log_psi"])).print(console)
        _print_protocol(record, console)
    else:
        for one in record["checked"]:
            console.print(f"{one['name']}: {one['verdict']} {one['pipeline']}", soft_wrap=True)
    for words in _failed(record):
        console.print(f"not measured: {words}", soft_wrap=True)


def _columns(log_psi: Mapping[str, float] | None) -> Sequence[tuple[str, Cell]]:
    """Those of the table of variants; of local energies FLOPs and bytes over those of log|psi|, per direction."""
    if log_psi is None:
        return _VARIANT
    each = {name: log_psi["directions"] * log_psi[name] for name in ("flops", "bytes_accessed")}

    def per_direction(variant: Mapping[str, Any]) -> str:
        return " / ".join(f"{variant[name] / of:.2f}" if of else UNKNOWN for name, of in each.items())

    return (*_VARIANT, ("psi per direction: FLOPs / bytes", per_direction))


def _failed(record: Mapping[str, Any]) -> list[str]:
    """A line for each step and reason, with the variants that failed so."""
    names: dict[tuple[str, str], list[str]] = {}
    for failure in record["failures"]:
        names.setdefault((failure["step"], failure["reason"]), []).append(failure["name"])
    return [f"{'; '.join(found)} ({step}): {reason}" for (step, reason), found in names.items()]


def _print_protocol(record: Mapping[str, Any], console: Console) -> None:
    protocol, device, versions = record["protocol"], record["device"], record["versions"]
    on_gpu = device["platform"] == "cuda"
    note(
        console,
        f"wall: median of {protocol['repeats']} interleaved runs; device: sum of kernel times without copies, mean of "
        f"{protocol['runs'] - protocol['dropped']} traced runs after one dropped"
        + (", CUDA graphs off while tracing" if on_gpu else "")
        + "; peak (XLA): its buffer assignment, where the allocator says nothing"
        + ("; no energy, clock or temperature: NVML does not answer" if on_gpu and device["driver"] is None else ""),
    )
    note(console, f"{compiler_of(record)}, Python {versions['python']}, commit {record['commit'] or 'unknown'}")


def _variants(comparisons: Iterable[Comparison]) -> list[tuple[str, Comparison, Timed]]:
    """A row per variant: the title of its comparison where it is the first of it, the comparison, and itself."""
    return [(one.title if at == 0 else "", one, timed) for one in comparisons for at, timed in enumerate(one.timed)]


def _found(cell: Cell) -> Cell:
    return lambda row: cell(row[2].variant)


_WHICH: tuple[tuple[str, Cell], ...] = (("workload", lambda row: row[0]), ("variant", lambda row: row[2].name))
_RATES = (
    *_WHICH,
    ("GFLOP/s", _found(number("flops_per_s", 1, 1e9))),
    ("of peak", _found(number("flops_of_peak", spec=".1%"))),
    ("GB/s", _found(number("bytes_per_s", 1, 1e9))),
    ("of peak", _found(number("bandwidth_of_peak", spec=".1%"))),
    ("overhead", _found(number("overhead_ratio", spec=".1%"))),
    ("J x s", _found(number("energy_delay_js", 4))),
    ("compile s", _found(number("compile_s", 1))),
    ("joined", _found(number("kernels_joined", spec=".1%"))),
)


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """One table per device and clock: a row per variant of a workload, its time, and the ratio to it."""
    for (device, clock, versions, of), group in by_device(comparisons).items():
        columns = (
            *_WHICH,
            ("ms [95 %]", _median),
            (f"{of} / it [95 %]", _ratio),
            ("launches", _found(number("dynamic_launches"))),
            ("peak", _found(peak_words)),
            ("J per run", _found(number("energy_j", 3))),
            ("check", _found(field("verdict"))),
        )
        Table.of(f"{device}, {clock} time, {versions}", _variants(group), columns, 2).print(console)
    for one in comparisons:
        for words in _failed(one.record):
            note(console, f"{one.title}: not measured: {words}")


def _median(row: tuple[str, Comparison, Timed]) -> str:
    median = row[2].median_us
    low, value, high = (each / 1e3 for each in (median.low, median.value, median.high))
    return f"{value:,.2f} [{low:,.2f}, {high:,.2f}]"


def _ratio(row: tuple[str, Comparison, Timed]) -> str:
    found = row[1].ratios.get(row[2].name)
    return found.show() if found else ""


def print_rates(comparisons: Sequence[Comparison], console: Console) -> None:
    """Rates achieved by the device, over its peaks where it has a spec, and the other figures of each variant."""
    title = "achieved over the device's time; FLOPs and bytes are models"
    Table.of(title, _variants(comparisons), _RATES, 2).print(console)


def by_device(comparisons: Iterable[Comparison]) -> dict[tuple[str, str, str, str], list[Comparison]]:
    """The comparisons by device, clock, versions and the variant that their ratios are of."""
    groups: dict[tuple[str, str, str, str], list[Comparison]] = {}
    for one in comparisons:
        groups.setdefault((one.device, one.clock, compiler_of(one.record), one.of), []).append(one)
    return groups


def markdown(group: Sequence[Comparison]) -> str:
    """Two tables of one device for a page: milliseconds of every variant, and ``of / X`` with 95 % intervals."""
    names = list(dict.fromkeys(timed.name for one in group for timed in one.timed))
    of = group[0].of
    times = [{timed.name: shown(timed.median_us.value, 2, 1e3) for timed in one.timed} for one in group]
    ratios = [{name: interval.show() for name, interval in one.ratios.items()} for one in group]

    def of_names(label: str, columns: Sequence[str], found: Sequence[Mapping[str, str]]) -> str:
        cells = [[row.get(name, UNKNOWN) for name in columns] for row in found]
        rows = [[one.title, *row] for one, row in zip(group, cells, strict=True)]
        return Table("", [label, *columns], rows).markdown()

    others = [name for name in names if name != of]
    return f"{of_names(f'{group[0].clock} ms', names, times)}\n\n{of_names(f'{of} / it', others, ratios)}"


def print_shares(comparison: Comparison, by: Sequence[str], console: Console) -> None:
    """The device's time of one record by group: a row per group, milliseconds and share for every variant.

    The slowest group of the first variant comes first, and the sum last.
    """
    sums = {one.name: measured_by(kernels_of(one.variant), by) for one in comparison.timed}
    keys = list(dict.fromkeys(key for groups in sums.values() for key in groups))

    def share(groups: Mapping[tuple[str, ...], float]) -> Cell:
        total = sum(groups.values())

        def cell(key: tuple[str, ...] | None) -> str:
            us = total if key is None else groups.get(key)
            return UNKNOWN if us is None or not total else f"{us / 1e3:,.3f} ({us / total:.0%})"

        return cell

    columns: dict[str, Cell] = {" ".join(by): lambda key: "all" if key is None else " ".join(key)}
    columns |= {f"{name} ms (share)": share(groups) for name, groups in sums.items()}
    title = f"{comparison.title} on {comparison.device}: device time by {', '.join(by)}"
    Table.of(title, [*keys, None], columns).print(console)


_FIT: dict[str, Cell] = {
    "family": field("family"),
    "launches": number("launches"),
    "measured ms": number("measured_us", 3, 1e3),
    "roofline ms": number("roofline_us", 3, 1e3),
    "fitted ms": number("fitted_us", 3, 1e3),
    "us/launch": number("overhead_us", 2),
    "of roof": number("efficiency", spec=".1%"),
    "error": number("kernel_error", spec=".0%"),
}
_PREDICTED: dict[str, Cell] = {
    "workload": field("workload"),
    "variant": field("variant"),
    "measured here": number("measured_us", 3, 1e3),
    "fitted here": number("fitted_us", 3, 1e3),
    "predicted": number("predicted_us", 3, 1e3),
    "predicted wall": number("predicted_wall_us", 3, 1e3),
    "order there": field("order"),
}


def print_calibration(found: Calibration, console: Console) -> None:
    """A row per family: the measurement, the plain roofline, the fit, and its error."""
    Table.of(f"the model against {found.device}", found.fits.values(), _FIT).print(console)
    roofs = found.ceilings
    note(
        console,
        f"roofs ({roofs.source}): {roofs.flops_per_s / 1e12:,.3f} TFLOP/s, {roofs.bytes_per_s / 1e9:,.1f} GB/s; "
        f"{_error_words(found)}; error of a family: kernel by kernel, weighted by time",
    )


def _error_words(found: Calibration) -> str:
    """The error of whole programs, and its derivation."""
    how = "fitted without their own model" if found.held_out else "of the very programs that it was fitted to"
    return f"{found.error:.0%} mean error of {found.programs} whole programs, {how}"


def print_predictions(rows: Sequence[dict[str, Any]], found: Calibration, label: str, console: Console) -> None:
    """A row per program: measured here, fitted here, predicted there."""
    Table.of(f"PREDICTED for {label}, not measured: device ms", rows, _PREDICTED, 2).print(console)
    note(
        console,
        f"a prediction: overheads and efficiencies measured on {found.device}, other roofs; there the model has "
        f"{_error_words(found)}, on other hardware its error is unknown",
    )
