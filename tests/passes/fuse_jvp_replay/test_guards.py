"""Near misses: replays that differ from their value far away, rarely or in a few bits, each left alone."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ..laplacian_assertions import assert_refused, assert_rewritten, rewritten
from ..laplacian_functions import W, X, both, exact, fori, of, psi

MANY = np.random.default_rng(9).standard_normal((70, 3, 3))


TERMS = {
    "whole-number": (
        lambda y, n: jnp.where(n > 50, 1.0, 0.0) * jnp.sin(y).sum(), np.array(3, np.int32), ""  # draws show it
    ),
    "equality-of-parameters": (
        lambda y, z: jnp.where(z == 1.0, 1.0, 0.0).sum() * jnp.sin(y).sum(), np.ones(2),
        "compares parameters as its value does not",
    ),
    "fewer-bits": (
        lambda y, scale: scale * (y[0, 0].astype(jnp.bfloat16).astype(y.dtype) - y[0, 0]) * jnp.sin(y).sum(), 1e3,
        "rounds what its value does not (convert to bf16",
    ),
    "flag": (lambda y, flag: jnp.where(flag, 0.0, jnp.sin(y).sum()), np.array(True), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", TERMS)
def test_what_the_sum_alone_reads_compares_or_rounds(name):
    term, argument, why = TERMS[name]
    assert_refused(of(lambda y, given: psi(None, y) + term(y, given)), X, argument, why=why)


def test_walkers_of_two_kinds():
    """The first four are all alike, and of many walkers a few are evaluated."""
    kinds = np.repeat([1.0, 2.0], [4, 66])

    def shifted(x):
        laplacians = jax.vmap(lambda y, kind: fori(lambda _, z: kind * psi(None, z), None, y))(x, kinds)
        return jax.vmap(lambda y: psi(None, y))(x), laplacians

    assert_refused(shifted, MANY, why="tells walkers apart")


def in_the_first_direction(change):
    """Values and the sum of second derivatives of all walkers, the first of them as ``change`` leaves it."""

    def function(x):
        gradient = jax.grad(lambda y: jax.vmap(lambda z: psi(None, z.reshape(3, 3)))(y).sum())
        y, total = x.reshape(len(x), -1), 0.0
        for k in range(y.shape[1]):
            second = jax.jvp(gradient, (y,), (jnp.zeros_like(y).at[:, k].set(1.0),))[1][:, k]
            total = total + (second if k else change(second))
        return jax.vmap(lambda z: psi(None, z))(x), total

    return function


def summed(d, n):
    return jax.lax.reduce_window(d, 0.0, jax.lax.add, (n,), (1,), [(n - 1, 0)])


def convolved(d):
    """Each walker's from the one 50 places before."""
    return jax.lax.conv_general_dilated(d[None, None], jnp.eye(60)[9][None, None], (1,), [(59, 0)])[0, 0]


LAST = np.arange(70) // 69
PLACES = {
    "written": lambda d: d.at[-1].set(0.0),
    "added-to": lambda d: d.at[30].add(1.0),
    "written-in-range": lambda d: d.at[jnp.array([69])].set(0.0, mode="drop"),
    "read": lambda d: d[np.minimum(np.arange(70), 68)],
    "read-from-a-table": lambda d: d * jnp.array([1.0, 0.5])[LAST],
    "read-from-two": lambda d: jnp.stack([d, d / 2])[LAST, jnp.arange(70)],
    "read-along": lambda d: jnp.take_along_axis(jnp.stack([d, d / 2], 1), jnp.asarray(LAST)[:, None], 1)[:, 0],
    "sliced": lambda d: jax.lax.dynamic_update_slice(d, jnp.zeros(1), (69,)),
    "exchanged": lambda d: (d + d[::-1]) / 2,
    "joined": lambda d: jnp.concatenate([d[:69], 2 * d[69:]]),
    "padded": lambda d: d + jax.lax.pad(d, 0.0, [(50, -50, 0)]),
    "in-windows": lambda d: d + summed(d, 50) - summed(d, 60),
    "convolved": lambda d: d + convolved(d),
    "counted": lambda d: d * jnp.where(jnp.cumsum(jnp.ones(70)) > 69.5, 0.0, 1.0),
    "of-a-branch": lambda d: d * jax.lax.cond(d[0] < 1e9, lambda: jnp.asarray(1.0 - LAST), lambda: jnp.ones(70)),
    "written-to-one-of-two": lambda d: jnp.zeros((70, 2)).at[jnp.arange(70), LAST].set(1.0)[:, 0] * d,
}


