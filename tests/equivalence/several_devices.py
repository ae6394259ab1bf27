"""Run by test_several_devices in a process with four devices: what a raised program of several devices computes, and
XLA's own compilation of its module, against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as Spec

from fusionlab.equivalence.oracle import program_runner, xla_runner
from fusionlab.hlo.program import Program

EACH, ALL = Spec("a"), Spec()
line = jax.make_mesh((4,), ("a",), axis_types=(AxisType.Auto,))
square = jax.make_mesh((2, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
tied = jax.make_mesh((2, 2), ("b", "a"), axis_types=(AxisType.Auto,) * 2)


def ring(x):
    return lax.ppermute(x, "a", [(0, 1), (1, 2), (2, 0)])


def over_rows(x):
    return lax.psum(x, "b"), lax.all_gather(x[:, :1], "a", axis=1, tiled=True), x * lax.axis_index("b")


CASES = {
    "sum": (lambda x: lax.psum(x, "a"), line, EACH, ALL),
    "largest": (lambda x: lax.pmax(x, "a") - lax.pmin(x, "a"), line, EACH, ALL),
    "gathered": (lambda x: lax.all_gather(x, "a"), line, EACH, ALL),
    "gathered in place": (lambda x: lax.all_gather(x, "a", axis=1, tiled=True) + x[:, :1], line, EACH, EACH),
    "scattered": (lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True), line, EACH, EACH),
    "exchanged": (lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True), line, EACH, EACH),
    "around a ring": (ring, line, EACH, EACH),
    "own place": (lambda x: x * lax.axis_index("a"), line, EACH, EACH),
    "in groups": (lambda x: lax.psum(x, "a", axis_index_groups=[[0, 2], [1, 3]]), line, EACH, EACH),
    "two axes": (over_rows, square, Spec("a", "b"), (Spec("a"), Spec("a"), Spec("a", "b"))),
    "axes in another order": (over_rows, tied, Spec(("a", "b")), (Spec("a"), Spec(("a", "b")), Spec(("b", "a")))),
    "in a loop": (lambda x: lax.fori_loop(0, 3, lambda _, c: c + lax.pmean(jnp.sin(c), "a"), x), line, EACH, EACH),
}
x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
for name, (function, mesh, given, returned) in CASES.items():
    mapped = jax.jit(jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=returned, check_vma=False))
    module = mapped.lower(x).compiler_ir("stablehlo")
    program = Program.from_module(module, name=name, provenance="a test")
    assert program.devices == 4
    expected = jax.tree.leaves(mapped(x))
    for runner in (program_runner(program), xla_runner(program), program_runner(program, widen=True)):
        found = runner([x])
        assert len(found) == len(expected)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)

# Over one axis of two: JAX writes a constraint that leaves all to the partitioner after every operation.
partial = jax.shard_map(
    lambda x: lax.pmean(jnp.sin(x), "a"), mesh=square, in_specs=EACH, out_specs=ALL, axis_names={"a"}, check_vma=False
)
module = jax.jit(partial).lower(x).compiler_ir("stablehlo")
program = Program.from_module(module, name="one axis", provenance="a test")
for runner in (program_runner(program), xla_runner(program)):
    np.testing.assert_allclose(runner([x])[0], np.sin(x).reshape(2, 4, 4).mean(0), rtol=1e-5, atol=1e-6)

# Arguments that lie on the devices already, by shardings of the entry.
over = NamedSharding(line, EACH)
mapped = jax.shard_map(lambda x: x - lax.pmean(x.mean(), "a"), mesh=line, in_specs=EACH, out_specs=EACH)
module = jax.jit(mapped, in_shardings=over, out_shardings=over).lower(x).compiler_ir("stablehlo")
program = Program.from_module(module, name="placed", provenance="a test")
np.testing.assert_allclose(xla_runner(program)([x])[0], x - x.reshape(4, -1).mean(1).mean(), rtol=1e-5, atol=1e-6)
