"""Sums that need second derivatives one by one: of run-time weights, or of what is not linear in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.identity import compare_exactly

from ..laplacian_assertions import assert_refused_or_identical, assert_rewritten, rewritten

_random = np.random.default_rng(5)
N = 4
W, X = _random.standard_normal((N, 5)), _random.standard_normal((3, N))
MASSES, OF_EACH = _random.uniform(0.5, 2.0, N), _random.uniform(0.5, 2.0, (3, N))


def psi(y):
    return jnp.log(jnp.cosh(jnp.tanh(y @ W) @ jnp.ones(5))) + (jnp.sin(y) ** 2).sum()


def pushed(y):
    return jax.linearize(jax.grad(psi), y)[1]


def in_a_loop(add, initial):
    """psi, and ``initial`` with ``add`` of it, a weight's index, the masses, the point, and the product with row k."""

    def one(m, y):
        h, e = pushed(y), jnp.eye(N)
        return psi(y), lax.fori_loop(0, N, lambda k, s: add(s, k, m, y, h(e[k])), initial)

    return one


def masses(s, k, m, y, t):
    return s + t[k] / m[k]


def two_sums(s, k, m, y, t):
    return s[0] + t[k] / m[k], s[1] + t[k] * m[k] ** 2


def of_positions(s, k, m, y, t):
    return s + t[k] * jnp.exp(y[k])


def absolute(s, k, m, y, t):
    return s[0] + t[k], s[1] + jnp.abs(t[k])


def largest_square(s, k, m, y, t):
    return s[0] + t[k] ** 2 / m[k], s[1] + t[k]


def masses_and_absolute(s, k, m, y, t):
    return s[0] + t[k] / m[k], s[1] + jnp.abs(t[k])


def guarded_masses(s, k, m, y, t):
    return s + jnp.where(t[k] == 0, 0.0, t[k] / m[k])


FORMS = {
    "masses-of-each": (in_a_loop(masses, 0.0), (0, 0), OF_EACH),
    "two-sums-with-masses": (in_a_loop(two_sums, (0.0, 0.0)), (None, 0), MASSES),
    "weights-of-positions": (in_a_loop(of_positions, 0.0), (None, 0), MASSES),
    "absolute-values": (in_a_loop(absolute, (0.0, 0.0)), (None, 0), MASSES),
    "squares": (in_a_loop(largest_square, (0.0, 0.0)), (None, 0), MASSES),
    "masses-beside-absolute-values": (in_a_loop(masses_and_absolute, (0.0, 0.0)), (None, 0), MASSES),
    "masses-with-a-guard": (in_a_loop(guarded_masses, 0.0), (None, 0), MASSES),
}


@pytest.mark.by_turns(3, "masses-of-each", "absolute-values", "masses-with-a-guard")
@pytest.mark.parametrize("name", FORMS)
def test_one_adjoint_has_all_of_them(name, run_raised):
    function, axes, weights = FORMS[name]
    mapped = jax.vmap(function, axes)
    assert_rewritten(run_raised, mapped, weights, X)
    program, result = rewritten(mapped, weights, X, keep_unused=True)
    assert "second derivative by second derivative" in result.applied[0].what
    assert compare_exactly(program, result.program).result == "identical"


def off_diagonal(s, k, m, y, t):
    return s[0] + t[k], s[1] + jnp.abs(t[k] + t[0])


def beside_the_diagonal(s, k, m, y, t):
    return s + m[k] * (t[k] + t[(k + 1) % N])


@pytest.mark.parametrize("add", [off_diagonal, beside_the_diagonal])
def test_what_depends_on_others_is_left_alone(add):
    initial = (0.0, 0.0) if add is off_diagonal else 0.0
    assert_refused_or_identical(jax.vmap(in_a_loop(add, initial), (None, 0)), MASSES, X)


def linear_in_the_first(y):
    return psi(y.at[0].set(0.3)) + 2 * y[0]


@pytest.mark.parametrize("of", [jnp.abs, lambda t: t])
def test_another_element_where_a_second_derivative_vanishes(of, run_raised):
    """It vanishes by structure, in no random draw."""

    def one(y):
        h, e = jax.linearize(jax.grad(linear_in_the_first), y)[1], jnp.eye(N)

        def add(k, s):
            t = h(e[k])
            return s + jnp.where(t[k] == 0, t[(k + 1) % N] + h(e[1])[2], of(t[k]))

        return linear_in_the_first(y), lax.fori_loop(0, N, add, 0.0)

    program, result = rewritten(jax.vmap(one), X, keep_unused=True)
    for found, right in zip(run_raised(result.program, [X]), run_raised(program, [X]), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9)


def test_a_mean_of_two_walkers_needs_one_laplacian(run_raised):
    """The sum of each walker is looked for before what is made of all."""

    def energies(x):
        def one(y):
            h, e = pushed(y), jnp.eye(N)
            return psi(y), lax.fori_loop(0, N, lambda k, s: s + h(e[k])[k], 0.0)

        values, laplacians = jax.vmap(one)(x)
        return values, (-0.5 * laplacians).mean()

    result = assert_rewritten(run_raised, energies, X[:2])
    assert "second derivative by second derivative" not in result.applied[0].what


def test_a_large_second_derivative_that_is_switched_off():
    """Where the mass is not positive, others than the diagonal enter, at no draw of the masses alone."""

    def add(s, k, m, y, t):
        return s + jnp.where(m[k] > 0, t[k] * jnp.exp(y[k]), t[0] * y[k])

    program, result = rewritten(jax.vmap(in_a_loop(add, 0.0), (None, 0)), MASSES, X, keep_unused=True)
    assert not result.applied or compare_exactly(program, result.program).result == "identical"


def test_an_identity_of_differences(run_raised):
    def one(y):
        h, e = pushed(y), jnp.tril(jnp.ones((N, N))) - jnp.tril(jnp.ones((N, N)), -1)
        return psi(y), lax.fori_loop(0, N, lambda k, s: s + h(e[k])[k], 0.0)

    assert_rewritten(run_raised, jax.vmap(one), X)
