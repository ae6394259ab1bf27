"""Settings of JAX and NumPy that a user makes for his own code: what is rewritten is not affected by them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import NotOptimizedWarning
from tests.optimizing.functions import decision_of

STRICT = {
    "numpy_rank_promotion": "raise",
    "numpy_dtype_promotion": "strict",
    "debug_nans": True,
    "debug_infs": True,
    "enable_checks": True,
    "check_tracer_leaks": True,
    "debug_key_reuse": True,
    "transfer_guard": "disallow",
    "legacy_prng_key": "error",
}
"""Each makes JAX refuse something that it does by default."""
OF_PROGRAMS = {
    "default_matmul_precision": "tensorfloat32",
    "enable_x64": True,
    "threefry_partitionable": False,
    "softmax_custom_jvp": True,
    "traceback_filtering": "off",
    "use_direct_linearize": False,
}
"""These have another meaning, or another program."""
WARNING = {"numpy_rank_promotion": "warn"}
"""Warnings are errors in tests."""
TOGETHER = {"strict": STRICT, "of programs": OF_PROGRAMS, "warnings": WARNING}
ONE_BY_ONE = {name: {name: value} for name, value in (STRICT | OF_PROGRAMS).items()}
X = np.linspace(0.2, 1.4, 12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def settings(request):
    """The settings for all threads, as ``jax.config.update`` and NumPy's ``seterr`` make them; then as before."""
    before = {}
    with np.errstate(all="raise"):
        for name, value in request.param.items():
            key = "jax_" + name
            before[key] = getattr(jax.config, key)
            jax.config.update(key, value)
        yield request.param
    for key, value in before.items():
        jax.config.update(key, value)


def log_psi(x):
    """Its forward Laplacian promotes ranks; it is NaN at negative coordinates, which random inputs have."""
    return jnp.sum(jnp.log(x))


def energy(x):
    gradient = jax.grad(log_psi)
    unit, zero = jnp.eye(x.size, dtype=x.dtype), jnp.zeros((), x.dtype)
    return jax.lax.fori_loop(0, x.size, lambda k, total: total + jax.jvp(gradient, (x,), (unit[k],))[1][k], zero)


def require_rewritten(optimized, call):
    found = jax.device_get(call(jax.device_put(X)))
    np.testing.assert_allclose(found, -(1 / X**2).sum(1), 1e-5)
    decision = decision_of(optimized)
    assert (decision.verdict.passed, decision.failed) == (True, False)


def optimized(**how):
    function = fusionlab.optimize(jax.vmap(energy), cache=False, **how)
    return function, function


def laplacian(**how):
    function = fusionlab.laplacian(log_psi, cache=False, **how)
    return function, lambda x: jax.vmap(function)(x)[0]


def laplacian_of_trees(**how):
    """Of several arguments of different dtypes, with weights, and a tree of values."""

    def values(a, others):
        half = (log_psi(a) + log_psi(others["b"])) / 2
        square = jnp.sum(others["low"].astype(jnp.float32) ** 2)
        return {"rows": jnp.stack([half / 4, half * 3 / 4 + square])}

    weights = [np.full(2, 2.0), {"b": 2, "low": 4.0}]
    function = fusionlab.laplacian(values, weights, argnums=(0, 1), cache=False, **how)

    def totals(_):
        x = X[:, :2], {"b": X[:, 2:], "low": X[:, :1].astype(jnp.bfloat16)}
        total, gradient = jax.device_get(jax.vmap(function)(*jax.device_put(x)))
        assert {leaf.dtype.name for leaf in jax.tree.leaves(gradient["rows"])} == {"float32"}
        return total["rows"].sum(1) - 8  # of the square

    return function, totals


@pytest.mark.by_turns(1, "optimized", "laplacian")
@pytest.mark.parametrize("made", [optimized, laplacian, laplacian_of_trees])
@pytest.mark.parametrize("settings", TOGETHER.values(), ids=TOGETHER, indirect=True)
def test_functions_are_rewritten_under_a_users_settings(settings, made):
    require_rewritten(*made(exact_s=0))
    for name in settings.keys() - {"transfer_guard"}:  # whose value JAX does not return
        assert getattr(jax.config, "jax_" + name) == settings[name]


@pytest.mark.slow
@pytest.mark.parametrize("made", [optimized, laplacian, laplacian_of_trees])
@pytest.mark.parametrize("settings", ONE_BY_ONE.values(), ids=ONE_BY_ONE, indirect=True)
def test_functions_are_rewritten_under_each_setting(settings, made):
    require_rewritten(*made())


@pytest.mark.parametrize("settings", [{"debug_nans": True}], indirect=True)
def test_the_users_own_nan_is_told_as_jit_tells_it(settings):
    def norm(x):
        return jnp.sqrt(jnp.sum(x**2))  # NaN at the origin

    with pytest.raises(FloatingPointError):
        jax.jit(jax.vmap(jax.grad(norm)))(jnp.zeros((4, 3)))
    with pytest.warns(NotOptimizedWarning, match="there is no replay"), pytest.raises(FloatingPointError):
        fusionlab.optimize(jax.vmap(jax.grad(norm)), cache=False, exact_s=0)(jnp.zeros((4, 3)))


@pytest.mark.parametrize("settings", [{"disable_jit": True}], indirect=True)
def test_without_jit_the_function_itself_runs(settings):
    np.testing.assert_allclose(optimized(exact_s=0)[1](X), -(1 / X**2).sum(1), 1e-5)


@pytest.mark.filterwarnings("ignore::fusionlab.errors.FallbackWarning")
@pytest.mark.parametrize("settings", [STRICT], ids=["strict"], indirect=True)
def test_weights_of_a_function_that_is_called_by_itself(settings):
    """What is computed around its program is not the user's either: trees, of several dtypes, and arrays of values."""

    def values(x):
        square = jnp.sum(x["r"] ** 2)
        both = square + jnp.sum(x["s"].astype(jnp.float32) ** 2)
        return both.astype(jnp.bfloat16), jax.lax.complex(both, both), jnp.stack([square, both])

    weights = {"r": [1.0, 2.0, 3.0], "s": 4}
    laplacian = fusionlab.laplacian(values, weights, cache=False, check="never", exact_s=0)
    dtypes = [jnp.bfloat16, jnp.complex64, jnp.float32]
    x = {"r": X[0], "s": X[1].astype(jnp.bfloat16)}
    total, gradient = jax.device_get(laplacian(jax.device_put(x)))
    assert [leaf.dtype for leaf in total] == dtypes
    for of_value, found, wanted in zip(gradient, total, (36, 36, [12, 36]), strict=True):
        np.testing.assert_allclose(found.astype(complex).real, wanted, 1e-2)
        for name, leaf in of_value.items():
            assert leaf.dtype == found.dtype
            np.testing.assert_allclose(leaf.astype(complex).real.reshape(-1, 3)[-1], 2 * x[name].astype(float), 1e-2)