@pytest.mark.by_turns(4, "read", "written", "counted")
@pytest.mark.parametrize("name", PLACES)
def test_places_that_tell_walkers_apart(name):
    """Those of a few walkers that are evaluated are not those of the others."""
    why = "" if name in ("in-windows", "of-a-branch") else "tells walkers apart"
    assert_refused(in_the_first_direction(PLACES[name]), MANY, why=why)


def times_walkers(x):
    """A replay without ``vmap``, and as a factor the number of walkers, counted in the program."""
    count = (x[:, 0] * 0 + 1).sum()
    push = jax.linearize(jax.grad(lambda x: jax.vmap(wide)(x).sum()), x)[1]
    rows = jnp.eye(x.shape[1])

    def add(k, total):
        return total + count * push(jnp.broadcast_to(rows[k], x.shape))[:, k]

    return jax.vmap(wide)(x), jax.lax.fori_loop(0, len(rows), add, jnp.zeros(len(x)))


def wide(y):
    return jnp.tanh(y @ W).sum() ** 2


def test_walkers_that_are_counted(run_raised):
    """A sum over a few walkers is another number."""
    many = np.random.default_rng(3).standard_normal((70, 3))
    assert_rewritten(run_raised, times_walkers, many[:17])
    assert_refused(times_walkers, many, why="tells walkers apart")


def with_a_matrix(of, summed=psi):
    """``of`` the values of all walkers [B, B], and the sums over directions of ``summed`` of each."""

    def function(x):
        values, sums = (
            jax.vmap(jax.vmap(lambda y, each=each: each(None, y)))(x) for each in (psi, partial(fori, summed))
        )
        return of(values), sums

    return function


MATRICES = {
    "determinant": lambda a: jnp.linalg.slogdet(a)[1],
    "solve": lambda a: jnp.linalg.solve(a, jnp.cos(a)),
}


@pytest.mark.by_turns(4, "solve")
@pytest.mark.parametrize("name", MATRICES)
def test_walkers_along_the_axes_of_a_matrix(name, run_raised):
    """As sets of electrons and states of excited states: fewer walkers have another matrix, which is a candidate."""
    x = np.random.default_rng(10).standard_normal((3, 3, 3, 3))
    assert_rewritten(run_raised, with_a_matrix(MATRICES[name]), x)
    other = with_a_matrix(MATRICES[name], lambda _, y: jnp.sin(y).sum())
    assert_refused(other, x, why="none has the Laplacian")


def test_walkers_that_a_loop_reads_one_by_one():
    assert_refused(in_the_first_direction(lambda d: jax.lax.map(lambda k: d[jnp.minimum(k, 68)], jnp.arange(70))), MANY)


OWN_PLACES = {
    "written": lambda d: jnp.zeros(70).at[jnp.arange(70)].set(d),
    "read": lambda d: d[jnp.arange(70)],
    "constants": lambda d: d * jnp.zeros((70, 2)).at[:, 1].set(1.0)[:, 1],
    "read-from-two": lambda d: jnp.stack([2 * d, d])[jnp.ones(70, int), jnp.arange(70)],
}


@pytest.mark.by_turns(4, "written")
@pytest.mark.parametrize("name", OWN_PLACES)
def test_a_place_that_is_the_walkers_number(name, run_raised):
    assert_rewritten(run_raised, in_the_first_direction(OWN_PLACES[name]), MANY)


@pytest.mark.by_turns(4, "cut-off")
@pytest.mark.parametrize(
    ("guard", "at"),
    [
        pytest.param(jnp.nan_to_num, 0.0, id="nan-to-num"),
        pytest.param(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), 0.0, id="is-finite"),
        pytest.param(lambda g: jnp.where(jnp.abs(g) < 1e3, g, 0.0), 1e3, id="cut-off"),
    ],
)
def test_a_gradient_behind_a_predicate_stays_the_programs(guard, at, run_raised):
    def singular(_, y):
        return psi(None, y) + jnp.sqrt((y**2).sum()) + (y**4).sum()

    def of_one(y):
        return singular(None, y), fori(singular, None, y), guard(jax.grad(singular, 1)(None, y))

    program, result = rewritten(jax.vmap(of_one), X)
    assert result.applied
    ours, theirs = (run_raised(one, [np.full_like(X, at)])[2] for one in (result.program, program))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("narrow", "why"), [("bfloat16", "16 bits"), ("precision", "contracts at precision DEFAULT")])
