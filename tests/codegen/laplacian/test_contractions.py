"""Contractions of two jets against sums written out: sides, axes, weights, and values that are not finite."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.laplacian.jet import Coordinates, Jet
from fusionlab.codegen.laplacian.rules import dot_general
from fusionlab.codegen.laplacian.rules.dot_general import Contraction, contract

SIZES = {"b": 2, "c": 3, "i": 2, "j": 3, "m": 5, "n": 7, "k": 6}
ROWS = 3
FORMS = {
    "smaller-left": "bij,bjk->bik",
    "smaller-right": "bkj,bji->bki",
    "axes-in-another-order": "jbi,kjb->bik",
    "two-of-each": "bcijm,bcjmkn->bcikn",
    "two-of-each-smaller-right": "jknbm,mibj->bkni",
    "nothing-summed": "bi,bk->bik",
    "no-batch": "ij,jk->ik",
    "result-smaller": "bikn,bjkn->bij",
}


def contraction_of(form, apply=lax.dot_general, **given):
    """The ``dot_general`` of an einsum whose result has the batch axes first, then those of the left operand."""
    operands, result = form.split("->")
    left, right = operands.split(",")
    batch = [name for name in result if name in left and name in right]
    summed = [name for name in left if name in right and name not in result]
    axes = [tuple(tuple(map(operand.index, names)) for operand in (left, right)) for names in (batch, summed)]
    return Contraction(*axes, (len(left), len(right)), apply, np.dtype("float32"), **given)


def stacks_of(form, dtype="float32"):
    """[value, Laplacian, rows] of both operands."""
    random = np.random.default_rng(len(form))
    shapes = [(2 + ROWS, *(SIZES[name] for name in names)) for names in form.split("->")[0].split(",")]
    stacks = [random.standard_normal(shape) + 1j * random.standard_normal(shape) for shape in shapes]
    return [(stack if np.dtype(dtype).kind == "c" else stack.real).astype(dtype) for stack in stacks]


def jets_of(*stacks):
    return [Jet(*(jnp.asarray(part) for part in (stack[0], stack[1], stack[2:])), None) for stack in stacks]


def contracted(form, stacks, contraction, weights=None):
    of = Coordinates(1, ROWS, None if weights is None else jnp.asarray(weights, "float32"))

    def run(u, v):
        found = contract(*jets_of(u, v), contraction, of)
        return found.value, found.laplacian, found.jacobian

    return jax.jit(run)(*stacks)


CASES = [(form, "float32", False, None) for form in FORMS]
CASES += [(form, "float32", False, (0.5, -1.0, 3.0)) for form in ("smaller-right", "result-smaller")]
CASES += [(form, "complex64", False, None) for form in ("two-of-each-smaller-right", "result-smaller")]
CASES += [(form, "float32", True, None) for form in ("smaller-left", "result-smaller")]


@pytest.mark.parametrize(("form", "dtype", "for_cpu", "weights"), CASES)
def test_terms_are_those_of_the_product_rule(form, dtype, for_cpu, weights):
    u, v = stacks_of(FORMS[form], dtype)
    value, laplacian, rows = contracted(FORMS[form], (u, v), contraction_of(FORMS[form], join_rows=for_cpu), weights)
    dot = functools.partial(np.einsum, FORMS[form])
    weighted = zip(weights or np.ones(ROWS), u[2:], v[2:], strict=True)
    cross = sum(np.asarray(weight) * dot(a, b) for weight, a, b in weighted)
    np.testing.assert_allclose(value, dot(u[0], v[0]), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(laplacian, dot(u[0], v[1]) + dot(u[1], v[0]) + 2 * cross, rtol=1e-4, atol=1e-4)
    expected = [dot(u[0], b) + dot(a, v[0]) for a, b in zip(u[2:], v[2:], strict=True)]
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("form", ["smaller-left", "smaller-right"])
def test_an_infinite_value_is_infinite(form):
    """And no product with a zero that stands for no derivative."""
    u, v = map(np.abs, stacks_of(FORMS[form]))
    (u if form == "smaller-right" else v)[0, ..., 0] = np.inf
    value, _, _ = contracted(FORMS[form], (u, v), contraction_of(FORMS[form]))
    np.testing.assert_allclose(value, np.einsum(FORMS[form], u[0], v[0]), rtol=1e-5)
    assert np.isinf(value).any()


@pytest.mark.parametrize(("form", "side"), [("smaller-left", 0), ("smaller-right", 1), ("result-smaller", None)])
def test_the_operand_of_which_products_are_summed_at_once(form, side):
    jets = jets_of(*stacks_of(FORMS[form]))
    assert dot_general._smaller_side(*jets, contraction_of(FORMS[form])) == side


@pytest.mark.parametrize(("form", "swapped"), [("smaller-left", False), ("smaller-right", True)])
def test_each_operand_keeps_its_precision(form, swapped):
    precision = (lax.Precision.HIGHEST, lax.Precision.DEFAULT)
    seen = set()

    def noting(first, second, numbers, precision=precision):
        seen.add(precision)
        return lax.dot_general(first, second, numbers)

    contracted(FORMS[form], stacks_of(FORMS[form]), contraction_of(FORMS[form], noting, precision=precision))
    assert seen == {precision[::-1] if swapped else precision}
