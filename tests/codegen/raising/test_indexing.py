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


MOVES = {
    "add-rows": lambda a, u: a.at[:, np.array([3, 1])].add(u),
    "set-rows": lambda a, u: a.at[:, np.array([3, 1])].set(u),
    "add-pairs": lambda a, u: a.at[:, PAIRS[0], PAIRS[1]].add(u[:, 0, :3]),
    "set-pairs": lambda a, u: a.at[:, PAIRS[0], PAIRS[1]].set(u[:, 0, :3]),
    "ends": lambda a, u: (0 * a).at[np.array([2]), :, np.array([0])].add(u[0, :1, :4]),
    "zeros": lambda a, u: np.zeros_like(A) + jax.numpy.zeros((3, 4, 5)).at[1, 2].add(u[0, 0]),
    "strided": lambda a, u: a.at[:, ::2].add(u),
}
MORE_THAN_MOVES = {
    "twice-to-one-place": lambda a, u: a.at[:, np.array([1, 1])].add(u),
    "out-of-range": lambda a, u: a.at[:, np.array([1, 9])].add(u, mode="drop"),
    "multiplied": lambda a, u: a.at[:, np.array([1, 2])].multiply(u),
    "not-known": lambda a, u: a.at[:, (u[0, :2, 0] > 0).astype(int) + np.array([0, 2])].add(u),
    "part-of-an-axis": lambda a, u: lax.scatter_add(
        a, np.array([[1]]), u[None], lax.ScatterDimensionNumbers((1, 2, 3), (), (1,)), mode="drop"
    ),
}


@pytest.fixture
def scattered(lowered):
    """``scattered(function)``: whether it scatters once raised with what is constant folded, and its result."""

    def run(function):
        call = raise_program(view_of(lowered(function, A, U).parse()), Raising(fold=True))
        names = {equation.primitive.name for equation in jax.make_jaxpr(call)(A, U).eqns}
        return any("scatter" in name for name in names), np.asarray(call(A, U)[0])

    return run


@pytest.mark.parametrize("name", MOVES)
def test_the_same_elements_without_a_scatter(name, scattered):
    scatters, ours = scattered(MOVES[name])
    assert not scatters
    np.testing.assert_array_equal(ours, np.asarray(jax.jit(MOVES[name])(A, U)))


@pytest.mark.parametrize("name", MORE_THAN_MOVES)
def test_a_scatter_that_is_more_than_moving_stays(name, scattered):
    scatters, ours = scattered(MORE_THAN_MOVES[name])
    assert scatters
    np.testing.assert_allclose(ours, np.asarray(jax.jit(MORE_THAN_MOVES[name])(A, U)), rtol=1e-6)


def test_updates_of_another_number_are_refused(lowered):
    """As where a program is raised at another number of walkers."""

    def function(u):
        return np.zeros((5, 4), np.float32) + jax.numpy.zeros((5, 4)).at[np.array([3, 1])].set(u)

    flat = view_of(lowered(function, np.ones((2, 4), np.float32)).parse())
    with pytest.raises(JaxRefusal, match="scatter cannot be expressed in JAX"):
        raise_program(flat, Raising(fold=True, shapes={flat.arguments[0]: (3, 4)}))(np.ones((3, 4), np.float32))


ROWS = np.array([3, 0, -1], np.int32)
GATHERS = {
    "rows": lambda a, i: a.at[:, i].get(mode="clip"),
    "filled": lambda a, i: a.at[i, 1].get(mode="fill", fill_value=-3),
    "pairs": lambda a, i: a[:, i, i[::-1]],
    "apart": lambda a, i: a[i, :, i + 1],
    "of-each": lambda a, i: jax.vmap(lambda row, k: row[k])(a, i),
    "slices": lambda a, i: jax.vmap(lambda k: lax.dynamic_slice(a, (0, k, k), (3, 2, 4)))(i),
    "one": lambda a, i: a[i[0]],
    "a number of a vector": lambda a, i: jax.numpy.take(a[0, 0], i[0]),
    "unsigned": lambda a, i: a.at[i.astype(np.uint32)].get(mode="clip"),
}


@pytest.mark.parametrize("name", GATHERS)
def test_known_arrays_are_gathered_without_a_compile(name, lowered, monkeypatch):
    expected = np.asarray(jax.jit(GATHERS[name])(A, ROWS))
    call = raise_program(view_of(lowered(GATHERS[name], A, ROWS).parse()), Raising(fold=True))
    monkeypatch.setattr(lax, "gather", None)
    np.testing.assert_array_equal(call(A, ROWS)[0], expected)


def test_what_is_too_large_to_fold_is_gathered_by_the_program(lowered):
    table, rows = np.ones((64, 128), np.float32), np.arange(4096, dtype=np.int32) % 64
    call = raise_program(view_of(lowered(lambda t, r: t[r], table, rows).parse()), Raising(fold=True))
    jaxpr = jax.make_jaxpr(lambda: call(table, rows))()
    assert any(equation.primitive.name == "gather" for equation in jaxpr.eqns)
