"""Claims by two versions of the compiler: which contradictions are the version's."""

import json
from pathlib import Path

import jax
import pytest

from fusionlab.characterisation.claims import Claim, Finding
from fusionlab.characterisation.figures import LAUNCH_MODEL, NotMeasured
from fusionlab.characterisation.matrix import Cell, MatrixSetup, measure
from fusionlab.characterisation.old_compiler import (
    OLD_JAX,
    RECORD_NAME,
    differences,
    judge_sides,
    measure_sides,
    read_sides,
    sides_of,
)
from tests.optional_packages import needs_the_cuda_plugin

LIH, CH4 = (Cell("ferminet", molecule, "inference-step", "a5000") for molecule in ("LiH", "CH4"))


def row(launches):
    return {"dynamic_launches": launches, "dynamic_copies": 1, "temp_bytes": 10, "model_us": 2.0}


def few_launches(figures):
    """Confirmed by fewer than 100 launches on LiH."""
    found = figures.row(LIH)["dynamic_launches"]
    return Finding("confirmed" if found < 100 else "contradicted", f"{found}")


def few_of_some(figures):
    """As ``few_launches``, with a cell that is missing."""
    return Finding(few_launches(figures).verdict, "", (CH4,))


def by_time(figures):
    return Finding("not decidable", "")


def on_ch4(figures):
    figures.row(CH4)
    raise AssertionError


@pytest.mark.parametrize(
    ("today", "before", "verdict"),
    [(200, 50, "shown"), (200, 300, "not"), (50, 300, "agrees"), (50, 50, "agrees")],
)
def test_a_contradiction_is_the_version_s_if_the_older_confirms(today, before, verdict):
    claims = [Claim("III", "few", "under 100", few_launches)]
    (found,) = judge_sides(claims, {LIH: row(today)}, {LIH: row(before)})
    assert found.verdict == verdict
    assert (found.today.finding.ours, found.before.finding.ours) == (str(today), str(before))


@pytest.mark.parametrize(
    ("new", "old", "verdict"),
    [
        ("contradicted", "not decidable", "not decidable"),
        ("not decidable", "confirmed", "not decidable"),
        ("confirmed", "not decidable", "agrees"),
        ("contradicted", "not testable here", "not decidable"),
        ("contradicted", "not measured yet", "not decidable"),
    ],
)
def test_what_the_errors_leave_open_is_not_shown(new, old, verdict):
    def by_launches(figures):
        return Finding(new if figures.row(LIH)["dynamic_launches"] == 200 else old, "")

    (found,) = judge_sides([Claim("III", "few", "", by_launches)], {LIH: row(200)}, {LIH: row(50)})
    assert found.verdict == verdict


def test_times_have_the_errors_of_the_characterisation():
    seen = []

    def errors(figures):
        seen.append(figures.errors)
        return Finding("confirmed", "")

    judge_sides([Claim("III", "x", "", errors)], {LIH: row(1)}, {LIH: row(1)})
    assert seen == [LAUNCH_MODEL] * 2


@pytest.mark.parametrize("judge", [few_of_some, on_ch4])
def test_a_claim_of_missing_cells_is_not_decided(judge):
    (found,) = judge_sides([Claim("III", "few", "", judge)], {LIH: row(200)}, {LIH: row(50)})
    assert found.verdict == "not decidable"


def test_a_contradiction_by_some_of_the_cells_is_not_the_version_s():
    (found,) = judge_sides([Claim("III", "few", "", few_of_some)], {LIH: row(200)}, {LIH: row(300)})
    assert (found.verdict, found.open_because) == ("not", "")


@pytest.mark.parametrize(("judge", "why"), [(few_of_some, "cells are missing"), (by_time, "the errors of the times")])
def test_an_open_claim_has_a_reason(judge, why):
    (found,) = judge_sides([Claim("III", "few", "", judge)], {LIH: row(200)}, {LIH: row(50)})
    assert found.verdict == "not decidable"
    assert found.open_because.startswith(why)


