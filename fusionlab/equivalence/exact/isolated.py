"""Compare two programs exactly in a separate process, with limits of time and memory: it may crash, there always is a
verdict."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

from fusionlab.equivalence.exact.identity import Identity, compare_functions
from fusionlab.equivalence.few_walkers import WALKERS, narrow
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.subprocesses import ProcessFailed, call


def compare_files(original: Program, rewritten: Program, time_limit_s: float) -> Identity:
    """The verdict on two programs; ``not-covered`` when it exceeds a limit or fails.

    Programs that treat all walkers alike are compared at a few walkers, others at their own shapes.
    """
    try:
        found = call(compare, astuple(original), astuple(rewritten), limit_s=time_limit_s, memory_limited=True)
    except ProcessFailed as error:
        if error.exit_code is None:
            reason = f"time limit: the check did not finish within {time_limit_s:g} s"
        else:
            reason = f"a fault of the check, not of the programs (exit {error.exit_code}): {str(error)[:200]}"
        return Identity("not-covered", 0, 0, 1.0, reason)
    except OSError as error:  # no space for the files, or no process
        return Identity("not-covered", 0, 0, 1.0, f"a fault of the check, not of the programs: {error}")
    return Identity.from_json(found)


def compare(original: list[Any], rewritten: list[Any]) -> dict[str, Any]:
    """The verdict on the two programs, as JSON."""
    views = [view_of(Program(*program).parse()) for program in (original, rewritten)]
    few = WALKERS if narrow(views) else None
    return replace(compare_functions(*views), walkers=few).to_json()
