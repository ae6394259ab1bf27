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
from fusionlab.device_code.kernel_rows import kernel_table
from fusionlab.errors import CompileError, InputError
from fusionlab.hlo.program import Program
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.ledger.ledger import Reading
from fusionlab.ledger.time.model import pair_error_of
from fusionlab.subprocesses import ProcessFailed, call
from fusionlab.time_order import TimeOrder


@dataclass(frozen=True)
class Costs:
    """Launches, copies and temp bytes are XLA's, bytes accessed and time are models (``fusionlab launches``).

    ``model_us`` is None where no launch has a modelled time, excludes the ``unmodelled_launches``, and has a lower
    bound of ``at_least_us_launches``. It is that of the code of kernels where that is at hand. Two programs whose
    times differ by less than ``pair_error``, as a share, have no order.
    """

    launches: int
    copies: int
    bytes_accessed: int
    temp_bytes: int
    model_us: float | None
    unmodelled_launches: int
    compile_s: float
    pair_error: float = 0.0
    at_least_us_launches: int = 0

    @property
    def is_lower_bound(self) -> bool:
        """True if ``model_us`` lacks some launches, or has a lower bound of some."""
        return self.unmodelled_launches > 0 or self.at_least_us_launches > 0


def costs_of(compiled: Compiled) -> Costs:
    """The costs of ``compiled``, summed over all runs of all launches."""
    reading = Reading(compiled)
    rows = kernel_table(compiled, reading).launches if compiled.ptx else launch_rows(compiled, reading=reading)
    counts, sums = reading.counts, totals(rows)
    return Costs(
        launches=counts.dynamic_launches,
        copies=counts.dynamic_copies,
        bytes_accessed=sums.bytes,
        temp_bytes=compiled.memory.temp_bytes,
        model_us=sums.model_us,
        unmodelled_launches=sums.unmodelled_us_launches,
        at_least_us_launches=sums.at_least_us_launches,
        compile_s=compiled.compile_s,
        pair_error=pair_error_of(row for row in rows if row.dynamic_launches),
    )


OBJECTIVES: dict[str, Callable[[Costs], float | None]] = {
    "time": lambda costs: costs.model_us,
    "launches": lambda costs: costs.launches,
    "bytes": lambda costs: costs.bytes_accessed,
    "temp": lambda costs: costs.temp_bytes,
}


def time_order(costs: Costs, other: Costs) -> TimeOrder | None:
    """Which of two programs takes less; None where a time is not known."""
    return TimeOrder.of(costs.model_us, other.model_us, costs.pair_error, other.pair_error)


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
            return costs_of(compile_program(program, target, cache=cache, ptx=True))
        except (CompileError, InputError) as error:
            raise TrialFailed(str(error)) from error

    def by_a_process(program: Program, seconds: float) -> Costs:
        try:
            return Costs(**call(costs_apart, astuple(program), target.source, cache is not None, limit_s=seconds))
        except ProcessFailed as error:
            if error.exit_code is None:
                raise TrialFailed("the time was up", may_do_later=True) from error
            killed = error.exit_code == -signal.SIGKILL  # as by the out-of-memory killer
            raise TrialFailed(f"compiling it: {str(error)[:300]}", may_do_later=killed) from error

    return here if target.attached else by_a_process


def costs_apart(program: list[Any], target: str, cached: bool) -> dict[str, Any]:
    """The costs of the program as JSON, in the process that may abort."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    cache = default_cache() if cached else None
    return asdict(costs_of(compile_program(Program(*program), load_target(target), cache=cache, ptx=True)))
