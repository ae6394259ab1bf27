"""What a tried program costs on the target, the objectives, and the Pareto front."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.compiled import Compiled
from fusionlab.ledger.launch_rows import launch_rows, totals
from fusionlab.ledger.ledger import count_launches


@dataclass(frozen=True)
class Costs:
    """Launches, copies and temp bytes are XLA's, bytes accessed and time are models (``fusionlab launches``).

    ``model_us`` is None where nothing says how long a launch takes, and lacks that of ``unmodelled_launches``.
    """

    launches: int
    copies: int
    bytes_accessed: int
    temp_bytes: int
    model_us: float | None
    unmodelled_launches: int
    compile_s: float

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


def costs_of(compiled: Compiled) -> Costs:
    """What ``compiled`` costs, all runs of all launches together."""
    counts, sums = count_launches(compiled), totals(launch_rows(compiled))
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


def dominates(one: Costs, other: Costs) -> bool:
    """Whether ``one`` is in no objective worse than ``other`` and in one better; an unknown figure is the worst."""
    pairs = [(_known(measure(one)), _known(measure(other))) for measure in OBJECTIVES.values()]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def front(costs: Iterable[Costs]) -> list[int]:
    """Positions of those that none other dominates; of equal ones the first."""
    found = list(costs)
    keys = [tuple(_known(measure(one)) for measure in OBJECTIVES.values()) for one in found]
    return [
        at
        for at, one in enumerate(found)
        if keys.index(keys[at]) == at and not any(dominates(other, one) for other in found)
    ]


def _known(figure: float | None) -> float:
    return float("inf") if figure is None else figure
