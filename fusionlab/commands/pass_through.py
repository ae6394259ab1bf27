"""``fusionlab apply`` on a valid module that is not studied: it comes out as it went in, and what is in it is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.commands.apply import ApplyOptions, pipeline_text, planned
from fusionlab.errors import NotStudied
from fusionlab.hlo.contents import parts_by_hand
from fusionlab.hlo.program import Program
from fusionlab.output import write_whole
from fusionlab.passes.catalogue import SEARCHED
from fusionlab.passes.interface import Declined
from fusionlab.reading import read_file
from fusionlab.report.tables.programs import print_events
from fusionlab.study import UNCHANGED
from fusionlab.workload import Workload


def require_one_device(source: Workload | Program) -> None:
    """NotStudied for the program of a file that says itself what each of several devices does: XLA compiles it for as
    many only, and ``apply`` compiles and checks for one."""
    if isinstance(source, Program) and (where := parts_by_hand(source.parse())) is not None:
        what = f"there is a sdy.manual_computation (shard_map) in {where}: it is compiled and checked for one device"
        path = Path(source.provenance)
        content = read_file(path) if path.is_file() else source.bytecode  # a pipe has been read
        raise NotStudied(source.provenance, what, where, content)


def pass_through(found: NotStudied, options: ApplyOptions, console: Console) -> tuple[dict[str, Any], int]:
    """Print a refusal of every pass that was asked for, and copy the file to ``--out``, byte by byte.

    Gives ``apply``'s document, without figures, and its exit code. InputError for options that ``apply`` refuses.
    """
    passes, searches = planned(options)
    names = [*(pass_.name for pass_ in passes), *([SEARCHED] if searches else [])]
    events = [Declined(name, "unsupported", found.what, found.where) for name in names]
    if options.out:
        write_whole(Path(options.out), found.content)
    console.print(f"pipeline: {pipeline_text(options)}", soft_wrap=True)
    print_events(events, console)
    console.print(f"equivalence: {UNCHANGED.verdict}: {UNCHANGED.reason}", soft_wrap=True)
    print(f"fusionlab: {found}; passed through untouched", file=sys.stderr)
    document = {
        "before": None,
        "after": None,
        "pipeline": pipeline_text(options),
        "pass_s": 0.0,
        "events": [event.to_json() for event in events],
        "equivalence": UNCHANGED.to_json(),
    }
    return document, 1 if options.require_applied else 0
