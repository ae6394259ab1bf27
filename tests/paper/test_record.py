"""The record of the matrix: it goes on where it was, and says what it cannot go on with."""

import json

import pytest

from fusionlab.errors import InputError
from fusionlab.paper import jobs
from fusionlab.paper.jobs import CellJob, RunPlan, run_missing
from fusionlab.paper.matrix import EVERY, GROUP_BY, GROUP_FIGURES, Cell, MatrixSetup, select
from fusionlab.paper.record import FIGURES, Record

GIVEN = MatrixSetup(walkers=4, size="tiny")
CELLS = EVERY[:4]


def row(launches):
    """A row with every figure, and no groups in its table."""
    return {
        "versions": "1", "sources": "s", **dict.fromkeys(FIGURES, 1), "dynamic_launches": launches,
        "groups": {"columns": [*GROUP_BY, *GROUP_FIGURES], "rows": []},
    }  # fmt: skip


HEAD = {"format": "fusionlab-paper-1", "circumstances": GIVEN.to_json()}


class Silent:
    """Progress that keeps what it was told; it can stop the run after some cells, as Ctrl-C does."""

    def __init__(self, stop_after=None):
        self.started, self.finished, self.stop_after = None, [], stop_after

    def start(self, total, known):
        self.started = total, known

    def done(self, cell, row):
        self.finished.append(cell)
        if len(self.finished) == self.stop_after:
            raise KeyboardInterrupt


@pytest.fixture
def measured(monkeypatch):
    """Cells "measured" at once; the names of those that were."""
    names = []

    def measure_apart(name, job, processes=None):
        names.append(name)
        if "C4H4" in name:
            return {"failed": "no room"}
        figures = row(len(name))
        del figures["versions"], figures["sources"]  # the run's own
        return figures

    monkeypatch.setattr(jobs, "measure_apart", measure_apart)
    return names


def run(path, cells=CELLS, progress=None, **options):
    progress = progress or Silent()
    run_missing(Record(path, GIVEN), cells, RunPlan(CellJob(GIVEN), **options), progress)
    return progress


def test_what_was_measured_is_not_measured_again(tmp_path, measured):
    path = tmp_path / "record.json"
    assert run(path, most=1).started == (1, 0)
    assert run(path).started == (3, 1)
    assert run(path).started == (0, 4)
    assert sorted(measured) == sorted(str(cell) for cell in CELLS)
    assert Record(path, GIVEN).rows[CELLS[0]]["dynamic_launches"] == len(str(CELLS[0]))


def test_an_interrupted_run_keeps_what_was_finished_and_goes_on(tmp_path, measured):
    path = tmp_path / "record.json"
    with pytest.raises(KeyboardInterrupt):
        run(path, progress=Silent(stop_after=2))
    assert len(Record(path, GIVEN).rows) == 2
    assert run(path).started == (2, 2)
    assert len(Record(path, GIVEN).rows) == 4


def test_failures_are_kept_and_tried_again_only_when_asked(tmp_path, measured):
    path, cell = tmp_path / "record.json", Cell("paulinet", "C4H4", "inference-step", "a100")
    run(path, [cell])
    assert Record(path, GIVEN).failures == {cell: "no room"}
    assert not Record(path, GIVEN).rows
    assert run(path, [cell]).started == (0, 1)
    assert run(path, [cell], retry_failed=True).started == (1, 0)


def test_a_failure_takes_the_place_of_no_figures_of_the_same_sources(tmp_path, measured, monkeypatch):
    path = tmp_path / "record.json"
    run(path)
    before = path.read_text()
    monkeypatch.setattr(jobs, "measure_apart", lambda *_: {"failed": "no time"})
    record = Record(path, GIVEN)
    run_missing(record, CELLS, RunPlan(CellJob(GIVEN), again=True), Silent())
    assert path.read_text() == before
    assert record.failed_again == dict.fromkeys(CELLS, "no time")
    monkeypatch.setattr(jobs, "sources_digest", lambda: "other")
    run(path)
    assert set(Record(path, GIVEN).failures) == set(CELLS)


def test_rows_of_other_sources_are_measured_again(tmp_path, measured, monkeypatch):
    path = tmp_path / "record.json"
    run(path)
    monkeypatch.setattr(jobs, "sources_digest", lambda: "other")
    assert run(path).started == (4, 0)


def test_rows_of_other_versions_or_sources_are_out_of_date(tmp_path):
    record = Record(tmp_path / "record.json", GIVEN)
    record.add(CELLS[0], row(1))
    record.add(CELLS[1], {"failed": "no room", "versions": "0", "sources": "s"})
    assert record.out_of_date("1", "s") == []
    assert record.out_of_date("2", "s") == record.out_of_date("1", "t") == [CELLS[0]]


def test_two_runs_can_fill_one_record(tmp_path, measured):
    path = tmp_path / "record.json"
    mine = Record(path, GIVEN)
    Record(path, GIVEN).add(CELLS[0], row(1))
    mine.add(CELLS[1], row(2))
    assert set(Record(path, GIVEN).rows) == set(CELLS[:2])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ('{"rows": {}}', "not a record of the paper's matrix"),
        (json.dumps({"format": "fusionlab-paper-1", "circumstances": {"walkers": 1}, "cells": {}}), "holds figures of"),
        (json.dumps(HEAD), "has no object of cells"),
        (json.dumps({**HEAD, "cells": {"a b c": {}}}), "not MODEL MOLECULE PROGRAM TARGET"),
        (json.dumps({**HEAD, "cells": {"a b c d": 1}}), "a b c d: not an object"),
        (json.dumps({**HEAD, "cells": {"a b c d": {**row(1), "temp_bytes": "x"}}}), "temp_bytes must be numbers"),
        (json.dumps({**HEAD, "cells": {"a b c d": {"versions": "1"}}}), "a b c d: lacks sources, dynamic_launches"),
        (json.dumps({**HEAD, "cells": {"a b c d": {**row(1), "groups": {"columns": [], "rows": []}}}}), "no table of"),
    ],
)
def test_a_file_that_is_no_such_record_is_refused(tmp_path, content, said):
    path = tmp_path / "record.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        Record(path, GIVEN)


def test_cells_are_chosen_by_name():
    chosen = select("psiformer", "LiH,CH4", None, "h200")
    assert [str(cell) for cell in chosen] == [
        "psiformer CH4 inference-step h200",
        "psiformer CH4 train-step h200",
        "psiformer LiH inference-step h200",
        "psiformer LiH train-step h200",
    ]
    assert set(select(None, None, None, None)) == set(EVERY)
    assert len(EVERY) == 96
    with pytest.raises(InputError, match="did you mean: psiformer"):
        select("psifomer", None, None, None)
