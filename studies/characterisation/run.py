"""The run of the matrix: measures the cells that its record lacks, by processes of this machine or workers of Dask.

The record is one JSON file, ``{"format", "circumstances", "cells": {"MODEL MOLECULE PROGRAM TARGET": row}}``; each row
is written at once. A row has what determines it: the versions of JAX and the digest of the programs' sources. A cell is
measured in a process of its own within a time limit, wherever it runs; whatever happens to it, it returns a row:
figures, or ``failed`` with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from fusionlab.characterisation.matrix import (
    GROUP_BY,
    GROUP_FIGURES,
    Cell,
    MatrixSetup,
    Row,
    measure_named,
    sources_digest,
)
from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole
from fusionlab.subprocesses import ProcessFailed, call

FORMAT = "fusionlab-paper-1"
FIGURES = (
    "dynamic_launches", "model_us", "unmodelled_us_launches", "electrons", "most_laplacian_trips",
    "argument_bytes", "output_bytes", "temp_bytes", "alias_bytes",
)  # fmt: skip
"""The fields of a row that tables and claims read, beside its groups."""


class Record:
    """The rows in ``path`` (which may not exist yet). InputError: another format, or other walkers."""

    def __init__(self, path: Path, given: MatrixSetup) -> None:
        self.path, self.circumstances = path, given
        self._rows = _read(path, given)
        self.failed_again: dict[Cell, str] = {}
        """Cells that could not be measured now and keep the figures that they had, with the reason."""

    @property
    def rows(self) -> Mapping[Cell, Row]:
        """The rows that have figures."""
        return {Cell.parse(name): row for name, row in self._rows.items() if "failed" not in row}

    @property
    def failures(self) -> Mapping[Cell, str]:
        """The cells that could not be measured, and why."""
        return {Cell.parse(name): str(row["failed"]) for name, row in self._rows.items() if "failed" in row}

    def missing(self, cells: Iterable[Cell], versions: str, sources: str, *, failed_too: bool = False) -> list[Cell]:
        """The cells without a row of these versions and sources; those that failed only if requested."""
        return [cell for cell in cells if not self._is_current(cell, versions, sources, failed_too)]

    def out_of_date(self, versions: str, sources: str) -> list[Cell]:
        """The cells with figures of other versions or sources."""
        return self.missing(self.rows, versions, sources)

    def add(self, cell: Cell, row: Row) -> None:
        """Store the row, also on disk; rows added meanwhile by another run are kept.

        A failure does not replace figures of the same versions and sources: it is in ``failed_again`` only.
        """
        self._rows = _read(self.path, self.circumstances)
        if "failed" in row and self._is_current(cell, row.get("versions"), row.get("sources"), failed_too=True):
            self.failed_again[cell] = str(row["failed"])
            return
        self._rows[str(cell)] = row
        require_writable(self.path.resolve().parent)
        write_whole(self.path, _text(self.circumstances, self._rows))

    def _is_current(self, cell: Cell, versions: Any, sources: Any, failed_too: bool) -> bool:
        row = self._rows.get(str(cell))
        if row is None or (failed_too and "failed" in row):
            return False
        return (row.get("versions"), row.get("sources")) == (versions, sources)


def _read(path: Path, given: MatrixSetup) -> dict[str, Row]:
    if not path.exists():
        return {}
    content = json_of(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path}: not a record of the paper's matrix (format {FORMAT}); give another --record")
    if content.get("circumstances") != given.to_json():
        raise InputError(
            f"{path}: holds figures of {content.get('circumstances')}, not of {given.to_json()}; give another --record"
        )
    rows: dict[str, Row] | None = content.get("cells")
    if not isinstance(rows, dict):
        raise InputError(f"{path}: has no object of cells; give another --record")
    for name, row in rows.items():
        check_row(f"{path}: {name}", name, row)
    return rows


def json_of(path: Path) -> Any:
    """The content of a record. InputError: it cannot be read, or is not JSON."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None


def check_row(where: str, name: str, row: Any) -> None:
    """InputError unless the row has the reason of its failure, or every figure that the tables and claims read."""
    try:
        Cell.parse(name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an object; give another --record")
    if "failed" in row:
        return
    if lacking := [field for field in ("versions", "sources", *FIGURES) if field not in row]:
        raise InputError(f"{where}: lacks {', '.join(lacking)}; take the row out to have it measured again")
    if wrong := [name for name in FIGURES if not _is_figure(row[name]) and (name, row[name]) != ("model_us", None)]:
        raise InputError(f"{where}: {', '.join(wrong)} must be numbers; take the row out to have it measured again")
    columns = [*GROUP_BY, *GROUP_FIGURES]
    groups = row.get("groups")
    if not isinstance(groups, dict) or groups.get("columns") != columns or not _is_table(groups.get("rows")):
        raise InputError(f"{where}: its groups are no table of {', '.join(columns)}")


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_table(rows: Any) -> bool:
    """True if the rows have a value per column and the figures are numbers, or None for unknown."""
    return isinstance(rows, list) and all(
        isinstance(row, list)
        and len(row) == len(GROUP_BY) + len(GROUP_FIGURES)
        and all(value is None or _is_figure(value) for value in row[len(GROUP_BY) :])
        for row in rows
    )


def _text(given: MatrixSetup, rows: Mapping[str, Row]) -> str:
    """A line per field of a cell, and a line per group: diffs are readable."""
    cells = [f" {json.dumps(name)}: {_row_text(row)}" for name, row in sorted(rows.items())]
    head = f'{{\n"format": {json.dumps(FORMAT)},\n"circumstances": {json.dumps(given.to_json())},\n"cells": {{\n'
    return head + ",\n".join(cells) + "\n}\n}\n"


def _row_text(row: Row) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in row.items() if name != "groups"]
    if "groups" in row:
        groups = ",\n   ".join(map(json.dumps, row["groups"]["rows"]))
        lines.append(f'  "groups": {{"columns": {json.dumps(row["groups"]["columns"])}, "rows": [\n   {groups}]}}')
    return "{\n" + ",\n".join(lines) + "\n }"


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


def run_here(cells: Sequence[Cell], job: CellJob, workers: int) -> Generator[tuple[Cell, Row], None, None]:
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


def run_on_dask(cells: Sequence[Cell], job: CellJob, address: str) -> Generator[tuple[Cell, Row], None, None]:
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


def open_cells(record: Record, cells: Sequence[Cell], plan: RunPlan) -> list[Cell]:
    """The cells that ``run_missing`` measures, but for the bound ``plan.most``."""
    from fusionlab.codegen.compile import versions

    if plan.again:
        return list(cells)
    return record.missing(cells, versions(), sources_digest(), failed_too=plan.retry_failed)


def run_missing(record: Record, cells: Sequence[Cell], plan: RunPlan, progress: Progress) -> int:
    """Measure the cells that ``record`` lacks (all of them with ``plan.again``) and store each at once.

    Returns the number measured; KeyboardInterrupt propagates to the caller.
    """
    from fusionlab.codegen.compile import versions

    found, sources = versions(), sources_digest()
    missing = open_cells(record, cells, plan)
    known = len(cells) - len(missing)
    missing = missing[: plan.most]
    progress.start(len(missing), known)
    if not missing:
        return 0
    job = replace(plan.job, use_cache=plan.job.use_cache and not plan.again)
    rows = run_here(missing, job, plan.workers) if plan.scheduler is None else run_on_dask(missing, job, plan.scheduler)
    with contextlib.closing(rows):
        for cell, row in rows:
            record.add(cell, {"versions": found, "sources": sources, **row})
            progress.done(cell, row)
    return len(missing)
