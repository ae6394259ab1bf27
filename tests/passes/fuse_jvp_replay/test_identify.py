"""Right programs that a comparison in floating point, or an argument about branches, refused; all are rewritten."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from ..laplacian_functions import WEIGHTS, X, exact, features, fori, jvp_in_loop, local_energy, smooth
from .test_guards import lower


def normalised(h):
    """A variance that a rounding could make negative is clamped at zero."""
    mean = h.mean(-1, keepdims=True)
    variance = jnp.maximum((h**2).mean(-1, keepdims=True) - mean**2, 0.0)
    return (h - mean) / jnp.sqrt(variance + 1e-5)


def attention(weights, x, normalise):
    """Two heads of two features, in three dimensions."""
    h = features(weights, x)
    z = normalise(h).reshape(-1, 2, 2)
    scores = jax.nn.softmax(jnp.einsum("nhd,mhd->hnm", z, z), -1)
    return jnp.log(1 + ((h + jnp.einsum("hnm,mhd->nhd", scores, z).reshape(h.shape)) ** 2).sum())


FUNCTIONS = {
    "clamped-variance": (lambda w, x: attention(w, x, normalised), fori),
    "attention-in-a-loop-of-jvp": (lambda w, x: attention(w, x, lambda h: h), jvp_in_loop),
    "softplus-in-a-loop-of-jvp": (lambda w, x: jax.nn.softplus(features(w, x)).sum(), jvp_in_loop),
    "relu-in-a-loop-of-jvp": (lambda w, x: jax.nn.relu(features(w, x)).sum() ** 2, jvp_in_loop),
    "relu6": (lambda w, x: (jax.nn.relu6(3 * x).sum(-1) ** 2).sum(), fori),
    "sorted-distances": (lambda w, x: jnp.tanh(jnp.sort((x**2).sum(-1)) @ jnp.arange(1.0, 4.0)), fori),
}
QUICK = ("relu-in-a-loop-of-jvp", "sorted-distances")


def assert_rewritten(function, run_raised, expected):
    with jax.enable_x64(True):
        program = lower(lambda x: function(WEIGHTS, x), X)
        truth = jax.tree.leaves(expected(WEIGHTS, X))
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert result.applied, result.events
    for ours, theirs in zip(run_raised(result.program, [X]), truth, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FUNCTIONS]
)
def test_a_right_program_is_rewritten(name, run_raised):
    log_psi, method = FUNCTIONS[name]
    assert_rewritten(local_energy(log_psi, method), run_raised, local_energy(log_psi, exact))


@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_a_loop_of_tangents_and_squared_primals(factor, run_raised):
    def of_one(weights, x):
        y, gradient = x.reshape(-1), jax.grad(lambda y: smooth(weights, y.reshape(x.shape)))
        directions = jnp.eye(y.size)

        def trip(k, total):
            primal, tangent = jax.jvp(gradient, (y,), (directions[k],))
            return total + factor * (primal[k] ** 2 + tangent[k])

        return smooth(weights, x), lax.fori_loop(0, y.size, trip, 0.0)

    def truth(weights, x):
        squares = (jax.grad(smooth, 1)(weights, x) ** 2).sum()
        return smooth(weights, x), factor * (exact(smooth, weights, x) + squares)

    assert_rewritten(jax.vmap(of_one, (None, 0)), run_raised, jax.vmap(truth, (None, 0)))
