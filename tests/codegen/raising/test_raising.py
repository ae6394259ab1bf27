"""Raising op by op: the raised program computes what the function computes, also after lowering it again."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import RULES, raise_program
from fusionlab.codegen.raising.rules.reduction import is_arg_extreme
from fusionlab.hlo import ops
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of

from .raising_cases import CASES, REAL, with_place

pytestmark = pytest.mark.versions

# Lowered in another way on the CPU than for CUDA, so that the rules of both are run.
BOTH_PLATFORMS = (
    *("slogdet", "lu", "inverse", "solve", "cholesky", "eigh", "qr", "svd"),
    *("argmax", "cumsum", "sort", "argsort"),
)
# Where LAPACK's factorisation is tiled or threaded by shape, or where a rule is allowed to round in another way.
ROUNDS = {"power-constant", "power-array-constant", "slogdet", "inverse", "lu"}
NOT_FROM_JAX = {
    *("stablehlo.cholesky", "stablehlo.if", "stablehlo.logistic", "chlo.scan", "chlo.tan", "sdy.sharding_constraint"),
}
"""Not from JAX 0.10, or (shardings) only under a mesh: ``tests/optimizing`` has those."""

_cases = [
    pytest.param(name, function, arguments, platform, id=f"{name}-{platform}")
    for name, function, arguments in CASES
    for platform in (("cpu", "cuda") if name.startswith(BOTH_PLATFORMS) else ("cpu",))
]


@pytest.mark.parametrize(("name", "function", "arguments", "platform"), _cases)
def test_raised_equals_the_function(name, function, arguments, platform, lowered, run_raised, run_directly):
    program = lowered(function, *arguments, platform=platform)
    expected = run_directly(function, *arguments)
    raised = run_raised(program, arguments)
    again = run_raised(lowered(lambda *given: raise_program(program)(*given), *arguments, platform=platform), arguments)
    exact = platform == "cpu" and name not in ROUNDS
    for results in (raised, again):
        for result, wanted in zip(results, expected, strict=True):
            assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
            if exact:
                np.testing.assert_array_equal(result, wanted)
            else:
                np.testing.assert_allclose(result, wanted, rtol=2e-5, atol=2e-6)
    for result, wanted in zip(again, raised, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_every_rule_has_a_case(lowered):
    used = set()
    for name, function, arguments in CASES:
        for platform in ("cpu", "cuda") if name.startswith(BOTH_PLATFORMS) else ("cpu",):
            used |= {node.name for node in view_of(lowered(function, *arguments, platform=platform).parse()).walk()}
    of_later_jax = {"chlo.square"} if jax.__version_info__ < (0, 9) else set()
    assert set(RULES) - used <= NOT_FROM_JAX | {"stablehlo.custom_call"} | of_later_jax
    assert "stablehlo.custom_call" in used


def test_an_empty_list_of_precisions_is_none(run_raised):
    program = Program.from_file(Path(__file__).parent / "raised" / "dot-precisions-empty.mlir")
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    np.testing.assert_array_equal(run_raised(program, [a, b])[0], a @ b)


@pytest.mark.parametrize(
    ("function", "is_one"),
    [
        (lambda x: jnp.argmax(x, 1), True),
        (lambda x: jnp.argmin(x, 0), True),
        (with_place(lax.gt, -np.inf), True),
        (with_place(lax.gt, 0.0), False),  # the result may be no element
        (with_place(lax.ge, -np.inf), False),  # of equal ones, the place of any
        (lambda x: lax.reduce((x, x), (-np.inf, 0.0), lambda a, b: (lax.max(a[0], b[0]), a[1] + b[1]), (1,)), False),
    ],
)
def test_which_reductions_are_an_extreme_with_its_place(function, is_one, lowered):
    nodes = view_of(lowered(function, REAL).parse()).walk()
    [node] = [node for node in nodes if node.op is ops.REDUCE]
    assert is_arg_extreme(node) == is_one
