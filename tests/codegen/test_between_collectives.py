"""A program of several devices is divided at its collectives, and nothing else of it changes."""

from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as Spec

from fusionlab.codegen.between_collectives import around_parts, divided, parts, with_parts
from fusionlab.codegen.raising import RaiseError, raise_program
from fusionlab.codegen.raising.devices import RaisingOfAllDevices
from fusionlab.hlo import meshes
from fusionlab.hlo.meshes import Mesh, members_of, parts_of_devices, whole_of_parts
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import functions_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

pytestmark = pytest.mark.versions

MESH = AbstractMesh((4,), ("walkers",), axis_types=(AxisType.Auto,))
WEIGHTS = np.arange(9, dtype=np.float32).reshape(3, 3) / 9


SPLIT, WHOLE = Spec("walkers"), Spec()


def on_mesh(function, *arguments, outside=SPLIT):
    mapped = jax.shard_map(function, mesh=MESH, in_specs=SPLIT, out_specs=outside, check_vma=False)
    lowered = jax.jit(mapped).trace(*arguments).lower(lowering_platforms=("cpu",))
    return Program.from_module(lowered.compiler_ir("stablehlo"), name="mapped", provenance="a test")


def energies(x):
    """One of each walker, by a loop over the rows of an array that every device holds."""
    y = jnp.sin(x) @ WEIGHTS
    return lax.fori_loop(0, 3, lambda k, s: s + jnp.tanh(y @ jnp.asarray(WEIGHTS)[k]), x[:, 0])


def clipped(x):
    e = energies(x)
    mean = lax.pmean(e.mean(), "walkers")
    return energies(x * mean) + lax.psum(e.max(), "walkers")


X = jax.ShapeDtypeStruct((8, 3), jnp.float32)


def numbers(program, *arrays):
    return raise_program(program, RaisingOfAllDevices())(*arrays)


def arrays_like(program):
    random = np.random.default_rng(0)
    return [random.standard_normal(type_.shape).astype(np.float32) for type_ in program.inputs]


