"""The text of source lines that a program names. For programs of the user's own only: locations in an untrusted file
could name any file of this machine."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from pathlib import Path

from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import source_of


def source_name(place: tuple[str, int]) -> str:
    """A file and line as ledgers name them: ``model.py:12``."""
    return f"{place[0].rpartition('/')[2]}:{place[1]}"


def text_of_lines(places: Mapping[str, tuple[str, int]]) -> dict[str, str]:
    """The text of every one of ``places`` (by any name) whose file can be read."""
    found = {}
    for name, (path, number) in places.items():
        linecache.checkcache(path)  # a file may have been edited since it was read
        if Path(path).is_file() and (line := linecache.getline(path, number).strip()):
            found[name] = line
    return found


def source_text(program: Program) -> dict[str, str]:
    """The text of every source line of the ops of ``program``, by ``model.py:12``."""
    places = filter(None, (source_of(node.operation) for node in program_view(program).walk()))
    return text_of_lines({source_name(place): place for place in places})
