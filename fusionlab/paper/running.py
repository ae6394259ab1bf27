"""The matrix run: what is missing in the record is measured and kept, with progress; what is there is not repeated."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from fusionlab.paper.cell import Row, sources_digest
from fusionlab.paper.jobs import Job, run_here, run_on_dask
from fusionlab.paper.matrix import Cell
from fusionlab.paper.record import Record


class Progress(Protocol):
    """Told about every cell that is done."""

    def start(self, total: int, known: int) -> None:
        """``total`` cells are to be measured; ``known`` of those asked for are in the record already."""

    def done(self, cell: Cell, row: Row) -> None:
        """``cell`` is in the record now."""


@dataclass(frozen=True)
class Plan:
    """How to run: processes at a time, or the address of a Dask scheduler; at most ``most`` cells (None: all)."""

    job: Job
    workers: int = 1
    scheduler: str | None = None
    most: int | None = None
    again: bool = False
    retry_failed: bool = False


def run_missing(record: Record, cells: Sequence[Cell], plan: Plan, progress: Progress) -> int:
    """Measure the cells that ``record`` lacks (all of them with ``plan.again``) and keep each at once.

    How many were measured; fewer than all when it is interrupted (KeyboardInterrupt goes on to the caller).
    """
    from fusionlab.codegen.compile import versions

    found, sources = versions(), sources_digest()
    missing = list(cells) if plan.again else record.missing(cells, found, sources, failed_too=plan.retry_failed)
    known = len(cells) - len(missing)
    missing = missing[: plan.most]
    progress.start(len(missing), known)
    finished = 0
    if not missing:
        return 0
    with contextlib.closing(_rows(missing, plan)) as rows:
        for cell, row in rows:
            record.add(cell, {"versions": found, "sources": sources, **row})
            progress.done(cell, row)
            finished += 1
    return finished


def _rows(cells: Sequence[Cell], plan: Plan) -> Generator[tuple[Cell, Row], None, None]:
    job = replace(plan.job, use_cache=plan.job.use_cache and not plan.again)
    if plan.scheduler is not None:
        yield from run_on_dask(cells, job, plan.scheduler)
    else:
        yield from run_here(cells, job, plan.workers)
