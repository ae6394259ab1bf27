"""``fusionlab apply`` on a valid module that is not studied: it comes out as it went in, and what is in it is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.commands.apply import ApplyOptions, passes_of, pipeline_text, require_file_name
from fusionlab.commands.best import fixed_part
from fusionlab.errors import InputError, NotStudied
from fusionlab.output import write_whole
from fusionlab.passes.catalogue import SEARCHED
from fusionlab.passes.contract import Declined
from fusionlab.report.tables import print_events
from fusionlab.study import UNCHANGED


def pass_through(found: NotStudied, options: ApplyOptions, console: Console) -> tuple[dict[str, Any], int]:
    """Print a refusal of every pass that was asked for, and copy the file to ``--out``, byte by byte.

    Gives ``apply``'s document, without figures, and its exit code.
    """
    fixed = fixed_part(pipeline_text(options))
    names = [pass_.name for pass_ in (passes_of(options) if fixed is None else fixed)]
    events = [Declined(name, "unsupported", found.what, found.where) for name in [*names, *_searched(fixed)]]
    if options.out:
        require_file_name(options.out, "--out")
        write_whole(Path(options.out), _content(found.path))
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


def _searched(fixed: object) -> list[str]:
    return [] if fixed is None else [SEARCHED]


def _content(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
