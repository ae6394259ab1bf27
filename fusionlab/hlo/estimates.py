"""XLA's estimates of how long a kernel takes, as it writes them into ``backend_config`` (``reification_cost``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fusionlab.hlo.optimized import Instruction


@dataclass(frozen=True)
class Estimate:
    """One run without its launch, by XLA's cost model called ``model`` ("" where the text names none).

    ``cycles`` are those of the device; None where the text gives none.
    """

    model: str
    us: float
    cycles: float | None


def estimates(instruction: Instruction) -> tuple[Estimate, ...]:
    """The estimates of ``instruction`` in the order of the text; what gives no possible time is left out."""
    if "reification_cost" not in instruction.attribute_text:
        return ()
    given = instruction.backend_config.get("reification_cost")
    found = []
    for one in given if isinstance(given, list) else ():
        us = _quantity(one.get("exec_time_us")) if isinstance(one, dict) else None
        if us is not None:
            found.append(Estimate(str(one.get("name", "")), us, _quantity(one.get("end_to_end_cycles"))))
    return tuple(found)


def _quantity(value: Any) -> float | None:
    """A finite number that is not negative; None for anything else (numbers may be written as text)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
