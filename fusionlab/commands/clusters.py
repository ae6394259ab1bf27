"""``fusionlab clusters``: groups of elementwise and layout work, in StableHLO and in launches, ranked by criteria."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from fusionlab.commands.facts import Source, make
from fusionlab.errors import InputError
from fusionlab.hlo.clusters import Cluster
from fusionlab.hlo.op_units import op_clusters
from fusionlab.ledger.launch_clusters import launch_clusters
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.report.tables import milliseconds, print_rows
from fusionlab.study import Circumstances


@dataclass(frozen=True)
class ClusterOptions:
    """``criteria`` is ``trace`` or ``pim``; ``link_gb_s`` and ``sync_us`` are the two assumptions of ``pim``."""

    criteria: str = "trace"
    link_gb_s: float | None = None
    sync_us: float = 1.0
    shown: int = 10


def clusters(source: Source, options: ClusterOptions, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print the clusters of launches (ranked by the time they can give back) and of ops (by the bytes).

    With ``pim`` launch clusters are ranked by what is left when the bytes across the boundary and two
    synchronisations per run are paid, and nothing else costs anything: the most that near-memory execution can give.
    """
    link = _link(options, given)  # before anything is compiled
    made = make(source, given)
    rows = launch_rows(made.compiled)
    whole = totals(rows)
    found = [one.to_json() for one in launch_clusters(made.compiled, rows)]
    for one in found:
        one["within_loop"] = one["runs"] > 1
        if options.criteria == "pim":
            one.update(_pim(one, link, options.sync_us))
    if options.criteria == "pim":
        found.sort(key=lambda one: (one["pim_gain_us"] is None, -(one["pim_gain_us"] or 0.0)))
    ops = op_clusters(made.program) if made.program is not None else []
    document: dict[str, Any] = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "criteria": options.criteria,
        "model_us": whole.model_us,
        "unmodelled_us_launches": whole.unmodelled_us_launches,
        "notes": list(made.notes),
        "launch_clusters": found,
        "op_clusters": [{**one.to_json(), "units": len(one.units)} for one in ops],
    }
    if options.criteria == "pim":
        document |= {"link_bytes_per_s": link, "sync_us": options.sync_us}
    _print_launches(document, options, console)
    _print_ops(ops[: options.shown], len(ops), console)
    for note in made.notes:
        console.print(note, style="dim", soft_wrap=True)
    return document


def _link(options: ClusterOptions, given: Circumstances) -> float:
    if options.criteria != "pim":
        return 0.0
    given_link = 1.0 if options.link_gb_s is None else options.link_gb_s
    if not (0 <= options.sync_us < math.inf and 0 < given_link < math.inf):
        raise InputError("--link must be positive and --sync-us not negative")
    if options.link_gb_s is not None:
        return options.link_gb_s * 1e9
    if given.target.peaks is None:
        raise InputError(f"target {given.target.name} has no spec: name --link in GB/s for --criteria pim")
    return given.target.peaks.memory_bytes_per_s


def _pim(one: Mapping[str, Any], link: float, sync_us: float) -> dict[str, float | None]:
    boundaries = 2 * one["runs"]
    transfer_us = 1e6 * one["least_bytes"] / link
    return {
        "boundary_bytes_per_step": one["least_bytes"],
        "boundaries_per_step": boundaries,
        "transfer_us": transfer_us,
        "synchronisation_us": boundaries * sync_us,
        "pim_gain_us": None if one["us"] is None else one["us"] - transfer_us - boundaries * sync_us,
    }


def _print_launches(document: dict[str, Any], options: ClusterOptions, console: Console) -> None:
    found, pim = document["launch_clusters"], options.criteria == "pim"
    shown = found[: options.shown]
    columns = [
        "cluster",
        "stages",
        "launches",
        "runs",
        "FLOP/byte",
        "us each",
        "conversions",
        "GiB",
        "as one",
        "gain ms",
    ]
    body = [
        [
            f"{rank} {one['units'][0]}",
            _stages(one["stages"]),
            f"{len(one['units'])}",
            f"{one['runs']}",
            f"{one['intensity_flop_per_byte']:,.2f}",
            "-" if one["us_per_invocation"] is None else f"{one['us_per_invocation']:,.1f}",
            f"{one['boundary_conversions']:,}",
            f"{one['bytes'] / 2**30:,.2f}",
            f"{one['least_bytes'] / 2**30:,.2f}",
            milliseconds(one["pim_gain_us"] if pim else one["gain_us"]),
        ]
        for rank, one in enumerate(shown, 1)
    ]
    title = f"{document['name']} on {document['target']}: clusters of launches, {len(shown)} of {len(found)}"
    print_rows(title, columns, body, console)
    gains = [one["pim_gain_us"] if pim else one["gain_us"] for one in found]
    known = [max(0.0, gain) for gain in gains if gain is not None]
    gain = milliseconds(sum(known) if known or not found else None)
    of = milliseconds(document["model_us"], incomplete=document["unmodelled_us_launches"] > 0)
    which = "all clusters" if len(known) == len(found) else f"the {len(known)} clusters of known time (of {len(found)})"
    console.print(
        f"{which} together can give back at most {gain} ms of {of} ms (model)"
        + (
            f"; assumed: {document['link_bytes_per_s'] / 1e9:,.0f} GB/s across a boundary, {document['sync_us']} us "
            "per crossing, computing near memory free"
            if pim
            else "; as one kernel: a launch, and the roofline of its boundary bytes and FLOPs"
        ),
        style="dim",
        soft_wrap=True,
    )


def _print_ops(shown: Sequence[Cluster], of: int, console: Console) -> None:
    body = [
        [
            f"{rank} {one.units[0].split(' ')[0]} .. {one.units[-1].split(' ')[0]}",
            _stages(one.stages),
            f"{len(one.units)}",
            f"{one.runs}",
            f"{one.intensity_flop_per_byte:,.3f}",
            f"{one.bytes_per_invocation / 2**20:,.2f}",
            f"{one.boundary_conversions:,}",
            f"{one.bytes / 2**30:,.2f}",
            f"{one.least_bytes / 2**30:,.2f}",
        ]
        for rank, one in enumerate(shown, 1)
    ]
    columns = ("cluster", "stages", "ops", "runs", "FLOP/byte", "MiB each", "conversions", "GiB unfused", "as one")
    print_rows(f"clusters of StableHLO ops, {len(shown)} of {of}", columns, body, console)


def _stages(counts: Mapping[str, int]) -> str:
    return "+".join(counts)
