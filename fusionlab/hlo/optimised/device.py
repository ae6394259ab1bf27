"""The device that optimised HLO text was compiled for, as far as the text tells, and XLA's estimates of time on it.

XLA names neither platform nor clock. The platform shows in the library calls, in the keys that XLA:GPU writes into
``backend_config`` and, where a text has none of them, in the kinds and names of its fusions. The clock shows in the
estimates (``reification_cost``), which state every fusion's time both in cycles of the device and in microseconds.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fusionlab.hlo.ops import platform_of_target
from fusionlab.hlo.optimised.parser import HloModule, Instruction

_CUDA_CONFIG, _CPU_CONFIG = '"operation_queue_id"', '"__ynn_fusion"'
_CUDA_HEADER = "fingerprint_before_lhs"
_CUDA_NAMES = re.compile(r"(loop|input|triton)_")
"""XLA:GPU names fusions after their emitter (``rename_fusions.cc``); XLA:CPU after their ops alone."""


def platform_of(module: HloModule) -> str:
    """``cuda`` or ``cpu``; "" when nothing in the text tells.

    XLA:GPU configures every fusion, and only it makes those of kind kInput; a scheduled module with fusions and none of
    its marks is XLA:CPU's.
    """
    fusions = 0
    if _CUDA_HEADER in module.header:
        return "cuda"
    for one in _instructions(module):
        library = platform_of_target(one.custom_call_target)
        emitted = one.is_fusion and (one.fusion_kind == "kInput" or _CUDA_NAMES.match(one.name))
        if _CUDA_CONFIG in one.attribute_text or library == "cuda" or emitted:
            return "cuda"
        if _CPU_CONFIG in one.attribute_text or library == "cpu":
            return "cpu"
        fusions += one.is_fusion
    return "cpu" if fusions and module.is_scheduled else ""


def clock_ghz_of_estimates(module: HloModule) -> float | None:
    """The clock of the device that XLA's estimates in the text are for; None when there are none."""
    every = (estimate for one in _instructions(module) for estimate in estimates(one))
    found = [one.cycles / one.us / 1e3 for one in every if one.cycles and one.us]
    return statistics.median(found) if found else None


def _instructions(module: HloModule) -> Iterator[Instruction]:
    for computation in module.computations.values():
        yield from computation.instructions


@dataclass(frozen=True)
class Estimate:
    """The time of one run without its launch, by XLA's cost model ``model`` ("" where the text names none).

    ``cycles`` are those of the device; None where the text has none.
    """

    model: str
    us: float
    cycles: float | None


def estimates(instruction: Instruction) -> tuple[Estimate, ...]:
    """The estimates of ``instruction`` in the order of the text, without impossible times."""
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
    """A finite non-negative number; None for anything else (numbers may be written as text)."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number >= 0 else None
