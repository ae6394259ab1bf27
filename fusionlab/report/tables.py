"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from fusionlab.ledger.footprint import Footprint
from fusionlab.passes.contract import Applied, Event
from fusionlab.report.column_groups import column_groups
from fusionlab.study import Outcome

ROWS: tuple[tuple[str, str], ...] = (
    ("StableHLO ops", "stablehlo_ops"),
    ("launches, static", "static_launches"),
    ("launches, dynamic", "dynamic_launches"),
    ("copies and memsets, dynamic", "dynamic_copies"),
    ("temp memory (MiB)", "temp_bytes"),
    ("argument memory (MiB)", "argument_bytes"),
    ("GFLOP (model)", "flops"),
    ("GiB accessed (model)", "bytes_accessed"),
    ("compile (s)", "compile_s"),
)


def print_footprint(found: Footprint, console: Console) -> None:
    """One program's figures, a row each."""
    rows = [(label, _cell(field, getattr(found, field))) for label, field in ROWS]
    print_rows(_title(found), ("", found.target), rows, console)
    _note_compilation([found], console)


def print_outcome(outcome: Outcome, console: Console) -> None:
    """The verdict, before and after side by side, and the events."""
    console.print(f"equivalence: {outcome.equivalence.line}", soft_wrap=True)
    before, after = outcome.before, outcome.after
    if before is not None:
        rows = []
        for label, field in ROWS:
            old, new = getattr(before, field), getattr(after, field) if after else None
            rows.append((label, _cell(field, old), _cell(field, new), _ratio(field, old, new)))
        print_rows(_title(before), ("", "before", "after", "after / before"), rows, console)
    console.print(f"pipeline: {outcome.pipeline} ({outcome.pass_s:.1f} s without XLA's compiles)", soft_wrap=True)
    print_events(outcome.events, console)
    _note_compilation([side for side in (before, after) if side], console)


def print_events(events: Sequence[Event], console: Console) -> None:
    """What each pass did, or why it did not, a line each."""
    for event in events:
        place = f", at {event.location}" if event.location else ""
        if isinstance(event, Applied):
            console.print(f"  applied  {event.pass_name}: {event.what}{place}", soft_wrap=True)
        else:
            console.print(f"  declined {event.pass_name} ({event.kind}): {event.reason}{place}", soft_wrap=True)


def print_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console, *, words: int = 1
) -> None:
    """A plain table: the first ``words`` columns left, the numbers after them right.

    From 40 columns on nothing is cut: where the terminal is too narrow, words go on in the next line, and numbers in
    another table below.
    """
    widths = [max(len(cell) for cell in (column, *(row[i] for row in rows))) for i, column in enumerate(columns)]
    for number, shown in enumerate(column_groups(widths, words, console.width)):
        table = _table("" if number else title, [columns[i] for i in shown], words)
        for row in rows:
            table.add_row(*(row[i] for i in shown))
        console.print(table)


def milliseconds(us: float | None, *, incomplete: bool = False) -> str:
    """Microseconds as milliseconds; ``-`` for unknown, ``>=`` before a sum that lacks unknown times."""
    return "-" if us is None else f"{'>=' if incomplete else ''}{us / 1e3:,.2f}"


def _table(title: str, columns: Sequence[str], words: int = 1) -> Table:
    padding = (0, 1) if words == 1 else (0, 1, 0, 0)  # columns of words need the room: as column_groups reckons
    table = Table(
        title=title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=padding
    )
    for index, column in enumerate(columns):
        if index < words:
            table.add_column(column, justify="left", overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    return table


def _title(found: Footprint) -> str:
    return f"{found.name} on {found.target}"


def _cell(field: str, value: float | None) -> str:
    if value is None:
        return "-"
    if field in ("temp_bytes", "argument_bytes"):
        return _decimal(value / 2**20, 1)
    if field == "bytes_accessed":
        return _decimal(value / 2**30, 2)
    if field == "flops":
        return _decimal(value / 1e9, 1)
    return f"{value:,.1f}" if field == "compile_s" else f"{value:,}"


def _decimal(value: float, digits: int) -> str:
    """``value`` with so many digits; two significant ones where these would show a small figure as nothing."""
    return f"{value:.2g}" if 0 < value < 0.5 * 10**-digits else f"{value:,.{digits}f}"


def _ratio(field: str, old: float | None, new: float | None) -> str:
    return f"{new / old:.3f}" if old and new is not None else "-"


def _note_compilation(found: Sequence[Footprint], console: Console) -> None:
    """What a reader must know to compare these figures with others."""
    sources = sorted({one.launch_source for one in found if one.launch_source})
    console.print(f"launches: {', '.join(sources)}; compiled without autotuning when the GPU is absent", style="dim")
