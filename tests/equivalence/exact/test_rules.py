"""The rules of exact evaluation over float64 and true functions are StableHLO's: op by op they agree with XLA."""

import jax
import numpy as np
import pytest

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithUndefined, primes
from fusionlab.equivalence.exact.identity import compare_functions
from fusionlab.equivalence.exact.rules import RULES
from fusionlab.equivalence.exact.rules.contractions import TARGETS
from fusionlab.equivalence.exact.values import Drawn
from fusionlab.hlo.view import view_of
from tests.codegen.raising.raising_cases import CASES

from .reals import Reals

WIDE = {"f": np.float64, "c": np.complex128}
UNSEEN = {
    "reduce_precision": "roundings do not exist in a field",
    "convert": "roundings",
    "convert-f16": "roundings",
    "bitcast": "the bits of a float are a random function of it",
    "bitcast-narrower": "the same",
}


@pytest.mark.parametrize("name", [name for name, _, _ in CASES])
def test_an_op_is_what_xla_computes_and_identical_to_itself(name, lowered):
    function, arguments = next((function, arguments) for each, function, arguments in CASES if each == name)
    module = lowered(function, *arguments).parse()
    view = view_of(module)
    assert compare_functions(view, view).result == "identical"
    if name in UNSEEN or any(node.call_target and node.call_target not in TARGETS for node in view.walk()):
        return
    arrays = [np.asarray(array) for array in arguments]
    given = [Drawn(array.astype(WIDE.get(array.dtype.kind, array.dtype))[None]) for array in arrays]
    with np.errstate(all="ignore"):
        found = Evaluator(Reals()).outputs(view, given)
    expected = jax.tree.leaves(jax.jit(lambda *given: function(*given))(*arrays))
    for ours, theirs in zip(found, expected, strict=True):
        ours, theirs = ours[0], np.asarray(theirs)
        assert ours.shape == theirs.shape
        if theirs.dtype.kind in WIDE:
            np.testing.assert_allclose(ours, theirs.astype(ours.dtype), rtol=2e-5, atol=2e-5)
        else:
            assert (ours == theirs).all()


FUNCTIONS = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i1e", "cbrt", "cosh", "cosine",
    "digamma", "erf", "erf_inv", "erfc", "exponential_minus_one", "logistic",
    "next_after", "polygamma", "popcnt", "rsqrt", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sine",
    "sinh", "sqrt", "tan", "tanh", "zeta",
}  # fmt: skip


def test_no_op_becomes_an_uninterpreted_function_unnoticed():
    """Such an op has no attribute that changes what it computes."""
    function = RULES["stablehlo.sine"]
    assert {name.partition(".")[2] for name, rule in RULES.items() if rule is function} == FUNCTIONS


def test_every_op_that_can_be_raised_has_a_rule():
    from fusionlab.codegen.raising import RULES as RAISED

    uncovered = {"stablehlo.cholesky"}  # an uninterpreted function of its matrix
    assert set(RAISED) - set(RULES) == uncovered


def test_an_undefined_row_of_a_wide_right_side_leaves_the_rows_before_it_defined(lowered):
    """A product with the inverse would have 0 times NaN in all of them."""

    def solved(a, b):
        return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)

    view = view_of(lowered(solved, np.ones((3, 3), np.float32), np.ones((3, 9), np.float32)).parse())
    evaluator = Evaluator(FieldWithUndefined(primes(1)[0], [0]))
    a, b = evaluator.drawn_arguments(view)
    b.array[:, 2, 4] = np.nan
    [found] = evaluator.outputs(view, [a, b])
    assert np.argwhere(np.isnan(found)).tolist() == [[0, 2, 4]]
