"""Modules that JAX did not write are raised with the semantics of the specification, or refused with a reason.

What JAX does not take is refused where JAX is called; a fault of a raising rule stays a fault.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.raising import (
    RULES,
    JaxRefusal,
    RaiseError,
    Raising,
    RaisingFault,
    raise_nodes,
    raise_program,
    unsupported_nodes,
)
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .raising_cases import ODD, REAL, SQUARE


@pytest.fixture
def from_text(program_of_text):
    return lambda body, signature: program_of_text(
        f"func.func public @main({signature[0]}) -> {signature[1]} {{\n{body}\n}}\n"
    )


KEYS = "%a: tensor<5xi32>, %b: tensor<5xi32>", "(tensor<5xi32>, tensor<5xi32>)"


def sort_by(comparator):
    return f"""
  %0:2 = "stablehlo.sort"(%a, %b) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<i32>, %s: tensor<i32>):
    {comparator}
    stablehlo.return %less : tensor<i1>
  }}) : (tensor<5xi32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)
  return %0#0, %0#1 : tensor<5xi32>, tensor<5xi32>"""


def compared(name, direction, left, right):
    return f"%{name} = stablehlo.compare {direction}, %{left}, %{right} : (tensor<i32>, tensor<i32>) -> tensor<i1>"


def two_keys(first, second):
    compares = [compared("x", "LT", *first), compared("y", "EQ", "p", "q"), compared("z", "LT", *second)]
    return "\n".join([*compares, "%w = stablehlo.and %y, %z : tensor<i1>", "%less = stablehlo.or %x, %w : tensor<i1>"])


FIRST = np.array([3, 1, 3, 1, 2], np.int32)
SECOND = np.array([9, 8, 7, 6, 5], np.int32)


@pytest.mark.parametrize(
    ("comparator", "order"),
    [
        (compared("less", "LT", "p", "q"), [1, 3, 4, 0, 2]),
        (two_keys("pq", "rs"), [3, 1, 4, 2, 0]),
    ],
    ids=["one-key", "two-keys"],
)
def test_ascending_comparators_are_raised(comparator, order, from_text, run_raised):
    first, second = run_raised(from_text(sort_by(comparator), KEYS), (FIRST, SECOND))
    np.testing.assert_array_equal(first, FIRST[order])
    np.testing.assert_array_equal(second, SECOND[order])


@pytest.mark.parametrize(
    "comparator",
    [
        compared("less", "GT", "p", "q"),
        compared("less", "LT", "q", "p"),
        compared("less", "LE", "p", "q"),
        compared("less", "LT", "r", "s"),
        compared("less", "LT", "p", "s"),
        two_keys("pq", "sr"),
        two_keys("qp", "rs"),
        two_keys("rs", "pq"),
        two_keys("rs", "pq").replace("EQ, %p, %q", "EQ, %r, %s"),
    ],
    ids=["GT", "swapped", "LE", "second-only", "across", "second-descends", "first-descends", "dead-key", "reversed"],
)
def test_other_comparators_are_refused(comparator, from_text):
    program = from_text(sort_by(comparator), KEYS)
    with pytest.raises(RaiseError, match="comparator"):
        jax.eval_shape(raise_program(program), FIRST, SECOND)


def float_sort(comparator):
    body = f"""
  %0 = "stablehlo.sort"(%a) <{{dimension = 0 : i64, is_stable = true}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %nan = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    {comparator}
    stablehlo.return %less : tensor<i1>
  }}) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>"""
    return body, ("%a: tensor<8xf32>", "tensor<8xf32>")


def float_compared(name, direction, left, right, kind="FLOAT"):
    operands = f"%{left}, %{right}, {kind} : (tensor<f32>, tensor<f32>)"
    return f"%{name} = stablehlo.compare {direction}, {operands} -> tensor<i1>"


