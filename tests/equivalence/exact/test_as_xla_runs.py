"""Where XLA and StableHLO's specification differ, the check takes what runs here, or names the op."""

import numpy as np
import pytest

from fusionlab.codegen.raising import RaiseError
from fusionlab.equivalence.check import check_programs
from fusionlab.equivalence.exact.identity import compare_exactly

NUMBERS = {"i1": ("false", "true"), "complex<f64>": ("(0.0, 0.0)", "(0.0, 1.0)")}


def unary(op, given, made, extent=3):
    types = f"tensor<{extent}x{given}>", made
    body = f"%0 = stablehlo.{op} %a : ({types[0]}) -> {types[1]} return %0 : {types[1]}"
    return f"module {{ func.func public @main(%a: {types[0]}) -> {types[1]} {{ {body} }} }}"


def of_constants(op, type_, first, second):
    lines = [
        f"%{name} = stablehlo.constant dense<{value}> : tensor<{type_}>"
        for name, value in zip("ab", (first, second), strict=True)
    ]
    body = f"{' '.join(lines)} %0 = stablehlo.{op} %a, %b : tensor<{type_}> return %0 : tensor<{type_}>"
    return f"module {{ func.func public @main() -> tensor<{type_}> {{ {body} }} }}"


def identity(program_of_text, first, second=None):
    return compare_exactly(program_of_text(first), program_of_text(second or first))


def test_a_complex_number_is_true_by_its_real_part(program_of_text):
    whole = unary("convert", "complex<f64>", "tensor<3xi1>")
    real = whole.replace(
        "%0 = stablehlo.convert %a",
        "%r = stablehlo.real %a : (tensor<3xcomplex<f64>>) -> tensor<3xf64> %0 = stablehlo.convert %r",
    )
    real = real.replace("%r : (tensor<3xcomplex<f64>>)", "%r : (tensor<3xf64>)")
    assert identity(program_of_text, whole, real).result == "identical"
    assert not identity(program_of_text, whole, real).at_ties
    assert identity(program_of_text, whole, real.replace("stablehlo.real", "stablehlo.imag")).at_ties


CONVERTED = """module {{ func.func public @main() -> tensor<2x{to}> {{
  %a = stablehlo.constant dense<{values}> : tensor<2x{of}>
  %0 = stablehlo.convert %a : (tensor<2x{of}>) -> tensor<2x{to}> return %0 : tensor<2x{to}> }} }}"""
CONSTANT = """module {{ func.func public @main() -> tensor<2x{to}> {{
  %0 = stablehlo.constant dense<{values}> : tensor<2x{to}> return %0 : tensor<2x{to}> }} }}"""


@pytest.mark.parametrize(
    ("of", "values", "to", "found"),
    [
        ("complex<f64>", "[(0.0, 1.0), (1.0, 0.0)]", "i1", "[false, true]"),
        ("f32", "[300.0, -300.0]", "i8", "[127, -128]"),
        ("f64", "[-1.0, 1.0e30]", "ui32", "[0, 4294967295]"),
        ("f32", "[0x7FC00000, -1.5]", "i32", "[0, -1]"),
        ("bf16", "[0x7F80, -2.5]", "i64", "[9223372036854775807, -2]"),
        ("i32", "[300, -1]", "ui8", "[44, 255]"),
    ],
)
def test_constants_convert_as_xla_folds_them(of, values, to, found, program_of_text):
    text, constant = CONVERTED.format(of=of, values=values, to=to), CONSTANT.format(to=to, values=found)
    assert identity(program_of_text, text, constant).result == "identical"


