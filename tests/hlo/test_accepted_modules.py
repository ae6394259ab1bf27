"""Modules that cannot be studied are refused with a cause before XLA sees them; what JAX emits is accepted."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from fusionlab.errors import InputError
from fusionlab.hlo.program import Program


def calling(name, *callees):
    calls = [f"  %{i + 1} = call @{callee}(%{i}) : (tensor<f32>) -> tensor<f32>" for i, callee in enumerate(callees)]
    body = "\n".join(calls).replace("%0)", "%x)")
    visibility = "public" if name == "main" else "private"
    last = f"%{len(callees)}" if callees else "%x"
    return (
        f"func.func {visibility} @{name}(%x: tensor<f32>) -> tensor<f32> {{\n{body}\n  return {last} : tensor<f32>\n}}"
    )


EXTERNAL = "func.func private @outside(tensor<f32>) -> tensor<f32>"
FOREIGN = """func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = arith.addf %x, %x : tensor<f32>
  return %0 : tensor<f32>
}"""
BRANCH = """func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  cf.br ^next
^next:
  return %x : tensor<f32>
}"""


@pytest.mark.parametrize(
    ("functions", "cause"),
    [
        ([EXTERNAL, calling("main", "outside")], "@main calls @outside, which has no body"),
        ([calling("main", "a"), calling("a", "a", "a")], "@a calls itself"),
        ([calling("main", "a"), calling("a", "b"), calling("b", "a")], "@a calls itself"),
        ([calling("main"), calling("a", "b"), calling("b", "a")], "@a calls itself"),
        ([calling("main", "main")], "@main calls itself"),
        ([FOREIGN], "there is a arith.addf in @main, line 2"),
        ([BRANCH], "there is a func.func of several blocks in @main, line 1"),
    ],
    ids=["bodiless", "twice", "pair", "unreached", "main", "arith", "blocks"],
)
def test_a_refused_module_says_what_and_where(functions, cause, program_of_text):
    with pytest.raises(InputError, match=r"module\.mlir: ") as caught:
        program_of_text("\n".join(functions))
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


def calling_twice(count):
    """Functions that each call the next one twice: 2^count paths."""
    chain = [calling(f"f{i}", f"f{i + 1}", f"f{i + 1}") for i in range(count)]
    return "\n".join([calling("main", "f0"), *chain, calling(f"f{count}")])


def test_shared_callees_are_looked_at_once(program_of_text):
    program = program_of_text(calling_twice(12))
    assert program.inputs == program.outputs
    # Nothing that inlines calls would ever come back from this one; what refuses it must not walk 2^40 paths either.
    with pytest.raises(InputError, match="with its calls inlined has over 5,000,000 operations"):
        program_of_text(calling_twice(40))


def test_a_declaration_that_nobody_calls_is_accepted(program_of_text):
    assert program_of_text("\n".join([EXTERNAL, calling("main")])).platform == "any"


def sharded(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices("cpu")[:1])
    return jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, PartitionSpec("i")))


@pytest.mark.parametrize(
    "function",
    [
        sharded,
        lambda x: jax.lax.erf_inv(x) + jax.lax.top_k(x, 2)[0][0],
        lambda x: jnp.linalg.slogdet(x[:, None] * x)[1],
        lambda x: jax.random.normal(jax.random.key(0), x.shape) + jnp.sort(x),
        lambda x: jax.lax.switch(0, [jnp.sin, jnp.cos], jax.checkpoint(jnp.tanh)(x)),
        jnp.fft.fft,
    ],
    ids=["sharding", "chlo", "lapack", "random", "switch", "fft"],
)
def test_what_jax_emits_is_accepted(function, lowered, tmp_path):
    program = lowered(function, np.ones(4, np.float32))
    for content in (program.bytecode, program.text.encode()):
        (tmp_path / "module.mlir").write_bytes(content)
        assert Program.from_file(tmp_path / "module.mlir").inputs == program.inputs
