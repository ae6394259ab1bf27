"""``fusionlab launches``: the ledger of a compiled program, for one target or several side by side.

Its columns and headings are here; the rows are those of ``ledger.launch_rows``.
"""

from __future__ import annotations

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

DEFAULT_BY = ("phase", "stage", "role")


@click.command("launches")
@options.source
@options.targets
@click.option(
    "--by", default="", help="Totals by columns: phase, stage, role, family, name, kind, trip_count, in_cuda_graph, ..."
)
@click.option(
    "--sites", default=15, show_default=True, type=click.IntRange(min=0), help="How many launch sites to list."
)
@options.cache
@options.verb
def command(source: dict[str, Any], by: str, sites: int, console: Console, where: dict[str, Any]) -> dict[str, Any]:
    """Every kernel launch with phase, stage, derivative role, family, FLOPs, bytes and modelled time."""
    loaded, given, targets = load_facts(source, several=True, **where)
    columns = [column.strip() for column in by.split(",") if column.strip()]
    return launches(loaded, targets, columns, sites, given, console)


def launches(
    source: Source, targets: Sequence[Target], by: Sequence[str], sites: int, given: Circumstances, console: Console
) -> dict[str, Any]:
    """Print totals ``by`` columns (default: phase, stage, role) and the ``sites`` slowest launch sites (0: none).

    Returns the ``--json`` document for one target, ``{"targets": [...]}`` of such documents for several. InputError for
    an unknown column, before anything is compiled.
    """
    from fusionlab.ledger.launch_rows import launch_rows, require_columns, totals, totals_by
    from fusionlab.ledger.ledger import count_launches

    require_columns(by)
    documents, tables = [], []
    for made in make_all(source, targets, given):
        rows = launch_rows(made.compiled)
        counts, on_gpu = count_launches(made.compiled), made.compiled.target.kind == "cuda"
        found, devices = totals(rows), 1 if made.program is None else made.program.devices
        document = {
            "name": made.compiled.name,
            "target": made.compiled.target.name,
            "launch_source": counts.launch_source,
            "devices": devices,
            "notes": [*made.notes, *([f"of each of {devices} devices"] if devices > 1 else ())],
            "rows": [row.to_json() for row in rows],
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
        if by:
            document["by"] = list(by)
            document["groups"] = [
                {**dict(zip(by, key, strict=True)), **group.to_json()} for key, group in totals_by(rows, by).items()
            ]
        documents.append(document)
        tables.append((document, rows, found))
    if len(tables) == 1:
        _print_one(*tables[0], tuple(by) or DEFAULT_BY, sites, console)
    else:
        _print_several(tables, tuple(by) or DEFAULT_BY, console)
    return documents[0] if len(documents) == 1 else {"targets": documents}


def _print_one(
    document: dict[str, Any],
    rows: Sequence[LaunchRow],
    found: Totals,
    by: tuple[str, ...],
    sites: int,
    console: Console,
) -> None:
    from fusionlab.ledger.launch_rows import label, totals_by
    from fusionlab.report.tables import Cell, Table, field, number, print_rows

    numbers: dict[str, Cell] = {
        "static": number("static_launches"),
        "dynamic": number("dynamic_launches"),
        "GFLOP": number("flops", 2, 1e9),
        "GiB": number("bytes", 3, 2**30),
        "FLOP/byte": number("intensity_flop_per_byte", 2),
        "model ms": _ms,
    }
    groups = [*totals_by(rows, by).items(), (("all",), found)]
    body = [[" ".join(key), *(cell(group) for cell in numbers.values())] for key, group in groups]
    title = f"{document['name']} on {document['target']}: launches by {', '.join(by)}"
    print_rows(title, (" ".join(by), *numbers), body, console)
    if sites:
        slowest = sorted(rows, key=lambda row: -(row.model_us or 0.0))[:sites]
        columns: dict[str, Cell] = {
            "launch": field("name"),
            "family": field("family"),
            "stage": lambda row: label(row, "stage"),
            "role": field("role"),
            "source": field("source"),
            "trips": field("trip_count"),
            "GiB": numbers["GiB"],
            "ms": _ms,
        }
        title = f"the {len(slowest)} slowest of {len(rows)} launch sites (model)"
        Table.of(title, slowest, columns, words=5).print(console)
    _notes(document, console)


def _print_several(tables: Sequence[tuple[Any, Any, Totals]], by: tuple[str, ...], console: Console) -> None:
    from fusionlab.ledger.launch_rows import Totals, totals_by
    from fusionlab.report.tables import note, print_rows

    names = [document["target"] for document, _, _ in tables]
    grouped = [totals_by(rows, by) for _, rows, _ in tables]
    keys = list(dict.fromkeys(key for groups in grouped for key in groups))
    sums = [(" ".join(key), [groups.get(key, Totals()) for groups in grouped]) for key in keys]
    sums.append(("all", [found for _, _, found in tables]))
    columns = [f"{name} {what}" for name in names for what in ("launches", "model ms")]
    body = [[name, *(cell for one in of for cell in (f"{one.dynamic_launches:,}", _ms(one)))] for name, of in sums]
    print_rows(f"{tables[0][0]['name']}: dynamic launches by {', '.join(by)}", (" ".join(by), *columns), body, console)
    for document, _, _ in tables:
        note(console, f"{document['target']}:")
        _notes(document, console)


def _ms(found: Totals | LaunchRow) -> str:
    from fusionlab.report.tables import milliseconds

    return milliseconds(found.model_us, incomplete=getattr(found, "unmodelled_us_launches", 0) > 0)


def _notes(document: dict[str, Any], console: Console) -> None:
    from fusionlab.report.tables import note

    found, runs = document["totals"], max(1, document["totals"]["dynamic_launches"])
    lines = [
        f"launches: {document['launch_source']}; {found['dynamic_copies']:,} copies and memsets beside them; "
        f"{found['attributed_launches'] / runs:.1%} of dynamic launches carry phase, stage and role "
        f"({found['attributed_by_readers_launches'] / runs:.1%} those of their readers); "
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