def as_jax_makes_it(x, zero="zero", nan="nan"):
    return f"""{float_compared(x + "z", "EQ", x, "zero")}
    %{x}0 = stablehlo.select %{x}z, %{zero}, %{x} : tensor<i1>, tensor<f32>
    {float_compared(x + "n", "NE", x, x)}
    %{x}1 = stablehlo.select %{x}n, %{nan}, %{x}0 : tensor<i1>, tensor<f32>"""


TOTAL = float_compared("less", "LT", "p1", "q1", "TOTALORDER")


@pytest.mark.parametrize(
    "comparator",
    [float_compared("less", "LT", "p", "q"), "\n".join([as_jax_makes_it("p"), as_jax_makes_it("q"), TOTAL])],
    ids=["plain", "one-zero-one-nan"],
)
def test_ascending_comparators_of_floats_are_raised(comparator, from_text, run_raised):
    given = np.nan_to_num(ODD, nan=7.0)
    np.testing.assert_array_equal(run_raised(from_text(*float_sort(comparator)), (given,))[0], np.sort(given))


@pytest.mark.parametrize(
    "comparator",
    [
        """%pi = stablehlo.bitcast_convert %p : (tensor<f32>) -> tensor<i32>
    %qi = stablehlo.bitcast_convert %q : (tensor<f32>) -> tensor<i32>
    """ + compared("less", "LT", "pi", "qi"),
        """%pi = stablehlo.convert %p : (tensor<f32>) -> tensor<i32>
    %qi = stablehlo.convert %q : (tensor<f32>) -> tensor<i32>
    """ + compared("less", "LT", "pi", "qi"),
        float_compared("less", "LT", "p", "q", "TOTALORDER"),
        "\n".join([as_jax_makes_it("p"), float_compared("less", "LT", "p1", "q", "TOTALORDER")]),
        "\n".join([as_jax_makes_it("p", nan="zero"), as_jax_makes_it("q", nan="zero"), TOTAL]),
        "\n".join([as_jax_makes_it("p", zero="nan"), as_jax_makes_it("q", zero="nan"), TOTAL]),
        "\n".join([as_jax_makes_it("p"), as_jax_makes_it("q"), float_compared("less", "LT", "q1", "p1", "TOTALORDER")]),
    ],
    ids=["bits", "truncated", "minus-zero-first", "one-side", "nan-as-zero", "zero-as-nan", "descending"],
)  # fmt: skip
def test_other_comparators_of_floats_are_refused(comparator, from_text):
    with pytest.raises(RaiseError, match="comparator"):
        jax.eval_shape(raise_program(from_text(*float_sort(comparator))), ODD)


def test_jax_orders_descending_by_flipping_an_ascending_sort(lowered, run_raised):
    program = lowered(lambda x: jnp.sort(x, descending=True), REAL)
    np.testing.assert_array_equal(run_raised(program, (REAL,))[0], -np.sort(-REAL, 1))


@pytest.mark.parametrize(("index", "branch"), [(0, 10.0), (1, 20.0), (2, 30.0), (3, 30.0), (-1, 30.0), (-9, 30.0)])
def test_a_case_out_of_range_takes_the_last_branch(index, branch, from_text, run_raised):
    branches = ", ".join(
        f"{{ %c = stablehlo.constant dense<{value}> : tensor<f32>\n stablehlo.return %c : tensor<f32> }}"
        for value in (10.0, 20.0, 30.0)
    )
    body = f'%0 = "stablehlo.case"(%i) ({branches}) : (tensor<i32>) -> tensor<f32>\nreturn %0 : tensor<f32>'
    program = from_text(body, ("%i: tensor<i32>", "tensor<f32>"))
    assert run_raised(program, (np.int32(index),))[0] == branch


@pytest.mark.parametrize("flag", [True, False])
def test_an_if_takes_its_branch(flag, from_text, run_raised):
    body = """%0 = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<3x4xf32> }, {
      %n = stablehlo.negate %x : tensor<3x4xf32>
      stablehlo.return %n : tensor<3x4xf32> }) : (tensor<i1>) -> tensor<3x4xf32>
    return %0 : tensor<3x4xf32>"""
    program = from_text(body, ("%p: tensor<i1>, %x: tensor<3x4xf32>", "tensor<3x4xf32>"))
    np.testing.assert_array_equal(run_raised(program, (np.bool_(flag), REAL))[0], REAL if flag else -REAL)


