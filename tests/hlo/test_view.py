"""The flat view: calls inlined, regions nested, captured values found, constants and folding."""

import gc
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from fusionlab.errors import InputError
from fusionlab.hlo.constants import fold
from fusionlab.hlo.program import Program, program_view
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


def test_what_a_region_captures():
    flat = program_view(Program.from_file(Path(__file__).with_name("captures.mlir")))
    sine, choice = flat.nodes
    assert free_values(choice.regions[0]) == [sine.results[0], flat.arguments[0]]
    assert free_values(choice.regions[1]) == [flat.arguments[2]]


def test_calls_that_recurse_are_an_input_error():
    text = (Path(__file__).parent / "sandbox" / "refused" / "twice.mlir").read_text()
    with make_ir_context():
        module = ir.Module.parse(text)
        with pytest.raises(InputError, match="@a calls itself"):
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


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint64", "int8", "int64"])
def test_integers_of_every_width_fold_in_their_own_arithmetic(program_of_text, dtype):
    type_ = f"tensor<{dtype.replace('uint', 'ui').replace('int', 'i')}>"
    program = program_of_text(
        f"func.func public @main() -> {type_} {{\n"
        f"  %a = stablehlo.constant dense<3> : {type_}\n"
        f"  %b = stablehlo.constant dense<120> : {type_}\n"
        f"  %c = stablehlo.multiply %a, %b : {type_}\n"
        f"  return %c : {type_}\n}}"
    )
    flat = program_view(program)
    found = fold(flat.returns[0])
    assert found.dtype == dtype
    assert found == np.int64(360).astype(dtype)
