"""The kernels of a program for the report: which hold its distance from the floor, and what their code does."""

from __future__ import annotations

from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.device_code.findings import Findings
from fusionlab.device_code.kernel_rows import KernelRow, kernel_table
from fusionlab.device_code.over_fusion import OverFusion, over_fusions
from fusionlab.ledger.launch_rows import LaunchRow, totals
from fusionlab.ledger.roofline import distance_us, floor_us
from fusionlab.ledger.time.model import Ceilings, ceilings_of, error_of

_MOST = 40
_OF_CODE = ("registers", "spill_bytes", "reads_per_needed", "sectors", "occupancy")


def kernels_document(compiled: Compiled) -> dict[str, Any]:
    """The launches farthest from their floor, with the time of their code; only a ``reason`` where there is no code.

    ``distance_us`` is that of all launches, and ``half`` the number of launches that hold half of it.
    """
    if compiled.target.kind == "cpu":
        return {"reason": "A CPU program has no kernels of a GPU."}
    if not compiled.ptx:
        return {"reason": "This version of XLA writes the code of kernels on request: fusionlab kernels FILE."}
    table, findings, ceilings = kernel_table(compiled), Findings(compiled.module), ceilings_of(compiled.target)
    coded = {id(row.launch): row for row in table.rows}
    over = {one.row.name: one for one in over_fusions(compiled.target, table.rows, findings)}
    launches = sorted(
        (*(row.launch for row in table.rows), *table.without_code), key=lambda one: -distance_us(one, ceilings)
    )
    times = [one.model_us for one in launches]
    distances = [distance_us(one, ceilings) for one in launches]
    return {
        "reason": "",
        "model_us": None if None in times else sum(us or 0.0 for us in times),
        "model_error": error_of(one for one in launches if one.dynamic_launches),
        "at_least": totals(launches).is_lower_bound,
        "floor_us": sum(floor_us(one, ceilings) or 0.0 for one in launches) if ceilings else None,
        "distance_us": sum(distances),
        "half": _half(distances),
        "count": len(launches),
        "rows": [_row(one, coded.get(id(one)), findings, over.get(one.name), ceilings) for one in launches[:_MOST]],
    }


def _half(distances: list[float]) -> int:
    """How many of the largest make half of the sum."""
    held = 0.0
    for count, one in enumerate(distances):
        if held >= sum(distances) / 2:
            return count
        held += one
    return len(distances)


def _row(
    launch: LaunchRow, row: KernelRow | None, findings: Findings, over: OverFusion | None, ceilings: Ceilings | None
) -> dict[str, Any]:
    worst = next(iter(findings.of(row)), None) if row is not None else None
    placed = worst if worst is not None and worst.place else launch
    return {
        "name": launch.name,
        "family": launch.family,
        "op": placed.op,
        "source": placed.source,
        "model_us": launch.model_us,
        "at_least": launch.is_lower_bound,
        "floor_us": floor_us(launch, ceilings),
        "distance_us": distance_us(launch, ceilings),
        "in_excess": worst.words if worst is not None else "",
        "over_fused": _over_fused(over),
        **(dict.fromkeys(_OF_CODE) if row is None else _of_code(row)),
    }


def _of_code(row: KernelRow) -> dict[str, Any]:
    return {
        "registers": row.resources.registers if row.resources else None,
        "spill_bytes": row.spill_bytes,
        "reads_per_needed": row.reads_per_needed,
        "sectors": row.loads.sectors_over_least,
        "occupancy": row.occupancy.share if row.occupancy else None,
    }


def _over_fused(over: OverFusion | None) -> dict[str, Any] | None:
    """What a kernel computes several times, and microseconds of two kernels instead."""
    if over is None:
        return None
    return {"op": over.parts[0].op, "times": over.parts[0].times, "apart_us": over.rest_us + over.parts_us}
