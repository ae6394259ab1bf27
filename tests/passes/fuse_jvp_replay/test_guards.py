"""Near misses: replays that differ from their value far away, rarely or in a few bits, each left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.raising import raise_program
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from ..laplacian_functions import X, fori

W = np.random.default_rng(8).standard_normal((3, 5))
MANY = np.random.default_rng(9).standard_normal((70, 3, 3))


def psi(_, y):
    return jnp.tanh(y @ W).sum() ** 2 - jnp.sqrt((y**2).sum(-1) + 0.3).sum()


def lower(function, *arrays):
    """Without what nothing reads: a value that is differentiated is not in a program that does not return it."""
    module = jax.jit(lambda *given: function(*given)).trace(*arrays).lower(lowering_platforms=("cuda",))
    return Program.from_module(module.compiler_ir("stablehlo"), name="near", provenance="test", platform="cuda")


def rewritten(function, *arrays, passes="sparsify-directions"):
    with jax.enable_x64(True):
        program = lower(function, *arrays)
    return program, run_pipeline(program, parse_pipeline(passes), Setting())


def of(changed):
    """[walkers] of log|psi|, and of the Laplacian of ``changed(psi, y, ...)``, which is nearly it."""

    def function(x, *more):
        return jax.vmap(lambda y: (psi(None, y), fori(lambda _, z: changed(z, *more), None, y)))(x)

    return function


@pytest.mark.parametrize(
    ("changed", "more", "why"),
    [
        pytest.param(
            lambda y, n: psi(None, y) + jnp.where(n > 50, 1.0, 0.0) * jnp.sin(y).sum(),
            (np.array(3, np.int32),),
            "reads the i32 argument",
            id="whole-number",
        ),
        pytest.param(
            lambda y, z: psi(None, y) + jnp.where(z == 1.0, 1.0, 0.0).sum() * jnp.sin(y).sum(),
            (np.ones(2),),
            "compares parameters as its value does not",
            id="equality-of-parameters",
        ),
        pytest.param(
            lambda y: psi(None, y) + jnp.where((y[0, 0] > 0.9) & (y[1, 1] > 0.9), 1.0, 0.0) * jnp.sin(y).sum(),
            (),
            "none has the Laplacian",
            id="two-rare-predicates-together",
        ),
        pytest.param(
            lambda y: psi(None, y) + jnp.floor(1e-3 * (y**2).sum()) * jnp.sin(y).sum(),
            (),
            "none has the Laplacian",
            id="floor",
        ),
        pytest.param(
            lambda y: psi(None, y) + (jnp.arctan(jnp.tan(0.05 * y[0, 0])) - 0.05 * y[0, 0]) * jnp.sin(y).sum(),
            (),
            "none has the Laplacian",
            id="inverse-over-a-period",
        ),
        pytest.param(
            lambda y: psi(None, y) + (jnp.log(jnp.exp(0.05j * y[0, 0])).imag - 0.05 * y[0, 0]) * jnp.sin(y).sum(),
            (),
            "none has the Laplacian",
            id="complex-logarithm",
        ),
        pytest.param(
            lambda y: psi(None, y) + 1e3 * (y[0, 0].astype(jnp.bfloat16).astype(y.dtype) - y[0, 0]) * jnp.sin(y).sum(),
            (),
            "rounds what its value does not (convert to bf16",
            id="fewer-bits",
        ),
        pytest.param(
            lambda y: psi(None, y) + jnp.where((y**2).sum() > 1e6, 1.0, 0.0) * jnp.sin(y).sum(),
            (),
            "none has the Laplacian",
            id="far-away",
        ),
    ],
)
def test_predicates_of_the_sum_alone(changed, more, why):
    _, result = rewritten(of(changed), X, *more)
    assert not result.applied
    assert any(why in event.reason for event in result.events), result.events


def test_a_flag_that_only_the_sum_reads():
    def changed(y, flag):
        return jnp.where(flag, psi(None, y), psi(None, y) + jnp.sin(y).sum())

    _, result = rewritten(of(changed), X, np.array(True))
    assert not result.applied


def test_walkers_of_two_kinds():
    """The first four are all alike, and of many walkers a few are evaluated."""
    kinds = np.repeat([1.0, 2.0], [4, 66])

    def shifted(x):
        laplacians = jax.vmap(lambda y, kind: fori(lambda _, z: kind * psi(None, z), None, y))(x, kinds)
        return jax.vmap(lambda y: psi(None, y))(x), laplacians

    _, result = rewritten(shifted, MANY)
    assert not result.applied
    assert any("tells walkers apart" in event.reason for event in result.events), result.events


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

    def function(x):
        def of_one(y):
            return singular(None, y), fori(singular, None, y), guard(jax.grad(singular, 1)(None, y))

        return jax.vmap(of_one)(x)

    program, result = rewritten(function, X)
    assert result.applied
    there = np.full_like(X, at)
    np.testing.assert_allclose(
        run_raised(result.program, [there])[2], run_raised(program, [there])[2], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(("narrow", "why"), [("bfloat16", "16 bits"), ("precision", "contracts at precision DEFAULT")])
def test_a_value_that_is_less_precise_than_its_sum(narrow, why):
    def value(precise):
        def log_psi(_, y):
            w = W.astype(jnp.bfloat16).astype(np.float32)  # exact in both
            if narrow == "bfloat16" and not precise:
                return jnp.tanh((y.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)).sum()
            return jnp.tanh(jnp.dot(y, w, precision="highest" if precise else "default")).sum()

        return log_psi

    def function(x):
        return jax.vmap(lambda y: (value(False)(None, y), fori(value(True), None, y)))(x)

    program = lower(function, X.astype(np.float32))
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert not result.applied
    assert any(why in event.reason for event in result.events), result.events


@pytest.mark.parametrize(
    "mix", [lambda v: v + 0.1 * v.sum(), lambda v: v + v[::-1], jnp.cumsum], ids=["sum", "reverse", "cumulated"]
)
def test_walkers_that_see_each_other_are_not_taken_in_parts(mix, run_raised):
    """Their values are sums over walkers with the same Laplacians."""

    def function(x):
        return mix(jax.vmap(lambda y: psi(None, y))(x)), jax.vmap(lambda y: fori(psi, None, y))(x)

    walkers = np.concatenate([X, X + 0.1])
    program, result = rewritten(function, walkers, passes="sparsify-directions{chunks=2}")
    assert not result.applied or result.applied[0].what.startswith("9 trips are the Laplacian of")
    whole = run_raised(program, [walkers])
    for ours, theirs in zip(run_raised(result.program, [walkers]), whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


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


def trips_of(term):
    def function(x):
        def of_one(y):
            hessian = jax.linearize(jax.grad(lambda z: psi(None, z.reshape(y.shape))), y.ravel())[1]
            eye = jnp.eye(y.size)
            return psi(None, y), jax.lax.fori_loop(0, y.size, lambda k, s: s + term(hessian(eye[k])[k]), 0.0)

        return jax.vmap(of_one)(x)

    return function


@pytest.mark.parametrize(
    "guarded", [jnp.nan_to_num, lambda t: jnp.where(jnp.isnan(t), 0, t), lambda t: jnp.where(t == jnp.inf, 0, t)]
)
def test_a_guard_against_nan_in_a_trip(guarded):
    _, result = rewritten(trips_of(guarded), X)
    assert not result.applied
    assert any("none has the Laplacian" in event.reason for event in result.events), result.events


WEIGHTS_FAR_AWAY = {
    "logistic": lambda r: jax.nn.sigmoid((12 - r) / 0.1),
    "gauss": lambda r: 1 + jnp.exp(-(((r - 12) / 0.1) ** 2)),
}


@pytest.mark.parametrize("name", WEIGHTS_FAR_AWAY)
def test_a_weight_that_saturates_near_by_and_is_held_constant(name):
    def weighted(weight):
        return lambda _, y: weight(WEIGHTS_FAR_AWAY[name](jnp.sqrt((y**2).sum()))) * psi(None, y)

    def function(held):
        replayed = weighted(jax.lax.stop_gradient if held else lambda w: w)
        return lambda x: jax.vmap(lambda y: (weighted(lambda w: w)(None, y), fori(replayed, None, y)))(x)

    _, result = rewritten(function(held=True), X)
    assert not result.applied
    assert any("none has the Laplacian" in event.reason for event in result.events), result.events
    assert rewritten(function(held=False), X)[1].applied


def sum_over_electrons(weight):
    def value(_, y):
        return (weight(jnp.sqrt((y**2).sum(-1))) * jnp.exp(-(y**2).sum(-1) / 400)).sum()

    return value


WEIGHTS = {
    "logistic-far-away": lambda r: jax.nn.sigmoid((1e4 - r) / 0.1),
    "fraction": lambda r: 2.0 / (1e-30 + jnp.exp(10.0 - r)),
    "tanh": lambda r: jnp.tanh((12 - r) / 0.1),
    "erf": lambda r: jax.scipy.special.erf((12 - r) / 0.1),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_weight_without_a_slope_near_by_that_is_differentiated(name):
    value = sum_over_electrons(WEIGHTS[name])
    _, result = rewritten(jax.vmap(lambda y: (value(None, y), fori(value, None, y))), X)
    assert result.applied, result.events
    at = np.random.default_rng(0).standard_normal(X.shape)
    at[0, 0] *= 12.5 / np.linalg.norm(at[0, 0])
    with jax.enable_x64(True):
        _, found = raise_program(result.program)(at)
        hessian = jax.vmap(jax.hessian(lambda y: value(None, y.reshape(X.shape[1:]))))(at.reshape(len(at), -1))
        expected = jnp.trace(hessian, axis1=1, axis2=2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
