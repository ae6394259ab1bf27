"""A file with a ``shard_map`` is rewritten, checked and counted for as many devices."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from tests.equivalence.mapped import SHARDED, clipped, lowered
from tests.optional_packages import needs_the_cuda_plugin

pytestmark = pytest.mark.versions

GSPMD = """
func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<2xf32>
  %1 = stablehlo.sine %0 : tensor<2xf32>
  %2 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.sharding = "{devices=[2]<=[2]}"} :
    (tensor<2xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("several") / "mapped.mlir"
    found.write_text(lowered(clipped).text)
    return found


@pytest.mark.slow
def test_a_file_is_rewritten_and_checked(as_json, path, processes):
    document = as_json("check", path, "--pass", "fuse-jvp-replay", "--target", "cpu")
    assert "4xf32" in document["events"][0]["applied"], "each device has its four walkers"
    assert document["verdict"] in ("equal", "within-bound")
    assert document["exact"]["result"] == "identical"
    assert document["walkers"] is None


@needs_the_cuda_plugin
def test_collectives_are_among_the_launches_of_each_device(as_json, tmp_path):
    path = tmp_path / "mean.mlir"
    path.write_text(lowered(lambda x: jnp.tanh(x).sum(1) - lax.pmean(x.mean(), "walkers"), outside=SHARDED).text)
    document = as_json("dump", path, "--out", tmp_path / "dump")
    assert (document["target"], document["devices"], document["dynamic_collectives"]) == ("a100", 4, 1)
    assert document["argument_bytes"] == 4 * 9 * 4, "each device has its four walkers"
    if jax.__version_info__ >= (0, 10):  # before, XLA writes no live ranges
        memory = as_json("memory", path)
        assert (memory["notes"], memory["argument_bytes"]) == (["of each of 4 devices"], document["argument_bytes"])
        assert memory["temp_bytes"] == document["temp_bytes"]


@pytest.mark.slow
@needs_the_cuda_plugin
def test_a_rewritten_file_has_fewer_launches(cli, as_json, path, tmp_path):
    out = tmp_path / "out.mlir"
    document = as_json(
        "apply", path, "--pass", "fuse-jvp-replay", "--unchecked", "--check-time-limit", 0.1, "--out", out
    )
    before, after = document["before"], document["after"]
    assert (before["target"], before["devices"], after["devices"]) == ("a100", 4, 4)
    assert before["dynamic_collectives"] == after["dynamic_collectives"] == 3
    assert after["dynamic_launches"] < before["dynamic_launches"] / 4
    assert before["argument_bytes"] == 4 * 9 * 4, "each device has its four walkers"
    written = out.read_text()
    assert all(kept in written for kept in ("sdy.mesh @mesh", "in_shardings=", "out_shardings="))
    counted = as_json("launches", out)
    assert counted["devices"] == 4
    assert counted["totals"]["dynamic_launches"] == after["dynamic_launches"]
    assert sum(row["dynamic_launches"] for row in counted["rows"] if row["family"] == "collective") == 3
    assert "of each of 4 devices; collectives among its launches: 3" in cli("dump", out, "--out", tmp_path / "d").stdout


@pytest.mark.slow
def test_what_reads_a_program_looks_into_it(as_json, path, tmp_path):
    [loop] = as_json("replays", path)["loops"]
    assert loop["is_replay"]
    rewrites = {event["rewrite"]: event["would"] for event in loop["rewrites"]}
    assert "are the Laplacian of" in rewrites["sparsify-directions"]
    as_json("graph", path, "--out", tmp_path / "replay.dot")
    assert "9 trips" in (tmp_path / "replay.dot").read_text()


def test_more_devices_than_there_are_are_named(cli, path):
    assert len(jax.devices("cpu")) == 1  # JAX has started, with one
    refused = cli("launches", path, "--target", "cpu", "--quiet", code=2)
    assert "a program for 4 devices, and there are 1 of target cpu" in refused.stderr
    assert "xla_force_host_platform_device_count=4" in refused.stderr
    timed = cli("bench", path, "--device", "cpu", "--quiet", code=2)
    assert "only one device is timed" in timed.stderr


def test_another_partitioner_is_named(cli, tmp_path):
    path, out = tmp_path / "gspmd.mlir", tmp_path / "out.mlir"
    path.write_text(GSPMD)
    result = cli("apply", path, "--pass", "licm", "--out", out, "--quiet", code=0)
    assert result.stdout.startswith("nothing applied: ")
    assert "lowered for the GSPMD partitioner" in result.stdout
    assert result.stderr == ""
    assert out.read_text() == GSPMD
    for command in ("launches", "dump"):
        refused = cli(command, path, "--quiet", code=2)
        assert "jax_use_shardy_partitioner" in refused.stderr
