"""What the exact comparison finds identical, and what it does not: terms behind predicates, edits of constants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.identity import compare_exactly, points
from fusionlab.hlo.view import view_of
from fusionlab.passes.fold_constant_loops import FoldConstantLoops
from fusionlab.passes.interface import Setting

WALKERS = jax.ShapeDtypeStruct((8, 3, 3), jnp.float32)


def pairs(y):
    v = y.ravel()
    return (v[:, None] + 2 * v[None, :])[~np.eye(9, dtype=bool)]


ALTERNATING = np.arange(72) % 2 == 0
GATES = {
    "all of 72": lambda y: jnp.all(pairs(y) > 0.4),
    "none of 72": lambda y: ~jnp.any(pairs(y) > 0.4),
    "all of 8, alternately": lambda y: jnp.all(jnp.where(ALTERNATING[:8], pairs(y)[:8] > 0.4, pairs(y)[:8] < 0.4)),
    "all of 72, alternately": lambda y: jnp.all(jnp.where(ALTERNATING, pairs(y) > 0.4, pairs(y) < 0.4)),
    "all of 72, other constants": lambda y: jnp.all(pairs(y) > jnp.linspace(0.1, 3, 72)),
    "at least 60 of 72": lambda y: (pairs(y) > 0.4).sum() >= 60,
    "exactly 57 of 72": lambda y: (pairs(y) > 0.4).sum() == 57,
    "all of 72, no constant": lambda y: jnp.all(pairs(y) > pairs(y[::-1]) * 1.5),
    "16 sorted": lambda y: jnp.all(jnp.diff(pairs(y)[:16]) > 0),
    "product of 16 indicators": lambda y: jnp.prod(jnp.where(pairs(y)[:16] > 0.4, 1.0, 0.0)) > 0,
    "all of 16, then all of 16 of what that selects": lambda y: (
        (first := jnp.all(pairs(y)[:16] > 0.4)) & jnp.all(pairs(jnp.where(first, 2 * y, y))[:16] > 0.3)
    ),
    "one far out": lambda y: jnp.abs(y[0, 0]) > 20.0,
}


def psi(y):
    return jnp.tanh(y).sum()


@pytest.mark.parametrize("gate", GATES)
def test_a_term_behind_predicates_is_seen(gate, lowered):
    def gated(y):
        return psi(y) + jnp.where(GATES[gate](y), 1.0, 0.0) * jnp.sin(y).sum()

    with_term, without = lowered(jax.vmap(gated), WALKERS), lowered(jax.vmap(psi), WALKERS)
    assert compare_exactly(with_term, without).result == "not-identical"
    assert compare_exactly(without, with_term).result == "not-identical"
    assert compare_exactly(with_term, with_term).result == "identical"


KEY = jax.random.key_data(jax.random.key(0, impl="rbg"))
MATRIX = jax.ShapeDtypeStruct((3, 3), jnp.float32)


def _solve(a, b):
    return jax.lax.linalg.triangular_solve(a, b, left_side=True, lower=False, transpose_a=True)


MASK, TRIPS = jax.ShapeDtypeStruct((64,), bool), jax.ShapeDtypeStruct((), np.int32)


def shifted_by_uniform(at):
    return lambda x, key: x + jax.random.uniform(jax.random.wrap_key_data(key, impl="rbg"), (2,))[at]


CONSTANT = (np.diag([1, 2, 3]) + 1).astype(np.float32)
EQUAL = {
    "chain rule of softplus": (jax.grad(lambda x: jax.nn.softplus(x).sum()), jax.nn.sigmoid),
    "derivative of tanh": (jax.grad(lambda x: jnp.tanh(x).sum()), lambda x: 1 - jnp.tanh(x) ** 2),
    "a sum, reassociated": (lambda x: (x + 1.5) * x, lambda x: x * x + 1.5 * x),
    "a contraction, transposed": (lambda x: (x.T @ x).T, lambda x: x.T @ x),
    "log|det| by its gradient": (
        jax.grad(lambda x: jnp.linalg.slogdet(x)[1]),
        lambda x: jnp.linalg.inv(x).T,
    ),
    "a loop, unrolled": (
        lambda x: jax.lax.fori_loop(0, 3, lambda k, y: y * x + k, x),
        lambda x: ((x * x) * x + 1) * x + 2,
    ),
    "gelu's second derivative": (
        lambda x: jax.jvp(jax.grad(lambda y: jax.nn.gelu(y).sum()), (x,), (jnp.ones_like(x),))[1],
        lambda x: jax.grad(lambda y: jax.grad(lambda z: jax.nn.gelu(z).sum())(y).sum())(x),
    ),
    "a root times its reciprocal": (
        lambda x: jnp.sqrt(x) * jax.lax.rsqrt(x),
        lambda x: x**1.5 * x**-1.5,
    ),
    "an infinite exponent": (lambda x: jax.lax.pow(x, np.float32(np.inf)) * 2, lambda x: 2 * x**np.inf),
    "a complex square": (lambda x: jax.lax.pow(x + 1j, np.complex64(2)), lambda x: (x + 1j) * (x + 1j)),
    "LU of a constant": (lambda x: jnp.linalg.inv(CONSTANT) @ x, lambda x: jnp.linalg.solve(CONSTANT, x)),
    "triangular solve of a constant": (
        lambda x: jax.lax.linalg.triangular_solve(CONSTANT, x, left_side=True, lower=True),
        lambda x: jax.lax.linalg.triangular_solve(CONSTANT.T, x, left_side=True, lower=False, transpose_a=True),
    ),
    "the sign of a complex number": (
        lambda x: jnp.sign(x + 1j * x.T).real * 2,
        lambda x: jnp.sign(x + 1j * x.T).real + jnp.sign(x + 1j * x.T).real,
    ),
    "triangular solve of many columns": (
        lambda x: _solve(x, jnp.concatenate([x, 2 * x, x @ x], 1)),
        lambda x: jnp.concatenate([_solve(x, x), 2 * _solve(x, x), _solve(x, x @ x)], 1),
    ),
    "a greatest integer of none": (
        lambda x: x * jax.lax.reduce_max(x[:0].astype(jnp.int32), (0,)),
        lambda x: x * jnp.full(3, np.iinfo(np.int32).min),
    ),
    "integers contracted in 32 bits": (
        lambda x: jax.lax.dot_general(
            *(x.astype(jnp.int8),) * 2, (((1,), (0,)), ((), ())), preferred_element_type=np.int32
        ),
        lambda x: jnp.matmul(*(x.astype(jnp.int8).astype(jnp.int32),) * 2),
    ),
    "a constant factor as a logarithm": (lambda x: jnp.exp(x + jnp.log(CONSTANT)), lambda x: CONSTANT * jnp.exp(x)),
    "a product as a sum of logarithms": (
        lambda x: jnp.exp(jnp.where(jnp.any(x == 0), -jnp.inf, jnp.log(jnp.abs(x)).sum(1))),
        lambda x: jnp.abs(x).prod(1),
    ),
    "a determinant by its logarithm": (
        lambda x: jnp.multiply(
            *(jnp.linalg.slogdet(x + jnp.eye(3))[0], jnp.exp(jnp.linalg.slogdet(x + jnp.eye(3))[1]))
        ),
        lambda x: jnp.linalg.det(x + jnp.eye(3)),
    ),
    "the greatest root of constants, of another order in each draw": (
        lambda x: jnp.where(jnp.all(x > 0.4), x * jnp.sqrt(CONSTANT).max(), x),
        lambda x: jnp.where(jnp.any(x <= 0.4), x, jnp.max(jnp.sqrt(CONSTANT)) * x),
    ),
    "a loop whose trips are an argument": (
        lambda x, n: jax.lax.fori_loop(0, n, lambda k, y: y * x, x),
        lambda x, n: jax.lax.fori_loop(0, n, lambda k, y: x * y, x),
        TRIPS,
    ),
    "an op without a rule is a function of its operands": (
        lambda x: jnp.linalg.cholesky(x @ x.T) * 2,
        lambda x: jnp.linalg.cholesky(x @ x.T) + jnp.linalg.cholesky(x @ x.T),
    ),
    "complex numbers": (lambda x: jnp.abs((x + 2j) * (x - 2j)), lambda x: jnp.abs(x * x + (4 + 0j))),
}
UNEQUAL = {
    "one constant in the seventh digit": (lambda x: x * 0.1234567, lambda x: x * 0.1234568),
    "a derivative without its cross term": (
        jax.grad(lambda x: (jnp.sin(x) * jnp.exp(x)).sum()),
        lambda x: jnp.cos(x) * jnp.exp(x),
    ),
    "a distance with a floor": (lambda x: 1 / jnp.sqrt(x), lambda x: 1 / jnp.sqrt(jnp.maximum(x, 2.5e-5))),
    "a distance with a cap": (jnp.sqrt, lambda x: jnp.minimum(jnp.sqrt(x), 20.0)),
    "a root of the negative": (jnp.sqrt, lambda x: jnp.sqrt(-x)),
    "another imaginary part of an exponent": (lambda x: (x + 1j) ** (2.5 + 1j), lambda x: (x + 1j) ** (2.5 + 2j)),
    "another eigenvalue": (lambda x: jnp.linalg.eigvals(x).imag, lambda x: 0 * jnp.linalg.eigvals(x).imag),
    "9 comparisons after 3 others": (  # how reductions are steered depends on those before
        lambda x: jnp.where(jnp.any(x > 0.1, -1), x[0], x[1]),
        lambda x: jnp.where(jnp.any(x > 0.1, -1), x[0], x[1] + jnp.where(jnp.all(x @ x > 0.4), 1, 0)),
    ),
    "48 comparisons in one program": (
        jnp.tanh,
        lambda x: jnp.tanh(x) + jnp.where(jnp.all(jnp.outer(x, np.arange(1, 6)) > 0.4), 1, 0),
    ),
    "all of many booleans": (lambda x, mask: jnp.where(jnp.all(mask), x * x, x), lambda x, mask: x, MASK),
    "none of many booleans": (lambda x, mask: jnp.where(jnp.any(mask), x, x * x), lambda x, mask: x, MASK),
    "two uniform numbers, all their bits unknown": (shifted_by_uniform(0), shifted_by_uniform(1), KEY),
    "integers of other widths": (
        lambda x: x.astype(np.int16).astype(x.dtype),
        lambda x: x.astype(np.int32).astype(x.dtype),
    ),
    "an index beyond": (lambda x: x[:, [0, 1, 2]], lambda x: x[:, [0, 1, 1]]),
}
INTEGERS = {
    "above ten": (lambda x, n: jnp.where(n > 10, x, 2 * x), lambda x, n: 2 * x),
    "negative": (lambda x, n: jnp.where(n < 0, 1, x), lambda x, n: x),
    "all negative": (lambda x, n: jnp.where(jnp.all(jnp.full(16, n) + jnp.arange(16) < 16), 1, x), lambda x, n: x),
    "eighths": (lambda x, n: x * (n // 8), lambda x, n: 0 * x),
    "integral part above ten": (lambda x, n: jnp.where(x.astype(jnp.int32) > 10, 1, x), lambda x, n: x),
    "integral part negative": (lambda x, n: jnp.where(x.astype(jnp.int8) < 0, 1, x), lambda x, n: x),
}
for name, functions in INTEGERS.items():
    UNEQUAL |= {f"{name}, {dtype}": (*functions, jax.ShapeDtypeStruct((), dtype)) for dtype in ("int8", "int32")}


RESTS_ON_INTEGERS = (
    "a greatest integer of none",
    "integers contracted in 32 bits",
    "a loop whose trips are an argument",
)


@pytest.mark.parametrize("name", EQUAL)
def test_equal_functions_are_identical(name, lowered):
    first, second, *arguments = EQUAL[name]
    identity = compare_exactly(*(lowered(function, MATRIX, *arguments) for function in (first, second)))
    assert identity.result == "identical", identity
    assert bool(identity.except_for) == (name in RESTS_ON_INTEGERS)
    assert identity.except_for or identity.error_probability < 1e-30


@pytest.mark.parametrize("name", UNEQUAL)
def test_other_functions_are_not(name, lowered):
    first, second, *arguments = UNEQUAL[name]
    programs = [lowered(function, MATRIX, *arguments) for function in (first, second)]
    for pair in (programs, programs[::-1]):
        identity = compare_exactly(*pair)
        assert identity.result == "not-identical"
        assert "output 0 differs at" in identity.reason


def test_a_solve_with_the_adjoint_is_none_with_the_transpose(lowered, program_of_text):
    def solved(x):
        return jax.lax.linalg.triangular_solve(x + 1j, x + 2j, left_side=True, transpose_a=True).real

    transpose = lowered(solved, MATRIX, platform="cuda")
    adjoint = program_of_text(str(transpose.parse()).replace("transpose TRANSPOSE", "transpose ADJOINT"))
    assert compare_exactly(transpose, adjoint).result == "not-identical"
    assert compare_exactly(adjoint, adjoint).result == "identical"


def test_the_first_difference_is_named_with_its_source_line(lowered):
    right, wrong = (lowered(lambda x, by=by: jnp.exp(jnp.sin(x) * by), MATRIX) for by in (2.0, 3.0))
    identity = compare_exactly(right, wrong)
    assert identity.first_difference.startswith("stablehlo.multiply at jit(<lambda>)/mul")
    assert "test_identity.py" in identity.first_difference


def test_other_types_are_not_compared(lowered):
    first, second = lowered(jnp.sin, MATRIX), lowered(jnp.sin, WALKERS)
    assert compare_exactly(first, second).reason == "the arguments have other types"


NOT_COVERED = {
    "custom call @lapack_spotrf_ffi has no rule": lambda x: jnp.linalg.cholesky(x @ x.T),
    "stablehlo.rng, which has an effect": lambda x: jax.lax.rng_uniform(np.float32(0), np.float32(1), (3, 3)) + x,
}


@pytest.mark.parametrize("reason", NOT_COVERED)
def test_what_is_not_covered_is_named(reason, lowered):
    identity = compare_exactly(lowered(NOT_COVERED[reason], MATRIX), lowered(lambda x: 2 * x, MATRIX))
    assert identity.result == "not-covered"
    assert identity.reason.startswith(reason)


def _positive(x):
    return x @ x.T + jnp.eye(3)


FACTORISED = {
    "cholesky": jnp.linalg.cholesky,
    "eigenvalues": jnp.linalg.eigvalsh,
    "singular values": lambda a: jnp.linalg.svd(a, compute_uv=False),
    "sum of logarithms": lambda a: jnp.log(jnp.diagonal(jnp.linalg.cholesky(a))).sum(),
}


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", FACTORISED)
def test_a_factorisation_is_one_of_its_operand(name, platform, lowered):
    """Not the NaN that JAX's lowering has where the routine fails, in both programs alike."""
    function = FACTORISED[name]
    first = lowered(lambda x: function(_positive(x)), MATRIX, platform=platform)
    other = lowered(lambda x: function(2 * _positive(x)), MATRIX, platform=platform)
    same = lowered(lambda x: function(jnp.eye(3) + x @ x.T), MATRIX, platform=platform)
    more = lowered(lambda x: 3 * function(_positive(x)), MATRIX, platform=platform)
    found = [compare_exactly(first, one) for one in (other, same, more)]
    assert [one.result for one in found] == ["not-covered", "identical", "not-identical"]
    assert found[0].reason.endswith("has no rule")


