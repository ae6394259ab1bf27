"""Laplacians with respect to coordinates that all walkers share: nuclei, beside those of each walker's electrons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.passes.fuse_jvp_replay import equal_inputs
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

WALKERS, ELECTRONS, NUCLEI = 64, 4, 3
_random = np.random.default_rng(5)
R = _random.standard_normal((WALKERS, 3 * ELECTRONS))
POSITIONS = _random.standard_normal(3 * NUCLEI)
FIRST = 0.3 * _random.standard_normal((3 * ELECTRONS + 3 * NUCLEI + ELECTRONS * NUCLEI, 16))
SECOND = 0.3 * _random.standard_normal((16, 16))


def log_psi(r, positions):
    difference = r.reshape(-1, 1, 3) - positions.reshape(1, -1, 3)
    distances = jnp.sqrt((difference**2).sum(-1) + 0.1)
    features = jnp.concatenate([r.ravel(), positions.ravel(), distances.ravel()])
    return jnp.tanh(jnp.tanh(features @ FIRST) @ SECOND).sum()


def in_a_loop(f, x):
    _, push = jax.linearize(jax.grad(f), x)
    directions = jnp.eye(x.size, dtype=x.dtype)
    return lax.fori_loop(0, x.size, lambda k, total: total + push(directions[k])[k], jnp.zeros((), x.dtype))


def without_a_loop(f, x):
    return jnp.trace(jax.hessian(f)(x))


def of_nuclei(laplacian, r, positions):
    return laplacian(lambda q: log_psi(r, q), positions), log_psi(r, positions)


def kinetic(laplacian, r, positions):
    gradient = jax.grad(log_psi, 1)(r, positions)
    return -0.5 * (of_nuclei(laplacian, r, positions)[0] + (gradient**2).sum()), log_psi(r, positions)


def of_both(laplacian, r, positions):
    return laplacian(lambda q: log_psi(q, positions), r), *of_nuclei(laplacian, r, positions)


def with_masses(laplacian, r, positions):
    """The diagonal, each coordinate with a weight of its own."""
    second = jnp.diag(jax.hessian(lambda q: log_psi(r, q))(positions))
    return (second / np.arange(1, 3 * NUCLEI + 1)).sum(), log_psi(r, positions)


@pytest.mark.parametrize(
    ("function", "laplacian"),
    [
        (of_nuclei, in_a_loop), (of_nuclei, without_a_loop), (kinetic, in_a_loop), (kinetic, without_a_loop),
        (of_both, in_a_loop), (with_masses, without_a_loop),
    ],
)  # fmt: skip
def test_the_laplacian_with_respect_to_nuclei(function, laplacian, lowered, run_raised):
    mapped = jax.vmap(lambda r, positions: function(laplacian, r, positions), (0, None))
    with jax.enable_x64(True):
        program = lowered(mapped, R, POSITIONS)
        truth = jax.jit(mapped, compiler_options=CPU_OPTIONS)(R, POSITIONS)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    said = [event.what for event in result.events if isinstance(event, Applied)]
    assert any(f"respect to %1 ({3 * NUCLEI}xf64)" in what for what in said), result.events
    for ours, theirs in zip(run_raised(result.program, [R, POSITIONS]), truth, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_walkers_that_share_their_coordinates_are_not_taken_in_parts(lowered):
    mapped = jax.vmap(lambda r, positions: of_nuclei(in_a_loop, r, positions), (0, None))
    program = lowered(mapped, R.astype(np.float32), POSITIONS.astype(np.float32))
    result = run_pipeline(program, parse_pipeline("sparsify-directions{chunks=2}"), Setting())
    assert not result.applied
    assert any("walkers that share the coordinates cannot be taken in parts" in str(e) for e in result.events)


@pytest.mark.parametrize("walkers", [1, 2, 3, 12])
def test_all_patterns_of_equal_inputs_are_drawn_however_few_walkers_there_are(walkers):
    draws = equal_inputs.draws(walkers)
    array = _random.standard_normal((len(draws), walkers, 4, 3))
    drawn = equal_inputs.coincident(0, array, 4, 3).reshape(-1, 4, 3)
    assert sum(not each.any() for each in drawn) >= 1  # all at the origin
    assert any(np.array_equal(each[-1], each[0, ::-1]) for each in drawn)
    assert len(drawn) >= 12


def test_what_walkers_share_has_no_source_of_each(lowered, run_raised):
    """The second derivatives of tanh(positions) are those of all walkers; their adjoint would add the walkers up."""

    def shared_layer(r, positions):
        return log_psi(r, jnp.tanh(positions))

    def of_layer(r, positions):
        return in_a_loop(lambda q: shared_layer(r, q), positions), shared_layer(r, positions)

    mapped = jax.vmap(of_layer, (0, None))
    with jax.enable_x64(True):
        program = lowered(mapped, R, POSITIONS)
        truth = jax.jit(mapped, compiler_options=CPU_OPTIONS)(R, POSITIONS)
    refused = run_pipeline(program, parse_pipeline("transpose-replay"), Setting())
    assert not refused.applied
    assert any("has its walkers merged with another axis" in str(event) for event in refused.events), refused.events
    pushed = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert pushed.applied
    np.testing.assert_allclose(run_raised(pushed.program, [R, POSITIONS])[0], truth[0], rtol=1e-9)
