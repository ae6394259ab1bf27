"""``fusionlab compare``: records of ``bench`` read into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from fusionlab.errors import InputError
from fusionlab.measure.calibration import Calibration, WhatIf, calibrate, parse_what_if, predicted_us
from fusionlab.measure.comparison import Comparison, compare_record, kernels_of, latest, measured_by
from fusionlab.measure.records import Record, read_records
from fusionlab.report.tables.records import (
    by_device,
    markdown,
    print_calibration,
    print_comparisons,
    print_predictions,
    print_rates,
    print_shares,
)


@dataclass(frozen=True)
class CompareOptions:
    """``clock`` is wall or device (None: by device); ``of`` the variant that ratios are of; ``by`` what kernels are
    added up by; ``rates`` prints what the device achieved; ``as_markdown`` prints the tables for a page. ``calibrated``
    sets the model against what was measured, ``what_if`` names other hardware to predict."""

    clock: str | None = None
    of: str = "fused"
    by: Sequence[str] = ()
    rates: bool = False
    every: bool = False
    calibrated: bool = False
    what_if: str | None = None
    as_markdown: bool = False


def compare(paths: Sequence[str], options: CompareOptions, console: Console) -> dict[str, Any]:
    """Print the tables; the document. Nothing is printed before all that was asked for could be had."""
    records = read_records(paths)
    what_if = None if options.what_if is None else parse_what_if(options.what_if)
    chosen, older = chosen_records(records, options.every)
    comparisons = [compare_record(record, options.clock, options.of) for record in chosen]
    shares = _shares(comparisons, options.by) if options.by else []
    calibrations = _calibrations(chosen, what_if) if options.calibrated or what_if else []
    if options.as_markdown:
        for group in by_device(comparisons).values():
            console.print(markdown(group), soft_wrap=True, markup=False)
    else:
        print_comparisons(comparisons, console)
    if options.rates:
        print_rates(comparisons, console)
    if options.by:
        for comparison in comparisons:
            print_shares(comparison, options.by, console)
    if older:
        console.print(f"{older} older records of the same are not shown; --every shows them", style="dim")
    for found, predictions in calibrations:
        print_calibration(found, console)
        if what_if is not None:
            print_predictions(predictions, found, what_if.label, console)
    return {
        "comparisons": [one.to_json() for one in comparisons],
        "shares": shares,
        "calibrations": [
            {**found.to_json(), "what_if": what_if.label if what_if else None, "predicted": predictions}
            for found, predictions in calibrations
        ],
        "older_records": older,
    }


def _shares(comparisons: Sequence[Comparison], by: Sequence[str]) -> list[dict[str, Any]]:
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
    devices: dict[str, list[Record]] = {}
    for record in records:
        devices.setdefault(record["device"]["name"], []).append(record)
    found = [(calibrate(group), group) for group in devices.values()]
    return [(one, [] if what_if is None else _predictions(one, group, what_if)) for one, group in found]


def _predictions(found: Calibration, records: Sequence[Record], what_if: WhatIf) -> list[dict[str, Any]]:
    rows = []
    for record in records:
        for variant in record["variants"]:
            kernels = [one for one in kernels_of(variant) if one.dynamic_launches and one.measured_us > 0]
            device_us, wall_us = predicted_us(found, kernels, what_if)
            rows.append(
                {
                    "workload": record["workload"]["title"],
                    "variant": variant["name"],
                    "measured_us": sum(one.measured_us for one in kernels),
                    "fitted_us": found.time_us(kernels),
                    "predicted_us": device_us,
                    "predicted_wall_us": wall_us,
                }
            )
    return rows


def chosen_records(records: Sequence[Record], every: bool) -> tuple[list[Record], int]:
    """The newest of each kind, or all of them; and how many were left out. InputError when nothing was measured."""
    chosen, older = latest(records)
    if every:
        chosen, older = [record for record in records if record["variants"]], 0
    if not chosen:
        raise InputError("the records hold no measured variant")
    return chosen, older
