"""A calibration, and what it predicts for other hardware, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from fusionlab.measure.calibration import Calibration
from fusionlab.report.tables import print_rows


def print_calibration(found: Calibration, console: Console) -> None:
    """A row per family: what was measured, the plain roofline, the fit, and its error."""
    body = [
        [
            fit.family,
            f"{fit.launches:,.0f}",
            f"{fit.measured_us / 1e3:,.3f}",
            f"{fit.roofline_us / 1e3:,.3f}",
            f"{fit.fitted_us / 1e3:,.3f}",
            f"{fit.overhead_us:,.2f}",
            "-" if fit.efficiency is None else f"{fit.efficiency:.1%}",
            f"{fit.kernel_error:.0%}",
        ]
        for fit in found.fits.values()
    ]
    columns = ("family", "launches", "measured ms", "roofline ms", "fitted ms", "us/launch", "of roof", "error")
    print_rows(f"the model against {found.device}", columns, body, console)
    console.print(
        f"roofs ({found.ceilings.source}): {found.ceilings.flops_per_s / 1e12:,.3f} TFLOP/s, "
        f"{found.ceilings.bytes_per_s / 1e9:,.1f} GB/s; {error_words(found)}; error of a family: kernel by kernel, "
        "weighted by time",
        style="dim",
        soft_wrap=True,
    )


def error_words(found: Calibration) -> str:
    """The error of whole programs, and how it was found."""
    how = "fitted without their own model" if found.held_out else "of the very programs that it was fitted to"
    return f"{found.error:.0%} mean error of {found.programs} whole programs, {how}"


def print_predictions(rows: Sequence[dict[str, Any]], found: Calibration, label: str, console: Console) -> None:
    """A row per program: measured here, fitted here, predicted there."""
    body = [
        [
            row["workload"],
            row["variant"],
            *("-" if row[name] is None else f"{row[name] / 1e3:,.3f}" for name in _TIMES),
        ]
        for row in rows
    ]
    columns = ("workload", "variant", "measured here", "fitted here", "predicted", "predicted wall")
    print_rows(f"PREDICTED for {label}, not measured: device ms", columns, body, console, words=2)
    console.print(
        f"a prediction: overheads and efficiencies measured on {found.device}, other roofs; there the model has "
        f"{error_words(found)}, on other hardware its error is unknown",
        style="dim",
        soft_wrap=True,
    )


_TIMES = ("measured_us", "fitted_us", "predicted_us", "predicted_wall_us")
