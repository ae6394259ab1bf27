"""Options as they are typed, for the command lines that a report gives: only those that are not at their default."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from fusionlab.commands.apply import ApplyOptions
from fusionlab.commands.source import SourceOptions
from fusionlab.study import Circumstances


def source_arguments(options: SourceOptions) -> str:
    """Those that name the program."""
    return _typed(vars(options), vars(SourceOptions())) if options.file is None else shlex.quote(options.file)


def pass_arguments(options: ApplyOptions) -> str:
    """Those that say which passes."""
    search = options.search
    given = {
        "pipeline": options.pipeline,
        "memory-budget": options.memory_budget,
        "objective": search.objective,
        "time-limit": search.time_limit_s,
        "seed": search.seed,
    }
    return _typed(given)


def check_arguments(given: Circumstances) -> str:
    """Those of the check."""
    typed = _typed(_of_check(given), _of_check(Circumstances(given.target)))
    return " ".join(filter(None, (typed, "" if given.exact else "--no-exact")))


def _of_check(given: Circumstances) -> dict[str, int]:
    return {"check-walkers": given.check_walkers, "check-time-limit": int(given.check_time_limit_s)}


def _typed(given: Mapping[str, Any], usual: Mapping[str, Any] | None = None) -> str:
    known = usual or {}
    typed = [(name, value) for name, value in given.items() if value is not None and value != known.get(name)]
    return " ".join(f"--{name} {shlex.quote(str(value))}" for name, value in typed)
