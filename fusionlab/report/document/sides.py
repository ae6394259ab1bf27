"""One program as XLA compiled it for one target: launches, clusters, refusals, roofline, each joined to the ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.ledger.footprint import Footprint
from fusionlab.ledger.launch_clusters import launch_clusters
from fusionlab.ledger.launch_rows import LaunchRow, label, launch_rows, totals, totals_by
from fusionlab.ledger.model_time import Ceilings, ceilings_of
from fusionlab.ledger.origins import members
from fusionlab.ledger.refusals import by_cause, launches_refused, refusals, xla_estimates
from fusionlab.ledger.roofline import family_points, kernel_points

LAUNCH_COLUMNS = (
    "name", "family", "phase", "stage", "role", "loop", "trip_count", "static_launches", "dynamic_launches", "flops",
    "bytes", "model_us", "model_source", "in_cuda_graph", "stage_share", "op_name", "source", "attributed_by",
    "unmodelled", "ops",
)  # fmt: skip
_MOST_CLUSTERS = 30


def side_document(found: Footprint, compiled: Compiled, ops_of: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """All that is counted of ``compiled``; ``ops_of`` gives a name stack's ops by their position in the program.

    ``launches`` are rows of LAUNCH_COLUMNS; ``by_stage_family`` are their totals, and the other parts name launches by
    their name.
    """
    rows = launch_rows(compiled)
    ceilings = ceilings_of(compiled)
    return {
        "footprint": found.to_json(),
        "memory": dataclasses.asdict(compiled.memory),
        "compile": {"options": dict(compiled.options), "versions": compiled.versions, "seconds": compiled.compile_s},
        "totals": totals(rows).to_json(),
        "launches": {"columns": list(LAUNCH_COLUMNS), "rows": _launches(compiled, rows, ops_of)},
        "by_stage_family": _groups(rows, ("stage", "family")),
        "by_phase_role": _groups(rows, ("phase", "role")),
        "clusters": [one.to_json() for one in launch_clusters(compiled, rows)[:_MOST_CLUSTERS]],
        "refusals": _refusals(compiled, rows),
        "roofline": {
            "ceilings": _ceilings(ceilings),
            "families": [point.to_json() for point in family_points(rows, ceilings)],
            "kernels": [point.to_json() for point in kernel_points(rows, ceilings)],
        },
    }


def _launches(compiled: Compiled, rows: Sequence[LaunchRow], ops_of: Mapping[str, Sequence[int]]) -> list[list[Any]]:
    instructions = {one.name: one for part in compiled.module.computations.values() for one in part.instructions}
    table = []
    for row in rows:
        instruction = instructions.get(row.name)
        inside = members(compiled.module, instruction) if instruction is not None else ()
        scopes = dict.fromkeys([row.op_name, *(member.op_name for member in inside)])
        ops = dict.fromkeys(position for scope in scopes for position in ops_of.get(scope, ()))
        values = {**row.to_json(), "stage": label(row, "stage"), "ops": list(ops), "unmodelled": list(row.unmodelled)}
        table.append([values[column] for column in LAUNCH_COLUMNS])
    return table


def _groups(rows: Sequence[LaunchRow], by: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{**dict(zip(by, key, strict=True)), **group.to_json()} for key, group in totals_by(rows, by).items()]


def _refusals(compiled: Compiled, rows: tuple[LaunchRow, ...]) -> dict[str, Any] | None:
    found = refusals(compiled, rows)
    if found is None:
        return None
    return {
        "coverage": dataclasses.asdict(found.coverage),
        "dynamic_launches": launches_refused(found.found),
        "xla_estimates": xla_estimates(found.found),
        "causes": by_cause(found.found),
        "found": [dataclasses.asdict(one) for one in found.found],
    }


def _ceilings(found: Ceilings | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "flops_per_s": found.flops_per_s,
        "bytes_per_s": found.bytes_per_s,
        "ridge_flop_per_byte": found.ridge_flop_per_byte,
        "source": found.source,
    }
