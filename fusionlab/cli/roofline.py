"""``fusionlab roofline``: families and kernels against the ceilings of a target, as numbers and as a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import CompiledSource, load_facts, make_all
from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.codegen.targets import Target
    from fusionlab.hlo.cost import Cost
    from fusionlab.ledger.roofline import Point
    from fusionlab.ledger.time.model import Ceilings
    from fusionlab.study import Circumstances


@click.command("roofline")
@options.source
@options.targets
@click.option("--out", help="Write the plot: FILE.svg (one per target) or a folder.")
@options.by("these in place of the family: scope[:depth], op, source, transform, stage, ...")
@click.option("--kernels", default=10, show_default=True, type=click.IntRange(min=0), help="How many kernels to list.")
@click.option("--peak-tflops", type=float, help="Measured FP32 ceiling in TFLOP/s, in place of the spec's.")
@click.option("--bandwidth", type=float, help="Measured memory ceiling in GB/s, in place of the spec's.")
@options.cache
@options.verb
def command(source: dict[str, Any], console: Console, where: dict[str, Any], **drawn: Any) -> dict[str, Any]:
    """Place kernels on the roofline of a target, as table and plot."""
    loaded, given, targets = load_facts(source, several=True, **where)
    return roofline(loaded, targets, given, console, **drawn)


def roofline(
    source: Source,
    targets: Sequence[Target],
    given: Circumstances,
    console: Console,
    *,
    out: str | None = None,
    by: Sequence[str] = (),
    kernels: int = 10,
    peak_tflops: float | None = None,
    bandwidth: float | None = None,
) -> dict[str, Any]:
    """Print a table per target; a document, or ``{"targets": [...]}`` of several. Plots are written last.

    ``peak_tflops`` and ``bandwidth`` (GB/s) are measured ceilings instead of the target's spec, both or neither: the
    modelled times are then their roofline, not XLA's estimates. ``by`` are views to group launches by in place of the
    family; ``out`` is the plot's file or folder. InputError for
    invalid ceilings or ``out``, before anything is compiled.
    """
    from fusionlab.ledger.views import require_views

    measured = _measured(peak_tflops, bandwidth)
    require_views(by)
    if out:
        _require_plot(targets, measured, out)
    views = tuple(by) or ("family",)
    drawn = [
        _one(made, measured, views, kernels, console, plotted=bool(out)) for made in make_all(source, targets, given)
    ]
    for document, plot in drawn:
        if out:
            path = _plot_path(out, document, len(drawn) > 1)
            write_whole(path, plot)
            document["files"] = [str(path)]
            console.print(f"written: {path}", soft_wrap=True)
    documents = [document for document, _ in drawn]
    return documents[0] if len(documents) == 1 else {"targets": documents}


def _one(
    made: CompiledSource,
    measured: Ceilings | None,
    by: tuple[str, ...],
    most_kernels: int,
    console: Console,
    *,
    plotted: bool,
) -> tuple[dict[str, Any], str]:
    """Print one target; return its document and plot ("" if not requested)."""
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.ledger.launch_rows import launch_rows
    from fusionlab.ledger.roofline import family_points, kernel_points, op_family_costs
    from fusionlab.ledger.time.model import ceilings_of
    from fusionlab.report.pictures.roofline import roofline_svg
    from fusionlab.report.tables import note

    name, target = made.compiled.name, made.compiled.target.name
    ceilings = measured or ceilings_of(made.compiled.target)
    rows = launch_rows(made.compiled, measured)
    families = family_points(rows, ceilings)
    groups = families if by == ("family",) else family_points(rows, ceilings, by)
    kernels = kernel_points(rows, ceilings)
    costs = op_family_costs(made.program) if made.program is not None else {}
    document: dict[str, Any] = {
        "name": name,
        "target": target,
        "ceilings": ceilings and {
            "flops_per_s": ceilings.flops_per_s,
            "bytes_per_s": ceilings.bytes_per_s,
            "tf32_flops_per_s": ceilings.tf32_flops_per_s,
            "ridge_flop_per_byte": ceilings.ridge_flop_per_byte,
            "source": ceilings.source,
        },
        "families": [point.to_json() for point in families],
        "by": list(by),
        "groups": [point.to_json() for point in groups],
        "kernels": [point.to_json() for point in kernels],
        "op_families": [
            {"family": family, "flops": cost.flops, "bytes": cost.bytes, "intensity_flop_per_byte": cost.intensity,
             "unmodelled": dict(cost.unmodelled)}
            for family, cost in costs.items()
        ],
        "notes": list(made.notes),
        "files": [],
    }  # fmt: skip
    console.print(_verdict(f"{name} on {target}", families), style="bold", soft_wrap=True, markup=False)
    _print_points("", {" ".join(by): "name"}, groups, console)
    shown = kernels[:most_kernels]
    heads = {"kernel": "name", "scope": "scope", "source": "source"}
    _print_points(f"the {len(shown)} slowest kernels", heads, shown, console)
    if "stage" in by:
        note(console, LEGEND)
    _print_ops(costs, console)
    _print_notes(ceilings, made.notes, console)
    if not plotted or ceilings is None:
        return document, ""
    family_of = {row.name: row.family for row in rows}
    dots = [(point, family_of[point.name]) for point in kernels]
    return document, roofline_svg(f"{name} on {target}", families, dots, ceilings)


def _verdict(where: str, families: Sequence[Point]) -> str:
    """The modelled time, and what bounds most of it."""
    from fusionlab.units import counted, time_words

    *parts, whole = families
    launches = counted(whole.dynamic_launches, "launch", "launches")
    if whole.model_us is None:
        return f"{where}: {launches}; their time is not modelled"
    bounds: dict[str, float] = {}
    for one in parts:
        bounds[one.bound] = bounds.get(one.bound, 0.0) + (one.model_us or 0.0)
    most = max(bounds, key=lambda bound: bounds[bound], default="")
    bound = f"; bound by {most} for {bounds[most] / whole.model_us:.0%} of it" if most and whole.model_us else ""
    return f"{where}: {time_words(whole.model_us, at_least=whole.is_lower_bound)} (model) in {launches}{bound}"


def _measured(peak_tflops: float | None, bandwidth_gb_s: float | None) -> Ceilings | None:
    from fusionlab.ledger.time.model import Ceilings

    if peak_tflops is None and bandwidth_gb_s is None:
        return None
    tflops, gb_s = peak_tflops or 0.0, bandwidth_gb_s or 0.0
    if not (0 < tflops < math.inf and 0 < gb_s < math.inf):
        raise InputError("measured ceilings come in pairs of positive numbers: --peak-tflops and --bandwidth")
    return Ceilings(tflops * 1e12, gb_s * 1e9, "measured, as given", measured=True)


def _require_plot(targets: Sequence[Target], measured: Ceilings | None, out: str) -> None:
    """InputError if the plot could not be drawn or written."""
    for target in targets:
        if measured is None and target.peaks is None:
            raise InputError(f"target {target.name} has no spec: name --peak-tflops and --bandwidth to plot a roof")
    path = Path(out)
    if not _is_folder(out) and path.suffix not in ("", ".svg"):
        raise InputError(f"{out}: the plot is SVG; name --out FILE.svg or a folder")
    require_writable(path if _is_folder(out) else path.resolve().parent)


def _is_folder(out: str) -> bool:
    return out.endswith("/") or Path(out).is_dir()


def _plot_path(out: str, document: Mapping[str, Any], several: bool) -> Path:
    """``FILE.svg``, ``FILE-TARGET.svg`` for several targets, or ``FOLDER/PROGRAM-TARGET-roofline.svg``."""
    if _is_folder(out):
        return Path(out) / f"{document['name']}-{document['target']}-roofline.svg"
    path = Path(out).with_suffix(".svg")
    return path.with_name(f"{path.stem}-{document['target']}.svg") if several else path


def _print_ops(costs: Mapping[str, Cost], console: Console) -> None:
    from fusionlab.report.tables import Table, shown
    from fusionlab.units import BYTES, FLOPS, unit_for

    found = [(name, cost) for name, cost in costs.items() if cost.bytes or cost.flops or cost.unmodelled]
    if found:
        flop = unit_for(max(cost.flops for _, cost in found), FLOPS)
        byte = unit_for(max(cost.bytes for _, cost in found), BYTES)
        Table.of(
            "StableHLO ops, as if none were fused",
            found,
            {
                "family": lambda row: row[0],
                flop[0]: lambda row: shown(row[1].flops, 2, flop[1]),
                byte[0]: lambda row: shown(row[1].bytes, 2, byte[1]),
                "FLOP/byte": lambda row: shown(row[1].intensity, 3),
                "unmodelled ops": lambda row: f"{sum(row[1].unmodelled.values()):,}",
            },
        ).print(console)


def _print_points(title: str, heads: Mapping[str, str], points: Sequence[Point], console: Console) -> None:
    from fusionlab.report.tables import Cell, Table, field, milliseconds, number
    from fusionlab.units import BYTES, FLOP_RATES, FLOPS, TIMES, unit_for

    flop = unit_for(max((one.flops for one in points), default=0), FLOPS)
    byte = unit_for(max((one.bytes for one in points), default=0), BYTES)
    time = unit_for(max((one.model_us or 0.0 for one in points), default=0), TIMES)
    rate = unit_for(max((one.model_flops_per_s or 0.0 for one in points), default=0), FLOP_RATES)
    columns: dict[str, Cell] = {
        **{head: field(name) for head, name in heads.items()},
        "launches": number("dynamic_launches"),
        flop[0]: number("flops", 2, flop[1]),
        byte[0]: number("bytes", 3, byte[1]),
        "FLOP/byte": number("intensity_flop_per_byte", 3),
        f"model {time[0]}": lambda one: milliseconds(one.model_us, incomplete=one.is_lower_bound, per=time[1]),
        "share": number("model_share", spec=".1%"),
        rate[0]: number("model_flops_per_s", 1, rate[1]),
        "of roof": number("roof_share", spec=".0%"),
        "bound": field("bound"),
    }
    Table.of(title, points, columns, words=len(heads)).print(console)


def _print_notes(ceilings: Ceilings | None, notes: Sequence[str], console: Console) -> None:
    from fusionlab.report.tables import note

    for line in notes:
        note(console, line)
    if ceilings is None:
        note(console, "no ceilings: the target has no spec; --peak-tflops and --bandwidth give measured ones")
        return
    in_tf32 = ceilings.tf32_flops_per_s or ceilings.flops_per_s
    tf32 = f"{in_tf32 / 1e12:,.0f} in TF32, " if in_tf32 != ceilings.flops_per_s else ""
    note(
        console,
        f"ceilings ({ceilings.source}): {ceilings.flops_per_s / 1e12:,.2f} TFLOP/s in FP32, "
        f"{tf32}{ceilings.bytes_per_s / 1e9:,.0f} GB/s, ridge at {ceilings.ridge_flop_per_byte:,.1f} FLOP/byte; "
        "FLOPs, bytes and time are models"
        + ("; time is the roofline of the measured ceilings and 1 us per launch" if ceilings.measured else ""),
    )
