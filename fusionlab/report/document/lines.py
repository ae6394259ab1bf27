"""Every op that a study shows, as one line of text, stored once with its name stack and source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fusionlab.hlo.diff.lines import Names, line_of
from fusionlab.hlo.diff.numbering import Digests
from fusionlab.hlo.diff.records import OpLine
from fusionlab.hlo.view import Node, source_of


class Lines:
    """A growing table of lines; scopes and sources are stored apart, since many lines share them."""

    def __init__(self) -> None:
        self._at: dict[tuple[str, str], int] = {}
        self._rows: list[list[Any]] = []
        self._scopes: dict[str, int] = {}
        self._sources: dict[str, int] = {}
        self._places: dict[str, tuple[str, int]] = {}

    def of_node(self, node: Node, view: Digests, names: Names) -> int:
        """The position of ``node``'s line; ``view`` is that of the program which it is an op of."""
        line = line_of(node, names, lambda value: view.origins.get(value, value), "")
        place = source_of(node.operation)
        source = f"{place[0].rpartition('/')[2]}:{place[1]}" if place else ""
        if place:
            self._places.setdefault(source, place)
        name = names.name(node.results[0]) if node.results else ""
        return self._position(name, line.text, line.scope, source)

    def of_line(self, line: OpLine) -> int:
        """The position of a line of a diff (without a source, unless a program with that op was put in before)."""
        return self._position(line.results[0] if line.results else "", line.text, line.scope, "")

    def _position(self, name: str, text: str, scope: str, source: str) -> int:
        key = (text, scope)
        if key not in self._at:
            self._at[key] = len(self._rows)
            self._rows.append([name, text, _index(self._scopes, scope), _index(self._sources, source)])
        return self._at[key]

    def source_lines(self) -> dict[str, str]:
        """The text of every source line, where its file can be read. For programs of our own only: the locations in a
        file from elsewhere could name any file of this machine."""
        files: dict[str, list[str]] = {}
        found = {}
        for source, (path, number) in self._places.items():
            if path not in files:
                try:
                    files[path] = Path(path).read_text("utf-8").splitlines()
                except (OSError, UnicodeDecodeError):
                    files[path] = []
            if 0 < number <= len(files[path]):
                found[source] = files[path][number - 1].strip()
        return found

    def to_json(self) -> dict[str, Any]:
        """``rows`` of ``columns``; scope and source are positions in ``scopes`` and ``sources`` ("file.py:12")."""
        return {
            "columns": ["name", "text", "scope", "source"],
            "rows": self._rows,
            "scopes": list(self._scopes),
            "sources": list(self._sources),
        }


def _index(table: dict[str, int], text: str) -> int:
    return table.setdefault(text, len(table))
