"""``fusionlab study`` on a small file: what the folder holds, what is refused, and the exit code."""

import json
import shlex

import click
import pytest

from fusionlab import study
from fusionlab.cli import main, paper
from fusionlab.equivalence.verdict import OutputError, Verdict

ON_CPU = ("--target", "cpu", "--quiet")


def test_the_folder_holds_the_report_its_data_and_the_programs(as_json, replay_file, tmp_path):
    folder = tmp_path / "new" / "my study"
    printed = as_json("study", replay_file, "-o", folder, "--check-walkers", "8", *ON_CPU)
    names = {path.name for path in folder.iterdir()}
    assert names == {"report.html", "study.json", "original.mlir", "rewritten-cpu.mlir"}
    assert sorted(printed["files"]) == sorted(str(path) for path in folder.iterdir())
    assert printed["report_bytes"] == (folder / "report.html").stat().st_size
    document = json.loads((folder / "study.json").read_text())
    (target,) = document["targets"]
    (summary,) = printed["targets"]
    for side in ("before", "after"):
        assert target[side]["footprint"] == summary[side]
        at = target[side]["launches"]["columns"].index("dynamic_launches")
        runs = sum(row[at] for row in target[side]["launches"]["rows"])
        assert runs == summary[side]["dynamic_launches"] > 0
        assert runs == sum(one["dynamic_launches"] for one in target[side]["by_stage_family"])
        shown, place = target[side]["by_view_family"], target[side]["launches"]["columns"].index("place")
        assert (shown["view"], shown["field"]) == (target["before"]["by_view_family"]["view"], "place")  # no stages
        assert shown["view"] in ("scope", "source", "op")
        assert runs == sum(one["dynamic_launches"] for one in shown["rows"])
        assert {one["place"] for one in shown["rows"]} == {row[place] for row in target[side]["launches"]["rows"]}
    assert target["equivalence"] == summary["equivalence"]
    assert target["before"]["refusals"] is None  # XLA says nothing of them on the CPU
    assert document["source_lines"] == {}  # what a file names is not read
    assert list(folder.parent.iterdir()) == [folder]
    for row in document["commands"]:
        program, name, *arguments = shlex.split(row["command"])
        assert program == "fusionlab"
        command = main.get_command(click.Context(main), name)
        command.make_context(name, arguments)  # UsageError for an option that there is not


def test_an_earlier_study_is_replaced_and_other_folders_are_left_alone(cli, recurrence_file, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "rewritten-a100.mlir").write_text("of an earlier study")
    cli("study", recurrence_file, "-o", folder, *ON_CPU, code=2)  # nothing says that it is of a study
    (folder / "study.json").write_text('{"format": "fusionlab-study-1"}')
    cli("study", recurrence_file, "-o", folder, *ON_CPU, code=0)
    assert {path.name for path in folder.iterdir()} == {"report.html", "study.json", "original.mlir"}
    document = json.loads((folder / "study.json").read_text())
    assert [target["after"] for target in document["targets"]] == [None]  # one column, not two equal ones
    assert not [one for one in document["commands"] if "stage" in one["command"]]


def test_what_is_read_is_not_replaced(cli, recurrence_file, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.json").write_text('{"format": "fusionlab-study-1"}')
    (folder / "original.mlir").write_text(recurrence_file.read_text())
    result = cli("study", folder / "original.mlir", "-o", folder, *ON_CPU)
    assert (result.exit_code, "lies in" in result.stderr) == (2, True), result.stderr
    assert len(list(folder.iterdir())) == 2


def test_a_different_program_has_no_figures(cli, replay_file, tmp_path, monkeypatch):
    wrong = Verdict("different", (OutputError("output 0", 1.0, 0.1, 1.0, 0.1, False),), worst="walker 3")
    monkeypatch.setattr(study, "check", lambda *_, **__: wrong)
    folder = tmp_path / "study"
    result = cli("study", replay_file, "-o", folder, *ON_CPU, code=1)
    assert "different" in result.stderr
    (target,) = json.loads((folder / "study.json").read_text())["targets"]
    assert target["after"] is None
    assert not (folder / "rewritten-cpu.mlir").exists()


def test_the_paper_is_that_of_the_paper_command(cli, as_json, monkeypatch):
    given = []
    monkeypatch.setattr(paper.command, "callback", lambda **options: given.append(options) or ({"cells": []}, 0))
    assert as_json("study", "--paper")["cells"] == []
    cli("paper", "--json", "--quiet", code=0)
    assert given[0] == given[1]


def test_the_folder_must_be_named(cli, recurrence_file):
    assert "missing option '-o'" in cli("study", recurrence_file, code=2).stderr


@pytest.mark.slow
def test_the_report_of_paulinet_is_small_and_complete(cli, tmp_path):
    folder = tmp_path / "study"
    cli("study", "--model", "paulinet", "-o", folder, "--quiet", code=0)
    assert (folder / "report.html").stat().st_size < 5_000_000
    document = json.loads((folder / "study.json").read_text())
    (target,) = document["targets"]
    before, after = target["before"], target["after"]
    assert before["footprint"]["dynamic_launches"] == 6053
    assert after["footprint"]["dynamic_launches"] <= 180
    columns = before["launches"]["columns"]
    rows = [dict(zip(columns, row, strict=True)) for row in before["launches"]["rows"]]
    runs = [row for row in rows if row["dynamic_launches"]]
    for field in ("ops", "op_name", "source"):  # nearly every launch leads to its ops, its scope and its line
        assert sum(bool(row[field]) for row in runs) > 0.95 * len(runs), field
    loop = next(group for group in document["programs"]["original"]["groups"] if group["kind"] == "loop")
    assert loop["trips"] == 30
    assert document["replays"]["loops"][0]["is_replay"]
    assert before["refusals"]["causes"]
