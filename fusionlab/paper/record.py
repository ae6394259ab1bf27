"""The record of the matrix: one JSON file with a row per cell that was measured; each row is written at once.

``{"format", "circumstances", "cells": {"MODEL MOLECULE PROGRAM TARGET": row}}``. A row has what determines it: the
versions of JAX and the digest of the programs' sources. A row with ``failed`` has a reason instead of figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole
from fusionlab.paper.matrix import GROUP_BY, GROUP_FIGURES, Cell, MatrixSetup, Row

FORMAT = "fusionlab-paper-1"
WHAT_DECIDES = ("versions", "sources")
FIGURES = (
    "dynamic_launches", "model_us", "unmodelled_us_launches", "electrons", "most_laplacian_trips",
    "argument_bytes", "output_bytes", "temp_bytes", "alias_bytes",
)  # fmt: skip
"""The fields of a row that tables and claims read, beside its groups."""


class Record:
    """The rows in ``path`` (which may not exist yet). InputError: another format, or other walkers."""

    def __init__(self, path: Path, given: MatrixSetup) -> None:
        self.path, self.circumstances = path, given
        self._rows = _read(path, given)
        self.failed_again: dict[Cell, str] = {}
        """Cells that could not be measured now and keep the figures that they had, with the reason."""

    @property
    def rows(self) -> Mapping[Cell, Row]:
        """The rows that have figures."""
        return {Cell.parse(name): row for name, row in self._rows.items() if "failed" not in row}

    @property
    def failures(self) -> Mapping[Cell, str]:
        """The cells that could not be measured, and why."""
        return {Cell.parse(name): str(row["failed"]) for name, row in self._rows.items() if "failed" in row}

    def missing(self, cells: Iterable[Cell], versions: str, sources: str, *, failed_too: bool = False) -> list[Cell]:
        """The cells without a row of these versions and sources; those that failed only if requested."""
        return [cell for cell in cells if not self._is_current(cell, versions, sources, failed_too)]

    def out_of_date(self, versions: str, sources: str) -> list[Cell]:
        """The cells with figures of other versions or sources."""
        return [cell for cell in self.rows if not self._is_current(cell, versions, sources, False)]

    def add(self, cell: Cell, row: Row) -> None:
        """Store the row, also on disk; rows added meanwhile by another run are kept.

        A failure does not replace figures of the same versions and sources: it is in ``failed_again`` only.
        """
        self._rows = _read(self.path, self.circumstances)
        if "failed" in row and self._has_figures(cell, row.get("versions"), row.get("sources")):
            self.failed_again[cell] = str(row["failed"])
            return
        self._rows[str(cell)] = row
        require_writable(self.path.resolve().parent)
        write_whole(self.path, _text(self.circumstances, self._rows))

    def _has_figures(self, cell: Cell, versions: Any, sources: Any) -> bool:
        row = self._rows.get(str(cell))
        return row is not None and "failed" not in row and (row["versions"], row["sources"]) == (versions, sources)

    def _is_current(self, cell: Cell, versions: str, sources: str, failed_too: bool) -> bool:
        row = self._rows.get(str(cell))
        if row is None or (failed_too and "failed" in row):
            return False
        return row.get("versions") == versions and row.get("sources") == sources


def _read(path: Path, given: MatrixSetup) -> dict[str, Row]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a record of the paper's matrix (format {FORMAT}); give another --record")
    if content.get("circumstances") != given.to_json():
        raise InputError(
            f"{path}: holds figures of {content.get('circumstances')}, not of {given.to_json()}; give another --record"
        )
    rows: dict[str, Row] | None = content.get("cells")
    if not isinstance(rows, dict):
        raise InputError(f"{path}: has no object of cells; give another --record")
    for name, row in rows.items():
        _check(f"{path}: {name}", name, row)
    return rows


def _check(where: str, name: str, row: Any) -> None:
    """InputError unless the row has the reason of its failure, or every figure that the tables and claims read."""
    Cell.parse(name)
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an object; give another --record")
    if "failed" in row:
        return
    lacking = [field for field in (*WHAT_DECIDES, *FIGURES) if field not in row]
    if lacking:
        raise InputError(f"{where}: lacks {', '.join(lacking)}; take the row out to have it measured again")
    wrong = [
        field for field in FIGURES if not _is_figure(row[field]) and not (field == "model_us" and row[field] is None)
    ]
    if wrong:
        raise InputError(f"{where}: {', '.join(wrong)} must be numbers; take the row out to have it measured again")
    groups = row.get("groups")
    columns = [*GROUP_BY, *GROUP_FIGURES]
    if not isinstance(groups, dict) or groups.get("columns") != columns or not _is_table(groups.get("rows"), columns):
        raise InputError(f"{where}: its groups are no table of {', '.join(columns)}")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_table(rows: Any, columns: list[str]) -> bool:
    """True if the rows have a value per column and the figures are numbers, or None for unknown."""
    return isinstance(rows, list) and all(
        isinstance(row, list)
        and len(row) == len(columns)
        and all(value is None or _is_figure(value) for value in row[len(GROUP_BY) :])
        for row in rows
    )


def _text(given: MatrixSetup, rows: Mapping[str, Row]) -> str:
    """A line per field of a cell, and a line per group: diffs are readable."""
    cells = [f" {json.dumps(name)}: {_row_text(row)}" for name, row in sorted(rows.items())]
    head = f'{{\n"format": {json.dumps(FORMAT)},\n"circumstances": {json.dumps(given.to_json())},\n"cells": {{\n'
    return head + ",\n".join(cells) + "\n}\n}\n"


def _row_text(row: Row) -> str:
    fields = {name: json.dumps(value) for name, value in row.items() if name != "groups"}
    lines = [f"  {json.dumps(name)}: {value}" for name, value in fields.items()]
    if "groups" in row:
        groups = ",\n   ".join(json.dumps(group) for group in row["groups"]["rows"])
        columns = json.dumps(row["groups"]["columns"])
        lines.append(f'  "groups": {{"columns": {columns}, "rows": [\n   {groups}]}}')
    return "{\n" + ",\n".join(lines) + "\n }"
