"""Compile a program and count what it costs; for a GPU that is not there, in a process of its own.

    python -m fusionlab.search.measured BYTECODE PLATFORM TARGET CACHED

prints the costs as JSON. XLA can abort, or take an hour: whatever happens to that process, the search goes on.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from fusionlab.codegen.cache import CompileCache, default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from fusionlab.own_process import ProcessFailed, run_module
from fusionlab.search.costs import Costs, costs_of

Measure = Callable[[Program, float], Costs]
"""Gives the costs of a program, given the seconds that there are; TrialFailed."""


class TrialFailed(Exception):
    """The program could not be measured, and why; ``may_do_later`` with more time or memory."""

    def __init__(self, reason: str, may_do_later: bool = False) -> None:
        super().__init__(reason)
        self.may_do_later = may_do_later


def measure_for(target: Target, cache: CompileCache | None) -> Measure:
    """How programs are measured for ``target``."""

    def here(program: Program, seconds: float) -> Costs:
        try:
            return costs_of(compile_program(program, target, cache=cache))
        except (CompileError, InputError) as error:
            raise TrialFailed(str(error)) from error

    def apart(program: Program, seconds: float) -> Costs:
        with tempfile.TemporaryDirectory(prefix="fusionlab-search-") as folder:
            path = Path(folder) / "program.mlirbc"
            path.write_bytes(program.bytecode)
            arguments = [str(path), program.platform, target.source, str(int(cache is not None))]
            try:
                printed = run_module("fusionlab.search.measured", arguments, seconds)
            except ProcessFailed as error:
                if error.exit_code is None:
                    raise TrialFailed("the time was up", may_do_later=True) from error
                killed = error.exit_code == -signal.SIGKILL  # as a machine does that runs out of memory
                raise TrialFailed(f"compiling it: {str(error)[:300]}", may_do_later=killed) from error
        return Costs(**json.loads(printed.splitlines()[-1]))

    return here if target.attached else apart


def main(arguments: list[str]) -> None:
    """Compile the program in the file and print its costs."""
    path, platform, target, cached = arguments
    from fusionlab import quiet_start

    quiet_start.load_jax()
    program = Program(Path(path).stem, Path(path).read_bytes(), platform, path)
    try:
        compiled = compile_program(program, load_target(target), cache=default_cache() if cached == "1" else None)
    except Exception as error:  # the caller shows one line, whatever went wrong
        sys.exit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    print(json.dumps(costs_of(compiled).to_json()))


if __name__ == "__main__":
    main(sys.argv[1:])
