"""Walkers split over four virtual CPU devices, by ``jit`` and by ``shard_map``: rewritten, and run there again.

Prints how many pipelines rewrote each program; an assertion fails where the numbers or the shardings are others.
"""

# ruff: noqa: E402  # the number of devices is set before JAX starts

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
sys.path.insert(0, str(Path(__file__).parents[2]))

from fusionlab import jax_setup

jax_setup.load_jax()

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.export._export import _module_to_bytecode
from jax.sharding import NamedSharding, PartitionSpec

from fusionlab.hlo.optimised.saved import load_saved
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

W = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((8, 2, 3)).astype(np.float32)
PIPELINES = ("batch-replay", "batch-replay{chunk=2}", "sparsify-directions")


def of_one(x):
    def f(z):
        return (jnp.sin(z.reshape(-1, 3) @ W) * jnp.cos(z.reshape(-1, 3) @ W)).sum()

    y = x.reshape(-1)
    _, hessian = jax.linearize(jax.grad(f), y)
    eye = jnp.eye(y.size, dtype=y.dtype)
    return f(y) + lax.fori_loop(0, y.size, lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), y.dtype))


def annotations(program):
    text = str(program.parse())
    return {name: text.count(name) for name in ("sdy.mesh", "sdy.sharding", "sdy.manual_computation")}


def main():
    mesh = jax.make_mesh((4,), ("walkers",), axis_types=(jax.sharding.AxisType.Auto,))
    split = NamedSharding(mesh, PartitionSpec("walkers"))
    energies = jax.vmap(of_one)
    by_map = jax.shard_map(
        energies, mesh=mesh, in_specs=PartitionSpec("walkers"), out_specs=PartitionSpec("walkers"), check_vma=False
    )
    expected = np.asarray(jax.jit(energies)(X))
    for name, function in (("jit", energies), ("shard_map", by_map)):
        jitted = jax.jit(function, in_shardings=split, out_shardings=split)
        exported = export.export(jitted)(jax.ShapeDtypeStruct(X.shape, X.dtype))
        with tempfile.NamedTemporaryFile(suffix=".bin") as file:
            Path(file.name).write_bytes(exported.serialize())
            program = load_saved(Path(file.name))
        assert isinstance(program, Program)
        count = 0
        for pipeline in PIPELINES:
            result = run_pipeline(program, parse_pipeline(pipeline), Setting(platform="cpu"))
            assert annotations(result.program) == annotations(program), pipeline
            if not result.applied:
                assert result.program is program
                continue
            count += 1
            module = _module_to_bytecode(result.program.parse())
            values = jax.jit(replace(exported, mlir_module_serialized=module).call)(jax.device_put(X, split))
            assert values.sharding.is_equivalent_to(split, values.ndim), values.sharding
            assert len({shard.device for shard in values.addressable_shards}) == 4
            np.testing.assert_allclose(np.asarray(values), expected, rtol=2e-4, atol=2e-4)
        print(f"{name}: {count} rewritten")


if __name__ == "__main__":
    main()