def test_a_value_that_is_less_precise_than_its_sum(narrow, why):
    w = W.astype(jnp.bfloat16).astype(np.float32)  # exact in both

    def value(y):
        if narrow == "bfloat16":
            return jnp.tanh((y.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)).sum()
        return jnp.tanh(jnp.dot(y, w, precision="default")).sum()

    def precise(y):
        return jnp.tanh(jnp.dot(y, w, precision="highest")).sum()

    assert_refused(both(value, precise), X.astype(np.float32), why=why)


@pytest.mark.by_turns(4, "sum")
@pytest.mark.parametrize(
    "mix", [lambda v: v + 0.1 * v.sum(), lambda v: v + v[::-1], jnp.cumsum], ids=["sum", "reverse", "cumulated"]
)
def test_walkers_that_see_each_other_are_not_taken_in_parts(mix, run_raised):
    """Their values are sums over walkers with the same Laplacians."""

    def function(x):
        return mix(jax.vmap(lambda y: psi(None, y))(x)), jax.vmap(lambda y: fori(psi, None, y))(x)

    result = assert_rewritten(
        run_raised, function, np.concatenate([X, X + 0.1]), passes="sparsify-directions{chunks=2}"
    )
    assert result.applied[0].what.startswith("9 trips are the Laplacian of")


@pytest.mark.parametrize("transitions", [1, 4])
def test_walkers_that_were_sampled_before(transitions):
    """Two values read them, log|psi| and what the replay flattens; those that sampling began with are another value."""

    def transition(x, key):
        key, of_step, of_choice = jax.random.split(key, 3)
        y = x + 0.1 * jax.random.normal(of_step, x.shape, x.dtype)
        logs = [jax.vmap(lambda z: psi(None, z))(walkers) for walkers in (x, y)]
        accepted = jnp.log(jax.random.uniform(of_choice, (len(x),), x.dtype)) < 2 * (logs[1] - logs[0])
        return jnp.where(accepted[:, None, None], y, x), key

    def function(x, key):
        if transitions == 1:
            x, key = transition(x, key)
        else:
            x, key = jax.lax.fori_loop(0, transitions, lambda _, carried: transition(*carried), (x, key))
        return jax.vmap(lambda y: (psi(None, y), fori(psi, None, y)))(x)

    _, result = rewritten(function, MANY, np.array([1, 2], np.uint32))
    (event,) = result.applied
    assert "(70x3x3xf64)" in event.what
    assert "with respect to %0 " not in event.what  # the walkers that sampling began with


@pytest.mark.by_turns(4, "nan_to_num")
@pytest.mark.parametrize(
    "guarded", [jnp.nan_to_num, lambda t: jnp.where(jnp.isnan(t), 0, t), lambda t: jnp.where(t == jnp.inf, 0, t)]
)
def test_a_guard_against_nan_in_a_trip(guarded):
    def of_one(y):
        hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
        eye = jnp.eye(y.size)
        return psi(None, y), jax.lax.fori_loop(0, y.size, lambda k, s: s + guarded(hessian(eye[k])[k]), 0.0)

    assert_refused(jax.vmap(of_one), X, why="something else than a function of the diagonal")


ORBITALS = np.random.default_rng(8).standard_normal((9, 25))


def of_a_determinant(y):
    """log|det| of 5 by 5, whose derivative in JAX tests whether the matrix is singular."""
    return jnp.log(jnp.abs(jnp.linalg.det(jnp.tanh(y.ravel() @ ORBITALS).reshape(5, 5) + jnp.eye(5))))


def of_several_determinants(y):
    """log|sum_k det_k|: the value has the sign and the logarithm of each, its derivative in JAX the product."""
    matrices = jnp.tanh(jnp.outer(jnp.arange(1.0, 4.0), y.ravel()) @ ORBITALS).reshape(3, 5, 5) + jnp.eye(5)
    return jnp.log(jnp.abs((jnp.array([0.5, 1.0, -0.3]) * jnp.linalg.det(matrices)).sum()))


@pytest.mark.by_turns(4, "of_a_determinant")
@pytest.mark.parametrize("value", [of_a_determinant, of_several_determinants])
def test_the_test_for_singular_matrices_of_a_determinants_derivative(value, run_raised):
    assert_rewritten(run_raised, both(value), X, rtol=1e-9)


@pytest.mark.slow
def test_that_of_determinants_of_walkers_with_two_leading_axes(run_raised):
    """The indices of their derivative's gathers and scatters have more ops then."""
    assert_rewritten(run_raised, jax.vmap(both(of_several_determinants)), np.stack([X, X + 0.1]), rtol=1e-9)


