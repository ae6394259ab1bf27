"""A loop that starts from another number than zero keeps it, whatever the start is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import fusionlab
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .laplacian_functions import lower

XS = np.random.default_rng(0).standard_normal((4, 6))


def log_psi(y):
    return -(jnp.sum(jnp.tanh(1.3 * y)) ** 2) / 10


def counted(count, body, start):
    return lax.fori_loop(0, count, lambda k, s: body(s, k), start)


def scanned(count, body, start):
    return lax.scan(lambda s, k: (body(s, k), None), start, jnp.arange(count))[0]


def with_while(count, body, start):
    return lax.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, body(c[1], c[0])), (0, start))[1]


LOOPS = {"fori": counted, "scan": scanned, "while": with_while}
STARTS = {
    "gradient": lambda lam, y, g: -0.5 * (g @ g),
    "parameter": lambda lam, y, g: lam,
    "parameter-times-gradient": lambda lam, y, g: lam * (g @ g),
    "positions": lambda lam, y, g: (y**2).sum(),
    "value": lambda lam, y, g: lam * log_psi(y) + y[0],
}


def energies(loop, start):
    def of_one(lam, y):
        gradient, hessian = jax.linearize(jax.grad(log_psi), y)
        eye = jnp.eye(y.size)
        return log_psi(y), loop(y.size, lambda s, k: s + hessian(eye[k])[k], start(lam, y, gradient))

    return jax.vmap(of_one, (None, 0))


def by_brute_force(start):
    def of_one(lam, y):
        return jnp.trace(jax.hessian(log_psi)(y)) + start(lam, y, jax.grad(log_psi)(y))

    return jax.vmap(of_one, (None, 0))


@pytest.mark.parametrize(
    ("loop", "start"), [*(("fori", start) for start in STARTS), ("scan", "gradient"), ("while", "gradient")]
)
def test_a_start_is_kept(loop, start, run_raised):
    with jax.enable_x64(True):
        program = lower(energies(LOOPS[loop], STARTS[start]), 0.7, XS)
        expected = by_brute_force(STARTS[start])(0.7, XS)
    result = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    assert [event.pass_name for event in result.applied] == ["sparsify-directions"], result.events
    given = [np.asarray(0.7), XS][-len(program.inputs) :]  # lam is dropped where nothing reads it
    _, found = run_raised(result.program, given)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_start_that_is_zero_at_the_first_call_is_kept_at_the_second(tmp_path):
    start = STARTS["parameter-times-gradient"]
    with jax.enable_x64(True):
        for _ in range(2):  # the second time from disk
            function = fusionlab.optimize(energies(counted, start), cache=tmp_path)
            for lam in (0.0, 1.0):
                np.testing.assert_allclose(function(lam, XS)[1], by_brute_force(start)(lam, XS), rtol=1e-12)
            [decision] = function.fusionlab.decisions
            assert decision.rewritten is not None, decision.reason
    assert decision.remembered
