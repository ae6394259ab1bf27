"""``fusionlab roofline``: families and kernels against the ceilings of a target, as numbers and as a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.codegen.targets import Target
from fusionlab.commands.facts import Source, make
from fusionlab.errors import InputError
from fusionlab.measure.launch_rows import launch_rows
from fusionlab.measure.roofline import Ceilings, Point, family_points, kernel_points, op_family_costs
from fusionlab.output import require_writable, write_whole
from fusionlab.report.roofline_plot import roofline_svg
from fusionlab.report.tables import print_rows
from fusionlab.study import Circumstances


@dataclass(frozen=True)
class RooflineOptions:
    """``out`` is where the plot goes (None: no plot); measured ceilings replace the target's spec, both or none."""

    out: str | None = None
    kernels: int = 10
    peak_tflops: float | None = None
    bandwidth_gb_s: float | None = None


def roofline(
    source: Source, targets: Sequence[Target], options: RooflineOptions, given: Circumstances, console: Console
) -> dict[str, Any]:
    """Print a table per target (and write a plot per target); a document, or ``{"targets": [...]}`` of several."""
    if options.out:
        require_writable(Path(options.out).resolve().parent)
    documents = [_one(source, target, options, len(targets) > 1, given, console) for target in targets]
    return documents[0] if len(documents) == 1 else {"targets": documents}


def _one(
    source: Source, target: Target, options: RooflineOptions, several: bool, given: Circumstances, console: Console
) -> dict[str, Any]:
    ceilings = _ceilings(target, options)
    made = make(source, replace(given, target=target))
    rows = launch_rows(made.compiled)
    families = family_points(rows, ceilings)
    kernels = kernel_points(rows, ceilings)
    document: dict[str, Any] = {
        "name": made.compiled.name,
        "target": target.name,
        "ceilings": None,
        "families": [point.to_json() for point in families],
        "kernels": [point.to_json() for point in kernels],
        "op_families": [],
        "files": [],
    }
    if ceilings:
        document["ceilings"] = {
            "flops_per_s": ceilings.flops_per_s,
            "bytes_per_s": ceilings.bytes_per_s,
            "ridge_flop_per_byte": ceilings.ridge_flop_per_byte,
            "source": ceilings.source,
        }
    _print_points(f"{made.compiled.name} on {target.name}: kernel families", "family", families, console)
    _print_points(
        f"the {min(options.kernels, len(kernels))} slowest kernels", "kernel", kernels[: options.kernels], console
    )
    if made.program is not None:
        costs = op_family_costs(made.program)
        document["op_families"] = [
            {"family": name, "flops": cost.flops, "bytes": cost.bytes, "intensity_flop_per_byte": cost.intensity,
             "unmodelled": dict(cost.unmodelled)}
            for name, cost in costs.items()
        ]  # fmt: skip
        body = [
            [name, f"{cost.flops / 1e9:,.2f}", f"{cost.bytes / 2**30:,.2f}", f"{cost.intensity:,.3f}"]
            for name, cost in costs.items()
            if cost.bytes or cost.flops
        ]
        print_rows("StableHLO ops, as if none were fused", ("family", "GFLOP", "GiB", "FLOP/byte"), body, console)
    _print_notes(ceilings, console)
    if options.out:
        if ceilings is None:
            raise InputError(f"target {target.name} has no spec: name --peak-tflops and --bandwidth to plot a roof")
        document["files"] = [_plot(options.out, several, target, families, kernels, rows, ceilings, made.compiled.name)]
        console.print(f"written: {document['files'][0]}", soft_wrap=True)
    return document


def _ceilings(target: Target, options: RooflineOptions) -> Ceilings | None:
    measured = (options.peak_tflops, options.bandwidth_gb_s)
    if any(one is not None for one in measured):
        if not all(one is not None and math.isfinite(one) and one > 0 for one in measured):
            raise InputError("measured ceilings come in pairs of positive numbers: --peak-tflops and --bandwidth")
        assert options.peak_tflops is not None
        assert options.bandwidth_gb_s is not None
        return Ceilings(options.peak_tflops * 1e12, options.bandwidth_gb_s * 1e9, "as given")
    peaks = target.peaks
    return Ceilings(peaks.fp32_flops_per_s, peaks.memory_bytes_per_s, f"spec of {target.name}") if peaks else None


def _plot(
    out: str, several: bool, target: Target, families: Any, kernels: Any, rows: Any, ceilings: Ceilings, name: str
) -> str:
    path = Path(out)
    if path.suffix != ".svg":
        path = path.with_name(path.name + ".svg")
    if several:
        path = path.with_name(f"{path.stem}-{target.name}.svg")
    family_of = {row.name: row.family for row in rows}
    dots = [(point, family_of[point.name]) for point in kernels]
    write_whole(path, roofline_svg(f"{name} on {target.name}", families, dots, ceilings))
    return str(path)


def _print_points(title: str, what: str, points: Sequence[Point], console: Console) -> None:
    columns = (what, "launches", "GFLOP", "GiB", "FLOP/byte", "model ms", "share", "GFLOP/s", "of roof", "bound")
    body = [
        [
            point.name,
            f"{point.dynamic_launches:,}",
            f"{point.flops / 1e9:,.2f}",
            f"{point.bytes / 2**30:,.3f}",
            f"{point.intensity_flop_per_byte:,.3f}",
            f"{point.model_us / 1e3:,.2f}",
            f"{point.model_share:.1%}",
            "-" if point.model_flops_per_s is None else f"{point.model_flops_per_s / 1e9:,.0f}",
            "-" if point.roof_share is None else f"{point.roof_share:.0%}",
            point.bound,
        ]
        for point in points
    ]
    print_rows(title, columns, body, console)


def _print_notes(ceilings: Ceilings | None, console: Console) -> None:
    if ceilings is None:
        console.print(
            "no ceilings: the target has no spec; --peak-tflops and --bandwidth give measured ones", style="dim"
        )
        return
    console.print(
        f"ceilings ({ceilings.source}): {ceilings.flops_per_s / 1e12:,.2f} TFLOP/s in FP32, "
        f"{ceilings.bytes_per_s / 1e9:,.0f} GB/s, ridge at {ceilings.ridge_flop_per_byte:,.1f} FLOP/byte; FLOPs, bytes "
        "and time are models",
        style="dim",
        soft_wrap=True,
    )
