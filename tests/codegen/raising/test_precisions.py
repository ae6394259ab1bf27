"""The lowest precision of contractions of any kind."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.codegen.raising.rules.contraction import least_precise
from fusionlab.hlo.view import view_of

SQUARE, IMAGE = jnp.ones((3, 3)), jnp.ones((1, 1, 5))


def product(precision):
    return lambda x, y: x @ lax.dot(x, x, precision=precision)


def convolution(precision):
    return lambda x, y: lax.conv(y, y, (1,), "SAME", precision=precision)


@pytest.mark.parametrize("contraction", [product, convolution])
def test_the_lowest_precision_is_that_of_products_and_convolutions(contraction):
    with jax.default_matmul_precision("highest"):
        flat = view_of(jax.jit(contraction("high")).lower(SQUARE, IMAGE).compiler_ir("stablehlo"))
    precision, node = least_precise(flat.walk())
    assert precision is lax.Precision.HIGH
    assert node.op.mnemonic == ("dot_general" if contraction is product else "convolution")


def test_of_two_operands_the_lower_one_counts():
    mixed = product((lax.Precision.HIGHEST, lax.Precision.DEFAULT))
    flat = view_of(jax.jit(lambda x: mixed(x, x)).lower(SQUARE).compiler_ir("stablehlo"))
    assert least_precise(flat.nodes[:1])[0] is lax.Precision.DEFAULT


def test_without_contractions_there_is_none():
    assert least_precise(view_of(jax.jit(jnp.sin).lower(SQUARE).compiler_ir("stablehlo")).nodes) is None
