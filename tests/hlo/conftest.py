"""Programs that several tests of ``hlo`` read: small ones written here, and the narrow PauliNet."""

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.workloads import catalogue


def as_program(function, *arguments, platform="cpu", name="small"):
    lowered = jax.jit(function, keep_unused=True).trace(*arguments).lower(lowering_platforms=(platform,))
    return Program.from_module(lowered.compiler_ir("stablehlo"), name=name, provenance="test")


def log_psi(weights, x):
    """Three stages of a scalar function of ``x`` (``[n]``)."""
    with jax.named_scope("stage_a"):
        features = jnp.concatenate([x, x**2])
    with jax.named_scope("stage_b"):
        hidden = jnp.tanh(weights @ features)
    with jax.named_scope("stage_c"):
        return jnp.log(1.0 + (hidden * jnp.exp(-hidden)).sum() ** 2)


def laplacian_by(method, n=6):
    """``(weights [5, 2n], walkers [4, n]) -> [4]`` with the Laplacian's loop in the form ``method``."""

    def of_one(weights, x):
        gradient = jax.grad(lambda y: log_psi(weights, y))
        eye = jnp.eye(n, dtype=x.dtype)
        with jax.named_scope("stage_e"):
            if method == "jvp-in-loop":
                return jax.lax.fori_loop(0, n, lambda k, s: s + jax.jvp(gradient, (x,), (eye[k],))[1][k], 0.0)
            _, hessian = jax.linearize(gradient, x)
            if method == "scan":
                return jax.lax.scan(lambda k, _: (k + 1, hessian(eye[k])[k]), 0, length=n)[1].sum()
            if method == "one-hot":
                return jax.lax.fori_loop(0, n, lambda k, s: s + hessian(jax.nn.one_hot(k, n, dtype=x.dtype))[k], 0.0)
            if method == "random":
                probes = jnp.sin(jnp.arange(n * n, dtype=x.dtype)).reshape(n, n)
                return jax.lax.fori_loop(0, n, lambda k, s: s + probes[k] @ hessian(probes[k]), 0.0)
            return jax.lax.fori_loop(0, n, lambda k, s: s + hessian(eye[k])[k], 0.0)

    return jax.vmap(of_one, (None, 0))


def laplacian_program(method="replay", n=6, platform="cpu"):
    return as_program(laplacian_by(method, n), jnp.ones((5, 2 * n)), jnp.ones((4, n)), platform=platform)


@pytest.fixture(scope="session")
def replay_program():
    return laplacian_program()


@pytest.fixture(scope="session")
def paulinet():
    """The narrow PauliNet's local energy on LiH, 5 walkers, lowered for the CPU (its LUs bring loops of their own)."""
    return lower(catalogue.build("paulinet", "LiH", walkers=5, size="tiny"), "cpu")
