"""A complex log|psi| whose Laplacian is one complex loop: no traceback, and the right numbers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .laplacian_functions import lower


def laplacians(x):
    def log_psi(y):
        return -(jnp.sum(jnp.tanh(y)) ** 2) + 1j * jnp.sum(jnp.sin(y))

    def of_one(y):
        eye = jnp.eye(y.size)

        def trip(k, s):
            along = [
                jax.jvp(jax.grad(lambda z, part=part: part(log_psi(z))), (y,), (eye[k],))[1][k]
                for part in (jnp.real, jnp.imag)
            ]
            return s + lax.complex(*along)

        return lax.fori_loop(0, y.size, trip, 0j)

    return jax.vmap(of_one)(x)


def test_a_complex_sum_is_no_fault(run_raised):
    xs = np.random.default_rng(0).standard_normal((3, 3))
    with jax.enable_x64(True):
        program, expected = lower(laplacians, xs), laplacians(xs)
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    assert {getattr(event, "kind", "applied") for event in result.events} <= {"applied", "unsafe", "unsupported"}
    np.testing.assert_allclose(run_raised(result.program, [xs])[0], expected, rtol=1e-12)
