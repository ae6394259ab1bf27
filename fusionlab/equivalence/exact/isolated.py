"""Compare two program files exactly in a process of its own, under a time and a memory limit.

    python -m fusionlab.equivalence.exact.isolated ORIGINAL REWRITTEN

prints the verdict as JSON. ``compare_files`` starts that process: whatever happens in it, it returns a verdict.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from fusionlab.equivalence.exact.identity import Identity, compare_functions
from fusionlab.equivalence.few_walkers import WALKERS, narrow
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.own_process import ProcessFailed, limit_memory, run_module


def compare_files(original: Program, rewritten: Program, time_limit_s: float) -> Identity:
    """The verdict on two programs; ``not-covered`` when it exceeds a limit or fails.

    Programs that treat all walkers alike are compared at few of them, others at their own shapes.
    """
    try:
        printed = _run(original, rewritten, time_limit_s)
    except ProcessFailed as error:
        if error.exit_code is None:
            reason = f"time limit: the check did not finish within {time_limit_s:g} s"
        else:
            reason = f"a fault of the check, not of the programs (exit {error.exit_code}): {str(error)[:200]}"
        return Identity("not-covered", 0, 0, 1.0, reason)
    except OSError as error:  # no room for the files, or no process
        return Identity("not-covered", 0, 0, 1.0, f"a fault of the check, not of the programs: {error}")
    return Identity.from_json(json.loads(printed.splitlines()[-1]))


def _run(original: Program, rewritten: Program, time_limit_s: float) -> str:
    with tempfile.TemporaryDirectory(prefix="fusionlab-exact-") as directory:
        paths = [Path(directory) / f"{label}.mlirbc" for label in ("original", "rewritten")]
        for path, program in zip(paths, (original, rewritten), strict=True):
            path.write_bytes(program.bytecode)
        return run_module("fusionlab.equivalence.exact.isolated", [*map(str, paths)], time_limit_s)


def main(paths: list[str]) -> None:
    """Compare the two programs named by ``paths`` and print the verdict."""
    limit_memory()
    views = [view_of(Program.from_own_file(path).parse()) for path in paths]
    few = WALKERS if narrow(views) else None
    print(json.dumps(replace(compare_functions(*views), walkers=few).to_json()))


if __name__ == "__main__":
    main(sys.argv[1:])
