"""The committed record and page: the figures fit together, and the page is that of the record."""

import json
from pathlib import Path

import pytest

from fusionlab.characterisation import run
from fusionlab.characterisation.figures import MatrixFigures
from fusionlab.characterisation.matrix import EVERY, MatrixSetup
from fusionlab.characterisation.old_compiler import OLD_JAX, RECORD_NAME
from fusionlab.characterisation.run import Record

ROOT = Path(__file__).parents[2]
PAGE, RECORD = ROOT / "studies" / "paper.md", ROOT / "studies" / "paper.json"


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def record():
    """The committed one."""
    return Record(RECORD, MatrixSetup())


def test_the_groups_of_every_row_add_up_to_its_totals(record):
    figures = MatrixFigures(record.rows)
    assert record.rows
    for cell, row in record.rows.items():
        groups = figures.groups(cell)
        assert cell in EVERY
        assert sum(group.dynamic_launches for group in groups) == row["dynamic_launches"]
        assert sum(group.bytes for group in groups) == row["bytes"]
        assert sum(group.flops for group in groups) == row["flops"]
        assert sum(group.model_us for group in groups) == pytest.approx(row["model_us"], abs=0.1)


def test_the_committed_launches_agree_with_the_table_of_programs(record):
    """`studies/programs-a100.json` was measured by another path."""
    known = json.loads((ROOT / "studies" / "programs-a100.json").read_text())["rows"]
    for cell, row in record.rows.items():
        other = known.get(f"{cell.model} {cell.molecule} {cell.program}")
        if cell.target == "a100" and other is not None and "failed" not in other:
            assert row["dynamic_launches"] == pytest.approx(other["dynamic_launches"], rel=0.02), cell


def test_the_committed_page_is_that_of_the_committed_record(tmp_path, cli):
    written = tmp_path / "paper.md"
    cli("paper", "--no-run", "--page", written, code=0)
    assert written.read_text() == PAGE.read_text(), "run: fusionlab paper --no-run --page studies/paper.md"


def test_the_document_has_cells_claims_and_what_is_lacking(record, tmp_path, cli, as_json):
    document = as_json("paper", "--no-run")
    assert document["paper_jax"] == "0.4.28"
    assert len(document["cells"]) + len(document["not_measured"]) == 96
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert f"{len(record.rows)} of its 96 cells are measured" in readme
    assert {one["verdict"] for one in document["claims"]} <= {
        "confirmed", "contradicted", "not decidable", "not testable here", "not measured yet",
    }  # fmt: skip
    assert all(
        bool(one["kernels"]) == (one["verdict"] == "contradicted" and one["differs"].startswith("cause not shown"))
        for one in document["claims"]
    )
    assert all(one["ours"] for one in document["claims"] if one["verdict"] in ("confirmed", "contradicted"))
    cli("paper", "--no-run", "--record", tmp_path / "none.json", code=0)


def test_a_partial_record_is_a_page(tmp_path, as_json):
    """Of a record without inference the claims about both programs are still judged."""
    kept = json.loads(RECORD.read_text())
    kept["cells"] = {name: row for name, row in kept["cells"].items() if "train-step" in name}
    partial = tmp_path / "partial.json"
    partial.write_text(json.dumps(kept))
    document = as_json("paper", "--no-run", "--record", partial, "--page", tmp_path / "page.md")
    assert len(document["cells"]) == len(kept["cells"]) < 96
    assert (tmp_path / "page.md").exists()


def test_measured_times_that_are_named_must_be_there(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    cli("paper", "--no-run", code=0)
    for content, said in (
        ("{", "no records of `fusionlab bench` there"),
        ('{"format": "fusionlab-bench-1"}', "its field started_utc is missing or wrong"),
    ):
        (tmp_path / "records").mkdir(exist_ok=True)
        (tmp_path / "records" / "one.json").write_text(content)
        assert said in cli("paper", "--no-run", "--bench-records", tmp_path / "records", code=2).stderr


def test_rows_of_other_sources_are_said(record, monkeypatch, cli):
    monkeypatch.setattr("fusionlab.characterisation.matrix.sources_digest", lambda: "other")
    rows = len(record.rows)
    assert f"{rows} of {rows} rows are of other versions or program sources" in cli("paper", "--no-run").stderr


def test_a_cell_that_fails_ends_with_exit_code_1(tmp_path, monkeypatch, as_json):
    monkeypatch.setattr(run, "measure_apart", lambda *_: {"failed": "no room"})
    cell = ("--models", "ferminet", "--molecules", "LiH", "--programs", "train-step", "--targets", "a100")
    document = as_json("paper", *cell, "--yes", "--record", tmp_path / "r.json", code=1)
    assert document["failed"] == {"ferminet LiH train-step a100": "no room"}


def test_the_reason_of_a_contradiction_says_whether_it_is_the_compiler_s(tmp_path, cli):
    """By a record of both versions beside that of the page: of Psiformer's cell alone, with the same figures."""
    name = "psiformer CH4 inference-step a5000"
    (tmp_path / "paper.json").write_text(RECORD.read_text())
    row = json.loads(RECORD.read_text())["cells"][name]
    content = {"versions": "jax 0.10.2", "circumstances": MatrixSetup().to_json()}
    content |= {"rows": {name: {OLD_JAX: row, "0.10.2": row}}}
    (tmp_path / RECORD_NAME).write_text(json.dumps(content))
    cli("paper", "--no-run", "--record", tmp_path / "paper.json", "--page", tmp_path / "page.md", code=0)
    text = (tmp_path / "page.md").read_text()
    ((of_one,), (of_others,)) = (
        [line for line in text.splitlines() if f"| {claim} |" in line]
        for claim in ("Psiformer: TRSM within sampling", "training holds more memory than inference")
    )
    assert of_one.endswith(
        "log-determinants need LU factors alone; not XLA's version: JAX 0.4.35 contradicts it, too |"
    )
    assert of_others.endswith("or differs by compiler version (open: cells are missing) |")
    assert 'differs by compiler version": shown for 0 of 11, excluded for 2, open for 9' in " ".join(text.split())
