"""Every way in which codes write a Laplacian becomes a forward Laplacian: alone, in a local energy, in a whole step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo import lowering
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.ops import COMPLEX as COMPLEX_TYPES
from fusionlab.hlo.replay import find_replays
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.workloads.catalogue import build

from ..laplacian_assertions import assert_refused, assert_rewritten, rewritten
from ..laplacian_functions import (
    LOOP_FREE,
    LOOPS,
    WEIGHTS,
    X,
    alone,
    determinants,
    exact,
    features,
    flat_gradient,
    local_energy,
    smooth,
)

FORMS = {**LOOPS, **LOOP_FREE}


@pytest.mark.parametrize("method", [LOOPS["fori"], LOOP_FREE["diagonal"]])
def test_a_value_that_nothing_reads_is_in_the_program_if_jax_keeps_it(method):
    """``jax.jit(f)`` drops what is not returned, ``jax.jit(f, keep_unused=True)`` does not."""

    def log_psi(weights, x):
        return jnp.log(jnp.cosh(x @ weights["features"][:3])).sum() ** 2

    energy = jax.vmap(lambda weights, x: method(log_psi, weights, x), (None, 0))
    _, without = rewritten(energy, WEIGHTS, X)
    assert "jax.jit(f, keep_unused=True)" in without.events[0].explained
    assert rewritten(energy, WEIGHTS, X, keep_unused=True)[1].applied


@pytest.mark.by_turns(4, "fori", "jvp-in-loop", "diagonal")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_alone(form, run_raised):
    method = FORMS[form]
    result = assert_rewritten(run_raised, alone(smooth, method), WEIGHTS, X, expected=alone(smooth, exact))
    assert len(result.applied) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "form", ["fori", *(pytest.param(form, marks=pytest.mark.slow) for form in ("scan", "jvp-in-loop", "diagonal"))]
)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.by_turns(4)), "float64"])
def test_inside_a_local_energy(form, dtype, run_raised):
    function = local_energy(smooth, FORMS[form])
    arrays = jax.tree.map(lambda array: np.asarray(array, dtype), (WEIGHTS, X))
    assert_rewritten(run_raised, function, *arrays, expected=function, rtol=1e-9 if dtype == "float64" else 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_determinants_of_both_signs_and_other_pivots(count, run_raised):
    """Walkers with electrons exchanged, and their mirror images: signs and pivots differ from walker to walker."""
    log_psi = determinants(count)
    walkers = np.concatenate([X[:1], X[:1, ::-1], -X[:1], 3 * X[:1, [1, 0, 2]]])
    function, expected = (alone(log_psi, method) for method in (LOOPS["fori"], exact))
    result = assert_rewritten(run_raised, function, WEIGHTS, walkers, expected=expected, rtol=1e-8)
    assert len(result.applied) == 1


@pytest.mark.slow
def test_two_different_replays_in_one_module(run_raised):
    def both(first, second):
        functions = alone(smooth, first), alone(determinants(1), second)
        return lambda weights, x: [function(weights, x) for function in functions]

    function, expected = both(LOOPS["fori"], LOOPS["scan"]), both(exact, exact)
    result = assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected, rtol=1e-8)
    assert len(result.applied) == 2


def test_complex_constants_beside_it(run_raised):
    def beside(method):
        waves = jax.vmap(lambda y: abs(jnp.exp(1j * y).sum()))
        return lambda weights, x: (alone(smooth, method)(weights, x), waves(x))

    assert_rewritten(run_raised, beside(LOOPS["fori"]), WEIGHTS, X, expected=beside(exact))


def test_the_function_may_be_called_behind_the_loop(run_raised):
    """Where every trip takes the derivatives anew, nothing of the function stands before the loop."""

    def called_behind(method):
        def function(weights, x):
            laplacian = jax.vmap(lambda y: method(smooth, weights, y))(x)
            return jax.vmap(lambda y: (smooth(weights, y), jax.grad(smooth, 1)(weights, y)))(x), laplacian

        return function

    function, expected = map(called_behind, (LOOPS["jvp-in-loop"], exact))
    result = assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected)
    assert "whose gradient" in result.applied[0].what


@pytest.mark.slow
def test_other_values_behind_the_loop_are_no_candidates():
    def function(weights, x):
        laplacian = jax.vmap(lambda y: LOOPS["jvp-in-loop"](smooth, weights, y))(x)
        return laplacian * jnp.sin(x[:, 0, 0])

    why = "of the values without directions, none has the Laplacian that the loop computes"
    assert_refused(function, WEIGHTS, X, why=why)


def test_the_function_may_be_computed_in_the_trips_alone(run_raised):
    """What they recompute is evaluated before the loop; its value may be read by nothing."""

    def kinetic(method):
        return lambda weights, x: jax.vmap(lambda y: method(total, weights, y))(x)

    def total(weights, x):
        return jnp.tanh(features(weights, x)).sum()

    assert_rewritten(run_raised, kinetic(LOOPS["jvp-in-loop"]), WEIGHTS, X, expected=kinetic(exact))


def two_sums(log_psi, weights, x):
    """The Laplacian times a number of the walker, and the squared gradient, in one carry."""
    gradient, y = flat_gradient(log_psi, weights, x)
    first, hessian = jax.linearize(gradient, y)
    eye = jnp.eye(y.size, dtype=y.dtype)

    def body(k, sums):
        return sums[0] - jnp.sin(y[0]) * hessian(eye[k])[k], sums[1] + first[k] ** 2

    return lax.fori_loop(0, y.size, body, (jnp.cos(y[1]), jnp.zeros((), y.dtype)))


def two_sums_exactly(log_psi, weights, x):
    gradient, y = flat_gradient(log_psi, weights, x)
    return jnp.cos(y[1]) - jnp.sin(y[0]) * exact(log_psi, weights, x), (gradient(y) ** 2).sum()


@pytest.mark.slow
def test_the_squared_gradient_may_be_a_sum_of_its_own(run_raised):
    function, expected = alone(smooth, two_sums), alone(smooth, two_sums_exactly)
    result = assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected)
    assert "beside what the loop adds to it" in result.applied[0].what
    assert not find_loops(view_of(result.program.parse()))


@pytest.mark.slow
def test_a_sum_of_cubes_in_the_same_loop(run_raised):
    """Both are functions of the second derivatives, which one adjoint has."""

    def cubes(log_psi, weights, x):
        gradient, y = flat_gradient(log_psi, weights, x)
        hessian, eye = jax.linearize(gradient, y)[1], jnp.eye(y.size, dtype=y.dtype)

        def body(k, sums):
            return sums[0] + hessian(eye[k])[k], sums[1] + hessian(eye[k])[k] ** 3

        return lax.fori_loop(0, y.size, body, (jnp.zeros((), y.dtype),) * 2)

    assert_rewritten(run_raised, alone(smooth, cubes), WEIGHTS, X)


@pytest.mark.slow
def test_one_walker(run_raised):
    def of_one(method):
        return lambda weights, x: (smooth(weights, x), method(smooth, weights, x))

    assert_rewritten(run_raised, of_one(LOOPS["scan"]), WEIGHTS, X[0], expected=of_one(exact))


def log_psi(y):
    return -(jnp.sum(jnp.tanh(1.3 * y)) ** 2) / 10


LAM, XS = np.asarray(0.7), np.random.default_rng(0).standard_normal((4, 6))
COUNTED = {
    "fori": lambda count, body, start: lax.fori_loop(0, count, lambda k, s: body(s, k), start),
    "scan": lambda count, body, start: lax.scan(lambda s, k: (body(s, k), None), start, jnp.arange(count))[0],
    "while": lambda count, body, start: lax.while_loop(
        lambda c: c[0] < count, lambda c: (c[0] + 1, body(c[1], c[0])), (0, start)
    )[1],
}
STARTS = {
    "gradient": lambda lam, y, g: -0.5 * (g @ g),
    "parameter": lambda lam, y, g: lam,
    "parameter-times-gradient": lambda lam, y, g: lam * (g @ g),
    "positions": lambda lam, y, g: (y**2).sum(),
    "value": lambda lam, y, g: lam * log_psi(y) + y[0],
}


@pytest.mark.by_turns(4, "fori-positions")
@pytest.mark.parametrize(
    ("loop", "start"), [*(("fori", start) for start in STARTS), ("scan", "gradient"), ("while", "gradient")]
)
def test_a_loop_that_starts_from_another_number_than_zero_keeps_it(loop, start, run_raised):
    def energy(lam, y):
        gradient, hessian = jax.linearize(jax.grad(log_psi), y)
        first = STARTS[start](lam, y, gradient)
        return log_psi(y), COUNTED[loop](y.size, lambda s, k: s + hessian(jnp.eye(y.size)[k])[k], first)

    def by_brute_force(lam, y):
        return log_psi(y), jnp.trace(jax.hessian(log_psi)(y)) + STARTS[start](lam, y, jax.grad(log_psi)(y))

    function, expected = (jax.vmap(of_one, (None, 0)) for of_one in (energy, by_brute_force))
    result = assert_rewritten(
        run_raised, function, LAM, XS, expected=expected, passes="fuse-jvp-replay", rtol=1e-12
    )  # fmt: skip
    assert [event.pass_name for event in result.applied] == ["sparsify-directions"]


def complex_value(y):
    """Real and imaginary part of log psi."""
    return -(jnp.sum(jnp.tanh(y)) ** 2), jnp.sum(jnp.sin(y))


def complex_terms(y):
    """For each direction k the second derivatives of both parts."""
    gradients, eye = [jax.grad(lambda z, i=i: complex_value(z)[i]) for i in range(2)], jnp.eye(y.size)
    return lambda k: [jax.jvp(gradient, (y,), (eye[k],))[1][k] for gradient in gradients]


def complex_fori(added):
    def method(y):
        return lax.fori_loop(0, y.size, lambda k, total: added(total, *complex_terms(y)(k)), 1 + 2j)

    return method


def complex_stack(y):
    term = complex_terms(y)
    return 1 + 2j + lax.map(lambda k: lax.complex(*term(k)), jnp.arange(y.size)).sum()


def complex_rows(y):
    hessians = [jax.hessian(lambda z, i=i: complex_value(z)[i])(y) for i in range(2)]
    return 1 + 2j + jnp.sum(lax.complex(*hessians) * jnp.eye(y.size))


def complex_sums_of_sums(y):
    hessians = [jax.hessian(lambda z, i=i: complex_value(z)[i])(y) for i in range(2)]
    return 1 + 2j + jnp.diagonal(lax.complex(*hessians)).reshape(-1, 3).sum(-1).sum()


COMPLEX = {
    "at-once": complex_fori(lambda total, a, b: total + lax.complex(a, b)),
    "one-after-the-other": complex_fori(lambda total, a, b: total - a * -1 + 1j * b),
    "stacked": complex_stack,
    "without-loop": complex_rows,
    "in-steps": complex_sums_of_sums,
}


@pytest.mark.parametrize("form", COMPLEX)
def test_parts_of_a_complex_sum_are_laplacians(form, run_raised):
    def of_one(method):
        return lambda y: (*complex_value(y), method(y))

    def exactly(y):
        return 1 + 2j + lax.complex(*(jnp.trace(jax.hessian(lambda z, i=i: complex_value(z)[i])(y)) for i in range(2)))

    function, expected = jax.vmap(of_one(COMPLEX[form])), jax.vmap(of_one(exactly))
    result = assert_rewritten(run_raised, function, XS[:, :6], expected=expected, passes="fuse-jvp-replay", rtol=1e-12)
    assert {event.pass_name for event in result.events} == {"sparsify-directions"}
    assert len(result.events) == len(result.applied) == 1
    assert not find_replays(view_of(result.program.parse()))


def test_parts_of_a_sum_of_converted_complex_terms_are_laplacians():
    def of_one(y):
        hessians = [jax.hessian(lambda z, i=i: complex_value(z)[i])(y) for i in range(2)]
        total = jnp.sum(jnp.diagonal(lax.complex(*hessians)), dtype=np.complex128)
        return *(part.astype(np.float64) for part in complex_value(y)), total

    _, result = rewritten(lambda x: jax.vmap(of_one)(x.astype(np.float32)), XS[:, :6])
    assert len(result.applied) == 1


@pytest.mark.slow
def test_a_complex_sum_of_what_is_not_linear(run_raised):
    def of_one(y):
        return *complex_value(y), complex_fori(lambda total, a, b: total + lax.complex(jnp.abs(a), a * b))(y)

    assert_rewritten(run_raised, jax.vmap(of_one), XS[:, :3])


@pytest.mark.parametrize("start", [0.0, 0j])
def test_a_loop_without_trips_is_left_alone(start):
    def of_one(y):
        push = jax.linearize(jax.grad(log_psi), y)[1]

        def add(carried):
            k, total = carried
            return k + 1, total + push(jnp.eye(y.size)[k])[k]

        return log_psi(y), lax.while_loop(lambda carried: carried[0] < 3, add, (3, start))[1]

    _, result = rewritten(jax.vmap(of_one), XS[:, :3])
    assert [event.reason for event in result.events] == ["the loop has no trips, and adds nothing"]


def structure_factor(y):
    """A complex sum of a loop without directions."""
    return lax.fori_loop(0, 4, lambda k, total: total + jnp.sum(jnp.exp(1j * (k + 1) * y)), 0j)


OTHERS = {
    "refused": complex_fori(lambda total, a, b: total + lax.complex(jnp.abs(a), a * b)),
    "half-refused": complex_fori(lambda total, a, b: total + lax.complex(a, jnp.abs(b))),
    "without-directions": structure_factor,
}


@pytest.mark.by_turns(4, "without-directions")
@pytest.mark.parametrize("other", OTHERS)
def test_complex_loops_that_stay_are_not_split(other, run_raised):
    def of_one(y):
        value, gradient = complex_value(y)[0], jax.grad(lambda z: complex_value(z)[0])
        second = jax.linearize(gradient, y)[1]
        total = lax.fori_loop(0, y.size, lambda k, total: total + second(jnp.eye(y.size)[k])[k], 0.0)
        return value, total, OTHERS[other](y)

    result = assert_rewritten(run_raised, jax.vmap(of_one), XS[:, :3], rtol=1e-12)
    [loop] = find_loops(view_of(result.program.parse()))
    assert any(value.dtype in COMPLEX_TYPES for value in loop.node.results)


def test_logarithms_of_a_complex_determinant_are_no_sum_over_directions(run_raised):
    """As many orbitals as coordinates, and the identity added to them."""

    def log_det(y):
        u = jnp.tanh(y[:, None] * jnp.arange(1.0, 4) + y.sum())
        return jnp.linalg.slogdet(lax.complex(u, jnp.cos(u)) + jnp.eye(3))[1]

    def of_one(y):
        push = jax.linearize(jax.grad(log_det), y)[1]
        return log_det(y), lax.fori_loop(0, 3, lambda k, total: total + push(jnp.eye(3)[k])[k], 0.0)

    result = assert_rewritten(run_raised, jax.vmap(of_one), XS[:, :3], rtol=1e-9)
    assert [event.pass_name for event in result.applied] == ["sparsify-directions"]


STEPS = [pytest.param("train-step", marks=pytest.mark.slow), pytest.param("inference-step", marks=pytest.mark.full)]


@pytest.mark.parametrize("step", STEPS)
def test_the_replay_of_a_step(step):
    workload = build("ferminet", "LiH", program=step, walkers=4, size="tiny", laplacian="replay")
    program = lowering.lower(workload, "cuda")
    assert find_replays(view_of(program.parse()))
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting(platform="cuda"))
    assert any("12 trips are the Laplacian of" in event.what for event in result.applied), result.events
    assert find_replays(view_of(result.program.parse())) == []