WIDE = np.ones((3, 4), np.float32)
TIES = {
    "slopes at zero": (jax.grad(lambda x: jax.nn.relu(x).sum()), jax.grad(lambda x: jnp.maximum(x, 0).sum())),
    "a guard at zero": (lambda x: jnp.where(x == 0, 0, jnp.sin(x) / jnp.where(x == 0, 1, x)), lambda x: jnp.sin(x) / x),
    "equal elements": (lambda x: jnp.where(x == x[:, ::-1], 1, x), lambda x: x),
}


@pytest.mark.parametrize("name", TIES)
def test_what_differs_at_ties_only_is_told_apart(name, lowered):
    """Of the original and itself nothing is told."""
    first, second = (lowered(function, WIDE) for function in TIES[name])
    found = compare_exactly(first, second)
    assert found.result == "identical"
    assert "output 0 differs" in found.at_ties
    assert f"but where inputs are exactly tied {found.at_ties}" in found.line
    assert not compare_exactly(first, first).at_ties


def test_where_the_original_is_undefined_nothing_is_told(lowered):
    quotient, one = lowered(lambda x: x / x, WIDE), lowered(jnp.ones_like, WIDE)
    assert compare_exactly(quotient, one).at_ties == ""
    assert "differs" in compare_exactly(one, quotient).at_ties


