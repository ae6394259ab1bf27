"""Products in float32 by three of TF32: numbers are split, and a raised program computes the rounding."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import raise_program
from fusionlab.codegen.raising.rules.three_products import by_three_products, split
from fusionlab.equivalence.check import check_programs, why_less_precise
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.program import Program, program_view

TF32X3 = lax.DotAlgorithmPreset.TF32_TF32_F32_X3
SHAPES = ((7, 300), (300, 5))
HIGHEST = "precision = [HIGHEST, HIGHEST]"
X3 = (
    "algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
    "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, "
    "allow_imprecise_accumulation = false>"
)


def test_numbers_are_split_into_two_of_tf32():
    numbers = np.array([1.0, np.pi, -1e-30, 3.4e37, np.inf, 0.0], "f4")
    high, low = (np.asarray(part) for part in split(jnp.asarray(numbers)))
    for part in (high, low):
        assert not (part.view("i4") & 0x1FFF).any(), "11 significant bits"
    np.testing.assert_allclose(high[:4] + low[:4], numbers[:4], rtol=2**-21)
    assert high[4] == np.inf
    assert np.isnan(low[4])


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000])
def test_what_is_no_number_stays_none_when_split(bits):
    high, low = (np.asarray(part) for part in split(jnp.asarray(np.array([bits], "u4").view("f4"))))
    assert np.isnan(high).all()
    assert np.isnan(low).all()


def test_the_largest_numbers_stay_finite_when_split():
    """The nearest number of 11 bits would be infinite."""
    numbers = np.array([1, -1], "f4") * np.finfo("f4").max
    high, low = (np.asarray(part) for part in split(jnp.asarray(numbers)))
    assert np.isfinite(high).all()
    np.testing.assert_allclose(high.astype("f8") + low, numbers.astype("f8"), rtol=2**-21)


def test_three_products_keep_what_is_not_finite():
    """Infinities of either sign times numbers with lower bits of either sign, alone and among others."""
    left = np.ones((5, 1), "f4") * np.array([[np.inf], [-np.inf], [np.nan], [np.finfo("f4").max], [2.0]], "f4")
    right = np.array([[0.3, -np.pi]], "f4")
    found = by_three_products(jnp.matmul, jnp.asarray(left), jnp.asarray(right))
    np.testing.assert_allclose(found, jnp.matmul(left, right), rtol=2**-20)


def test_three_products_of_infinities_beside_numbers_are_those_of_float32():
    random = np.random.default_rng(0)
    left, right = random.standard_normal((4, 5)).astype("f4"), random.standard_normal((5, 6)).astype("f4")
    left[0, 1], left[1, 2], left[2, 0], right[3, 1] = np.inf, -np.inf, np.nan, np.inf
    found = by_three_products(jnp.matmul, jnp.asarray(left), jnp.asarray(right))
    np.testing.assert_allclose(found, jnp.matmul(left, right), rtol=1e-4)


def product(precision):
    return lambda a, b: jnp.tanh(jnp.dot(a, b, precision=precision))


@pytest.fixture
def file_of(tmp_path):
    """``file_of(asked, operands, result)``: a file of one product of 8 x 32 by 32 x 8, in these types."""

    def write(asked, operands, result):
        text = (
            f"func.func public @main(%a: tensor<8x32x{operands}>, %b: tensor<32x8x{operands}>) "
            f"-> tensor<8x8x{result}> {{\n"
            f"  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], {asked} "
            f": (tensor<8x32x{operands}>, tensor<32x8x{operands}>) -> tensor<8x8x{result}>\n"
            f"  return %0 : tensor<8x8x{result}>\n}}\n"
        )
        path = tmp_path / f"{'three' if asked == X3 else 'one'}.mlir"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def product_in(lowered):
    """``product_in(precision)``: a program for CUDA that contracts in it."""
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in SHAPES]
    return lambda precision: lowered(product(precision), *arguments, platform="cuda")


def test_a_raised_program_has_the_rounding_of_three_products(product_in):
    """Off float32 by less than one product of TF32 (1e-3 of a term), and by more than nothing."""
    program = product_in(TF32X3)
    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape).astype("f4") * 0.1 for shape in SHAPES]
    truth = product("highest")(*(jnp.asarray(array, jnp.float32) for array in arrays))
    [found] = jax.jit(raise_program(program))(*arrays)
    assert 0 < np.abs(np.asarray(found) - np.asarray(truth)).max() < 1e-5


def test_three_products_are_judged_by_their_errors(product_in):
    """They are no lower precision as such: the check computes their rounding. One product is."""
    original, three, one = (product_in(of) for of in ("highest", TF32X3, lax.DotAlgorithmPreset.TF32_TF32_F32))
    assert why_less_precise(original, three) is None
    assert why_less_precise(original, one) is not None
    assert check_programs(original, three).verdict == "within-bound"


@pytest.mark.parametrize(
    ("operands", "result", "platform"),
    [("f64", "f64", "cuda"), ("f32", "f64", "cuda"), ("f32", "f32", "cpu"), ("f32", "f32", None)],
)
def test_three_products_whose_rounding_is_not_computed_are_less_precise(operands, result, platform, file_of):
    """In float64 a raised program computes them in full, and on the CPU XLA does."""
    original, three = (
        replace(Program.from_file(file_of(of, operands, result)), platform=platform) for of in (HIGHEST, X3)
    )
    assert check_programs(original, three).reason.startswith("it contracts at precision HIGH ")
    assert check_programs(original, three).verdict == "different"
    assert why_less_precise(three, three) is None


def test_three_products_keep_an_infinity_that_is_passed_on(lowered):
    def passed_on(precision):
        return lambda a, b: jnp.tanh(jnp.dot(jnp.where(a > 1, jnp.inf, a)[:, :1], b[:1], precision=precision))

    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in SHAPES]
    original, three = (lowered(passed_on(of), *arguments, platform="cuda") for of in ("highest", TF32X3))
    assert check_programs(original, three).verdict != "different"


def test_three_products_that_lose_what_float32_keeps_are_different(lowered):
    """A product with ones is exact in float32; of 24 bits three products keep 22."""

    def magnified(precision):
        return lambda a: a + 1000 * (a - jnp.dot(a, jnp.eye(4), precision=precision))

    argument = jax.ShapeDtypeStruct((8, 4), np.float32)
    original, three = (lowered(magnified(of), argument, platform="cuda") for of in ("highest", TF32X3))
    assert check_programs(original, three).verdict == "different"


@pytest.mark.parametrize(("algorithm", "share"), [("TF32_TF32_F32", 1), ("TF32_TF32_F32_X3", 0)])
def test_three_products_do_not_cost_one(algorithm, share, product_in):
    cost = program_cost(program_view(product_in(lax.DotAlgorithmPreset[algorithm])))
    assert cost.tf32_flops == share * 2 * 7 * 300 * 5
