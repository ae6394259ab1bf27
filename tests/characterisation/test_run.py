"""Cells in processes of their own, here or by Dask's workers, and the record that a run goes on with."""

import json
import os
import re
import signal

import click
import pytest

from fusionlab.characterisation import run
from fusionlab.characterisation.matrix import EVERY, Cell, MatrixSetup, select
from fusionlab.characterisation.run import (
    FIGURES,
    CellJob,
    Record,
    RunPlan,
    measure_apart,
    run_here,
    run_missing,
    run_on_dask,
    workers_for,
)
from fusionlab.cli import paper
from fusionlab.errors import InputError
from tests.characterisation.rows import row

TINY = MatrixSetup(walkers=4, size="tiny")
CELLS = EVERY[:4]
SMALL = [Cell("ferminet", "LiH", "log-psi", target) for target in ("a100", "a5000")]


@pytest.fixture(autouse=True)
def own_cache(compile_cache):
    """The processes of the jobs inherit it."""


def test_a_cell_is_measured_in_a_process_of_its_own():
    found = dict(run_here(SMALL[:1], CellJob(TINY), workers=1))[SMALL[0]]
    assert "failed" not in found, found
    launches = found["groups"]["columns"].index("dynamic_launches")
    assert found["dynamic_launches"] == sum(group[launches] for group in found["groups"]["rows"]) > 0
    assert found["temp_bytes"] > 0
    assert found["model_us"] > found["dynamic_launches"]  # each has at least its microsecond
    assert set(FIGURES) <= set(found)


def test_too_long_and_impossible_cells_are_rows_with_a_reason():
    late = measure_apart(str(SMALL[0]), CellJob(TINY, limit_s=0.01))
    assert late == {"failed": "not lowered and compiled within 0.01 s"}
    assert "unknown molecule" in measure_apart("ferminet H9 log-psi a100", CellJob(TINY))["failed"]


def test_leaving_the_iteration_ends_what_runs():
    rows = run_here(SMALL * 2, CellJob(TINY, limit_s=0.01), workers=1)
    next(rows)
    rows.close()
    assert not [name for name in os.listdir("/proc") if name.isdigit() and _is_ours(name)]


def _is_ours(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/cmdline") as words:
            return "measure_named" in words.read() and stat.read().split()[3] == str(os.getpid())
    except OSError:
        return False


@pytest.mark.slow
def test_the_workers_of_a_dask_scheduler_measure_the_same():
    distributed = pytest.importorskip("distributed")
    here = dict(run_here(SMALL[:1], CellJob(TINY), workers=1))
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        there = dict(run_on_dask(SMALL[:1], CellJob(TINY), cluster.scheduler_address))
    for found in (*here.values(), *there.values()):
        assert "failed" not in found, found
        del found["lower_s"], found["compile_s"]
    assert here == there


@pytest.mark.full
def test_a_worker_that_is_killed_costs_no_cell():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        rows = run_on_dask(SMALL * 2, CellJob(TINY), cluster.scheduler_address)
        found = [next(rows)]
        os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
        found += rows
    assert len(found) == 4
    assert not [row for _, row in found if "failed" in row]


@pytest.mark.slow
def test_an_address_where_nothing_answers_is_an_input_error():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match="no Dask scheduler answers there"):
        list(run_on_dask(SMALL, CellJob(TINY), "tcp://127.0.0.1:9"))


def test_the_number_of_processes():
    assert workers_for(7) == 7
    assert 1 <= workers_for(None) <= len(os.sched_getaffinity(0))


