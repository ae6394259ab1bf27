"""An optimised function is called, transformed and lowered like a jitted one, and gives its numbers."""

import copy
import functools
import os
import subprocess
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify
from jax.experimental.jet import jet

import fusionlab
from fusionlab.errors import DeadlockWarning
from tests.optimizing.functions import arguments, decision_of, energy, hoisting, kinetic, log_psi, repeated

pytestmark = pytest.mark.versions

ROOT = Path(__file__).parents[2]


def close(found, expected, rtol=1e-6, atol=0.0):
    """The same tree of arrays."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=rtol, atol=atol), found, expected)


def hoisted(function):
    assert function.fusionlab.reason == ""
    return function.fusionlab.state == "rewritten"


@pytest.fixture(scope="module")
def optimized():
    return fusionlab.optimize(energy, cache=False)


@pytest.fixture(scope="module")
def energies():
    return jax.jit(energy)(*arguments())


@pytest.mark.usefixtures("without_exact_checks")  # an exact verdict spares the variants
def test_the_energy_is_the_same_from_another_program(optimized, energies):
    close(optimized(*arguments()), energies, rtol=1e-5)
    decision = decision_of(optimized)
    assert decision.verdict.passed
    assert decision.compared_on == "the given arguments and variants of them"
    assert decision.rewritten.digest != decision.original.digest
    assert optimized.fusionlab.reason == ""
    assert repr(optimized) == "<fusionlab.optimize of energy: rewritten>"


def test_an_argument_that_is_not_used_is_not_passed_and_the_value_is_found():
    """The replay does not need the value whose Laplacian it is, which must be in the program to be found."""
    options = {"pipeline": "sparsify-directions", "cache": False, "check": "never"}
    function = fusionlab.optimize(lambda p, x, unused: kinetic(p, x), **options)
    parameters, walkers = arguments()
    close(function(parameters, walkers[0], {"unused": walkers}), kinetic(parameters, walkers[0]), rtol=1e-5)
    assert len(decision_of(function).original.inputs) == 5


def test_every_shape_is_a_program_of_its_own():
    function = hoisting(repeated)
    assert function.fusionlab.state == "not called yet"
    for shape in ((), (3,), (3,), (2, 2)):
        x = jnp.full(shape, 0.5)
        close(function(x, 1.0), repeated(x, 1.0))
    assert len(function.fusionlab.decisions) == 3


def test_it_is_a_decorator_with_the_function_s_name_and_documentation():
    @fusionlab.optimize(pipeline="licm", check="never", cache=False)
    def named(x: jax.Array) -> jax.Array:
        """Some words."""
        return repeated(x, x)

    assert (named.__name__, named.__doc__) == ("named", "Some words.")
    assert named(1.0) == jax.jit(repeated)(1.0, 1.0)
    assert named.eval_shape(1.0).shape == ()
    again = hoisting(named.__wrapped__)
    assert "sine" in named.lower(1.0).as_text() == again.lower(1.0).as_text()  # found in JAX's own cache elsewhere


def test_a_copy_is_the_function_as_of_any_function():
    function = hoisting(repeated)
    assert copy.copy(function) is function
    assert copy.deepcopy({"energy": function})["energy"] is function


@pytest.mark.slow
def test_a_typed_key_within():
    """JAX constrains its bits to a mesh without devices."""

    def step(parameters, walkers, key):
        return energy(parameters, walkers + 0.1 * jax.random.normal(key, walkers.shape))

    function = fusionlab.optimize(step, cache=False, check="never")
    parameters, walkers = arguments()
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        close(function(parameters, walkers, key), jax.jit(step)(parameters, walkers, key), rtol=1e-5)
    assert [decision.rewritten is not None for decision in function.fusionlab.decisions] == [True, True]


def test_a_method():
    class Model:
        scale = 2.0

        @functools.partial(hoisting, static_argnums=0)
        def double(self, x):
            return self.scale * repeated(x, x)

    close(Model().double(1.0), 2 * repeated(1.0, 1.0))
    assert hoisted(Model.double)


def test_pytrees_keywords_and_static_arguments():
    def function(tree, times, *, mode, shift=None):
        x = repeated(tree["x"], tree["w"][0])
        return {"sum": x * times if mode == "plain" else -x, "none": None, "shift": (shift,)}

    optimized = hoisting(function, static_argnames=("times", "mode"))
    tree = {"x": jnp.arange(3.0), "w": (jnp.ones(3), None)}
    for mode, times in (("plain", 2), ("plain", 3), ("minus", 3)):
        close(*(f(tree, times, mode=mode, shift=tree["x"]) for f in (optimized, function)))
    assert hoisted(optimized)


def test_donated_arguments_are_gone_and_were_compared_before():
    function = hoisting(repeated, check="always", donate_argnums=0)
    w = jnp.full(64, 0.5)
    for _ in range(2):
        x = jnp.ones(64)
        close(function(x, w), repeated(np.ones(64), w))
        assert x.is_deleted()
    assert function.fusionlab.decisions[0].verdict.passed


def test_under_vmap_the_batched_function_is_rewritten(energies):
    function = fusionlab.optimize(kinetic, cache=False, check="never")
    close(jax.vmap(function, (None, 0))(*arguments()), energies, rtol=1e-5)
    assert "4x2x3xf32" in map(str, decision_of(function).original.inputs)


@pytest.mark.slow
def test_inside_a_jit_the_numbers_are_drawn(energies):
    function = fusionlab.optimize(energy, cache=False)
    mean = jax.jit(lambda *given: 2 * function(*given).mean())(*arguments())
    close(mean, 2 * energies.mean(), rtol=1e-5)
    decision = decision_of(function)
    assert (decision.compared_on, decision.verdict.passed) == ("drawn arguments", True)


@pytest.mark.slow
def test_derivatives_are_the_original_s_and_nothing_is_rewritten_for_them():
    function = fusionlab.optimize(kinetic, cache=False)
    parameters, walkers = arguments()
    close(*(jax.jit(jax.grad(f))(parameters, walkers[0]) for f in (function, kinetic)), rtol=1e-5, atol=1e-5)
    assert function.fusionlab.decisions == ()


@pytest.mark.slow
def test_a_training_step_differentiates_log_psi_and_runs_the_rewritten_energy(optimized):
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
    close(value, expected, rtol=1e-5)
    close(gradient, of_original, rtol=1e-3, atol=1e-4)
    assert optimized.fusionlab.state == "rewritten"


def half(x):
    return repeated(x, 0.5)


def shifted(key, count, x):
    return repeated(x + jax.random.normal(key, x.shape), x), count + 1


@jax.custom_jvp
def clipped(x):
    return x


clipped.defjvp(lambda primals, tangents: (primals[0], 7.0 * tangents[0]))


def clipped_loop(x, w):
    return clipped(repeated(x, w))


def product(x, w):
    return jnp.sin(x) * jnp.tanh(w), x


def run_without_jit(function):
    with jax.disable_jit():
        return function(0.5)


def run_checked(function):
    error, value = jax.jit(checkify.checkify(function))(1.0, 0.5)
    assert error.get() is None
    return value


RAYS = jnp.arange(3.0)
SERIES = (0.3, 0.5), ((1.0, 0.5, 0.1), (0.0, 2.0, 0.0))
USES = {
    "random keys and integers": (shifted, lambda f: f(jax.random.key(3), jnp.int32(4), jnp.ones(5))),
    "a key that is not used": (lambda key, x: repeated(x, x), lambda f: f(jax.random.key(0, impl="threefry2x32"), 0.5)),
    "an rbg key that is not used": (lambda key, x: repeated(x, x), lambda f: f(jax.random.key(0, impl="rbg"), 0.5)),
    "a call in another that is optimised": (
        repeated,
        lambda f: hoisting(lambda x, w: f(x, w) + repeated(x, w))(1.0, 0.5),
    ),
    "a checkify that asks for nothing in it": (repeated, run_checked),
    "a loop without jit": (half, run_without_jit),
    "a transposed function": (half, lambda f: jax.linear_transpose(f, RAYS)(RAYS)),
    "a transposed function in jit": (half, lambda f: jax.linear_transpose(jax.jit(f), RAYS)(RAYS)),
    "a transposed function in vmap": (half, lambda f: jax.linear_transpose(jax.vmap(f), RAYS)(RAYS)),
    "a slope by a rule of its own": (clipped_loop, lambda f: jax.grad(f)(1.0, 0.5)),
    "a push by a rule of its own": (clipped_loop, lambda f: jax.jvp(f, (1.0, 0.5), (1.0, 0.0))),
    "a Hessian by a rule of its own": (clipped_loop, lambda f: jax.hessian(f)(1.0, 0.5)),
    "a Taylor series": (product, lambda f: jax.tree.leaves(jet(f, *SERIES))),
    "a Taylor series in jit": (product, lambda f: jax.tree.leaves(jax.jit(lambda *x: jet(f, *x))(*SERIES))),
}
REWRITTEN = list(USES)[:5]


@pytest.mark.parametrize("name", USES)
def test_it_is_used_as_the_original(name):
    original, use = USES[name]
    function = hoisting(original, check="once" if original is shifted else "never")
    close(use(function), use(original), atol=1e-6)
    assert name not in REWRITTEN or hoisted(function)


def test_what_it_closes_over_may_be_traced():
    def outer(w, x):
        return hoisting(lambda x: repeated(x, w))(x)

    w, x = jnp.arange(3.0), jnp.ones(3)
    close(jax.jit(outer)(w, x), repeated(x, w))
    close(*(jax.grad(lambda w, f=f: f(w, x).sum())(w) for f in (outer, lambda w, x: repeated(x, w))))


def logarithm(x, w):
    return jnp.log(repeated(x, w))


def test_checkify_s_checks_are_made_inside():
    function = hoisting(logarithm)
    for around in (lambda f: f, jax.jit):
        checked = around(checkify.checkify(function, errors=checkify.float_checks))
        error, _ = checked(-1.0, 0.5)
        assert "nan generated by primitive: log" in error.get()
        error, value = checked(1.0, 0.5)
        assert error.get() is None
        close(value, logarithm(1.0, 0.5))


@pytest.mark.slow
@pytest.mark.newest
def test_several_devices():
    script = ROOT / "tests" / "optimizing" / "several_devices.py"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=4", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_deadlocks_are_warned_of_where_the_pool_has_threads(monkeypatch):
    """Two batched triangular solves at once; one matrix needs no pool, and one thread cannot wait for itself."""
    matrices = jnp.broadcast_to(jnp.eye(3), (4, 3, 3))

    def local_energy(x):
        def twice(y):
            return jnp.linalg.solve(matrices * y[:, None, None] + matrices, jnp.ones((4, 3, 1)))[..., 0]

        return lax.fori_loop(0, 3, lambda k, total: total + twice(x) * (x * x).sum() + k, jnp.zeros((4, 3)))

    monkeypatch.setenv("NPROC", "2")
    with pytest.warns(DeadlockWarning, match="NPROC=1"):
        fusionlab.optimize(local_energy, "licm", cache=False, check="never")(jnp.ones(4))
    monkeypatch.setenv("NPROC", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fusionlab.optimize(local_energy, "licm", cache=False, check="never")(jnp.ones(4))


@pytest.mark.usefixtures("exact_checks")
def test_a_complex_energy_of_many_walkers():
    """Its constants are complex, and it is compared at fewer walkers than it has."""

    def complex_kinetic(w, x):
        parts = (lambda x: jnp.log(jnp.cosh(x @ w)).sum(), lambda x: jnp.sin(x @ w).sum())
        (g, hg), (p, hp) = (jax.linearize(jax.grad(part), x) for part in parts)
        eye = jnp.eye(x.size)
        lap = lax.fori_loop(0, x.size, lambda k, s: s + hg(eye[k])[k] + 1j * hp(eye[k])[k], 0j)
        return -0.5 * (lap + jnp.sum(g**2) - jnp.sum(p**2) + 2j * jnp.sum(g * p))

    w, x = (jax.random.normal(jax.random.key(seed), shape) for seed, shape in ((0, (4, 3)), (1, (20, 4))))
    energies = jax.vmap(complex_kinetic, (None, 0))
    found = fusionlab.optimize(energies, cache=False)
    close(found(w, x), energies(w, x), 1e-4, 1e-4)
    assert decision_of(found).verdict.line.startswith("identical")
