"""Endings of a verb and their exit codes: 0 done, 1 a check failed, 2 invalid input, 130 interrupted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fusionlab.cli.terminal import say

if TYPE_CHECKING:
    from fusionlab.passes.interface import Event
    from fusionlab.study import StudyResult

EXIT_CODES = {
    "done": 0,
    "not applied": 0,
    "not applied, and required": 1,
    "pass failed": 1,
    "different": 1,
    "not checked": 1,
    "not measured": 1,
    "not compiled": 1,
    "not shown": 1,
    "broken pipe": 1,
    "bad input": 2,
    "interrupted": 130,
}

Endings = dict[str, str]
"""Keys of EXIT_CODES, each with its reason."""


def exit_code(endings: Iterable[str]) -> int:
    """The largest exit code of ``endings``; 0 if empty."""
    return max((EXIT_CODES[ending] for ending in endings), default=0)


def failed_passes(events: Iterable[Event]) -> Endings:
    """``pass failed`` if ``events`` have a failure: the results are not of the requested rewriting."""
    from fusionlab.passes.interface import told_faults

    fault = told_faults(events)
    return {"pass failed": fault} if fault else {}


def say_endings(endings: Endings, lines: Mapping[str, str], where: str = "", *, with_reasons: bool) -> int:
    """Say each ending on stderr, by its line in ``lines``, after ``where``; return their exit code.

    ``with_reasons``: also in lines without a place for one, ``{}``; stdout does not have them.
    """
    for ending, why in endings.items():
        line = lines[ending.removesuffix(", and required")]
        say(where + (line.format(why) if "{}" in line or not with_reasons else f"{line}: {why}"))
    return exit_code(endings)


def endings_of(outcome: StudyResult, *, unchecked: bool, require_applied: bool) -> Endings:
    """The endings of a rewriting; empty on success. ``unchecked`` and ``require_applied`` are the options."""
    endings, verdict = failed_passes(outcome.events), outcome.equivalence
    if verdict.verdict == "different":
        return endings | {"different": verdict.worst or verdict.reason}
    if endings:
        return endings
    if verdict.verdict == "not-checked" and not unchecked:
        return {"not checked": verdict.reason}
    if not outcome.applied:
        from fusionlab.passes.pipeline import why_nothing_applied

        ending = "not applied, and required" if require_applied else "not applied"
        return {ending: why_nothing_applied(outcome.events, outcome.original)}
    return {}
