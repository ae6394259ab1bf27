"""``fusionlab memory``: the verdict, the sums, the limit, and the same as a JSON document."""

import json

import jax
import jax.numpy as jnp
import pytest

from tests.optional_packages import needs_the_cuda_plugin

TARGETS = [
    pytest.param("a100", marks=needs_the_cuda_plugin),
    pytest.param("cpu"),
]


def kept(x, y, w):
    with jax.named_scope("outer"):
        a = x[:, None] * y[None, :]
    return jnp.sum(jnp.tanh(a @ w) @ a)


@pytest.fixture
def export(tmp_path):
    """``export(target)``: the path of a program that keeps a product of 4 MiB, as exported for the target."""

    def write(target):
        x, w = (jax.ShapeDtypeStruct(dims, jnp.float32) for dims in ((1024,), (1024, 1024)))
        platform = "cpu" if target == "cpu" else "cuda"
        path = tmp_path / f"{target}.bin"
        path.write_bytes(jax.export.export(jax.jit(kept), platforms=[platform])(x, x, w).serialize())
        return path

    return write


@pytest.mark.parametrize("target", TARGETS)
def test_the_peak_the_slots_and_the_sums_are_printed(target, export, cli):
    path = export(target)
    result = cli("memory", path, "--target", target, "--quiet", "--by", "scope", "--no-cache", "--verbose", code=0)
    document = json.loads(cli("memory", path, "--target", target, "--quiet", "--json", code=0).stdout)
    first, *lines = result.stdout.splitlines()
    peak, launches = document["peak"], document["launches"]
    assert first.startswith(f"kept on {target}. Peak: ")
    assert f"MiB temp at launch {peak['launch']} of {launches}, in " in first
    assert "(test_memory.py:" in first
    (line,) = [line for line in lines if " outer " in line and " mul " in line]
    assert "4.0 MiB" in line
    assert f"test_memory.py:{kept.__code__.co_firstlineno + 2}" in line
    assert any(line.split() == ["outer", "4.0", "MiB"] for line in lines)
    assert f"{document['temp_bytes'] / 2**20:.1f} MiB" in next(line for line in lines if "XLA's temp memory" in line)
    assert "shared slots" in result.stdout
    assert "XLA's memory analysis: arguments 4.0 MiB, outputs 4 B, temp " in result.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_the_document_has_it_all(target, export, as_json):
    found = as_json("memory", export(target), "--target", target, "--by", "source")
    assert found["schema"] == "fusionlab-memory-1"
    peak = found["peak"]
    assert sum(one["bytes"] for one in peak["buffers"]) + peak["free_bytes"] == found["temp_bytes"]
    assert sum(found["held_by"].values()) == peak["held_bytes"]
    assert (found["by"], found["failures"], found["notes"]) == ("source", [], [])
    assert found["held_by_step"][peak["step"]] == peak["held_bytes"]


def test_only_the_largest_are_listed(export, cli):
    path = export("cpu")
    few, all_of_them = (cli("memory", path, "--top", top, "--quiet", code=0).stdout for top in (1, 0))
    assert "the 1 largest of " in few
    assert " smaller" in few
    assert " smaller" not in all_of_them


def test_a_limit_ends_with_1(export, cli):
    path = export("cpu")
    cli("memory", path, "--max-temp", "1GiB", "--quiet", code=0)
    result = cli("memory", path, "--max-temp", "1MiB", "--quiet", code=1)
    assert result.stdout.splitlines()[1] == "failed: 12.0 MiB of temp memory; --max-temp allows 1.0 MiB"
    (failure,) = json.loads(cli("memory", path, "--max-temp", "0", "--json", "--quiet", code=1).stdout)["failures"]
    assert failure.endswith("--max-temp allows 0 B")


def test_a_program_without_temporaries(cli, tmp_path):
    path = tmp_path / "sine.mlir"
    path.write_text(jax.jit(jnp.sin).lower(jax.ShapeDtypeStruct((8,), jnp.float32)).as_text())
    result = cli("memory", path, "--target", "cpu", "--max-temp", "0", "--quiet", code=0)
    assert result.stdout.splitlines()[0].endswith(" on cpu: no temporary memory")
    assert result.stdout.count("\n") == 1
    assert "temp 0 B" in cli("memory", path, "--target", "cpu", "--verbose", "--quiet", code=0).stdout
