"""The costs of a tried program on the target, the objectives, and the Pareto front.

For an absent GPU it is compiled in a process of its own: XLA can abort, or take an hour; the search survives that.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, dataclass
from typing import Any

from fusionlab.codegen.cache import CompileCache, default_cache
from fusionlab.codegen.compile import Compiled, compile_program
from fusionlab.codegen.targets import Target, load_target
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.ledger.ledger import Reading
from fusionlab.subprocesses import ProcessFailed, call


@dataclass(frozen=True)
class Costs:
    """Launches, copies and temp bytes are XLA's, bytes accessed and time are models (``fusionlab launches``).

    ``model_us`` is None where no launch has a modelled time, and excludes the ``unmodelled_launches``.
    """

    launches: int
    copies: int
    bytes_accessed: int
    temp_bytes: int
    model_us: float | None
    unmodelled_launches: int
    compile_s: float


def costs_of(compiled: Compiled) -> Costs:
    """The costs of ``compiled``, summed over all runs of all launches."""
    reading = Reading(compiled)
    counts, sums = reading.counts, totals(launch_rows(compiled, reading=reading))
    return Costs(
        launches=counts.dynamic_launches,
        copies=counts.dynamic_copies,
        bytes_accessed=sums.bytes,
        temp_bytes=compiled.memory.temp_bytes,
        model_us=sums.model_us,
        unmodelled_launches=sums.unmodelled_us_launches,
        compile_s=compiled.compile_s,
    )


OBJECTIVES: dict[str, Callable[[Costs], float | None]] = {
    "time": lambda costs: costs.model_us,
    "launches": lambda costs: costs.launches,
    "bytes": lambda costs: costs.bytes_accessed,
    "temp": lambda costs: costs.temp_bytes,
}


def figures(costs: Costs) -> dict[str, float]:
    """The value of every objective, to be minimised; an unknown one is infinite."""
    found = {name: measure(costs) for name, measure in OBJECTIVES.items()}
    return {name: float("inf") if figure is None else figure for name, figure in found.items()}


def front(costs: Iterable[Costs]) -> list[int]:
    """Positions of the Pareto front: of the costs that no other is as good as in every objective and better in one; of
    equal ones the first."""
    points = [tuple(figures(one).values()) for one in costs]

    def dominated(point: tuple[float, ...]) -> bool:
        return any(other != point and all(a <= b for a, b in zip(other, point, strict=True)) for other in points)

    return [at for at, point in enumerate(points) if points.index(point) == at and not dominated(point)]


Measure = Callable[[Program, float], Costs]
"""Returns the costs of a program, given the seconds left; raises TrialFailed."""


class TrialFailed(Exception):
    """The program could not be measured, for the reason in the message; ``may_do_later`` with more time or memory."""

    def __init__(self, reason: str, may_do_later: bool = False) -> None:
        super().__init__(reason)
        self.may_do_later = may_do_later


def measure_for(target: Target, cache: CompileCache | None) -> Measure:
    """The measurement of programs for ``target``."""

    def here(program: Program, seconds: float) -> Costs:
        try:
            return costs_of(compile_program(program, target, cache=cache))
        except (CompileError, InputError) as error:
            raise TrialFailed(str(error)) from error

    def apart(program: Program, seconds: float) -> Costs:
        try:
            return Costs(**call(costs_apart, astuple(program), target.source, cache is not None, limit_s=seconds))
        except ProcessFailed as error:
            if error.exit_code is None:
                raise TrialFailed("the time was up", may_do_later=True) from error
            killed = error.exit_code == -signal.SIGKILL  # as by the out-of-memory killer
            raise TrialFailed(f"compiling it: {str(error)[:300]}", may_do_later=killed) from error

    return here if target.attached else apart


def costs_apart(program: list[Any], target: str, cached: bool) -> dict[str, Any]:
    """The costs of the program as JSON, in the process that may abort."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    cache = default_cache() if cached else None
    return asdict(costs_of(compile_program(Program(*program), load_target(target), cache=cache)))