def test_logistic_and_lower_cholesky(from_text, run_raised):
    body = """%0 = stablehlo.cholesky %a, lower = true : tensor<2x4x4xf32>
    %1 = stablehlo.logistic %0 : tensor<2x4x4xf32>
    return %1 : tensor<2x4x4xf32>"""
    program = from_text(body, ("%a: tensor<2x4x4xf32>", "tensor<2x4x4xf32>"))
    positive = SQUARE @ SQUARE.swapaxes(1, 2)
    expected = 1 / (1 + np.exp(-np.linalg.cholesky(positive)))
    np.testing.assert_allclose(run_raised(program, (positive,))[0], expected, rtol=1e-4)


SAME = "%x: tensor<8xf32>", "tensor<8xf32>"


@pytest.mark.parametrize(
    ("body", "signature", "reason"),
    [
        ("%0 = stablehlo.custom_call @their_kernel(%x) : (tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : tensor<8xf32>",
         SAME, "custom call @their_kernel is opaque"),
        ("%0 = stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>\n"
         "return %0 : tensor<8xi1>", ("%x: tensor<8xf32>", "tensor<8xi1>"), "total-order"),
        ("%0 = stablehlo.cholesky %x, lower = false : tensor<4x4xf32>\nreturn %0 : tensor<4x4xf32>",
         ("%x: tensor<4x4xf32>", "tensor<4x4xf32>"), "upper Cholesky"),
        ("%0 = stablehlo.replica_id : tensor<ui32>\nreturn %0 : tensor<ui32>", ("%x: tensor<8xf32>", "tensor<ui32>"),
         "stablehlo.replica_id has no raising rule"),
        ("%0 = stablehlo.power %x, %x : tensor<8xi32>\nreturn %0 : tensor<8xi32>",
         ("%x: tensor<8xi32>", "tensor<8xi32>"), "stablehlo.power cannot be expressed"),
        ("%0 = stablehlo.add %x, %x : tensor<8xi1>\nreturn %0 : tensor<8xi1>",
         ("%x: tensor<8xi1>", "tensor<8xi1>"), "stablehlo.add cannot be expressed"),
    ],
    ids=["opaque", "total-order", "upper", "replica", "integer-power", "boolean-add"],
)  # fmt: skip
def test_what_has_no_counterpart_is_a_raise_error_that_says_where(body, signature, reason, from_text):
    program = from_text(body, signature)
    abstract = [jax.ShapeDtypeStruct(t.shape, {"f32": "float32", "i32": "int32", "i1": "bool"}[t.dtype])
                for t in program.inputs]  # fmt: skip
    with pytest.raises(RaiseError, match=reason) as caught:
        jax.eval_shape(raise_program(program), *abstract)
    assert "in @main" in str(caught.value)


def test_unsupported_nodes_are_found_inside_regions(lowered):
    # The Cholesky factor is a LAPACK call for which there is no rule.
    program = lowered(lambda a: jax.lax.fori_loop(0, 2, lambda _, c: jnp.linalg.cholesky(c), a), np.eye(3, dtype="f4"))
    (node,) = unsupported_nodes(view_of(program.parse()))
    assert "potrf" in node.attributes["call_target_name"].value


def test_values_from_outside_are_refused(lowered):
    flat = view_of(lowered(lambda x: jnp.sin(x) * 2, ODD).parse())
    with pytest.raises(RaiseError, match="come from outside"):
        raise_nodes(flat.nodes[-1:], [], flat.returns)


def test_a_region_can_be_entered_in_the_middle(lowered):
    flat = view_of(lowered(lambda x: jnp.cos(jnp.sin(x)), REAL).parse())
    middle = flat.nodes[0].results[0]
    (result,) = raise_nodes(flat.nodes, [middle], flat.returns)(REAL)
    np.testing.assert_array_equal(np.asarray(result), np.asarray(jnp.cos(REAL)))


