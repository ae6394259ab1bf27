"""A cell is measured in a process of its own, here or by Dask's workers; whatever happens, it gives a row."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fusionlab.errors import InputError
from fusionlab.paper.jobs import CellJob, measure_apart, run_here, run_on_dask, workers_for
from fusionlab.paper.matrix import Cell, MatrixSetup
from fusionlab.subprocesses import module_command

TINY = MatrixSetup(walkers=4, size="tiny")
CELLS = [Cell("ferminet", "LiH", "log-psi", target) for target in ("a100", "a5000")]


@pytest.fixture(autouse=True)
def own_cache(compile_cache):
    """The processes of the jobs inherit it."""


def test_a_cell_is_measured_in_a_process_of_its_own():
    rows = dict(run_here(CELLS[:1], CellJob(TINY), workers=1))
    row = rows[CELLS[0]]
    assert "failed" not in row, row
    launches = row["groups"]["columns"].index("dynamic_launches")
    assert row["dynamic_launches"] == sum(group[launches] for group in row["groups"]["rows"]) > 0
    assert row["temp_bytes"] > 0
    assert row["model_us"] > row["dynamic_launches"]  # each has at least its microsecond


def test_too_long_and_impossible_cells_are_rows_with_a_reason():
    assert measure_apart(str(CELLS[0]), CellJob(TINY, limit_s=0.01)) == {
        "failed": "not lowered and compiled within 0.01 s"
    }
    assert "unknown molecule" in measure_apart("ferminet H9 log-psi a100", CellJob(TINY))["failed"]


def test_leaving_the_iteration_ends_what_runs():
    rows = run_here(CELLS * 2, CellJob(TINY, limit_s=0.01), workers=1)
    next(rows)
    rows.close()
    assert not [name for name in os.listdir("/proc") if name.isdigit() and _is_ours(name)]


def _is_ours(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as words:
            return "measure_named" in words.read() and stat.read().split()[3] == str(os.getpid())
    except OSError:
        return False


SLEEPS = """
import os, sys
from fusionlab.subprocesses import Running
told = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w'), flush=True); time.sleep(300)"
Running([sys.executable, "-c", told, sys.argv[1]], dict(os.environ), 300).wait()
"""


def test_a_run_or_a_worker_that_is_killed_leaves_no_job_behind(tmp_path):
    told = tmp_path / "process"
    maker = subprocess.Popen([sys.executable, "-c", SLEEPS, str(told)], env=module_command("fusionlab")[1])
    assert within(60, lambda: told.exists() and told.read_text().strip())
    job = Path("/proc", told.read_text().strip(), "stat")
    assert job.exists()
    maker.kill()
    maker.wait()
    assert within(30, lambda: not job.exists() or job.read_text().rpartition(")")[2].split()[0] in "ZX")


def within(seconds, true):
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.05)
    return true()


@pytest.mark.slow
def test_the_workers_of_a_dask_scheduler_measure_the_same():
    distributed = pytest.importorskip("distributed")
    here = dict(run_here(CELLS[:1], CellJob(TINY), workers=1))
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        found = dict(run_on_dask(CELLS[:1], CellJob(TINY), cluster.scheduler_address))
    times = ("lower_s", "compile_s")
    for cell in CELLS[:1]:
        assert "failed" not in found[cell], found[cell]
        assert {name: value for name, value in found[cell].items() if name not in times} == {
            name: value for name, value in here[cell].items() if name not in times
        }


@pytest.mark.full
def test_a_worker_that_is_killed_costs_no_cell():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rows = run_on_dask(CELLS * 2, CellJob(TINY), cluster.scheduler_address)
        found = [next(rows)]
        os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
        found += rows
    assert len(found) == 4
    assert not [row for _, row in found if "failed" in row]


@pytest.mark.slow
def test_an_address_where_nothing_answers_is_an_input_error():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler answers there"):
        list(run_on_dask(CELLS, CellJob(TINY), "tcp://127.0.0.1:9"))


def test_the_number_of_processes():
    assert workers_for(7) == 7
    assert 1 <= workers_for(None) <= len(os.sched_getaffinity(0))