@pytest.mark.slow
def test_a_determinants_derivative_without_a_loop(run_raised):
    """JAX takes the diagonal of the factors and of their tangents in one branch; the identity that is added to the
    matrix, of another extent than the directions, is no direction."""
    random = np.random.default_rng(10)
    hidden = random.standard_normal((9, 300)) / 3, random.standard_normal((300, 9)) / 20

    def value(y):
        return of_a_determinant(jnp.tanh(y.ravel() @ hidden[0]) @ hidden[1])

    def of_one(y):
        return jnp.trace(jax.jacfwd(jax.jacrev(value))(y.ravel()))

    assert_rewritten(run_raised, jax.vmap(of_one), X, rtol=1e-9)


def _far(y):
    """NaN where |y| > 12, where no walker of a test is."""
    return jnp.sqrt(12.0 - jnp.sqrt((y**2).sum()))


def _triangular(matrix):
    return jax.scipy.linalg.solve_triangular(matrix, jnp.ones(len(matrix)))


def _is_odd(d):
    return (jnp.isnan(d) | jnp.isinf(d)).any()


GUARDS = {
    "inverse": lambda y: _is_odd(jnp.linalg.inv(jnp.eye(4) * _far(y)) @ jnp.ones(4)),
    "triangular": lambda y: _is_odd(_triangular(jnp.eye(4) * _far(y))),
    "factors": lambda y: _is_odd(_triangular(jax.scipy.linalg.lu(jnp.eye(4) * _far(y))[2])),
    "replaced": lambda y: _is_odd(_triangular(jax.lax.linalg.lu(jnp.eye(4) * _far(y))[0].at[-1, -1].set(1.0))),
}
"""Tests of a triangular system for ones which resemble JAX's; the last is as JAX's own, but selects something else."""


@pytest.mark.by_turns(4, "inverse")
@pytest.mark.parametrize("name", GUARDS)
def test_a_test_of_ones_own_is_no_such_test(name):
    def filtered(y):
        return jnp.where(jax.lax.stop_gradient(GUARDS[name](y)), 0.0, psi(None, y))

    assert_refused(both(lambda y: psi(None, y), filtered), X)


@pytest.mark.slow
def test_a_test_of_ones_own_in_a_gradient_is_kept(run_raised):
    """It is a weight of the second derivatives, 0 or 1, and no part of them."""

    def of_one(y):
        def guarded(z):
            gradient = jax.grad(lambda x: psi(None, x.reshape(y.shape)))(z)
            return jnp.where(GUARDS["replaced"](z), 0.0, gradient)

        hessian = jax.linearize(guarded, y.ravel())[1]
        eye = jnp.eye(y.size)
        return psi(None, y), jax.lax.fori_loop(0, y.size, lambda k, s: s + hessian(eye[k])[k], 0.0)

    assert_rewritten(run_raised, jax.vmap(of_one), X)


WEIGHTS_FAR_AWAY = {
    "logistic": lambda r: jax.nn.sigmoid((12 - r) / 0.1),
    "gauss": lambda r: 1 + jnp.exp(-(((r - 12) / 0.1) ** 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["logistic", pytest.param("gauss", marks=pytest.mark.slow)])
def test_a_weight_that_saturates_near_by_and_is_held_constant(name):
    def weighted(weight):
        return lambda y: weight(WEIGHTS_FAR_AWAY[name](jnp.sqrt((y**2).sum()))) * psi(None, y)

    value = weighted(lambda w: w)
    assert_refused(both(value, weighted(jax.lax.stop_gradient)), X)
    assert rewritten(both(value), X)[1].applied


WEIGHTS = {
    "logistic-far-away": lambda r: jax.nn.sigmoid((1e4 - r) / 0.1),
    "fraction": lambda r: 2.0 / (1e-30 + jnp.exp(10.0 - r)),
    "tanh": lambda r: jnp.tanh((12 - r) / 0.1),
    "erf": lambda r: jax.scipy.special.erf((12 - r) / 0.1),
}


@pytest.mark.parametrize(
    "name", ["fraction", *(pytest.param(n, marks=pytest.mark.by_turns(4)) for n in WEIGHTS if n != "fraction")]
)
def test_a_weight_without_a_slope_near_by_that_is_differentiated(name, run_raised):
    def value(y):
        return (WEIGHTS[name](jnp.sqrt((y**2).sum(-1))) * jnp.exp(-(y**2).sum(-1) / 400)).sum()

    at = np.random.default_rng(0).standard_normal(X.shape)
    at[0, 0] *= 12.5 / np.linalg.norm(at[0, 0])
    expected = jax.vmap(lambda y: (value(y), exact(lambda _, z: value(z), None, y)))
    assert_rewritten(run_raised, both(value), X, expected=expected, at=[at])
