"""What JAX does not take is refused where JAX is called; a fault of a raising rule stays a fault."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.raising import RULES, JaxRefusal, Raising, RaisingFault, raise_program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .raising_cases import REAL


@pytest.fixture
def from_text(program_of_text):
    return lambda body, signature: program_of_text(
        f"func.func public @main({signature[0]}) -> {signature[1]} {{\n{body}\n}}\n"
    )


@pytest.mark.parametrize(
    ("operation", "types"),
    [
        ("add", "i1"),
        ("multiply", "i1"),
        ("power", "i8 i32 i64 ui8 ui32 ui64"),
        ("remainder", "complex<f32> complex<f64>"),
        ("cbrt", "complex<f32> complex<f64>"),
        ("real", "f16 f32 f64"),
        ("imag", "f16 f32 f64"),
    ],
)
def test_element_types_that_jax_does_not_take_are_refused(operation, types, from_text):
    """All of the elementwise rules' that StableHLO's verifier takes; comparisons and CHLO's apart."""
    for type_ in types.split():
        tensor = f"tensor<8x{type_}>"
        given = "%x" if operation in ("cbrt", "real", "imag") else "%x, %x"
        operands = ", ".join([tensor] * given.count("x"))
        body = f'%0 = "stablehlo.{operation}"({given}) : ({operands}) -> {tensor}\nreturn %0 : {tensor}'
        program = from_text(body, (f"%x: {tensor}", tensor))
        with jax.enable_x64(True):
            arguments = [jax.ShapeDtypeStruct(t.shape, Raising().dtype(t)) for t in program.inputs]
            with pytest.raises(JaxRefusal, match=f"stablehlo.{operation} cannot be expressed in JAX"):
                jax.eval_shape(raise_program(program), *arguments)


@pytest.mark.parametrize(("looped", "expected"), [(False, TypeError), (True, RaisingFault)])
def test_a_fault_of_a_rule_is_not_taken_for_a_refusal(looped, expected, lowered, monkeypatch):
    def faulty(node, operands, raising, environment):
        return [None + 1]

    def function(x):
        return jax.lax.fori_loop(0, 3, lambda _, c: jnp.sin(c), x) if looped else jnp.sin(x)

    program = lowered(function, REAL)
    monkeypatch.setitem(RULES, "stablehlo.sine", faulty)
    with pytest.raises(expected, match="unsupported operand"):
        jax.eval_shape(raise_program(program), REAL)


def test_a_complex_exponent_keeps_its_imaginary_part(lowered, run_raised):
    given = REAL.astype(np.complex64)
    program = lowered(lambda x: jax.lax.pow(x, jnp.full(x.shape, 2 + 1j, x.dtype)), given)
    np.testing.assert_allclose(run_raised(program, (given,))[0], given ** (2 + 1j), rtol=1e-4)


POWERS_IN_A_LOOP = """
    %n = stablehlo.constant dense<3> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<8xi32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %p = stablehlo.power %x, %x : tensor<8xi32>
      %t = stablehlo.add %s, %p : tensor<8xi32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<8xi32>
    }
    return %0#1 : tensor<8xi32>"""


def test_a_pass_declines_what_jax_does_not_take(from_text):
    program = from_text(POWERS_IN_A_LOOP, ("%x: tensor<8xi32>", "tensor<8xi32>"))
    for name in ("batch-replay", "licm", "fuse-jvp-replay"):
        result = run_pipeline(program, parse_pipeline(name), Setting())
        assert not result.applied
        assert result.events, name
