"""``fusionlab graph``: a picture of a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.output import require_writable
from fusionlab.report.dot import write_graph
from fusionlab.report.replay_view import replay_dot
from fusionlab.workload import Workload


def graph(source: Workload | Program, out: str | None, platform: str, console: Console) -> dict[str, Any]:
    """Draw the replay view and write ``.dot`` and, where Graphviz is installed, ``.svg``. Nothing is compiled."""
    program = lower(source, platform) if isinstance(source, Workload) else source
    path = Path(out) if out else Path(f"{program.name}-replay.svg")
    require_writable(path.resolve().parent)
    written = write_graph(replay_dot(program), path)
    if written.hint:
        print(f"fusionlab: {written.hint}", file=sys.stderr)
    for file in written.paths:
        console.print(f"written: {file}", soft_wrap=True)
    return {"name": program.name, "view": "replay", "files": [str(file) for file in written.paths]}
