"""Cells measured as jobs: in parallel processes of this machine, or by the workers of a Dask scheduler.

A job is a cell in a process of its own within a time limit (``measure_apart``), wherever it runs. Whatever happens to
it, it gives a row: figures, or ``failed`` with the reason.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from fusionlab.errors import InputError
from fusionlab.own_process import module_command, tied_to_its_maker
from fusionlab.paper.cell import Row
from fusionlab.paper.matrix import Cell, Circumstances

_MEMORY_OF_A_JOB = 4 * 2**30
"""Bytes that the largest compile (Orbformer's train step) needs on the host, with some to spare."""


@dataclass(frozen=True)
class Job:
    """What a cell is measured with: its circumstances, the time limit in seconds, whether the compile cache is used."""

    circumstances: Circumstances
    limit_s: float = 1800.0
    use_cache: bool = True


class Processes:
    """The processes of the jobs that are running here: they end when this one is told to, or is killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def communicate(self, words: list[str], environment: dict[str, str], limit_s: float) -> tuple[int, str, str]:
        """Exit code, stdout and stderr; subprocess.TimeoutExpired when the limit was reached (it is killed then)."""
        with self._lock:
            if self._stopped:
                return -signal.SIGTERM, "", "stopped"
            process = subprocess.Popen(
                tied_to_its_maker(words),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,
            )
            self._running.add(process)
        try:
            output, errors = process.communicate(timeout=limit_s)
            return process.returncode, output, errors
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise
        finally:
            with self._lock:
                self._running.discard(process)

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def measure_apart(name: str, job: Job, processes: Processes | None = None) -> Row:
    """The row of the cell ``name``, from a process of its own; with ``failed`` in it when it gave none."""
    words = [name, json.dumps(job.circumstances.to_json()), *([] if job.use_cache else ["no-cache"])]
    command, environment = module_command("fusionlab.paper.cell", words)
    try:
        code, output, errors = (processes or Processes()).communicate(command, environment, job.limit_s)
    except subprocess.TimeoutExpired:
        return {"failed": f"not lowered and compiled within {job.limit_s:g} s"}
    if code < 0:
        return {"failed": f"the process was ended by signal {-code}"}
    try:
        row: Row = json.loads(output.splitlines()[-1])
        return row
    except (IndexError, ValueError):
        return {"failed": (errors.strip().splitlines() or [f"no result, exit code {code}"])[-1]}


def run_here(cells: Sequence[Cell], job: Job, workers: int) -> Iterator[tuple[Cell, Row]]:
    """The rows as they are finished, ``workers`` processes at a time; leaving the iteration ends those that run."""
    processes = Processes()
    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(measure_apart, str(cell), job, processes): cell for cell in cells}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        finally:
            processes.stop()
            pool.shutdown(wait=True, cancel_futures=True)


def run_on_dask(cells: Sequence[Cell], job: Job, address: str) -> Iterator[tuple[Cell, Row]]:
    """The rows as they are finished, measured by the workers of the scheduler at ``address`` (``tcp://host:8786``).

    Every worker needs fusionlab with the extra ``targets``. A cell whose worker is lost three times has failed.
    InputError: the packages are not installed, nothing answers there, or no worker is there.
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
    """How many processes at a time: ``asked``, or one per core as far as the memory goes."""
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


def _kill(process: subprocess.Popen[str]) -> None:
    """The process and what it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
