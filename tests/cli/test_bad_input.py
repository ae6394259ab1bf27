"""Wrong input is one line on stderr, exit code 2, no traceback, and nothing half-written."""

import subprocess
import sys

import pytest

from tests.cli.test_pass_through import ANY, module

PAULINET = ("--model", "paulinet", "--molecule", "LiH", "--size", "tiny", "--walkers", "4", "--target", "cpu")
FERMINET = ("--model", "ferminet", "--molecule", "LiH", "--size", "tiny", "--walkers", "7", "--target", "cpu")
BENCH = ("bench", "REPLAY", "--device", "cpu", "--records", "new")
LAST = "best is searched, and stands last and without options"
SUBJECT = "either --model NAME or a StableHLO FILE"
NAMES_AND_VALUES = [
    (("dmup",), ("unknown command 'dmup'", "dump")),
    (("dump", "--model", "paulinte"), ("unknown model 'paulinte'", "paulinet")),
    (("dump", *PAULINET, "--molecule", "CH5"), ("unknown molecule 'CH5'", "CH4")),
    (("dump", *PAULINET, "--target", "a101"), ("unknown target 'a101'", "a100")),
    (("dump", *PAULINET, "--target", "absent.txtpb"), ("absent.txtpb: cannot be read",)),
    (("dump", *PAULINET, "--program", "local_energy"), ("unknown program 'local_energy'", "local-energy")),
    (("dump", *PAULINET, "--laplacian", "replya"), ("unknown laplacian 'replya'", "replay")),
    (("dump", *PAULINET, "--walkers", "0"), ("walkers must be at least 1",)),
    (("dump",), (SUBJECT,)),
    (("dump", "some.mlir", "--model", "paulinet"), (SUBJECT,)),
    (("dump", "absent.mlir"), ("absent.mlir: cannot be read: No such file",)),
    (("apply", "REPLAY", "--pass", "batch-replay{chunk=x}"), ("'x' is not an integer",)),
    (("apply", "REPLAY", "--pipeline", "batch-replay,"), ("ends with a comma",)),
    (("apply", "REPLAY", "--pipeline", "best", "--target", "cpu"), ("objective time: this target has no model",)),
    (("apply", "REPLAY", "--pipeline", "best,batch-replay"), (LAST,)),
    (("apply", "REPLAY", "--pipeline", "best{seed=1}"), (LAST,)),
    (("check", "--quiet"), ("name one thing to work on",)),
    (("check", "REPLAY"), ("name one thing to compare with",)),
    (("check", "REPLAY", "RECURRENCE", "--pass", "batch-replay"), ("name one thing to compare with",)),
    (("check", "REPLAY", "absent"), ("absent: cannot be read",)),
    (("check", "REPLAY", "--pipeline", "best"), ("apply --pipeline",)),
    (("check", "REPLAY", "--against-laplacian", "forward"), ("--against-laplacian is for a model",)),
    (("check", "REPLAY", "RECURRENCE", "--inputs", "absent.npz"), ("absent.npz: cannot be read",)),
    (("check", "REPLAY", "RECURRENCE", "--worst", "."), ("is a folder; --worst names the file",)),
    (("check", "REPLAY", "RECURRENCE", "--check-time-limit", "0"), ("--check-time-limit",)),
    (("check", *FERMINET, "--against-laplacian", "hutchinson"), ("it takes other arguments",)),
    ((*BENCH, "--against", "folks"), ("unknown peer 'folks'; did you mean: folx",)),
    ((*BENCH, "--runs", "1"), ("--runs must be at least 2",)),
    ((*BENCH, "--pass", "no-such-pass"), ("unknown pass",)),
    ((*BENCH, "--seed", "-1"), ("--seed must be between 0 and 4294967295, not -1",)),
    ((*BENCH, "--seed", str(10**22)), ("--seed must be between 0 and",)),
    ((*BENCH[:-1], ""), ("--records needs the name of a folder, or none for no record",)),
    (("graph", "absent.mlir"), ("absent.mlir: cannot be read: No such file",)),
    (("graph", "REPLAY", "--view", "stage"), ("did you mean: stages",)),
    (("graph", "REPLAY", "--view", "kernel"), ("say kernel:NAME",)),
    (("graph", "REPLAY", "--view", "stages:x"), ("this view takes no name",)),
    (("graph", "REPLAY", "--view", "replay", "--pass", "batch-replay"), ("drawn by --view stages",)),
    (("graph", "REPLAY", "--out", "p.jpg"), ("no such kind of file",)),
    (("graph", "REPLAY", "--view", "dataflow:nowhere"), ("unknown value 'nowhere'",)),
    (("graph", "REPLAY", "--platform", "cpu", "--target", "a100"), ("do not go together",)),
    (("study", "REPLAY", "-o", "out", "--time-limit", "-1"), ("are for --pipeline best",)),
    (("study", "REPLAY", "-o", "out", "--time-limit", "inf", "--pipeline", "best"), ("--time-limit must be positive",)),
    (("study", "REPLAY", "-o", "out", "--target", " , "), ("--target names no target",)),
    (("study", "REPLAY", "-o", "out", "--target", "nothing-of-this-name"), ("unknown target",)),
    (("models", "--model", "paulinte"), ("unknown model 'paulinte'", "paulinet")),
    (("models", "--molecule", "CH5"), ("unknown molecule 'CH5'", "CH4")),
    (("models", "--molecule", "CH4", "--spin", "1"), ("spin 1 is impossible with 10 electrons",)),
    (("models", "--molecule", "CH4", "--charge", "10"), ("leaves 0 electrons",)),
    (("models", "--molecule", "none.xyz"), ("none.xyz: cannot be read",)),
    (("models", "--model", "orbformer", "--molecule", "LiH", "--charge", "1"), ("must be neutral",)),
]  # fmt: skip
OF_PASSES = [
    (("--pass", "fuse-jpv"), ("unknown pass 'fuse-jpv'", "fuse-jvp-replay")),
    (("--pass", "batch-replay{chnk=1}"), ("unknown option of batch-replay 'chnk'", "chunk")),
    (
        ("--pass", "batch-replay", "--objective", "time"),
        ("--objective, --time-limit and --seed are for --pipeline best",),
    ),
    (("--pipeline", "layout", "--seed", "1"), ("are for --pipeline best",)),
    (("--pipeline", "best", "--objective", "lunches"), ("unknown objective 'lunches'; did you mean: launches?",)),
    (("--pipeline", "best", "--time-limit", "-1"), ("--time-limit must be positive",)),
    (("--pipeline", "best", "--memory-budget", "much"), ("'much' is not a size",)),
    (("--pass", "batch-replay", "--memory-budget", "2 apples"), ("'2 apples' is not a size",)),
    (("--pass", "licm", "--memory-budget", "1GiB"), ("has the option memory_budget",)),
    ((), ("name what to apply", "--pass NAME")),
    (("--pass", "batch-replay", "--target", "b200"), ("unknown target",)),
    (("--pass", "batch-replay", "--check-walkers", "0"), ("--check-walkers",)),
]
"""Words of ``apply``, which are judged before the file is: also of one that is passed through."""


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


@pytest.mark.parametrize(
    ("arguments", "parts"), NAMES_AND_VALUES, ids=[" ".join(words)[:50] for words, _ in NAMES_AND_VALUES]
)
def test_names_and_values(arguments, parts, refused, replay_file, recurrence_file):
    files = {"REPLAY": replay_file, "RECURRENCE": recurrence_file}
    refused([files.get(word, word) for word in arguments], parts)


@pytest.mark.parametrize(("options", "parts"), OF_PASSES, ids=[" ".join(words)[:50] for words, _ in OF_PASSES])
def test_options_are_judged_as_for_any_other_file_where_it_is_passed_through(options, parts, refused, tmp_path):
    dynamic, static = tmp_path / "dynamic.mlir", tmp_path / "static.mlir"
    dynamic.write_text(module(other=ANY))
    static.write_text(module())
    for path in (dynamic, static):
        refused(("apply", path, *options, "--out", tmp_path / "out.mlir"), parts)


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
    refused(arguments, (f"{tmp_path / 'file'}", "cannot be written"))


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
