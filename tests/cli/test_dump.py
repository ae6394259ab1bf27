"""``fusionlab dump``: the folder that it writes."""

import json
from pathlib import Path

from fusionlab.hlo.program import Program


def test_a_file_is_dumped_into_a_folder_named_after_it(as_json, replay_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = Path("fusionlab-dump", "replay-cpu")
    document = as_json("dump", replay_file, "--target", "cpu")
    assert document["name"] == "replay"
    assert document["stablehlo_ops"] > 0
    assert document["walkers"] is None
    written = {path.name for path in out.iterdir()}
    assert {"stablehlo.mlir", "optimized-cpu.hlo.txt", "figures-cpu.json"} <= written
    assert sorted(document["files"]) == sorted(str(out / name) for name in written)
    assert str(Program.from_file(out / "stablehlo.mlir").parse()) == str(Program.from_file(replay_file).parse())
    assert json.loads((out / "figures-cpu.json").read_text())["stablehlo_ops"] == document["stablehlo_ops"]


def test_a_model_is_dumped_with_its_jaxpr(cli, tmp_path):
    out = tmp_path / "dump"
    words = ("--model", "paulinet", "--molecule", "LiH", "--size", "tiny", "--walkers", "4", "--program", "log-psi")
    result = cli("dump", *words, "--target", "cpu", "--out", out, code=0)
    assert "launches, dynamic" in result.stdout
    assert "lambda" in (out / "jaxpr.txt").read_text()
    assert {"jaxpr.txt", "stablehlo.mlir"} <= {path.name for path in out.iterdir()}
