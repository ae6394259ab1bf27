"""Measured times of the program that is studied, from records of ``fusionlab bench``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusionlab.hlo.program import Program
from fusionlab.measure.comparison import Comparison, compare_record, kernels_of, latest, measured_by
from fusionlab.measure.records import Record
from fusionlab.workload import Workload


def measured_document(source: Workload | Program, records: Sequence[Record]) -> list[dict[str, Any]]:
    """The newest records of the same model, molecule and program on each device, each with time by stage and family.

    The number of walkers may be another one: the record says which.
    """
    if isinstance(source, Program):
        return []
    wanted = (source.name, source.molecule, source.program)
    same = [
        record
        for record in records
        if tuple(record["workload"].get(field) for field in ("name", "molecule", "program")) == wanted
    ]
    return [_of(compare_record(record)) for record in latest(same)[0]]


def _of(found: Comparison) -> dict[str, Any]:
    return {
        **found.to_json(),
        "by_stage_family": [
            {
                "name": one.name,
                "rows": [
                    {"stage": stage, "family": family, "measured_us": us}
                    for (stage, family), us in measured_by(kernels_of(one.variant), ("stage", "family")).items()
                ],
            }
            for one in found.timed
        ],
    }
