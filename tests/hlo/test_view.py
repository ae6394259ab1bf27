"""The flat view: calls inlined, regions nested, captured values found, constants and folding."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.errors import InputError
from fusionlab.hlo.constants import fold
from fusionlab.hlo.program import program_view
from fusionlab.hlo.view import free_values, view_of

X = np.linspace(0.1, 1.2, 6, dtype=np.float32)


def test_a_function_called_twice_is_inlined_twice(lowered):
    sine = jax.jit(jnp.sin)
    flat = view_of(lowered(lambda x: sine(sine(x)) + 1, X).parse())
    assert [node.name for node in flat.walk() if node.name == "stablehlo.sine"] == ["stablehlo.sine"] * 2
    assert "func.call" not in {node.name for node in flat.walk()}
    assert len({node.id for node in flat.walk()}) == len(list(flat.walk()))


def test_scopes_are_those_of_the_call_sites_first(lowered):
    @jax.jit
    def inner(x):
        with jax.named_scope("stage_b"):
            return jnp.sin(x)

    def function(x):
        with jax.named_scope("stage_a"):
            return inner(x)

    (node,) = (n for n in program_view(lowered(function, X)).walk() if n.name == "stablehlo.sine")
    assert node.scope.index("stage_a") < node.scope.index("stage_b") < node.scope.index("sin")


def test_what_a_region_captures(program_of_text):
    text = """
func.func public @main(%x: tensor<f32>, %p: tensor<i1>, %y: tensor<f32>) -> tensor<f32> {
  %s = stablehlo.sine %x : tensor<f32>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %s, %x : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }, {
    stablehlo.return %y : tensor<f32>
  }) : (tensor<i1>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    flat = program_view(program_of_text(text))
    sine, choice = flat.nodes
    assert free_values(choice.regions[0]) == [sine.results[0], flat.arguments[0]]
    assert free_values(choice.regions[1]) == [flat.arguments[2]]


RECURSIVE = """
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @again(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func private @again(%x: tensor<f32>) -> tensor<f32> {
  %0 = call @again(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @again(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}"""


def test_calls_that_recurse_are_an_input_error():
    with make_ir_context():
        module = ir.Module.parse(RECURSIVE)
        with pytest.raises(InputError, match="@again calls itself"):
            view_of(module)


def test_a_chain_of_thousands_of_ops_is_folded(program_of_text):
    adds = "\n".join(f"%q{i + 1} = stablehlo.add %q{i}, %one : tensor<i32>" for i in range(3000))
    text = f"""
func.func public @main(%q0: tensor<i32>) -> tensor<i32> {{
  %one = stablehlo.constant dense<1> : tensor<i32>
  {adds}
  return %q3000 : tensor<i32>
}}"""
    flat = program_view(program_of_text(text))
    assert fold(flat.returns[0]) is None
    assert fold(flat.returns[0], {flat.arguments[0]: np.asarray(2, np.int32)}) == 3002


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda k: jnp.where(k < 0, k + 6, k), 3),
        (lambda k: lax.rem(k * 7, jnp.int32(4)) - 1, 0),
        (lambda k: jnp.eye(3, dtype=np.int32) * k, 3 * np.eye(3)),
        (lambda k: lax.clamp(0, k, 2).astype(np.float32), None),
        (lambda k: jnp.maximum(-k, 1) | (~k & 1), 1),
        (lambda k: jnp.sin(k.astype(np.float32)).astype(np.int32), None),
        (lambda k: k * jnp.int32(2**30), 3 * 2**30 - 2**32),
        (lambda k: lax.rem(k, k - 3), None),
    ],
    ids=["negative-index", "remainder", "identity", "floats", "bits", "sine", "wraps", "remainder-by-zero"],
)
def test_integers_that_follow_from_a_counter(function, expected, lowered):
    flat = program_view(lowered(function, np.int32(3)))
    found = fold(flat.returns[0], {flat.arguments[0]: np.asarray(3, np.int32)})
    if expected is None:
        assert found is None
    else:
        np.testing.assert_array_equal(found, expected)
    assert fold(flat.returns[0]) is None


def test_a_function_without_operations_can_be_looked_at(program_of_text):
    """Nothing but the view holds its module then: the argument's handle dangled, and the process ended."""
    program = program_of_text(
        "func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }"
    )
    flat = program_view(program)
    gc.collect()
    assert flat.arguments[0].type.shape == (4,)
    assert flat.returns == flat.arguments


@pytest.mark.parametrize("dtype", ["ui8", "ui16", "ui64", "i8", "i64"])
def test_integers_of_every_width_fold_in_their_own_arithmetic(program_of_text, dtype):
    program = program_of_text(
        f"func.func public @main() -> tensor<{dtype}> {{\n"
        f"  %a = stablehlo.constant dense<3> : tensor<{dtype}>\n"
        f"  %b = stablehlo.constant dense<120> : tensor<{dtype}>\n"
        f"  %c = stablehlo.multiply %a, %b : tensor<{dtype}>\n"
        f"  return %c : tensor<{dtype}>\n}}"
    )
    flat = program_view(program)
    found = fold(flat.returns[0])
    assert found.dtype == {"ui": "u", "i": "i"}[dtype.rstrip("0123456789")] + str(int(dtype.lstrip("ui")) // 8)
    assert found == 360 % 2 ** int(dtype.lstrip("ui")) - 256 * (dtype == "i8" and 360 % 256 > 127)
