"""Compile a program and count what it costs; for an absent GPU in a process of its own.

XLA can abort, or take an hour: whatever happens to that process, the search goes on.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from fusionlab.codegen.cache import CompileCache, default_cache
from fusionlab.codegen.compile import compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from fusionlab.search.costs import Costs, costs_of
from fusionlab.subprocesses import ProcessFailed, call

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
        try:
            return Costs(**call(measure, astuple(program), target.source, cache is not None, limit_s=seconds))
        except ProcessFailed as error:
            if error.exit_code is None:
                raise TrialFailed("the time was up", may_do_later=True) from error
            killed = error.exit_code == -signal.SIGKILL  # as a machine does that runs out of memory
            raise TrialFailed(f"compiling it: {str(error)[:300]}", may_do_later=killed) from error

    return here if target.attached else apart


def measure(program: list[Any], target: str, cached: bool) -> dict[str, Any]:
    """The costs of the program, as JSON."""
    from fusionlab import quiet_start

    quiet_start.load_jax()
    cache = default_cache() if cached else None
    return costs_of(compile_program(Program(*program), load_target(target), cache=cache)).to_json()