def of_both(rows, versions="jax 0.10.2, jaxlib 0.10.2"):
    return {"versions": versions, "circumstances": MatrixSetup().to_json(), "rows": rows}


def test_sides_are_cells_of_both_versions():
    rows = {str(LIH): {OLD_JAX: row(2), "0.10.2": row(1)}, str(CH4): {"failed": "no"}}
    assert sides_of(of_both(rows)) == ({LIH: row(1)}, {LIH: row(2)})
    assert sides_of(of_both({str(LIH): {OLD_JAX: row(2), "failed": "ended"}})) == ({}, {})


def test_the_newer_side_is_that_of_the_record_s_version():
    rows = {
        str(LIH): {"0.11.2": row(3), OLD_JAX: row(2), "0.10.2": row(1)},
        str(CH4): {"0.10.2": row(4), OLD_JAX: row(5)},
    }
    assert sides_of(of_both(rows, "jax 0.11.2, jaxlib 0.11.2")) == ({LIH: row(3)}, {LIH: row(2)})
    assert sides_of(of_both(rows))[0] == {LIH: row(1), CH4: row(4)}


def test_without_a_record_nothing_is_measured(tmp_path):
    assert read_sides(tmp_path / "none.json", MatrixSetup()) == ({}, {})


def test_a_record_of_other_circumstances_says_nothing():
    path = Path(__file__).parents[2] / "studies" / RECORD_NAME
    assert len(read_sides(path, MatrixSetup())[0]) > 0
    assert read_sides(path, MatrixSetup(size="tiny")) == ({}, {})
    assert read_sides(path, MatrixSetup(walkers=16)) == ({}, {})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", "not a record of both versions"),
        ("[]", "not a record of both versions"),
        (json.dumps(of_both([])), "not a record of both versions"),
        (json.dumps(of_both({}, "")), "its versions name no JAX"),
        (json.dumps(of_both({str(LIH): 3})), "ferminet LiH inference-step a5000: not an object"),
        (json.dumps(of_both({str(LIH): {OLD_JAX: 3}})), f"a5000: {OLD_JAX}: not an object"),
        (json.dumps(of_both({str(LIH): {OLD_JAX: {}}})), f"a5000: {OLD_JAX}: lacks versions"),
        (json.dumps(of_both({"nonsense": {OLD_JAX: {}}})), "nonsense"),
    ],
)
def test_a_broken_record_is_refused_with_its_cause(content, said, tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    (tmp_path / RECORD_NAME).write_text(content)
    found = cli("paper", "--no-run", "--record", "paper.json", "--page", "page.md", code=2)
    assert RECORD_NAME in found.stderr
    assert said in found.stderr
    assert not (tmp_path / "page.md").exists()


def test_only_cells_of_both_versions_count():
    def every_cell(figures):
        if set(figures.rows) != {LIH}:
            raise NotMeasured([CH4])
        return Finding("confirmed", "")

    (found,) = judge_sides([Claim("III", "x", "", every_cell)], {LIH: row(1), CH4: row(2)}, {LIH: row(1)})
    assert found.verdict == "agrees"


def test_figures_are_the_older_first():
    assert differences(row(200), row(50))["dynamic_launches"] == (50, 200)


@needs_the_cuda_plugin
@pytest.mark.full
def test_both_sides_are_rows_of_the_matrix(compile_cache):
    """The older side is the version that runs here, in a process of its own."""
    given = MatrixSetup(walkers=8, size="tiny")
    sides = measure_sides(LIH, given, jax.__version__)
    one, known = sides[jax.__version__], measure(LIH, given)
    assert set(one) == set(known)
    same = ("dynamic_launches", "dynamic_copies", "temp_bytes", "flops", "bytes", "sources")
    assert {name: one[name] for name in same} == {name: known[name] for name in same}
