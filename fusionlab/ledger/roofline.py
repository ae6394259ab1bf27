"""Families of work and kernels on the roofline of a target: FLOPs per byte against its two ceilings.

The roofline model (Williams, Waterman, Patterson, CACM 52(4), 2009): a kernel of intensity I FLOP/byte can reach at
most min(peak FLOP/s, I x peak byte/s). FLOPs and bytes are fusionlab's rules; time is the model of ``time.model``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.hlo import ops
from fusionlab.hlo.cost import Cost, node_cost
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import Region
from fusionlab.ledger.launch_rows import LaunchRow, Totals, totals
from fusionlab.ledger.time.model import LAUNCH_US, Ceilings
from fusionlab.ledger.views import totals_by


@dataclass(frozen=True)
class Point:
    """One family, kernel or the whole program on the roofline; None where there are no ceilings or no time.

    There is no rate and no share of the roof if the time excludes ``unmodelled_us_launches``; it has a lower bound of
    ``at_least_us_launches``.

    ``bound`` is the limit by the model: ``launch`` when launches are more than half of its time, else ``memory`` or
    ``compute`` by the longer of the two. ``roof_share`` is modelled over attainable FLOP/s; products that may use TF32
    are held against its peak. ``scope`` and ``source`` are those of a kernel, "" for a group.
    """

    name: str
    dynamic_launches: int
    flops: int
    bytes: int
    intensity_flop_per_byte: float
    model_us: float | None
    model_share: float | None
    model_flops_per_s: float | None
    attainable_flops_per_s: float | None
    roof_share: float | None
    bound: str
    unmodelled_us_launches: int = 0
    scope: str = ""
    source: str = ""
    at_least_us_launches: int = 0

    @property
    def is_lower_bound(self) -> bool:
        """True if ``model_us`` lacks some launches, or has a lower bound of some."""
        return self.unmodelled_us_launches > 0 or self.at_least_us_launches > 0

    def to_json(self) -> dict[str, Any]:
        """The fields by name."""
        return dataclasses.asdict(self)


def family_points(rows: Iterable[LaunchRow], ceilings: Ceilings | None, by: Sequence[str] = ("family",)) -> list[Point]:
    """A point per kernel family, the slowest first, and the whole program last (``all``).

    Other groups are those of the views ``by``: InputError for an unknown one.
    """
    rows = tuple(rows)
    whole = totals(rows)
    points = [_point(" ".join(key), found, whole, ceilings) for key, found in totals_by(rows, by).items()]
    return [*points, _point("all", whole, whole, ceilings)]


def kernel_points(rows: Iterable[LaunchRow], ceilings: Ceilings | None) -> list[Point]:
    """A point per kernel that runs, the slowest first."""
    rows = tuple(row for row in rows if row.dynamic_launches)
    whole = totals(rows)
    of = {row.name: row for row in rows}
    points = [_point(key[0], found, whole, ceilings) for key, found in totals_by(rows, ("name",)).items()]
    return [dataclasses.replace(one, scope=of[one.name].scope, source=of[one.name].source) for one in points]


def floor_us(row: LaunchRow, ceilings: Ceilings | None) -> float | None:
    """The least that the roofs allow for all runs of a launch: operands once, results once, its FLOPs.

    At most its modelled time: FLOPs of types narrower than 32 bits are held against the peak of FP32.
    """
    if ceilings is None:
        return None
    least = ceilings.least_us(row.flops, row.bytes, row.tf32_flops)
    return least if row.model_us is None else min(least, row.model_us)


def distance_us(row: LaunchRow, ceilings: Ceilings | None) -> float:
    """Microseconds of all runs of a launch beyond its floor; 0 without a modelled time."""
    return 0.0 if row.model_us is None else row.model_us - (floor_us(row, ceilings) or 0.0)


def op_family_costs(program: Program | Region, runs: int = 1) -> Mapping[str, Cost]:
    """Cost of every family of StableHLO ops without fusion, loops multiplied by their trips.

    A loop of unknown trips counts once and a branch as both its sides.
    """
    found: dict[str, Cost] = {}
    region = program_view(program) if isinstance(program, Program) else program
    for node in region.nodes:
        if node.op in (ops.WHILE, ops.CASE, ops.IF):
            trips = analyse(node).trips if node.op is ops.WHILE else 1
            inner_costs = [op_family_costs(inner, runs * (1 if trips is None else trips)) for inner in node.regions]
        else:
            inner_costs = [{node.family: node_cost(node).times(runs)}]
        for costs in inner_costs:
            for name, cost in costs.items():
                found[name] = found.get(name, Cost()) + cost
    return dict(sorted(found.items(), key=lambda item: -item[1].bytes))


def _point(name: str, found: Totals, whole: Totals, ceilings: Ceilings | None) -> Point:
    intensity = found.intensity_flop_per_byte
    timed = found.model_us is not None and not found.unmodelled_us_launches
    modelled = found.flops / (found.model_us * 1e-6) if timed and found.model_us else None
    least_us = ceilings.least_us(found.flops, found.bytes, found.tf32_flops) if ceilings else 0.0
    attainable = 1e6 * found.flops / least_us if least_us else (0.0 if ceilings else None)
    return Point(
        name=name,
        dynamic_launches=found.dynamic_launches,
        flops=found.flops,
        bytes=found.bytes,
        intensity_flop_per_byte=intensity,
        model_us=found.model_us,
        model_share=found.model_us / whole.model_us if found.model_us is not None and whole.model_us else None,
        model_flops_per_s=modelled,
        attainable_flops_per_s=attainable,
        roof_share=modelled / attainable if modelled and attainable else None,
        bound=_bound(found, ceilings),
        unmodelled_us_launches=found.unmodelled_us_launches,
        at_least_us_launches=found.at_least_us_launches,
    )


def _bound(found: Totals, ceilings: Ceilings | None) -> str:
    if found.model_us and not found.unmodelled_us_launches and found.dynamic_launches * LAUNCH_US > found.model_us / 2:
        return "launch"
    if ceilings is None:
        return "unknown"
    compute_us, memory_us = ceilings.compute_us(found.flops, found.tf32_flops), ceilings.memory_us(found.bytes)
    return "compute" if compute_us >= memory_us else "memory"
