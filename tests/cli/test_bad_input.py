"""Wrong input is one line on stderr, exit code 2, no traceback, and nothing half-written."""

import subprocess
import sys

import pytest

PAULINET = ("--model", "paulinet", "--molecule", "LiH", "--size", "tiny", "--walkers", "4", "--target", "cpu")


def is_one_line(result, *parts):
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("dmup",), ("unknown command 'dmup'", "dump")),
        (("dump", "--model", "paulinte"), ("unknown model 'paulinte'", "paulinet")),
        (("dump", *PAULINET, "--molecule", "CH5"), ("unknown molecule 'CH5'", "CH4")),
        (("dump", *PAULINET, "--target", "a101"), ("unknown target 'a101'", "a100")),
        (("dump", *PAULINET, "--target", "absent.txtpb"), ("absent.txtpb: cannot be read",)),
        (("dump", *PAULINET, "--program", "local_energy"), ("unknown program 'local_energy'", "local-energy")),
        (("dump", *PAULINET, "--laplacian", "replya"), ("unknown laplacian 'replya'", "replay")),
        (("dump", *PAULINET, "--walkers", "0"), ("walkers must be at least 1",)),
        (("apply", *PAULINET, "--pass", "fuse-jpv"), ("unknown pass 'fuse-jpv'", "fuse-jvp-replay")),
        (("apply", *PAULINET, "--pass", "batch-replay{chnk=1}"), ("unknown option of batch-replay 'chnk'", "chunk")),
        (("apply", *PAULINET, "--pass", "batch-replay{chunk=x}"), ("'x' is not a whole number",)),
        (("apply", *PAULINET, "--pipeline", "batch-replay,"), ("ends with a comma",)),
        (("apply", *PAULINET), ("--pass NAME",)),
        (("apply", *PAULINET, "--pass", "batch-replay", "--check-walkers", "0"), ("--check-walkers",)),
        (("apply", *PAULINET, "--pass", "batch-replay", "--memory-budget", "2 apples"), ("'2 apples' is not a size",)),
        (("apply", *PAULINET, "--pass", "licm", "--memory-budget", "2GB"), ("memory_budget",)),
        (("dump",), ("either --model NAME or a StableHLO FILE",)),
        (("dump", "some.mlir", "--model", "paulinet"), ("either --model NAME or a StableHLO FILE",)),
        (("dump", "absent.mlir"), ("absent.mlir: cannot be read: No such file",)),
        (("graph", "absent.mlir"), ("absent.mlir: cannot be read: No such file",)),
        (("models", "--model", "paulinte"), ("unknown model 'paulinte'", "paulinet")),
        (("models", "--molecule", "CH5"), ("unknown molecule 'CH5'", "CH4")),
    ],
    ids=lambda value: "-".join(str(v) for v in value if str(v)[:2] != "--")[:50] if isinstance(value, tuple) else None,
)
def test_names_and_values(arguments, parts, cli):
    is_one_line(cli(*arguments), *parts)


NO_MODULES = [
    pytest.param(content, command, id=f"{content}-{command[0]}")
    for content in ("prose", "truncated", "binary", "empty", "dynamic")
    for command in (("dump",), ("apply", "--pass", "batch-replay"), ("graph",))
    if (content, command[0]) != ("dynamic", "apply")  # a valid module is passed through: test_pass_through.py
]


@pytest.mark.parametrize(("content", "command"), NO_MODULES)
def test_files_that_are_no_module(command, content, cli, replay_file, tmp_path):
    path = tmp_path / "bad.mlir"
    dynamic = "func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    path.write_bytes(
        {
            "prose": b"hello\n",
            "truncated": replay_file.read_bytes()[:900],
            "binary": bytes(range(255, 0, -1)),
            "empty": b"",
            "dynamic": dynamic.encode(),
        }[content]
    )
    out = tmp_path / "out"
    is_one_line(cli(*command, path, "--out", out), f"fusionlab: {path}: ")
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [("dump", "--target", "cpu"), ("apply", "--pass", "batch-replay", "--target", "cpu"), ("graph",)],
    ids=lambda a: a[0],
)
def test_an_output_that_cannot_be_written(arguments, cli, replay_file, tmp_path):
    (tmp_path / "file").write_text("in the way")
    before = sorted(tmp_path.rglob("*"))
    below = tmp_path / "file" / "below" / "out.mlir"
    is_one_line(cli(*arguments, replay_file, "--out", below), f"{tmp_path / 'file'}", "cannot be written")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_program_for_another_platform(cli, lowered, tmp_path):
    import jax.numpy as jnp
    import numpy as np

    path = tmp_path / "cuda.mlir"
    path.write_text(lowered(jnp.linalg.slogdet, np.eye(3, dtype=np.float32), platform="cuda").text)
    is_one_line(cli("dump", path, "--target", "cpu", "--quiet"), f"{path}: lowered for cuda", "--target")


def test_a_call_that_no_compiler_knows(cli, tmp_path):
    path = tmp_path / "theirs.mlir"
    path.write_text(
        "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        "%0 = stablehlo.custom_call @their_kernel(%x) : (tensor<3xf32>) -> tensor<3xf32>\n"
        "return %0 : tensor<3xf32>\n}\n"
    )
    result = cli("dump", path, "--target", "cpu", "--out", tmp_path / "out", "--quiet")
    is_one_line(result, "theirs", "cpu", "their_kernel")


def test_no_traceback_from_the_real_command(tmp_path):
    path = tmp_path / "bad.mlir"
    path.write_text("hello\n")
    command = [sys.executable, "-m", "fusionlab", "dump", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"fusionlab: {path}: not a valid StableHLO module")
    assert done.stderr.count("\n") == 1
