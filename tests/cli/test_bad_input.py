"""Wrong input is one line on stderr, exit code 2, no traceback, and nothing half-written."""

import shlex
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.cli.test_pass_through import DYNAMIC_FUNCTION, module

pytestmark = pytest.mark.versions

CASES = [
    line.split(" => ")
    for line in (Path(__file__).parent / "bad_input.txt").read_text().splitlines()
    if not line.startswith("#")
]
MODELS = {
    "$PAULINET": "--model paulinet --molecule LiH --size tiny --walkers 4 --target cpu",
    "$FERMINET": "--model ferminet --molecule LiH --size tiny --walkers 7 --target cpu",
}


@pytest.fixture
def refused(cli, tmp_path, monkeypatch):
    """``refused(arguments, parts)``: the command writes one line with all ``parts`` to stderr, and no file."""
    monkeypatch.chdir(tmp_path)

    def run(arguments, parts):
        before = sorted(tmp_path.rglob("*"))
        result = cli(*arguments, "--quiet")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.count("\n") == 1, result.stderr
        assert "Traceback" not in result.stderr
        assert [part for part in parts if part not in result.stderr] == [], result.stderr
        assert sorted(tmp_path.rglob("*")) == before

    return run


@pytest.fixture
def files(replay_file, recurrence_file, tmp_path):
    """What the names in ``bad_input.txt`` stand for."""
    paths = {name: tmp_path / name for name in ("dynamic.mlir", "static.mlir", "estimated.hlo")}
    paths["dynamic.mlir"].write_text(module(other=DYNAMIC_FUNCTION))
    paths["static.mlir"].write_text(module())
    paths["estimated.hlo"].write_text((Path(__file__).parent / "estimated.hlo").read_text())
    return {
        "REPLAY": [replay_file],
        "RECURRENCE": [recurrence_file],
        "HLO": [paths["estimated.hlo"]],
        "EITHER": [paths["dynamic.mlir"], paths["static.mlir"]],
    }


@pytest.mark.parametrize(("command", "said"), CASES, ids=[command[:50] for command, _ in CASES])
def test_names_and_values(command, said, refused, files, monkeypatch):
    if "HLO" not in command:  # which is refused as what is to be compiled
        for compiling in ("launches.make_all", "clusters.make"):
            monkeypatch.setattr(f"fusionlab.cli.{compiling}", lambda *_: pytest.fail("compiled first"))
    for name, words in MODELS.items():
        command = command.replace(name, words)
    for case in product(*(files.get(word, [word]) for word in shlex.split(command))):
        refused(case, said.split(" & "))


DYNAMIC = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
COMMANDS = {"dump": (), "apply": ("--pass", "batch-replay"), "graph": ()}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", ["prose", "truncated", "binary", "empty", "dynamic"])
def test_files_that_are_no_module(command, content, refused, replay_file, tmp_path):
    if (content, command) == ("dynamic", "apply"):  # a valid module is passed through: test_pass_through.py
        return
    contents = {"prose": b"hello\n", "truncated": replay_file.read_bytes()[:900], "binary": bytes(range(255, 0, -1))}
    path = tmp_path / "bad.mlir"
    path.write_bytes(contents.get(content, DYNAMIC.encode() if content == "dynamic" else b""))
    refused((command, path, *COMMANDS[command], "--out", tmp_path / "out"), (f"fusionlab: {path}: ",))


@pytest.mark.parametrize("command", COMMANDS)
def test_an_output_that_cannot_be_written(command, refused, replay_file, tmp_path):
    (tmp_path / "file").write_text("in the way")
    below = tmp_path / "file" / "below" / "out.mlir"
    arguments = (command, replay_file, *COMMANDS[command], "--target", "cpu", "--out", below)
    reason = "there is no folder" if command == "apply" else "cannot be written"
    refused(arguments, (f"{tmp_path / 'file'}", reason))


def test_a_program_for_another_platform(refused, lowered, tmp_path):
    import jax.numpy as jnp
    import numpy as np

    path = tmp_path / "cuda.mlir"
    path.write_text(lowered(jnp.linalg.slogdet, np.eye(3, dtype=np.float32), platform="cuda").text)
    refused(("dump", path, "--target", "cpu", "--out", tmp_path), (f"{path}: lowered for cuda", "--target"))


def test_a_call_that_no_compiler_knows(refused, tmp_path):
    path = tmp_path / "theirs.mlir"
    path.write_text(
        "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        "%0 = stablehlo.custom_call @their_kernel(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
        "return %0 : tensor<3xf32>\n}\n"
    )
    refused(("dump", path, "--target", "cpu", "--out", tmp_path), ("theirs", "cpu", "their_kernel"))


def test_no_traceback_from_the_real_command(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("hello\n")
    command = [sys.executable, "-m", "fusionlab", "dump", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"fusionlab: {path}: not a valid StableHLO module")
    assert done.stderr.count("\n") == 1
