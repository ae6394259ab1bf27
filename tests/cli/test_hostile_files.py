"""Files made to do harm, in processes of their own: one line, exit code 2, and nothing written outside."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusionlab.subprocesses import module_command

ENTRY = "func.func public @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {{\n{}\n}}\n"
IDENTITY = ENTRY.format("  return %x : tensor<4xf32>")
SINE = ENTRY.format("  %0 = stablehlo.sine %x : tensor<4xf32>\n  return %0 : tensor<4xf32>")


def nested_regions(count):
    opening = "".join(f'%r{i} = "stablehlo.if"(%p) ({{\n' for i in range(count))
    closing = "".join(
        "}, {stablehlo.return %x : tensor<4xf32>}) : (tensor<i1>) -> tensor<4xf32>\n"
        + (f"stablehlo.return %r{i} : tensor<4xf32>\n" if i else "return %r0 : tensor<4xf32>")
        for i in reversed(range(count))
    )
    return ENTRY.format(f"{opening}stablehlo.return %x : tensor<4xf32>\n{closing}")


def call_chain(count):
    """``count`` functions, each calling the next one."""
    body = "  %1 = call @f{}(%p, %x) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>\n  return %1 : tensor<4xf32>"
    functions = [ENTRY.replace("public @main", f"private @f{i}").format(body.format(i + 1)) for i in range(count - 1)]
    last = IDENTITY.replace("public @main", f"private @f{count - 1}")
    return ENTRY.format(body.format(0)) + "".join([*functions, last])


LARGE = ENTRY.format(
    "  %c = stablehlo.constant dense<1.0> : tensor<4611686018427387904x4611686018427387904xf32>\n"
    "  return %x : tensor<4xf32>"
)
FILES = {
    "nul": (IDENTITY.replace("return", "\0 return"), "NUL byte in line 2"),
    "magic": (b"ML\xefS\x01" + bytes(range(100, 200)), "neither StableHLO text nor MLIR bytecode"),
    "newer-bytecode": (b"ML\xefR\xff\xff" + bytes(range(100)), "not a valid StableHLO module"),
    "only-magic": (b"ML\xefR", "not a valid StableHLO module"),
    "attributes": (f"module attributes {{a = {'[' * 100_000}{']' * 100_000}}} {{}}", "brackets nest deeper than 256"),
    "many-regions": (nested_regions(20_000), "brackets nest deeper than 256"),
    "regions": (nested_regions(100), "regions nest deeper than 64 in @main"),
    "call-chain": (call_chain(3_000), "calls nest deeper than 200"),
    "large": (LARGE, "more than any memory holds"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_would_end_the_process_is_one_line(name, cli, tmp_path):
    """In this process: if the file were handed on, the whole test run would end."""
    content, part = FILES[name]
    path = tmp_path / "hostile.mlir"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for arguments in (("replays", path), ("apply", path, "--pass", "batch-replay"), ("check", path, path)):
        result = cli(*arguments, "--quiet", code=2)
        assert result.stderr.startswith(f"fusionlab: {path}: ")
        assert part in result.stderr
        assert result.stderr.count("\n") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["hostile.mlir"]


def test_sixty_regions_are_fine(cli, tmp_path):
    path = tmp_path / "deep.mlir"
    path.write_text(nested_regions(60))
    cli("replays", path, "--quiet", code=0)


def test_names_in_a_module_are_no_paths(cli, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = inside / "names.mlir"
    outside = f"../../{tmp_path.name}/outside"
    path.write_text(f'module @"{outside}" {{\n{SINE}}}\n')
    cli("dump", path, "--target", "cpu", "--out", inside / "out", "--quiet", code=0)
    assert [file.name for file in tmp_path.iterdir() if file.name != "cache"] == ["inside"]
    assert sorted(file.name for file in inside.iterdir()) == ["names.mlir", "out"]


CALLBACK = ENTRY.format(
    '  %0 = stablehlo.custom_call @TARGET(%x) {api_version = 2 : i32, backend_config = "4660"} : '
    "(tensor<4xf32>) -> tensor<4xf32>\n  return %0 : tensor<4xf32>"
)


@pytest.mark.parametrize("target", ["xla_python_cpu_callback", "xla_ffi_python_cpu_callback", "PrintToStderr"])
def test_custom_calls_of_a_file_are_not_run(target, cli, tmp_path):
    """Their target would be run by a check, with whatever address the file gives it, on either side."""
    hostile, plain = tmp_path / "hostile.mlir", tmp_path / "plain.mlir"
    hostile.write_text(CALLBACK.replace("TARGET", target))
    plain.write_text(SINE)
    for first, second in ((hostile, plain), (plain, hostile)):
        result = cli("check", first, second, "--quiet", code=1)
        assert f"custom call @{target} is opaque" in result.stdout


def test_python_files_beside_a_module_are_not_run(tmp_path):
    """Where others' files lie there may be others' Python: the processes that fusionlab starts must not import it."""
    for name in ("struct", "resource", "json", "numpy", "fusionlab"):
        (tmp_path / f"{name}.py").write_text("open('it-ran', 'w')\n")
    (tmp_path / "a.mlir").write_text(SINE)
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "fusionlab", "check", "a.mlir", "a.mlir", "--quiet"],
        capture_output=True, text=True, check=False, timeout=120, cwd=tmp_path, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "it-ran").exists()


def test_no_process_of_ours_looks_where_it_is_started(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"/theirs{os.pathsep}")
    command, environment = module_command("fusionlab.hlo.sandbox.worker")
    assert "-P" in command
    assert environment["PYTHONPATH"].split(os.pathsep)[1:] == ["/theirs"]
