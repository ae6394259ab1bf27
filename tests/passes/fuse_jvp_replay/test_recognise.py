"""Every way in which codes write a Laplacian becomes a forward Laplacian, alone and inside a local energy."""

import jax
import numpy as np
import pytest

from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from ..laplacian_functions import LOOP_FREE, LOOPS, WEIGHTS, X, alone, determinants, exact, local_energy, smooth

FORMS = {**LOOPS, **LOOP_FREE}


def rewritten(function, lowered, arrays, dtype):
    arrays = jax.tree.map(lambda array: np.asarray(array, dtype), arrays)
    with jax.enable_x64(dtype == "float64"):
        program = lowered(function, *arrays, platform="cuda")
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    return result, jax.tree.leaves(arrays)


def of_hessian(log_psi, walkers):
    with jax.enable_x64(True):
        return np.array([exact(log_psi, WEIGHTS, x) for x in walkers])


@pytest.mark.parametrize("form", FORMS)
def test_every_form_alone(form, lowered, run_raised):
    result, arrays = rewritten(alone(smooth, FORMS[form]), lowered, (WEIGHTS, X), "float64")
    assert len(result.applied) == 1, result.events
    _, laplacian = run_raised(result.program, arrays)
    np.testing.assert_allclose(laplacian, of_hessian(smooth, X), rtol=1e-9)


@pytest.mark.parametrize(
    "form", ["fori", *(pytest.param(form, marks=pytest.mark.slow) for form in ("scan", "jvp-in-loop", "diagonal"))]
)
@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.slow), "float64"])
def test_inside_a_local_energy(form, dtype, lowered, run_raised):
    function = local_energy(smooth, FORMS[form])
    result, arrays = rewritten(function, lowered, (WEIGHTS, X), dtype)
    assert result.applied, result.events
    with jax.enable_x64(True):
        expected = jax.tree.leaves(function(WEIGHTS, X))
    for ours, theirs in zip(run_raised(result.program, arrays), expected, strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-9 if dtype == "float64" else 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_determinants_of_both_signs_and_other_pivots(count, lowered, run_raised):
    """Walkers with electrons exchanged, and their mirror images: signs and pivots differ from walker to walker."""
    log_psi = determinants(count)
    walkers = np.concatenate([X[:1], X[:1, ::-1], -X[:1], 3 * X[:1, [1, 0, 2]]])
    result, arrays = rewritten(alone(log_psi, FORMS["fori"]), lowered, (WEIGHTS, walkers), "float64")
    assert len(result.applied) == 1, result.events
    _, laplacian = run_raised(result.program, arrays)
    np.testing.assert_allclose(laplacian, of_hessian(log_psi, walkers), rtol=1e-8)


@pytest.mark.slow
def test_two_different_replays_in_one_module(lowered, run_raised):
    def both(weights, x):
        first = alone(smooth, FORMS["fori"])(weights, x)
        second = alone(determinants(1), FORMS["scan"])(weights, x)
        return first, second

    result, arrays = rewritten(both, lowered, (WEIGHTS, X), "float64")
    assert len(result.applied) == 2, result.events
    found = run_raised(result.program, arrays)
    for log_psi, laplacian in ((smooth, found[1]), (determinants(1), found[3])):
        np.testing.assert_allclose(laplacian, of_hessian(log_psi, X), rtol=1e-8)


def test_complex_constants_beside_it(lowered, run_raised):
    def function(weights, x):
        waves = jax.vmap(lambda y: abs(jax.numpy.exp(1j * y).sum()))(x)
        return *alone(smooth, FORMS["fori"])(weights, x), waves

    result, arrays = rewritten(function, lowered, (WEIGHTS, X), "float64")
    assert len(result.applied) == 1, result.events
    np.testing.assert_allclose(run_raised(result.program, arrays)[2], abs(np.exp(1j * X).sum((1, 2))), rtol=1e-12)


def test_the_function_may_be_called_behind_the_loop(lowered, run_raised):
    """Where every trip takes the derivatives anew, nothing of the function stands before the loop."""

    def function(weights, x):
        laplacian = jax.vmap(lambda y: FORMS["jvp-in-loop"](smooth, weights, y))(x)
        return jax.vmap(lambda y: (smooth(weights, y), jax.grad(smooth, 1)(weights, y)))(x), laplacian

    result, arrays = rewritten(function, lowered, (WEIGHTS, X), "float64")
    assert len(result.applied) == 1, result.events
    assert "whose gradient" in result.applied[0].what
    np.testing.assert_allclose(run_raised(result.program, arrays)[-1], of_hessian(smooth, X), rtol=1e-9)


def test_other_values_behind_the_loop_change_no_reason(lowered):
    def function(weights, x):
        laplacian = jax.vmap(lambda y: FORMS["jvp-in-loop"](smooth, weights, y))(x)
        return laplacian * jax.numpy.sin(x[:, 0, 0])

    result, _ = rewritten(function, lowered, (WEIGHTS, X), "float64")
    [declined] = result.events
    assert declined.reason == "no value of one number per walker is computed from the positions before the loop"