def test_each_level_is_a_function_with_its_constants_and_without_means():
    program = on_mesh(clipped, X)
    assert program.devices == 4
    whole = divided(program)
    found = parts(whole)
    assert [[str(t) for t in part.inputs] for part in found.values()] == [["2x3xf32"], ["f32", "2x3xf32", "f32"]]
    assert [[str(t) for t in part.outputs] for part in found.values()] == [["2xf32"], ["2xf32"]]
    for part in found.values():
        assert part.devices == 1
        assert "dense<" in part.text
        assert "all_reduce" not in part.text
        assert "num_partitions" not in part.text
    assert around_parts(whole).count("all_reduce") == program.text.count('"stablehlo.all_reduce"') == 2
    given = arrays_like(program)
    for ours, theirs in zip(numbers(whole, *given), numbers(program, *given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_a_divided_program_is_divided_no_further():
    whole = divided(on_mesh(clipped, X))
    assert divided(whole) is whole
    again = with_parts(whole, parts(whole))
    assert around_parts(again) == around_parts(whole)
    assert set(functions_of(with_parts(again, parts(again)).parse())) == set(functions_of(again.parse()))


def in_a_loop(x):
    return lax.fori_loop(0, 2, lambda _, c: energies(c)[:, None] * lax.pmean(c.mean(), "walkers") + c, x)


def in_a_branch(x):
    return lax.cond(lax.axis_index("walkers") > 1, lambda y: energies(y) + lax.psum(y.sum(), "walkers"), energies, x)


def in_a_function(x):
    inner = jax.jit(lambda y: energies(y) + lax.psum(energies(y).max(), "walkers"))
    return inner(x) + inner(2 * x)


def test_functions_are_put_back_in_any_order():
    """What is around them has the same text."""
    whole = divided(on_mesh(clipped, X))
    first, second = parts(whole).items()
    assert around_parts(with_parts(whole, dict([first]))) == around_parts(whole)
    assert around_parts(with_parts(whole, dict([second]))) == around_parts(whole)


def test_constraints_that_leave_all_to_the_partitioner_divide_nothing():
    """JAX writes them after every operation of a shard_map over one axis of two."""
    mesh = AbstractMesh((4, 2), ("walkers", "other"), axis_types=(AxisType.Auto,) * 2)
    names = {"axis_names": {"walkers"}, "check_vma": False}
    mapped = jax.shard_map(clipped, mesh=mesh, in_specs=SPLIT, out_specs=SPLIT, **names)
    module = jax.jit(mapped).trace(X).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo")
    program = Program.from_module(module, name="one axis", provenance="a test")
    assert "sdy.sharding_constraint" in program.text
    assert program.devices == 8
    assert len(parts(divided(program))) == 2
    assert "sdy.sharding_constraint" not in divided(program).text


@pytest.mark.parametrize(("function", "functions"), [(in_a_loop, 1), (in_a_branch, 2), (in_a_function, 1)])
def test_what_has_collectives_inside_is_divided_inside(function, functions):
    program = on_mesh(function, X)
    whole = divided(program)
    assert len(parts(whole)) == functions
    assert all("2x3xf32" in map(str, part.inputs) for part in parts(whole).values())
    given = arrays_like(program)
    for ours, theirs in zip(numbers(whole, *given), numbers(program, *given), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_the_place_of_a_device_is_no_part_of_a_function():
    """Alone, it would be a constant."""
    program = on_mesh(lambda x: energies(x * (1 + lax.axis_index("walkers"))), X)
    [part] = parts(divided(program)).values()
    assert "partition_id" not in part.text
    assert "partition_id" in around_parts(divided(program))


def test_what_nobody_wants_is_no_function_and_stays_after_what_it_reads():
    """A loop whose result is not used, which JAX would drop, with constants of the same level."""
    sums = on_mesh(lambda x: lax.psum(x.sum(), "walkers"), X, outside=WHOLE)
    text = sums.text
    at = text.index("stablehlo.reduce")
    start = text.rindex("\n", 0, at) + 1
    dead = (
        "      %zero = stablehlo.constant dense<0.5> : tensor<3x3xf32>\n"
        "      %dead = stablehlo.dot_general %arg1, %zero, contracting_dims = [1] x [0]"
        " : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>\n"
    )
    program = Program.of_foreign_bytes((text[:start] + dead + text[start:]).encode(), Path("dead.mlir"))
    assert "dot_general" in program.text
    assert parts(divided(program)) == {}
    result = run_pipeline(program, parse_pipeline("licm,fuse-jvp-replay"), Setting())
    assert not [event for event in result.events if event.kind == "fault"]


@pytest.mark.parametrize("channel", ["handle = 1", "handle = 0"])
def test_collectives_over_replicas_are_not_read_as_over_devices(channel):
    program = on_mesh(lambda x: lax.psum(x.sum(), "walkers"), X, outside=WHOLE)
    text = program.text.replace(", use_global_device_ids", "").replace("handle = 1", channel)
    other = Program.of_foreign_bytes(text.encode(), Path("replicas.mlir"))
    with pytest.raises(RaiseError, match="over replicas"):
        numbers(other, *arrays_like(program))


def test_an_array_of_summands_is_not_read_as_replicated():
    @dataclass
    class Sharding:
        unreduced_axes: tuple = ()
        dimension_shardings: tuple = ()

    assert meshes._split(Sharding(), set()) == ()
    with pytest.raises(ValueError, match="unreduced"):
        meshes._split(Sharding(unreduced_axes=("walkers",)), {"walkers"})


def test_arithmetic_alone_is_no_function():
    program = on_mesh(lambda x: lax.psum(jnp.sin(x).sum(), "walkers"), X, outside=WHOLE)
    assert divided(program) is program
    result = run_pipeline(program, parse_pipeline("licm,fuse-jvp-replay"), Setting())
    assert result.program is program
    assert not result.applied


def test_a_loop_with_a_collective_in_each_trip_is_refused_by_the_pass():
    program = on_mesh(lambda x: lax.fori_loop(0, 3, lambda k, s: s + lax.psum(jnp.sin(x * k), "walkers"), x), X)
    result = run_pipeline(program, parse_pipeline("batch-replay"), Setting())
    assert result.program is program
    assert "stablehlo.all_reduce in the body cannot be raised" in result.events[0].reason


def test_nothing_changes_places_with_an_effect():
    call = "stablehlo.custom_call @write_it(%part) {has_side_effect = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>"
    program = on_mesh(energies, X)
    assert len(parts(divided(program))) == 1
    at = program.text.index("stablehlo.sine")
    name = program.text[at:].split()[1]
    line = program.text.rindex("\n", 0, at) + 1
    text = program.text[:line] + "      %w = " + call.replace("%part", name) + "\n" + program.text[line:]
    from jax._src.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        edited = Program.from_module(ir.Module.parse(text), name="edited", provenance="a test")
    assert divided(edited) is edited


def test_arrays_are_split_over_the_axes_of_a_mesh_and_put_together():
    mesh = Mesh((("a", 2), ("b", 3)))
    array = np.arange(12 * 4).reshape(12, 4)
    split = (("b",), ("a",))
    found = parts_of_devices(array, mesh, split, np.broadcast_to)
    assert found.shape == (6, 4, 2)
    np.testing.assert_array_equal(found[4], array[4:8, 2:])  # a = 1, b = 1
    np.testing.assert_array_equal(whole_of_parts(found, mesh, split), array)
    both = (("b", "a"), ())
    found = parts_of_devices(array, mesh, both, np.broadcast_to)
    np.testing.assert_array_equal(found[1], array[4:6])  # a = 0, b = 1: the second of three, its first half
    np.testing.assert_array_equal(whole_of_parts(found, mesh, both), array)


@pytest.mark.parametrize("groups", [[[0, 1], [2]], [[0, 1]], [[0, 1], [1, 2]]])
def test_groups_of_a_part_of_the_devices_are_refused(groups):
    with pytest.raises(ValueError, match="groups"):
        members_of(groups, 3)
