"""``fusionlab launches``: the ledger of a compiled program, for one target or several side by side.

Its columns and headings are here; the rows are those of ``ledger.launch_rows``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make_all

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.codegen.targets import Target
    from fusionlab.ledger.launch_rows import LaunchRow, Totals
    from fusionlab.study import Circumstances


@click.command("launches")
@options.source
@options.targets
@options.by("scope[:depth], op, source, caller, transform, stage, role, phase, family, kind, loop, ...")
@click.option("--groups", default=30, show_default=True, type=click.IntRange(min=0), help="How many groups to list.")
@click.option(
    "--sites", default=15, show_default=True, type=click.IntRange(min=0), help="How many launch sites to list."
)
@options.cache
@options.verb
def command(
    source: dict[str, Any], by: tuple[str, ...], groups: int, sites: int, console: Console, where: dict[str, Any]
) -> dict[str, Any]:
    """Every kernel launch with its scope, op, source line, family, FLOPs, bytes and modelled time."""
    loaded, given, targets = load_facts(source, several=True, **where)
    return launches(loaded, targets, by, sites, given, console, groups=groups)


def launches(
    source: Source,
    targets: Sequence[Target],
    by: Sequence[str],
    sites: int,
    given: Circumstances,
    console: Console,
    *,
    groups: int = 30,
) -> dict[str, Any]:
    """Print totals ``by`` views and the ``sites`` slowest launch sites (0: none).

    Without ``by``, the view is the first of ``views.DEFAULTS`` that says something. At most ``groups`` of the totals
    are printed (0: all).
    Returns the ``--json`` document for one target, ``{"targets": [...]}`` of such documents for several. InputError for
    an unknown view, before anything is compiled. The document is a ledger that ``diff`` reads.
    """
    from fusionlab.ledger.launch_rows import totals
    from fusionlab.ledger.ledger import count_launches
    from fusionlab.ledger.saved import ledger_record
    from fusionlab.ledger.views import default_views, require_views, totals_by

    require_views(by)
    documents, tables = [], []
    for made in make_all(source, targets, given):
        record = ledger_record(made.compiled, memory_known=made.program is not None)
        rows = record.rows
        counts, on_gpu = count_launches(made.compiled), made.compiled.target.kind == "cuda"
        found, devices = totals(rows), 1 if made.program is None else made.program.devices
        document = {
            **record.to_json(),
            "devices": devices,
            "notes": [*made.notes, *([f"of each of {devices} devices"] if devices > 1 else ())],
            "totals": {
                **found.to_json(),
                "dynamic_copies": counts.dynamic_copies,
                "dynamic_collectives": counts.dynamic_collectives,
                "unknown_trip_loops": counts.unknown_trip_loops,
                "conditionals": counts.conditionals,
                "unknown_cuda_graph_launches": sum(  # XLA's lists say it of GPUs only
                    row.dynamic_launches for row in rows if on_gpu and row.in_cuda_graph is None
                ),
            },
        }
        shown_by = tuple(by) or default_views(rows)
        document["by"] = list(shown_by)
        document["groups"] = [
            {**dict(zip(shown_by, key, strict=True)), **group.to_json()}
            for key, group in totals_by(rows, shown_by).items()
        ]
        documents.append(document)
        tables.append((document, rows, found))
    if len(tables) == 1:
        _print_one(*tables[0], sites, groups, console)
    else:
        _print_several(tables, groups, console)
    return documents[0] if len(documents) == 1 else {"targets": documents}


def _print_one(
    document: dict[str, Any], rows: Sequence[LaunchRow], found: Totals, sites: int, most: int, console: Console
) -> None:
    from fusionlab.ledger.views import is_staged, label, totals_by
    from fusionlab.report.tables import BYTES, FLOPS, TIMES, Cell, Table, field, number, print_rows, unit_for

    flop, byte, time = unit_for(found.flops, FLOPS), unit_for(found.bytes, BYTES), unit_for(found.model_us, TIMES)
    in_time = functools.partial(_time, per=time[1])
    numbers: dict[str, Cell] = {
        "static": number("static_launches"),
        "dynamic": number("dynamic_launches"),
        flop[0]: number("flops", 2, flop[1]),
        byte[0]: number("bytes", 3, byte[1]),
        "FLOP/byte": number("intensity_flop_per_byte", 2),
        f"model {time[0]}": in_time,
    }
    by = tuple(document["by"])
    every = list(totals_by(rows, by).items())
    groups = [*every[: most or None], (("all",), found)]
    body = [[" ".join(key), *(cell(group) for cell in numbers.values())] for key, group in groups]
    title = f"{document['name']} on {document['target']}: launches by {', '.join(by)}"
    print_rows(title, (" ".join(by), *numbers), body, console)
    _not_shown(len(every), most, console)
    if sites:
        slowest = sorted(rows, key=lambda row: -(row.model_us or 0.0))[:sites]
        named = [name for name in ("scope", "op", "transform", "source") if any(getattr(row, name) for row in slowest)]
        places = ["stage", "role", "source"] if is_staged(rows) else named
        columns: dict[str, Cell] = {
            "launch": field("name"),
            "family": field("family"),
            **{place: functools.partial(label, view=place) for place in places if place == "stage"},
            **{place: field(place) for place in places if place != "stage"},
            "trips": field("trip_count"),
            byte[0]: numbers[byte[0]],
            time[0]: in_time,
        }
        title = f"the {len(slowest)} slowest of {len(rows)} launch sites (model)"
        Table.of(title, slowest, columns, words=2 + len(places)).print(console)
    _notes(document, rows, console, legend=bool(sites) or "stage" in by)


def _not_shown(groups: int, most: int, console: Console) -> None:
    from fusionlab.report.tables import note

    if most and groups > most:
        note(console, f"{groups - most} more groups; --groups 0 shows all, --by scope:1 has fewer")


def _print_several(tables: Sequence[tuple[Any, Any, Totals]], most: int, console: Console) -> None:
    from fusionlab.ledger.launch_rows import Totals
    from fusionlab.ledger.views import totals_by
    from fusionlab.report.tables import TIMES, note, print_rows, unit_for

    unit, per = unit_for(max(found.model_us or 0.0 for _, _, found in tables), TIMES)
    names = [document["target"] for document, _, _ in tables]
    by = tuple(tables[0][0]["by"])
    grouped = [totals_by(rows, by) for _, rows, _ in tables]
    keys = list(dict.fromkeys(key for groups in grouped for key in groups))
    sums = [(" ".join(key), [groups.get(key, Totals()) for groups in grouped]) for key in keys[: most or None]]
    sums.append(("all", [found for _, _, found in tables]))
    columns = [f"{name} {what}" for name in names for what in ("launches", f"model {unit}")]
    body = [
        [name, *(cell for one in of for cell in (f"{one.dynamic_launches:,}", _time(one, per)))] for name, of in sums
    ]
    print_rows(f"{tables[0][0]['name']}: dynamic launches by {', '.join(by)}", (" ".join(by), *columns), body, console)
    _not_shown(len(keys), most, console)
    for at, (document, rows, _) in enumerate(tables):
        note(console, f"{document['target']}:")
        _notes(document, rows, console, legend=not at and "stage" in by)


def _time(found: Totals | LaunchRow, per: float) -> str:
    from fusionlab.report.tables import milliseconds

    return milliseconds(found.model_us, incomplete=getattr(found, "unmodelled_us_launches", 0) > 0, per=per)


def _notes(document: dict[str, Any], rows: Sequence[LaunchRow], console: Console, *, legend: bool) -> None:
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.ledger.views import coverage_words, is_staged
    from fusionlab.report.tables import note

    found, staged = document["totals"], is_staged(rows)
    lines = [
        *([LEGEND] if staged and legend else []),
        f"launches: {document['launch_source']}; {found['dynamic_copies']:,} copies and memsets beside them; "
        f"{coverage_words(rows)}; "
        f"{found['unmodelled_bytes'] / max(1, found['bytes']):.1%} of bytes have no FLOP rule",
        "model: FLOPs and bytes by fusionlab's rules, trips multiplied; time by XLA's cost model where it has one, "
        "else the target's roofline, plus 1 us per launch",
    ]
    if unmodelled := found["unmodelled_us_launches"]:
        lines.append(f"{unmodelled:,} launches have no modelled time")
    if unknown := found["unknown_cuda_graph_launches"]:
        lines.append(f"whether a CUDA graph holds them is not known of {unknown:,} launches")
    if loops := found["unknown_trip_loops"]:
        lines.append(f"loops of unknown trip count, taken as one trip: {loops}")
    if conditionals := found["conditionals"]:
        lines.append(f"conditionals, each counted as its longest branch: {conditionals} (--json names the branches)")
    for line in (*lines, *document["notes"]):
        note(console, line)
