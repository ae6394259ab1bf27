"""float32 near the ends of its range: a forward Laplacian is right wherever ``jax.jit`` of the replay is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.equivalence.oracle import xla_runner
from fusionlab.optimizing.rewriting import lower_jaxpr
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

SCALES = 10.0 ** np.arange(-18, 19)
DIRECTION = np.array([0.7, -0.4, 1.1], np.float32)
CLOSE = 1e-5


def radius(x):
    return jnp.sqrt((x**2).sum())


FUNCTIONS = {
    "distance": lambda x: -radius(x),
    "logarithm": lambda x: jnp.log(radius(x)),
    "cusp": lambda x: radius(x) / (1 + radius(x)),
    "cube-root": lambda x: jnp.cbrt((x**2).sum()),
    "inverse-cube": lambda x: (x @ DIRECTION) ** -3,
    "shifted": lambda x: jnp.sqrt(1 + (x**2).sum()),
}
SLOW = {
    "pair": lambda x: jnp.linalg.norm(x[:1] - x[1:2]) + jnp.linalg.norm(x[1:] - x[:2]),
    "inverse": lambda x: lax.rsqrt((x**2).sum()) * (1 + x[0]),
    "root-of-root": lambda x: jnp.sqrt(radius(x)),
    "times-logarithm": lambda x: radius(x) * jnp.log(radius(x)),
    "decay": lambda x: jnp.exp(-radius(x)),
    "saturated": lambda x: jnp.tanh(radius(x)),
    "inverse-square": lambda x: 1 / (x**2).sum(),
    "quotient": lambda x: x[0] / (1 + radius(x)),
    "power": lambda x: (x**2).sum() ** -1.5,
}


def energy(function):
    def of_one(x):
        gradient, push = jax.linearize(jax.grad(function), x)
        eye = jnp.eye(x.size, dtype=x.dtype)
        total = lax.fori_loop(0, x.size, lambda k, total: total + push(eye[k])[k], jnp.zeros((), x.dtype))
        return function(x), gradient, total

    return jax.vmap(of_one)


def diagonals(function, x):
    with jax.enable_x64(True):
        found = jax.jit(jax.vmap(lambda one: jnp.diagonal(jax.hessian(function)(one))))(x.astype(np.float64))
        return np.asarray(found)


@pytest.mark.parametrize(
    "function",
    [
        *(pytest.param(function, id=name) for name, function in FUNCTIONS.items()),
        *(pytest.param(function, id=name, marks=pytest.mark.slow) for name, function in SLOW.items()),
    ],
)
def test_right_where_jit_is(function):
    """An error counts by the sum of the moduli of second derivatives, of which a Laplacian is a small difference."""
    one = np.array([[0.6, -0.9, 0.4], [-0.3, 0.5, 0.8]], np.float32)
    x = np.concatenate([one * np.float32(scale) for scale in SCALES])
    original = lower_jaxpr(jax.make_jaxpr(energy(function))(x), "cpu", "range")
    found = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting(platform="cpu"))
    assert found.applied, found.events
    assert compare_exactly(original, found.program).result == "identical"
    ours, jit = (np.asarray(xla_runner(program)([x])[2], np.float64) for program in (found.program, original))
    terms = diagonals(function, x)
    scale = np.abs(terms).sum(-1) + np.finfo(np.float32).tiny / CLOSE
    off, off_jit = (np.abs(each - terms.sum(-1)) / scale for each in (ours, jit))
    right = (off_jit <= CLOSE) & (np.abs(terms).max(-1) < 3e38)
    assert right.sum() > len(x) / 3
    assert np.all(off[right] <= 3 * CLOSE), list(zip(x[right & ~(off <= 3 * CLOSE)], ours, strict=False))
