"""``fusionlab compare``: records of ``bench`` read into tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.measure.calibration import Calibration, WhatIf
    from fusionlab.measure.comparison import Comparison
    from fusionlab.measure.records import Record


@click.command("compare")
@click.argument("records", nargs=-1, required=True)
@click.option(
    "--time", "clock", type=click.Choice(["wall", "device"]), help="[default: device on a GPU, wall on a CPU]"
)
@click.option("--of", default="fused", show_default=True, help="The variant that ratios are of.")
@click.option("--by", default="", help="Add up device time by these: phase,stage,role,family,name.")
@click.option("--rates", is_flag=True, help="FLOP/s, byte/s, overhead, energy x delay, compile seconds.")
@click.option("--calibrate", "calibrated", is_flag=True, help="Set the model of times against what was measured.")
@click.option("--what-if", help="Predict other hardware: h200, or bandwidth_gb_s=4800,sms=132,launch_us=3.")
@click.option("--every", is_flag=True, help="Older records of the same, too.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The table for a page.")
@options.verb
def command(
    records: tuple[str, ...],
    clock: str | None,
    of: str,
    by: str,
    rates: bool,
    calibrated: bool,
    what_if: str | None,
    every: bool,
    as_markdown: bool,
    console: Console,
    **_: Any,
) -> dict[str, Any]:
    """Show records of `bench`: times, ratios, where time goes. Records are files or folders; intervals are of 95 %."""
    from fusionlab.measure.calibration import parse_what_if
    from fusionlab.measure.comparison import compare_record, has_samples
    from fusionlab.measure.records import read_records
    from fusionlab.report.tables.records import print_calibration, print_predictions, print_rates

    columns = tuple(word.strip() for word in by.split(",")) if by else ()
    read = read_records(records)
    other = None if what_if is None else parse_what_if(what_if)
    chosen, older = _chosen(read, every)
    timed = [record for record in chosen if clock is None or has_samples(record, clock)]
    if not timed:
        raise InputError(f"no variant of these records has samples of {clock} time")
    comparisons = [compare_record(record, clock, of) for record in timed]  # all computed before anything is printed
    shares = _shares(comparisons, columns) if columns else []
    calibrations = _calibrations(chosen, other) if calibrated or other else []
    _print_times(comparisons, as_markdown, console)
    if rates:
        print_rates(comparisons, console)
    if columns:
        _print_shares(comparisons, columns, console)
    for record in chosen:
        if clock is not None and not has_samples(record, clock):
            console.print(f"{record['workload']['title']}: no samples of {clock} time", style="dim", soft_wrap=True)
    if older:
        console.print(f"{older} older records of the same are not shown; --every shows them", style="dim")
    for found, predictions in calibrations:
        print_calibration(found, console)
        if other is not None:
            print_predictions(predictions, found, other.label, console)
    return {
        "comparisons": [one.to_json() for one in comparisons],
        "shares": shares,
        "calibrations": [
            {**found.to_json(), "what_if": other.label if other else None, "predicted": predictions}
            for found, predictions in calibrations
        ],
        "older_records": older,
    }


def _print_times(comparisons: Sequence[Comparison], as_markdown: bool, console: Console) -> None:
    """Print times and ratios, a table per record; with ``as_markdown`` one per device."""
    from fusionlab.report.tables.records import by_device, markdown, print_comparisons

    if not as_markdown:
        print_comparisons(comparisons, console)
        return
    for group in by_device(comparisons).values():
        console.print(markdown(group), soft_wrap=True, markup=False)


def _print_shares(comparisons: Sequence[Comparison], by: Sequence[str], console: Console) -> None:
    """Print the tables of device time, with the legend of stages if these are a column."""
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.report.tables import note
    from fusionlab.report.tables.records import print_shares

    for comparison in comparisons:
        print_shares(comparison, by, console)
    if "stage" in by:
        note(console, LEGEND)


def _shares(comparisons: Sequence[Comparison], by: Sequence[str]) -> list[dict[str, Any]]:
    from fusionlab.measure.comparison import kernels_of, measured_by

    return [
        {
            "workload": one.title,
            "device": one.device,
            "variant": timed.name,
            "by": list(by),
            "measured_us": [
                {"key": list(key), "us": us} for key, us in measured_by(kernels_of(timed.variant), by).items()
            ],
        }
        for one in comparisons
        for timed in one.timed
    ]


def _calibrations(records: Sequence[Record], what_if: WhatIf | None) -> list[tuple[Calibration, list[dict[str, Any]]]]:
    """Per device: the fit, and with ``what_if`` a prediction of every program."""
    from fusionlab.measure.calibration import calibrate

    devices: dict[str, list[Record]] = {}
    for record in records:
        devices.setdefault(record["device"]["name"], []).append(record)
    found = [(calibrate(group), group) for group in devices.values()]
    return [(one, [] if what_if is None else _predictions(one, group, what_if)) for one, group in found]


def _predictions(found: Calibration, records: Sequence[Record], what_if: WhatIf) -> list[dict[str, Any]]:
    from fusionlab.measure.calibration import predicted_us
    from fusionlab.measure.comparison import kernels_of

    rows = []
    for record in records:
        own: list[dict[str, Any]] = []
        for variant in record["variants"]:
            kernels = [one for one in kernels_of(variant) if one.dynamic_launches and one.measured_us > 0]
            device_us, wall_us = predicted_us(found, kernels, what_if)
            own.append(
                {
                    "workload": record["workload"]["title"],
                    "variant": variant["name"],
                    "measured_us": sum(one.measured_us for one in kernels),
                    "fitted_us": found.time_us(kernels),
                    "predicted_us": device_us,
                    "predicted_wall_us": wall_us,
                }
            )
        orders = _orders([one["predicted_us"] for one in own])
        rows += [{**one, "order": order} for one, order in zip(own, orders, strict=True)]
    return rows


def _orders(times: Sequence[float]) -> list[str]:
    """Of each predicted time of one program: ``slower`` than the least one, or not decidable by a model that was not
    tested; ``fastest`` if all others are slower. "" of a single variant, and without a time."""
    from fusionlab.time_order import TimeOrder

    known = sorted(us for us in times if us)
    if len(known) < 2:
        return [""] * len(times)
    least, *_ = known

    def order(us: float) -> str:
        beside = known[1] if us == least else least
        found = TimeOrder.of(us, beside, None)
        return "" if found is None else "fastest" if found.order == "faster" else found.order

    return [order(us) for us in times]


def _chosen(records: Sequence[Record], every: bool) -> tuple[list[Record], int]:
    """The newest of each kind, or all of them; and the number left out. InputError when nothing was measured."""
    from fusionlab.measure.comparison import latest

    chosen, older = latest(records)
    if every:
        chosen, older = [record for record in records if record["variants"]], 0
    if not chosen:
        raise InputError("the records hold no measured variant")
    return chosen, older
