"""``fusionlab clusters``: groups of elementwise and layout work, in StableHLO and in launches, ranked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.hlo.clusters import Cluster
    from fusionlab.report.tables import Cell
    from fusionlab.study import Circumstances


@click.command("clusters")
@options.source
@options.targets
@click.option("--criteria", default="trace", show_default=True, type=click.Choice(["trace", "pim"]))
@click.option("--link", type=float, help="pim: GB/s across a cluster's boundary.  [default: the target's memory]")
@click.option("--sync-us", default=1.0, show_default=True, type=float, help="pim: microseconds per boundary crossed.")
@click.option(
    "--shown", default=10, show_default=True, type=click.IntRange(min=0), help="How many clusters of each kind to list."
)
@options.cache
@options.verb
def command(source: dict[str, Any], console: Console, where: dict[str, Any], **ranked: Any) -> dict[str, Any]:
    """Rank elementwise and layout work that could be one kernel. The gain is an upper bound."""
    loaded, given, _ = load_facts(source, **where)
    return clusters(loaded, given, console, **ranked)


def clusters(
    source: Source,
    given: Circumstances,
    console: Console,
    *,
    criteria: str = "trace",
    link: float | None = None,
    sync_us: float = 1.0,
    shown: int = 10,
) -> dict[str, Any]:
    """Print the clusters of launches (ranked by the time they can save) and of ops (by the bytes).

    With ``pim`` launch clusters are ranked by the time left after the bytes across the boundary (at ``link`` GB/s) and
    two synchronisations per run, all else being free: the upper bound of near-memory execution.
    """
    from fusionlab.hlo.clusters import op_clusters
    from fusionlab.ledger.launch_clusters import launch_clusters
    from fusionlab.ledger.launch_rows import launch_rows, totals
    from fusionlab.ledger.views import is_staged
    from fusionlab.report.tables import note

    pim = criteria == "pim"
    link_bytes_per_s = _link(link, sync_us, given) if pim else 0.0  # before anything is compiled
    made = make(source, given)
    rows = launch_rows(made.compiled)
    whole = totals(rows)
    found = [one.to_json() for one in launch_clusters(made.compiled, rows)]
    for one in found:
        one["within_loop"] = one["runs"] > 1
        if pim:
            one.update(_pim(one, link_bytes_per_s, sync_us))
    if pim:
        found.sort(key=lambda one: (one["pim_gain_us"] is None, -(one["pim_gain_us"] or 0.0)))
    ops = op_clusters(made.program) if made.program is not None else []
    document: dict[str, Any] = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "criteria": criteria,
        "staged": is_staged(rows),
        "model_us": whole.model_us,
        "unmodelled_us_launches": whole.unmodelled_us_launches,
        "at_least_us_launches": whole.at_least_us_launches,
        "notes": list(made.notes),
        "launch_clusters": found,
        "op_clusters": [{**one.to_json(), "units": len(one.units)} for one in ops],
    }
    if pim:
        document |= {"link_bytes_per_s": link_bytes_per_s, "sync_us": sync_us}
    _print_launches(document, shown, console)
    _print_ops(ops, shown, document["staged"], console)
    for line in made.notes:
        note(console, line)
    return document


def _link(link_gb_s: float | None, sync_us: float, given: Circumstances) -> float:
    """The bandwidth across the boundary, bytes per second."""
    if not (0 <= sync_us < math.inf and (link_gb_s is None or 0 < link_gb_s < math.inf)):
        raise InputError("--link must be positive and --sync-us not negative")
    if link_gb_s is not None:
        return link_gb_s * 1e9
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


def _columns(
    found: Sequence[Mapping[str, Any]],
    units: str,
    intensity_digits: int,
    each: tuple[str, Cell],
    size: str,
    staged: bool,
) -> dict[str, Cell]:
    """The columns of the ranked clusters ``found``; ``each`` is the one of a single run.

    ``units`` is a label, and ``size`` one with a place for the unit of bytes.
    """
    from fusionlab.report.tables import number
    from fusionlab.units import BYTES, unit_for

    byte, per = unit_for(max((one["bytes"] for one in found), default=0), BYTES)
    return {
        "cluster": lambda row: f"{row['rank']} {row['label']}",
        **({"stages": lambda row: "+".join(row["stages"])} if staged else {"scopes": _most("scopes")}),
        "sources": _most("sources"),
        units: lambda row: f"{len(row['units'])}",
        "runs": lambda row: f"{row['runs']}",
        "FLOP/byte": number("intensity_flop_per_byte", intensity_digits),
        each[0]: each[1],
        "conversions": number("boundary_conversions"),
        size.format(byte): number("bytes", 2, per),
        "as one": number("least_bytes", 2, per),
    }


def _most(what: str) -> Cell:
    """The two places that most units of a cluster come from, and how many more there are."""

    def cell(row: Any) -> str:
        first, more = list(row[what])[:2], len(row[what]) - 2
        return ", ".join(first) + (f" +{more}" if more > 0 else "")

    return cell


def _print_launches(document: dict[str, Any], most: int, console: Console) -> None:
    from fusionlab.report.tables import UNKNOWN, Table, milliseconds, note, number
    from fusionlab.units import TIMES, time_words, unit_for

    found, gain_us = document["launch_clusters"], "pim_gain_us" if document["criteria"] == "pim" else "gain_us"
    shown = [{**one, "rank": rank, "label": one["units"][0]} for rank, one in enumerate(found[:most], 1)]
    columns = _columns(shown, "launches", 2, ("us each", number("us_per_invocation", 1)), "{}", document["staged"])
    unit, per = unit_for(max((one[gain_us] or 0.0 for one in shown), default=0), TIMES)
    columns[f"gain {unit}"] = lambda row: milliseconds(row[gain_us], per=per)
    known = [max(0.0, one[gain_us]) for one in found if one[gain_us] is not None]
    gain = time_words(sum(known)) if known or not found else UNKNOWN
    all_us = document["model_us"]
    at_least = document["unmodelled_us_launches"] > 0 or document["at_least_us_launches"] > 0
    of = UNKNOWN if all_us is None else time_words(all_us, at_least=at_least)
    which = "all clusters" if len(known) == len(found) else f"the {len(known)} clusters of known time (of {len(found)})"
    how = "as one kernel: a launch, and the roofline of its boundary bytes and FLOPs"
    if document["criteria"] == "pim":
        how = (
            f"assumed: {document['link_bytes_per_s'] / 1e9:,.0f} GB/s across a boundary, {document['sync_us']} us "
            "per crossing, computing near memory free"
        )
    summary = f"{len(found)} clusters of launches; {which} together can give back at most {gain} of {of} (model)"
    none = f"no clusters of launches: nothing of {of} (model) can be given back"
    where = f"{document['name']} on {document['target']}"
    console.print(f"{where}: {summary if found else none}", style="bold", soft_wrap=True, markup=False)
    if shown:
        Table.of(f"clusters of launches, {len(shown)} of {len(found)}", shown, columns, words=3).print(console)
        note(console, how)


def _print_ops(found: Sequence[Cluster], most: int, staged: bool, console: Console) -> None:
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.report.tables import Table, note, number
    from fusionlab.units import BYTES, unit_for

    shown = [
        {**one.to_json(), "rank": rank, "label": " .. ".join(one.units[at].split(" ")[0] for at in (0, -1))}
        for rank, one in enumerate(found[:most], 1)
    ]
    byte, per = unit_for(max((one["bytes_per_invocation"] for one in shown), default=0), BYTES)
    each = (f"{byte} each", number("bytes_per_invocation", 2, per))
    columns = _columns(shown, "ops", 3, each, "{} unfused", staged)
    Table.of(f"clusters of StableHLO ops, {len(shown)} of {len(found)}", shown, columns, words=3).print(console)
    if staged:
        note(console, LEGEND)
