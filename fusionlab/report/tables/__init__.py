"""Results as tables: a view declares columns with their cells; one model renders text, Markdown, or rows.

``text`` is for a terminal, uncut from 40 columns on: if it is too narrow, words wrap, and numbers go into another table
below.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from fusionlab.units import fixed

UNKNOWN = "-"
_LOOK: dict[str, Any] = {"title_justify": "left", "title_style": "bold", "box": box.SIMPLE_HEAD, "pad_edge": False}
_WORDS: dict[str, Any] = {"justify": "left", "overflow": "fold"}
_NUMBERS: dict[str, Any] = {"justify": "right", "no_wrap": True}
_LEAST_WORDS = 12
"""The least width of a column of words, in characters; longer words wrap."""

Cell = Callable[[Any], str]


@dataclass(frozen=True)
class Table:
    """``rows`` of text under ``columns``, of which the first ``words`` are words and the others numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1

    @staticmethod
    def of(
        title: str, records: Iterable[Any], columns: Mapping[str, Cell] | Sequence[tuple[str, Cell]], words: int = 1
    ) -> Table:
        """A row per record; ``columns`` are labels and functions from a record to a cell's text."""
        cells = list(columns.items()) if isinstance(columns, Mapping) else list(columns)
        rows = [[cell(record) for _, cell in cells] for record in records]
        return Table(title, [label for label, _ in cells], rows, words)

    def print(self, console: Console) -> None:
        """The table on a terminal."""
        widths = [max(len(row[i]) for row in (self.columns, *self.rows)) for i in range(len(self.columns))]
        between = (0, 1) if self.words == 1 else (0, 1, 0, 0)  # words need the room, as column_groups assumes
        for part, positions in enumerate(column_groups(widths, self.words, console.width)):
            made = RichTable(title=None if part else self.title or None, padding=between, **_LOOK)
            for i in positions:
                made.add_column(self.columns[i], **(_WORDS if i < self.words else _NUMBERS))
            for row in self.rows:
                made.add_row(*(row[i] for i in positions))
            console.print(made)

    def markdown(self) -> str:
        """The table for a page, without its title."""
        lines = (self.columns, ["---"] * len(self.columns), *self.rows)
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def html(self) -> str:
        """The table for a notebook, with its title as the caption; text of a program is escaped."""
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        head = "".join(f"<th>{html.escape(column)}</th>" for column in self.columns)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def print_rows(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console, *, words: int = 1
) -> None:
    """A plain table: the first ``words`` columns left, the numbers after them right."""
    Table(title, columns, rows, words).print(console)


def field(name: str) -> Cell:
    """The cell that has the text of a record's ``name``."""
    return lambda record: str(_value(record, name))


def number(name: str, digits: int = 0, per: float = 1, spec: str = "") -> Cell:
    """The cell that has a record's number ``name`` over ``per``, with ``digits`` or in the format ``spec``."""
    return lambda record: shown(_value(record, name), digits, per, spec)


def shown(value: float | None, digits: int = 0, per: float = 1, spec: str = "") -> str:
    """``value`` over ``per`` with ``digits`` after the point, or in the format ``spec``; ``-`` for unknown."""
    if value is None:
        return UNKNOWN
    scaled = value / per if per != 1 else value
    return f"{scaled:{spec}}" if spec else fixed(scaled, digits)


def milliseconds(us: float | None, *, incomplete: bool = False, per: float = 1e3) -> str:
    """Microseconds as milliseconds, or in units of ``per``; ``-`` for unknown, ``>=`` before a sum that lacks some."""
    return UNKNOWN if us is None else f"{'>=' if incomplete else ''}{fixed(us / per, 2)}"


def note(console: Console, line: str) -> None:
    """A dim line under a table, wrapped at the width of the terminal."""
    console.print(line, style="dim", soft_wrap=True)


def column_groups(widths: Sequence[int], words: int, room: int) -> list[list[int]]:
    """Positions of the columns of each table: the first ``words`` ones, which may wrap, and as many numbers as fit.

    ``widths`` are the characters of the widest cell of each column, ``room`` those of the terminal. A table has at
    least one column of numbers, if there are any. Columns are 3 apart, 2 if several are of words, and a table has a
    character left and right.
    """
    gap = 3 if words == 1 else 2
    names, numbers = list(range(words)), range(words, len(widths))
    free = room - 2 + gap - sum(min(widths[i], _LEAST_WORDS) + gap for i in names)
    groups: list[list[int]] = [[]]
    left = free
    for i in numbers:
        if groups[-1] and widths[i] + gap > left:
            groups.append([])
            left = free
        groups[-1].append(i)
        left -= widths[i] + gap
    return [[*names, *group] for group in groups]


def _value(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, Mapping) else getattr(record, name)