def test_a_constant_of_every_type_survives(from_text, run_raised):
    constants = [("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
                 ("dense<-3> : tensor<2xi8>", np.array([-3, -3], np.int8)),
                 ("dense<[250, 1]> : tensor<2xui8>", np.array([250, 1], np.uint8)),
                 ("dense<7> : tensor<2xi64>", np.array([7, 7])),
                 ("dense<[1.5, -2.0]> : tensor<2xf16>", np.array([1.5, -2], np.float16)),
                 ("dense<[1.5, 0x7FF8000000000000]> : tensor<2xf64>", np.array([1.5, np.nan])),
                 ("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>", np.array([1 + 2j, 1 + 2j], np.complex64)),
                 ("dense<[(1.0, 2.0), (3.0, 4.0)]> : tensor<2xcomplex<f32>>", np.array([1 + 2j, 3 + 4j], np.complex64)),
                 ("dense<[(1.0, 0x7FF0000000000000), (-3.5e-2, 4.0)]> : tensor<2xcomplex<f64>>",
                  np.array([complex(1, np.inf), -3.5e-2 + 4j])),
                 ("dense<[1.5, 2.0]> : tensor<2xbf16>", np.array([1.5, 2], jnp.bfloat16)),
                 ("dense<1.5> : tensor<bf16>", np.array(1.5, jnp.bfloat16)),
                 ("dense<(1.0, 2.0)> : tensor<complex<f32>>", np.array(1 + 2j, np.complex64)),
                 ("dense<1.5> : tensor<2xbf16>", np.array([1.5, 1.5], jnp.bfloat16))]  # fmt: skip
    for text, expected in constants:
        type_ = text.rpartition(": ")[2]
        program = from_text(f"%0 = stablehlo.constant {text}\nreturn %0 : {type_}", ("", type_))
        (result,) = run_raised(program, ())
        assert result.dtype == expected.dtype, text
        np.testing.assert_array_equal(result, expected, text)


def test_widened_programs_compute_in_float64(lowered, run_raised):
    def function(x):
        third = x / 3
        rounded = jax.lax.reduce_precision(third, 5, 3)
        bits = jax.lax.bitcast_convert_type(x, np.uint32)
        looped = jax.lax.fori_loop(0, 3, lambda k, c: c * third + 0.1, third)
        return third.sum(), rounded, bits, jnp.linalg.slogdet(x[:3, :3])[1], looped, x.astype(np.int32)

    wide = REAL.astype(float)
    sums, rounded, bits, determinant, looped, whole = run_raised(lowered(function, REAL), (wide,), widen=True)
    assert sums.dtype == rounded.dtype == determinant.dtype == looped.dtype == np.float64
    np.testing.assert_allclose(sums, (wide / 3).sum(), rtol=1e-14)
    np.testing.assert_allclose(rounded, wide / 3, rtol=1e-15)
    np.testing.assert_array_equal(bits, REAL.view(np.uint32))
    np.testing.assert_allclose(determinant, np.linalg.slogdet(wide[:3, :3])[1], rtol=1e-13)
    expected = wide / 3
    for _ in range(3):
        expected = expected * wide / 3 + np.float32(0.1)
    np.testing.assert_allclose(looped, expected, rtol=1e-13)
    np.testing.assert_array_equal(whole, wide.astype(np.int32))


def test_narrower_floats_are_widened_too(lowered, run_raised):
    half = REAL.astype(jnp.bfloat16)
    (result,) = run_raised(lowered(lambda x: x / 3, half), (half.astype(float),), widen=True)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, half.astype(float) / 3, rtol=1e-2)


def test_precision_and_scopes_survive_lowering_again(lowered):
    def function(a, b):
        with jax.named_scope("stage_b"):
            return jax.lax.dot(a, b, precision=("high", "highest"))

    program = lowered(function, REAL, REAL.T.copy())
    again = lowered(raise_program(program), REAL, REAL.T.copy())
    assert "precision = [HIGH, HIGHEST]" in str(again.parse())


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
    def faulty(op):
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
