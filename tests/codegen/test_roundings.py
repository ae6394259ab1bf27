"""Programs whose intermediate results are rounded otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.oracle import program_runner, runner_of_roundings

X = np.linspace(-2.0, 2.0, 41)
EPS = np.finfo(np.float64).eps


@pytest.fixture
def moved(lowered):
    """(results as they are, with two other roundings)."""

    def of(function, x=X):
        with jax.enable_x64(True):
            program = lowered(function, x)
        rounded = runner_of_roundings(program)
        [as_it_is] = program_runner(program)([x])
        return as_it_is, *(rounded([x], seed)[0] for seed in range(2))

    return of


@pytest.mark.parametrize(
    "function", [jnp.sin, lambda x: 1 / (3 + x), lambda x: x @ x.reshape(41, 1), lambda x: x[:7].sum()]
)
def test_results_move_by_a_rounding(function, moved):
    plain, first, second = moved(function)
    assert not np.array_equal(plain, first)
    np.testing.assert_allclose(first, plain, rtol=4 * EPS, atol=0)
    np.testing.assert_allclose(second, plain, rtol=4 * EPS, atol=0)


def test_either_way_by_the_seed(moved):
    plain, *others = moved(jnp.exp)
    ups = [(other > plain) for other in others]
    assert all(0.2 < up.mean() < 0.8 for up in ups)
    assert (ups[0] != ups[1]).any()


def test_what_cancels_moves_with_it(moved):
    plain, *others = moved(lambda x: 1 - jnp.tanh(x + 18.0) ** 2)
    assert any(np.abs(other - plain).max() > EPS / 2 for other in others)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[::-1] + 2.5 * x,  # sums of two are as they are
        lambda x: jnp.maximum(jnp.sin(x), jnp.sin(x)) - jnp.sin(x),  # equal values stay equal
        lambda x: jnp.sin(x * 0),  # zeros
        lambda x: jnp.floor(x / x) + jnp.round(jnp.round(x * 6) / 2),  # no jump is a rounding
        lambda x: jnp.where(jnp.tanh(20.3 + jnp.abs(x)) >= 1, 5.0, x),
        lambda x: jnp.where(x @ jnp.eye(41) == x, 2.0, x),
        lambda x: jnp.sort(jnp.abs(jnp.round(x) / 2)).argmax() * x,
        lambda x: (jnp.sin(x) > 2).astype(x.dtype),
        lambda x: jnp.max(x),
    ],
)
def test_what_is_exact_stays(function, moved):
    plain, *others = moved(function)
    for other in others:
        np.testing.assert_array_equal(other, plain)


def test_in_loops_and_of_complex_numbers(moved):
    def function(x):
        z = jax.lax.fori_loop(0, 3, lambda _, z: jnp.tanh(z + 0.1j), x + 0j)
        return jnp.stack([z.real, z.imag])

    plain, first, second = moved(function)
    assert not np.array_equal(first, plain)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose(first, plain, rtol=1e-13, atol=1e-14)


def test_zero_parts_of_complex_numbers_stay(moved):
    """The phase of a real number does not leave its branch."""
    plain, *others = moved(lambda x: jnp.log(jnp.exp(x + 0j) - 10).imag)
    np.testing.assert_allclose(plain, np.pi)
    for other in others:
        np.testing.assert_allclose(other, np.pi)
