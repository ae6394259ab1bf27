"""The jets of every family of ops are the value, Laplacian and derivatives that JAX has for the function itself.

What has none is refused with the op and the reason; nothing is left out silently.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen import raising
from fusionlab.codegen.laplacian import interpreter
from fusionlab.codegen.laplacian.jet import select_broadcast, select_padded, update_first
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, generic, moves, reductions, slogdet
from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError
from fusionlab.hlo.ops import OPS

from ..raising.raising_cases import with_place
from .conftest import assert_equal_jets
from .jet_cases import CASES, ORDER, N, V, W, X, h, matrices, pairs

# Lowered in another way for CUDA than for the CPU.
BOTH_PLATFORMS = ("cumulative", "sort", "blocks", "solve", "gather-by-walker")


@pytest.mark.parametrize(
    ("function", "others", "platform"),
    [
        pytest.param(function, others, platform, id=f"{name}-{platform}")
        for name, function, others in CASES
        for platform in (("cpu", "cuda") if name.startswith(BOTH_PLATFORMS) else ("cpu",))
    ],
)
def test_jets_are_those_of_the_function(function, others, platform, check_jets):
    check_jets(function, X, *others, platform=platform)


@pytest.mark.parametrize(("exceeds", "least", "extreme"), [(lax.gt, -np.inf, jnp.max), (lax.lt, np.inf, jnp.min)])
def test_jets_of_an_extreme_with_its_place(exceeds, least, extreme, jets_of, brute_force):
    """``jnp.argmax`` lowers to a reduction of values and places, of which JAX has no derivative."""
    found = jets_of(lambda x: with_place(exceeds, least)(h(x))[0], X)
    assert_equal_jets(found, brute_force(lambda x: extreme(h(x), -1), X), 1e-10)


@pytest.mark.parametrize("low_memory", [False, True], ids=["", "little-memory"])
@pytest.mark.parametrize(
    "name", ["layer-norm", "attention-layer", "divide", "shared-roots", "dtypes-of-dense-jets", "complex-contractions"]
)
def test_jets_of_programs_for_the_cpu(name, low_memory, check_jets):
    [(function, others)] = [(function, others) for other, function, others in CASES if other == name]
    check_jets(function, X, *others, options=Options(for_cpu=True, low_memory=low_memory))


@pytest.mark.parametrize("update", [update_first, select_padded, select_broadcast])
@pytest.mark.parametrize("count", [1, 2])
def test_rows_in_place_of_others(update, count):
    """Whatever the rows that are replaced hold, and whatever replaces them."""
    stack = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    stack[:count, 0] = np.nan
    rows = [np.full((2, 3), row, np.float32) for row in (np.inf, np.nan)[:count]]
    assert np.array_equal(update(stack, *rows), np.concatenate([rows, stack[count:]]), equal_nan=True)
    if update is not update_first:  # a part of a row is no row
        with pytest.raises(TypeError):
            update(stack, *(row[:, :1] for row in rows))


@pytest.mark.parametrize(
    ("function", "padded"),
    [
        pytest.param(lambda dense: (dense * dense[:, ::-1]).sum(1), False, id="product"),
        pytest.param(lambda dense: (dense / dense[:, ::-1]).sum(1), True, id="quotient"),
        pytest.param(lambda dense: (dense**2).sum(1), False, id="cheap"),
        pytest.param(lambda dense: jnp.tanh(dense).sum(1), True, id="expensive"),
    ],
)
def test_what_is_padded_in_programs_for_a_gpu(function, padded, jets_of):
    """``State.stack_with``: a pad keeps XLA:GPU from fusing the sum that follows."""
    text: list[str] = []
    jets_of(lambda x: function(jnp.einsum("bnf,mn->bmf", h(x), V[:, :N])), X, text_of=text)
    assert ("stablehlo.pad" in text[0]) == padded


SUMS = {
    "of each": lambda x: h(x).sum(1),
    "of each, and of features": lambda x: h(x).sum((1, 2)),
    "of some": lambda x: h(x)[:, 1:3].sum(1),
    "senders": lambda x: jnp.tanh(pairs(x) @ W).sum(1),
    "receivers of one spin": lambda x: jnp.tanh(pairs(x)[:, :, 2:] @ W).sum(2),
    "all pairs": lambda x: jnp.tanh(pairs(x) @ W).sum((1, 2)),
    "all pairs of two spins": lambda x: jnp.tanh(pairs(x)[:, :1, 1:] @ W).sum((1, 2, 3)),
    "in another order": lambda x: jnp.tanh(h(x)[:, ORDER]).sum(1),
    "beside constants": lambda x: jnp.concatenate([h(x), jnp.ones((x.shape[0], 1, 5))], 1).sum(1),
    "from a number": lambda x: lax.reduce(jnp.tanh(pairs(x) @ W), np.float64(2), lax.add, (2,)),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_over_axes_of_electrons(name, check_jets):
    check_jets(SUMS[name], X)


@pytest.mark.parametrize(("name", "masked"), [("of each", False), ("of some", False), ("in another order", True)])
def test_what_has_each_electron_once_is_summed_without_masks(name, masked, jets_of):
    text: list[str] = []
    jets_of(SUMS[name], X, text_of=text)
    assert ("stablehlo.select" in text[0]) == masked


@pytest.mark.parametrize("function", [jax.nn.sigmoid, jax.nn.silu], ids=["sigmoid", "silu"])
def test_logistic_functions_where_their_exponential_overflows(function, check_jets):
    """A random replay had NaN there: 1 / (1 + exp(-x)) was differentiated part by part."""
    assert (X < -0.3).any()
    found = check_jets(lambda x: function(3e3 * x).sum((-1, -2)) + (x**2).sum((-1, -2)), X)
    assert np.isfinite(found.laplacians[0]).all()


@pytest.mark.parametrize(
    ("logarithm", "exponent"),
    [
        *((lambda u: jnp.log(jnp.abs(u)), exponent) for exponent in (-43.2, -41.5, 42.0, 42.9)),
        *((lambda u: jnp.tanh(jnp.log(u) / 40), exponent) for exponent in (-43.2, 42.9)),
        *((lambda u: 0.5 * jnp.log(jnp.abs(u)) + 1, exponent) for exponent in (-43.2, 42.9)),
    ],
)
def test_the_logarithm_of_a_wave_function_at_the_ends_of_float32(logarithm, exponent, jets_of):
    """Squares of the derivatives of the wave function itself leave the range before the logarithm does."""

    def log_psi(x):
        first, second = jnp.moveaxis((x * jnp.arange(1, 4, dtype=x.dtype)).sum(-1), -1, 0)[:2]
        return logarithm(jnp.exp(jnp.tanh(first) / 4 + exponent) + jnp.exp(jnp.sin(second) / 4 + exponent))

    single, double = (jets_of(log_psi, x) for x in (X.astype(np.float32), X))
    np.testing.assert_allclose(single.values[0], double.values[0], rtol=1e-5)
    np.testing.assert_allclose(single.laplacians[0], double.laplacians[0], rtol=2e-3, atol=1e-4)


def test_every_op_with_a_rule_can_be_raised_has_derivatives_and_is_in_one_table():
    tables = [module.RULES for module in (dot_general, elementwise, generic, moves, reductions, slogdet)]
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names))
    assert interpreter.RULES.keys() == set(names)
    ops = set(names) - {"log_abs_det", "phase_of_det"}
    assert ops <= raising.RULES.keys()
    assert "zero" not in {OPS[name].derivative for name in ops}


REFUSED = {
    "hessenberg": (
        lambda x: lax.linalg.hessenberg(matrices(x) @ matrices(x).swapaxes(1, 2))[0],
        "custom call @lapack_dgehrd_ffi is opaque",
    ),
    "qr": (lambda x: jnp.linalg.qr(matrices(x))[1], "no jet: Differentiation rule for 'geqrf' not implemented"),
    "product-in-windows": (
        lambda x: lax.reduce_window(h(x), np.float64(1), lax.mul, (1, 2, 2), (1, 1, 2), "SAME"),
        "stablehlo.reduce_window cannot be ",
    ),
    "scatter-multiply-repeated": (
        lambda x: h(x).at[:, np.array([1, 1])].multiply(jnp.cos(h(x)[:, 1:3])),
        "stablehlo.scatter has no jet: scatter_mul gradients are only implemented if",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case, jets_of):
    function, reason = REFUSED[case]
    with pytest.raises(RaiseError, match=reason):
        jets_of(function, X)


def test_what_is_not_differentiated_may_be_anything(jets_of, brute_force):
    """Complex numbers that do not depend on x, or that no derivative passes through."""

    def function(x):
        phase = jnp.exp(1j * jnp.arange(N)).real
        return h(x) * phase[:, None] * (1 + jnp.floor(jnp.exp(1j * h(x)).real))

    found, expected = jets_of(function, X), brute_force(function, X)
    np.testing.assert_allclose(found.laplacians[0], expected.laplacians[0], rtol=1e-10)


def test_products_of_values_of_lower_precision(jets_of):
    """Rows of a converted value that has blocks are as wide as before it; so was the stack of a product."""

    def function(x):
        low, dense = (array.astype("bfloat16") for array in (x[..., :1], h(x).sum(1, keepdims=True)))
        return low * dense + np.ones(dense.shape[-1], dtype="bfloat16")

    found = jets_of(function, X.astype(np.float32))
    assert {array.dtype.name for array in (*found.values, *found.laplacians, *found.rows)} == {"bfloat16"}
