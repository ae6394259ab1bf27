"""Scatters to known places: the gather that stands for one gives the very same elements, or there is none."""

import jax
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import JaxRefusal, Raising, raise_program
from fusionlab.hlo.view import view_of

_random = np.random.default_rng(5)
A = _random.standard_normal((3, 4, 5)).astype(np.float32)
U = _random.standard_normal((3, 2, 5)).astype(np.float32)
PAIRS = (np.array([0, 2, 3]), np.array([4, 1, 1]))


def scattered(function):
    """Names of the primitives of ``function`` and its result, once raised with what is constant folded."""

    def run(lowered, *arrays):
        flat = view_of(lowered(function, *arrays).parse())
        call = raise_program(flat, Raising(fold=True))
        names = {equation.primitive.name for equation in jax.make_jaxpr(call)(*arrays).eqns}
        return names, np.asarray(call(*arrays)[0])

    return run


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a, u: a.at[:, np.array([3, 1])].add(u), id="add-rows"),
        pytest.param(lambda a, u: a.at[:, np.array([3, 1])].set(u), id="set-rows"),
        pytest.param(lambda a, u: a.at[:, PAIRS[0], PAIRS[1]].add(u[:, 0, :3]), id="add-pairs"),
        pytest.param(lambda a, u: a.at[:, PAIRS[0], PAIRS[1]].set(u[:, 0, :3]), id="set-pairs"),
        pytest.param(lambda a, u: (0 * a).at[np.array([2]), :, np.array([0])].add(u[0, :1, :4]), id="ends"),
        pytest.param(lambda a, u: np.zeros_like(A) + jax.numpy.zeros((3, 4, 5)).at[1, 2].add(u[0, 0]), id="zeros"),
        pytest.param(lambda a, u: a.at[:, ::2].add(u), id="strided"),
    ],
)
def test_the_same_elements_without_a_scatter(function, lowered):
    names, ours = scattered(function)(lowered, A, U)
    assert not any("scatter" in name for name in names)
    np.testing.assert_array_equal(ours, np.asarray(jax.jit(function)(A, U)))


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a, u: a.at[:, np.array([1, 1])].add(u), id="twice-to-one-place"),
        pytest.param(lambda a, u: a.at[:, np.array([1, 9])].add(u, mode="drop"), id="out-of-range"),
        pytest.param(lambda a, u: a.at[:, np.array([1, 2])].multiply(u), id="multiplied"),
        pytest.param(lambda a, u: a.at[:, (u[0, :2, 0] > 0).astype(int) + np.array([0, 2])].add(u), id="not-known"),
        pytest.param(
            lambda a, u: lax.scatter_add(
                a, np.array([[1]]), u[None], lax.ScatterDimensionNumbers((1, 2, 3), (), (1,)), mode="drop"
            ),
            id="part-of-an-axis",
        ),
    ],
)
def test_a_scatter_that_is_more_than_moving_stays(function, lowered):
    names, ours = scattered(function)(lowered, A, U)
    assert any("scatter" in name for name in names)
    np.testing.assert_allclose(ours, np.asarray(jax.jit(function)(A, U)), rtol=1e-6)


def test_updates_of_another_number_are_refused(lowered):
    """As where a program is raised at another number of walkers."""
    rows = np.ones((2, 4), np.float32)
    flat = view_of(
        lowered(
            lambda u: np.zeros((5, 4), np.float32) + jax.numpy.zeros((5, 4)).at[np.array([3, 1])].set(u), rows
        ).parse()
    )
    with pytest.raises(JaxRefusal, match="scatter cannot be expressed in JAX"):
        raise_program(flat, Raising(fold=True, shapes={flat.arguments[0]: (3, 4)}))(np.ones((3, 4), np.float32))
