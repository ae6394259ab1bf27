"""The report of the main job at its full size: small enough to send, and joined from launches to lines."""

import json

import pytest


@pytest.mark.slow
def test_the_report_of_paulinet_is_small_and_complete(cli, tmp_path):
    folder = tmp_path / "study"
    result = cli("study", "--model", "paulinet", "-o", folder, "--json", "--quiet")
    assert result.exit_code == 0, result.stderr
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