REFUSED = {
    of_constants("add", "4xi1", "[false, false, true, true]", "[false, true, false, true]"): "add of i1",
    of_constants("power", "2xi32", "[2, 3]", "[-1, 2]"): "integer power",
    of_constants("and", "3xi4", "[7, -8, -8]", "[0, 7, -8]"): "element type i4",
    of_constants("and", "3xui2", "[1, 2, 3]", "[0, 1, 2]"): "element type ui2",
    of_constants("add", "2xf8E4M3FN", "[1.0, 2.0]", "[0x7F, 2.0]"): "element type f8E4M3FN",
    unary("bitcast_convert", "i1", "tensor<i64>", 64): "bitcast_convert of i1",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_one_meaning_is_not_covered_by_name(text, program_of_text):
    found = identity(program_of_text, text)
    assert (found.result, REFUSED[text] in found.reason) == ("not-covered", True), found.reason


def test_an_add_of_booleans_without_two_true_ones_is_covered(program_of_text):
    text = of_constants("add", "2xi1", "[false, true]", "[true, false]")
    assert identity(program_of_text, text, text.replace(".add", ".or")).result == "identical"


SORT = """module {{ func.func public @main(%a: tensor<4x{first}>, %b: tensor<4xi32>)
    -> (tensor<4x{first}>, tensor<4xi32>) {{
  %0:2 = "stablehlo.sort"(%a, %b) ({{ ^bb0(%x: tensor<{first}>, %y: tensor<{first}>, %i: tensor<i32>, %j: tensor<i32>):
    {body}
    stablehlo.return %p : tensor<i1> }}) {{dimension = 0 : i64, is_stable = true}}
  : (tensor<4x{first}>, tensor<4xi32>) -> (tensor<4x{first}>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4x{first}>, tensor<4xi32> }} }}"""


def compared(name, direction, first, second, type_, kind=""):
    types = f"(tensor<{type_}>, tensor<{type_}>) -> tensor<i1>"
    return f"%{name} = stablehlo.compare {direction}, %{first}, %{second}{kind} : {types}"


def two_keys(first, second, direction, other):
    lines = [compared("l", direction, "x", "y", "f32"), compared("e", "EQ", "x", "y", "f32")]
    lines += [compared("m", other, first, second, "i32"), "%n = stablehlo.and %e, %m : tensor<i1>"]
    return "\n".join([*lines, "%p = stablehlo.or %l, %n : tensor<i1>"])


COMPARATORS = {
    "descending": compared("p", "GT", "x", "y", "f32"),
    "ascending": compared("p", "LT", "x", "y", "f32"),
    "exchanged": compared("p", "GT", "y", "x", "f32"),
    "total order": compared("p", "LT", "x", "y", "f32", ", TOTALORDER"),
    "two keys": two_keys("i", "j", "LT", "LT"),
    "two keys, the second descending": two_keys("i", "j", "LT", "GT"),
}


@pytest.mark.parametrize("name", COMPARATORS)
def test_sorts_by_keys_are_covered(name, program_of_text):
    text = SORT.format(first="f32", body=COMPARATORS[name])
    assert identity(program_of_text, text).result == "identical"
    ascending = SORT.format(first="f32", body=COMPARATORS["ascending"])
    same = {"ascending": "identical", "exchanged": "identical"}
    others = {"two keys": "identical", "two keys, the second descending": "identical"}  # no two random keys are equal
    assert identity(program_of_text, text, ascending).result == (same | others).get(name, "not-identical")


@pytest.mark.parametrize("direction", ["LE", "GE", "EQ", "NE"])
def test_a_comparator_that_is_no_order_is_named(direction, program_of_text):
    text = SORT.format(first="i32", body=compared("p", direction, "x", "y", "i32"))
    found = identity(program_of_text, text)
    assert (found.result, "comparator" in found.reason) == ("not-covered", True)


@pytest.mark.parametrize(
    ("kind", "n"), [("FFT", 1), ("IFFT", 3), ("RFFT", 1), ("RFFT", 5), ("IRFFT", 1), ("IRFFT", 2), ("IRFFT", 7)]
)
def test_fourier_transforms_of_every_length(kind, n, program_of_text):
    given, made = n, n
    types = ["complex<f32>", "complex<f32>"]
    if kind == "RFFT":
        made, types[0] = n // 2 + 1, "f32"
    if kind == "IRFFT":
        given, types[1] = n // 2 + 1, "f32"
    shapes = f"tensor<2x{given}x{types[0]}>", f"tensor<2x{made}x{types[1]}>"
    body = (
        f"%0 = stablehlo.fft %a, type = {kind}, length = [{n}] : ({shapes[0]}) -> {shapes[1]} return %0 : {shapes[1]}"
    )
    text = f"module {{ func.func public @main(%a: {shapes[0]}) -> {shapes[1]} {{ {body} }} }}"
    assert identity(program_of_text, text).result == "identical"


def test_narrow_constants_can_be_read(program_of_text):
    from fusionlab.hlo.program import program_view
    from fusionlab.hlo.view import constant_array

    texts = (of_constants("and", "3xi4", "[7, -8, -1]", "2"), of_constants("add", "2xf8E5M2", "[0x7C, 1.5]", "2.0"))
    nodes = [program_view(program_of_text(text)).nodes for text in texts]
    assert constant_array(nodes[0][0]).astype(int).tolist() == [7, -8, -1]
    assert constant_array(nodes[0][1]).astype(int).tolist() == [2, 2, 2]
    assert constant_array(nodes[1][0]).astype(np.float32).tolist() == [np.inf, 1.5]


@pytest.mark.parametrize("type_", ["i4", "ui2", "f8E4M3FN"])
def test_arguments_of_narrow_types_are_refused_by_name_in_both_parts(type_, program_of_text):
    program = program_of_text(unary("convert", type_, "tensor<3xf32>"))
    assert compare_exactly(program, program).reason.startswith(f"the element type {type_}")
    with pytest.raises(RaiseError, match=type_):
        check_programs(program, program)
