"""``fusionlab compare``: records of ``bench`` read into tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from fusionlab.errors import InputError
from fusionlab.measure.comparison import compare_record, kernels_of, latest, measured_by
from fusionlab.measure.records import Record, read_records
from fusionlab.report.compare_view import by_device, markdown, print_comparisons, print_shares


@dataclass(frozen=True)
class CompareOptions:
    """``clock`` is wall or device (None: by device); ``of`` the variant that ratios are of; ``by`` what kernels are
    added up by; ``as_markdown`` prints the first table for a page."""

    clock: str | None = None
    of: str = "fused"
    by: Sequence[str] = ()
    every: bool = False
    as_markdown: bool = False


def compare(paths: Sequence[str], options: CompareOptions, console: Console) -> dict[str, Any]:
    """Print the tables; the document."""
    records = read_records(paths)
    chosen, older = chosen_records(records, options.every)
    comparisons = [compare_record(record, options.clock, options.of) for record in chosen]
    if options.as_markdown:
        for group in by_device(comparisons).values():
            console.print(markdown(group), soft_wrap=True, markup=False)
    else:
        print_comparisons(comparisons, console)
    if options.by:
        for comparison in comparisons:
            print_shares(comparison, options.by, console)
    if older:
        console.print(f"{older} older records of the same are not shown; --every shows them", style="dim")
    return {
        "comparisons": [one.to_json() for one in comparisons],
        "shares": [
            {
                "workload": one.title,
                "device": one.device,
                "variant": timed.name,
                "by": list(options.by),
                "measured_us": [
                    {"key": list(key), "us": us}
                    for key, us in measured_by(kernels_of(timed.variant), options.by).items()
                ],
            }
            for one in comparisons
            for timed in one.timed
        ]
        if options.by
        else [],
        "older_records": older,
    }


def chosen_records(records: Sequence[Record], every: bool) -> tuple[list[Record], int]:
    """The newest of each kind, or all of them; and how many were left out. InputError when nothing was measured."""
    chosen, older = latest(records)
    if every:
        chosen, older = [record for record in records if record["variants"]], 0
    if not chosen:
        raise InputError("the records hold no measured variant")
    return chosen, older
