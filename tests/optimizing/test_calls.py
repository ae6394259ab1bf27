"""An optimised function is called, transformed and lowered like a jitted one, and gives its numbers."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from tests.optimizing.networks import arguments, energy, kinetic, log_psi, repeated

HOIST = {"pipeline": "licm", "check": "never", "cache": False}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def optimized():
    return fusionlab.optimize(energy, cache=False)


def test_an_argument_that_is_not_used_is_not_passed_and_the_value_is_found():
    """The replay does not need the value whose Laplacian it is, which must be in the program to be found."""
    options = {"pipeline": "sparsify-directions", "cache": False, "check": "never"}
    function = fusionlab.optimize(lambda p, x, unused: kinetic(p, x), **options)
    parameters, walkers = arguments()
    expected = kinetic(parameters, walkers[0])
    np.testing.assert_allclose(function(parameters, walkers[0], {"unused": walkers}), expected, rtol=1e-5)
    (decision,) = function.fusionlab.decisions
    assert decision.rewritten is not None, decision.reason
    assert len(decision.original.inputs) == 5


@pytest.fixture(scope="module")
def energies():
    return jax.jit(energy)(*arguments())


def hoisted(function):
    return not function.fusionlab.reason and function.fusionlab.state == "rewritten"


def test_the_energy_is_the_same_from_another_program(optimized, energies):
    given = arguments()
    np.testing.assert_allclose(optimized(*given), energies, rtol=1e-5)
    (decision,) = optimized.fusionlab.decisions
    assert decision.verdict.passed
    assert decision.compared_on == "the given arguments and variants of them"
    assert decision.rewritten.digest != decision.original.digest
    assert optimized.fusionlab.reason == ""
    assert repr(optimized) == "<fusionlab.optimize of energy: rewritten>"


def test_every_shape_is_a_program_of_its_own():
    function = fusionlab.optimize(repeated, **HOIST)
    assert function.fusionlab.state == "not called yet"
    for shape in ((), (3,), (3,), (2, 2)):
        x = jnp.full(shape, 0.5)
        np.testing.assert_allclose(function(x, 1.0), repeated(x, 1.0), rtol=1e-6)
    assert len(function.fusionlab.decisions) == 3


def test_it_is_a_decorator_with_the_function_s_name_and_documentation():
    @fusionlab.optimize(**HOIST)
    def named(x: jax.Array) -> jax.Array:
        """Some words."""
        return repeated(x, x)

    assert (named.__name__, named.__doc__) == ("named", "Some words.")
    assert named(1.0) == jax.jit(repeated)(1.0, 1.0)
    assert named.eval_shape(1.0).shape == ()
    assert "sine" in named.lower(1.0).as_text()


def test_a_method():
    class Model:
        scale = 2.0

        @functools.partial(fusionlab.optimize, static_argnums=0, **HOIST)
        def double(self, x):
            return self.scale * repeated(x, x)

    np.testing.assert_allclose(Model().double(1.0), 2 * repeated(1.0, 1.0), rtol=1e-6)
    assert hoisted(Model.double)


def test_pytrees_keywords_and_static_arguments():
    def function(tree, times, *, mode, shift=None):
        x = repeated(tree["x"], tree["w"][0])
        return {"sum": x * times if mode == "plain" else -x, "none": None, "shift": (shift,)}

    function_ = fusionlab.optimize(function, static_argnames=("times", "mode"), **HOIST)
    tree = {"x": jnp.arange(3.0), "w": (jnp.ones(3), None)}
    for mode, times in (("plain", 2), ("plain", 3), ("minus", 3)):
        given, expected = (f(tree, times, mode=mode, shift=tree["x"]) for f in (function_, function))
        assert jax.tree.structure(given) == jax.tree.structure(expected)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), given, expected)
    assert hoisted(function_)


def test_donated_arguments_are_gone_and_were_compared_before():
    function = fusionlab.optimize(repeated, pipeline="licm", cache=False, donate_argnums=0, check="always")
    w = jnp.full(64, 0.5)
    for _ in range(2):
        x = jnp.ones(64)
        np.testing.assert_allclose(function(x, w), repeated(np.ones(64), w), rtol=1e-6)
        assert x.is_deleted()
    assert function.fusionlab.decisions[0].verdict.passed


def test_under_vmap_the_batched_function_is_rewritten(energies):
    function = fusionlab.optimize(kinetic, cache=False, check="never")
    np.testing.assert_allclose(jax.vmap(function, (None, 0))(*arguments()), energies, rtol=1e-5)
    (decision,) = function.fusionlab.decisions
    assert "4x2x3xf32" in map(str, decision.original.inputs)


def test_inside_a_jit_the_numbers_are_drawn(energies):
    function = fusionlab.optimize(energy, cache=False)
    mean = jax.jit(lambda *given: 2 * function(*given).mean())(*arguments())
    np.testing.assert_allclose(mean, 2 * energies.mean(), rtol=1e-5)
    (decision,) = function.fusionlab.decisions
    assert (decision.compared_on, decision.verdict.passed) == ("drawn arguments", True)


def test_what_it_closes_over_may_be_traced():
    def outer(w, x):
        return fusionlab.optimize(lambda x: repeated(x, w), **HOIST)(x)

    w, x = jnp.arange(3.0), jnp.ones(3)
    np.testing.assert_allclose(jax.jit(outer)(w, x), repeated(x, w), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda w: outer(w, x).sum())(w), jax.grad(lambda w: repeated(x, w).sum())(w))


def test_derivatives_are_the_original_s_and_nothing_is_rewritten_for_them():
    function = fusionlab.optimize(kinetic, cache=False)
    parameters, walkers = arguments()
    gradients = [jax.jit(jax.grad(f))(parameters, walkers[0]) for f in (function, kinetic)]
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), *gradients)
    assert function.fusionlab.decisions == ()


def test_derivative_rules_of_the_original_are_kept():
    @jax.custom_jvp
    def clipped(x):
        return x

    clipped.defjvp(lambda primals, tangents: (primals[0], 7.0 * tangents[0]))
    function = fusionlab.optimize(lambda x, w: clipped(repeated(x, w)), **HOIST)
    expected = 7.0 * jax.grad(repeated)(1.0, 0.5)
    np.testing.assert_allclose(jax.grad(function)(1.0, 0.5), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.jvp(function, (1.0, 0.5), (1.0, 0.0))[1], expected, rtol=1e-6)
    np.testing.assert_allclose(jax.hessian(function)(1.0, 0.5), 7.0 * jax.hessian(repeated)(1.0, 0.5), atol=1e-6)


def test_a_training_step_differentiates_log_psi_and_runs_the_rewritten_energy(optimized, energies):
    """The form of every variational Monte Carlo code: the energy is a weight, and log|psi| is differentiated."""
    given = arguments()

    def step(energy_of):
        @jax.custom_jvp
        def loss(parameters, walkers):
            return energy_of(parameters, walkers).mean()

        @loss.defjvp
        def _(primals, tangents):
            local = energy_of(*primals)
            psi = jax.vmap(lambda p, r: log_psi(p, r.reshape(-1)), (None, 0))
            _, moved = jax.jvp(psi, primals, tangents)
            return local.mean(), (2 * (local - local.mean()) * moved).mean()

        return jax.jit(jax.value_and_grad(loss))

    (value, gradient), (expected, of_original) = step(optimized)(*given), step(energy)(*given)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4), gradient, of_original)
    assert optimized.fusionlab.state == "rewritten"


def test_random_keys_and_integers_are_arguments():
    def function(key, count, x):
        return repeated(x + jax.random.normal(key, x.shape), x), count + 1

    given = jax.random.key(3), jnp.int32(4), jnp.ones(5)
    optimized = fusionlab.optimize(function, pipeline="licm", cache=False)
    values, count = optimized(*given)
    np.testing.assert_allclose(values, function(*given)[0], rtol=1e-6)
    assert count == 5
    assert hoisted(optimized), optimized.fusionlab.reason


def test_a_whole_step_can_be_optimised_and_calls_may_be_nested():
    inner = fusionlab.optimize(repeated, **HOIST)
    outer = fusionlab.optimize(lambda x, w: inner(x, w) + repeated(x, w), **HOIST)
    np.testing.assert_allclose(outer(1.0, 0.5), 2 * repeated(1.0, 0.5), rtol=1e-6)
    assert hoisted(outer), outer.fusionlab.reason


def test_disabled_jit_runs_the_function():
    with jax.disable_jit():
        np.testing.assert_allclose(fusionlab.optimize(repeated, **HOIST)(1.0, 0.5), repeated(1.0, 0.5), rtol=1e-6)


@pytest.mark.slow
def test_several_devices():
    script = ROOT / "tests" / "optimizing" / "several_devices.py"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_a_random_key_that_is_not_used(implementation):
    function = fusionlab.optimize(lambda key, x: repeated(x, x), **HOIST)
    key = jax.random.key(0, impl=implementation)
    np.testing.assert_allclose(function(key, 0.5), repeated(0.5, 0.5), rtol=1e-6)
    assert hoisted(function), function.fusionlab.reason


def test_a_linear_function_is_transposed():
    function = fusionlab.optimize(lambda x: repeated(x, 0.5), **HOIST)
    for around in (lambda f: f, jax.jit, jax.vmap):
        given, expected = (
            jax.linear_transpose(around(f), jnp.ones(3))(jnp.arange(3.0)) for f in (function, repeated_half)
        )
        np.testing.assert_allclose(given[0], expected[0], rtol=1e-6)


def repeated_half(x):
    return repeated(x, 0.5)
