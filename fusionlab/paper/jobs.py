"""The matrix run: measures and stores the missing cells, by processes of this machine or workers of Dask.

A job is a cell in a process of its own within a time limit (``measure_apart``), wherever it runs. Whatever happens to
it, it returns a row: figures, or ``failed`` with the reason.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fusionlab.errors import InputError
from fusionlab.paper.matrix import Cell, MatrixSetup, Row, measure_named, sources_digest
from fusionlab.paper.record import Record
from fusionlab.subprocesses import ProcessFailed, call

_MEMORY_OF_A_JOB = 4 * 2**30
"""Bytes that the largest compile (Orbformer's train step) needs on the host, with a margin."""


@dataclass(frozen=True)
class CellJob:
    """The settings of a cell's measurement: circumstances, time limit in seconds, use of the compile cache."""

    circumstances: MatrixSetup
    limit_s: float = 1800.0
    use_cache: bool = True


def measure_apart(name: str, job: CellJob, stop: threading.Event | None = None) -> Row:
    """The row of the cell ``name``, from a process of its own; a row with ``failed`` if it returned none."""
    given = job.circumstances.to_json()
    try:
        row: Row = call(measure_named, name, given, job.use_cache, limit_s=job.limit_s, stop=stop)
        return row
    except ProcessFailed as error:
        if error.exit_code is None:
            return {"failed": f"not lowered and compiled within {job.limit_s:g} s"}
        if error.exit_code < 0:
            return {"failed": f"the process was ended by signal {-error.exit_code}"}
        return {"failed": str(error)}


def run_here(cells: Sequence[Cell], job: CellJob, workers: int) -> Iterator[tuple[Cell, Row]]:
    """The rows as they are finished, ``workers`` processes at a time; leaving the iteration terminates them."""
    stop = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(measure_apart, str(cell), job, stop): cell for cell in cells}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def run_on_dask(cells: Sequence[Cell], job: CellJob, address: str) -> Iterator[tuple[Cell, Row]]:
    """The rows as they are finished, measured by the workers of the scheduler at ``address`` (``tcp://host:8786``).

    Every worker needs fusionlab with the extra ``targets``. A cell whose worker is lost three times has failed.
    InputError: the packages are not installed, nothing answers there, or there is no worker.
    """
    client, distributed = _client(address)
    with client:
        futures = {client.submit(measure_apart, str(cell), job, pure=False, retries=2): cell for cell in cells}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                error = future.exception() if future.status == "error" else None
                yield futures[future], {"failed": f"the worker: {error}"} if error else future.result()
        finally:
            client.cancel(list(futures))


def workers_for(asked: int | None) -> int:
    """The number of parallel processes: ``asked``, or one per core as far as memory allows."""
    if asked is not None:
        return asked
    cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(cores, memory // _MEMORY_OF_A_JOB))


def _client(address: str) -> tuple[Any, Any]:
    try:
        import distributed
    except ModuleNotFoundError:
        raise InputError("--scheduler needs Dask: pip install 'fusionlab[dask]'") from None
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--scheduler {address}: no Dask scheduler answers there: {error}") from None
    if not client.scheduler_info()["workers"]:
        client.close()
        raise InputError(f"--scheduler {address}: it has no workers; start some: dask worker {address}")
    return client, distributed


class Progress(Protocol):
    """Receives every finished cell."""

    def start(self, total: int, known: int) -> None:
        """``total`` cells are to be measured; ``known`` of those requested are in the record already."""

    def done(self, cell: Cell, row: Row) -> None:
        """``cell`` is in the record now."""


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run: parallel processes, or the address of a Dask scheduler; at most ``most`` cells (None: all)."""

    job: CellJob
    workers: int = 1
    scheduler: str | None = None
    most: int | None = None
    again: bool = False
    retry_failed: bool = False


def run_missing(record: Record, cells: Sequence[Cell], plan: RunPlan, progress: Progress) -> int:
    """Measure the cells that ``record`` lacks (all of them with ``plan.again``) and store each at once.

    Returns the number measured; KeyboardInterrupt propagates to the caller.
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


def _rows(cells: Sequence[Cell], plan: RunPlan) -> Generator[tuple[Cell, Row], None, None]:
    job = replace(plan.job, use_cache=plan.job.use_cache and not plan.again)
    if plan.scheduler is not None:
        yield from run_on_dask(cells, job, plan.scheduler)
    else:
        yield from run_here(cells, job, plan.workers)