@pytest.mark.parametrize(
    ("step", "start", "result"),
    [(lambda k, sum_: sum_ + k, 1, "identical"), (lambda k, sum_: sum_ + 0.1, 0.3, "not-identical")],
    ids=["integers", "floats that round"],
)
def test_a_loop_folded_into_a_constant(step, start, result, lowered):
    program = lowered(lambda x: x * jax.lax.fori_loop(0, 5, step, start), np.ones(3, np.float32))
    folded = FoldConstantLoops().run(program, Setting())
    assert folded.applied
    assert compare_exactly(program, folded.program).result == result


@pytest.mark.parametrize("computed", [lambda x: jnp.where(x > 0, 3.0, 3.0), lambda x: x - x + 3.0])
def test_a_constant_that_is_computed_has_its_sign(computed, lowered):
    """Its order beside another constant is one of two in all draws: both programs may have the same bound in each."""
    one, other = (lowered(lambda x, s=s: jnp.clip(s * computed(x), -1.125, 0.25), np.ones(3)) for s in (1.0, -1.0))
    assert compare_exactly(one, other).result == "not-identical"
    assert compare_exactly(one, one).result == "identical"


def test_a_loop_that_never_ends_at_ties(lowered):
    def function(x):
        return jax.lax.while_loop(lambda c: ~(c[0] > 3), lambda c: (c[0] + c[1], c[1]), (x[0], 1 / x[0]))[0]

    program = lowered(function, np.ones(1, np.float32))
    found = compare_exactly(program, program)
    assert found.result == "identical"
    assert found.at_ties == "" or "were not compared" in found.at_ties


def test_trips_of_loops_count_where_a_program_is_small(lowered):
    def looped(x, trips):
        return jax.lax.fori_loop(0, trips, lambda _, y: jnp.tanh(y @ y), x)

    def draws(trips):
        program = lowered(lambda x: looped(x, trips), np.ones((40, 40), np.float32))
        return sum(len(seeds) for _, seeds, _ in points(view_of(program.parse())))

    assert draws(2) > draws(20) > draws(2000) == 12


def test_tokens_are_no_part_of_the_size_of_a_program(program_of_text):
    program = program_of_text("""func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %t = stablehlo.create_token : !stablehlo.token
      return %x : tensor<3xf32>
    }""")
    assert [len(seeds) for _, seeds, _ in points(view_of(program.parse()))] == [6, 6, 66, 66]