class Silent:
    """Progress that stops the run after some cells, as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.started, self.finished, self.stop_after = None, 0, stop_after

    def start(self, total, known):
        self.started = total, known

    def done(self, cell, row):
        self.finished += 1
        if self.finished == self.stop_after:
            raise KeyboardInterrupt


@pytest.fixture
def record(tmp_path):
    """``record()``: the record as it is on disk."""
    return lambda: Record(tmp_path / "record.json", TINY)


@pytest.fixture
def fill(record, monkeypatch):
    """``fill(cells)``: (measured now, known already) of a run in which cells are measured at once, C4H4 in vain."""

    def measure_apart(name, job, processes=None):
        if "C4H4" in name:
            return {"failed": "no room"}
        figures = row(dynamic_launches=len(name))
        del figures["versions"], figures["sources"]  # the run's own
        return figures

    def of(cells=CELLS, progress=None, **options):
        progress = progress or Silent()
        run_missing(record(), cells, RunPlan(CellJob(TINY), **options), progress)
        return progress.started

    monkeypatch.setattr(run, "measure_apart", measure_apart)
    return of


def test_what_was_measured_is_not_measured_again_until_the_sources_change(record, fill, monkeypatch):
    assert [fill(most=1), fill(), fill()] == [(1, 0), (3, 1), (0, 4)]
    assert record().rows[CELLS[0]]["dynamic_launches"] == len(str(CELLS[0]))
    monkeypatch.setattr(run, "sources_digest", lambda: "other")
    assert fill() == (4, 0)


def test_an_interrupted_run_keeps_what_was_finished_and_goes_on(record, fill):
    with pytest.raises(KeyboardInterrupt):
        fill(progress=Silent(stop_after=2))
    assert len(record().rows) == 2
    assert fill() == (2, 2)
    assert len(record().rows) == 4


def test_failures_are_kept_and_tried_again_only_when_asked(record, fill):
    cell = Cell("paulinet", "C4H4", "inference-step", "a100")
    fill([cell])
    assert record().failures == {cell: "no room"}
    assert not record().rows
    assert [fill([cell]), fill([cell], retry_failed=True)] == [(0, 1), (1, 0)]


def test_a_failure_takes_the_place_of_no_figures_of_the_same_sources(record, fill, monkeypatch):
    fill()
    kept = record()
    before = kept.path.read_text()
    monkeypatch.setattr(run, "measure_apart", lambda *_: {"failed": "no time"})
    run_missing(kept, CELLS, RunPlan(CellJob(TINY), again=True), Silent())
    assert kept.path.read_text() == before
    assert kept.failed_again == dict.fromkeys(CELLS, "no time")
    monkeypatch.setattr(run, "sources_digest", lambda: "other")
    fill()
    assert set(record().failures) == set(CELLS)


def test_rows_of_other_versions_or_sources_are_out_of_date_and_other_runs_rows_are_kept(record):
    mine = record()
    record().add(CELLS[0], row())
    mine.add(CELLS[1], {"failed": "no room", "versions": "0", "sources": "s"})
    found = record()
    assert (set(found.rows), set(found.failures)) == ({CELLS[0]}, {CELLS[1]})
    assert found.out_of_date("1", "s") == []
    assert found.out_of_date("2", "s") == found.out_of_date("1", "t") == [CELLS[0]]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        (None, "has no object of cells"),
        ({"a b c": {}}, "not MODEL MOLECULE PROGRAM TARGET"),
        ({"a b c d": 1}, "a b c d: not an object"),
        ({"a b c d": row(temp_bytes="x")}, "temp_bytes must be numbers"),
        ({"a b c d": {"versions": "1"}}, "a b c d: lacks sources, dynamic_launches"),
        ({"a b c d": {**row(), "groups": {"columns": [], "rows": []}}}, "no table of"),
        ("{", "not JSON"),
        ('{"rows": {}}', "not a record of the paper's matrix"),
        ('{"format": "fusionlab-paper-1", "circumstances": {"walkers": 1}, "cells": {}}', "holds figures of"),
    ],
)
def test_a_file_that_is_no_such_record_is_refused(tmp_path, record, cells, said):
    whole = {"format": "fusionlab-paper-1", "circumstances": TINY.to_json(), "cells": cells}
    (tmp_path / "record.json").write_text(cells if isinstance(cells, str) else json.dumps(whole))
    with pytest.raises(InputError, match=said):
        record()


def test_cells_are_chosen_by_name():
    chosen = select("psiformer", "LiH,CH4", None, "h200")
    assert [str(cell) for cell in chosen] == [
        f"psiformer {molecule} {program} h200"
        for molecule in ("CH4", "LiH")
        for program in ("inference-step", "train-step")
    ]
    assert set(select(None, None, None, None)) == set(EVERY)
    assert len(EVERY) == 96
    with pytest.raises(InputError, match="did you mean: psiformer"):
        select("psifomer", None, None, None)


@pytest.mark.parametrize(("answer", "code", "started"), [(True, 0, True), (False, 0, False), (None, 130, False)])
def test_the_command_asks_before_hours_of_work(answer, code, started, cli, tmp_path, monkeypatch):
    """In an empty folder, on a terminal: how many programs, how long, and where it writes."""
    runs, asked = [], []

    def confirm(question, err):
        asked.append(question)
        if answer is None:
            raise click.Abort
        return answer

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "run_missing", lambda *given: runs.append(given))
    monkeypatch.setattr(paper, "_on_a_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    cli("paper", "--jobs", "2", "--quiet", code=code)
    what = f"paper measures 96 programs (2 at a time, about 72 min) and writes {tmp_path}/studies/paper.json"
    assert asked == [f"fusionlab: {what}. Start?"]
    assert bool(runs) == started
    assert started or list(tmp_path.iterdir()) == []


def test_without_a_terminal_the_command_needs_yes(cli, tmp_path, monkeypatch):
    runs = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "run_missing", lambda *given: runs.append(given))
    for command in (("paper",), ("study", "--paper")):
        refused = cli(*command, code=2).stderr
        assert re.fullmatch(r"fusionlab: paper measures 96 programs .*: start it with --yes, .*--no-run\n", refused)
    assert (runs, list(tmp_path.iterdir())) == ([], [])
    cli("paper", "--yes", "--quiet", code=0)
    assert len(runs) == 1
