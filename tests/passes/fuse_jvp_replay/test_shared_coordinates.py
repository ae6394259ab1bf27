"""Laplacians with respect to coordinates that all walkers share: nuclei, beside those of each walker's electrons."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.passes.fuse_jvp_replay.identify import equal_inputs
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

pytestmark = pytest.mark.slow

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


@pytest.mark.by_turns(4, "kinetic-in_a_loop")
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


@pytest.mark.slow
def test_walkers_that_share_their_coordinates_are_not_taken_in_parts(lowered):
    mapped = jax.vmap(lambda r, positions: of_nuclei(in_a_loop, r, positions), (0, None))
    program = lowered(mapped, R.astype(np.float32), POSITIONS.astype(np.float32))
    result = run_pipeline(program, parse_pipeline("sparsify-directions{chunks=2}"), Setting())
    assert not result.applied
    assert any("walkers that share the coordinates cannot be taken in parts" in str(e) for e in result.events)


@pytest.mark.parametrize("walkers", [1, 2, 3, 12, 64])
def test_parameters_as_they_come_meet_all_patterns_of_equal_inputs(walkers):
    draws = equal_inputs.draws(walkers, True)
    weights = equal_inputs.coincident(1, np.ones((len(draws), 4, 4, 4)), 4, 3, True)
    positions = equal_inputs.coincident(0, _random.standard_normal((len(draws), walkers, 4, 3)), 4, 3, True)
    as_they_come = [each for own, w in zip(positions, weights, strict=True) if w.all() for each in own]
    at_one_place = [x for x in as_they_come if np.array_equal(x[-1], x[0]) and not np.array_equal(x[1], x[0])]
    assert any(x.any() for x in at_one_place)
    assert any(not x.any() for x in as_they_come)  # all at the origin
    assert any(np.array_equal(x[-1], x[0, ::-1]) for x in as_they_come)  # with coordinates exchanged
    assert sum(not w.any() for w in weights) == 1


@pytest.mark.slow
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
    assert any("walkers that share the coordinates have no adjoint of each" in str(e) for e in refused.events)
    pushed = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert pushed.applied
    np.testing.assert_allclose(run_raised(pushed.program, [R, POSITIONS])[0], truth[0], rtol=1e-9)


def larger(a, b):
    """The larger one, with the slope of ``a`` where both are equal."""
    found = jax.custom_jvp(jnp.maximum)
    found.defjvp(lambda p, t: (found(*p), jnp.where(p[0] >= p[1], *t)))
    return found(a, b)


def test_a_tie_of_two_nuclei_beside_parameters(lowered, run_raised):
    """A product of two parameters hides it in every draw in which one of them vanishes: what has it stays as it is."""

    def f(r, q, one, other):
        a = q.reshape(-1, 3) - jnp.array([1.0, 2.0, 3.0])
        tie = larger((a[0] ** 2).sum(), (a[-1] * a[0]).sum())
        return jnp.tanh(jnp.concatenate([r, q]) @ FIRST[:21]).sum() + one * other * tie

    def energy(r, q, one, other):
        return in_a_loop(lambda q: f(r, q, one, other), q), f(r, q, one, other)

    tied = np.concatenate([POSITIONS[:-3], POSITIONS[:3]])
    given = [R[:16], POSITIONS, np.float64(1.3), np.float64(2.3)]
    with jax.enable_x64(True):
        program = lowered(jax.vmap(energy, (0, None, None, None)), *given)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    for positions in (POSITIONS, tied):
        given[1] = positions
        ours, theirs = (run_raised(each, given) for each in (result.program, program))
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9)


def at_the_end(x):
    own = jnp.tanh(jnp.tanh(x @ FIRST[:12]) @ SECOND).sum(-1)
    return own - own.mean()


def in_the_body_of_a_loop(x):
    def layer(h, w):
        h = jnp.tanh(h @ w)
        return h - h.mean(0), None

    return lax.scan(layer, x @ FIRST[:12], jnp.stack([SECOND, SECOND.T]))[0].sum(-1)


@pytest.mark.parametrize("mixing", [at_the_end, in_the_body_of_a_loop])
def test_the_adjoint_of_walkers_that_mix(mixing, lowered, run_raised):
    """One reverse pass of all walkers adds up what each is to the others."""

    def energy(x):
        def add(k, total):
            direction = jnp.broadcast_to(jnp.eye(12, dtype=x.dtype)[k], x.shape)
            return total + jax.jvp(lambda y: jax.jvp(mixing, (y,), (direction,))[1], (x,), (direction,))[1]

        return lax.fori_loop(0, 12, add, jnp.zeros(len(x), x.dtype)), mixing(x)

    with jax.enable_x64(True):
        program = lowered(energy, R)
        truth = jax.jit(energy, compiler_options=CPU_OPTIONS)(R)
    refused = run_pipeline(program, parse_pipeline("transpose-replay"), Setting())
    assert not refused.applied
    assert any("walkers have no adjoint of each" in str(event) for event in refused.events), refused.events
    pushed = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert pushed.applied
    np.testing.assert_allclose(run_raised(pushed.program, [R])[0], truth[0], rtol=1e-9, atol=1e-12)


def nested_loops(x):
    """The inner loop's mean reads x only through what the outer loop carries."""

    def outer(c, w):
        def inner(state, _):
            s, acc = state
            acc = jnp.tanh(acc + s @ w)
            return (s, acc - acc.mean(0)), None

        (_, acc), _ = lax.scan(inner, (c, jnp.zeros((len(x), 16), x.dtype)), None, length=2)
        return jnp.tanh(x @ FIRST[:12] + acc), None

    return lax.scan(outer, jnp.zeros((len(x), 16), x.dtype), jnp.stack([SECOND, SECOND.T]))[0].sum(-1)


def by_a_predicate_of_all(x):
    own = jnp.tanh(x @ FIRST[:12])
    return jnp.where((x[:, 0] > 1.5).any(), own.sum(-1), jnp.sin(own).sum(-1))


def by_a_branch_of_all(x):
    own = jnp.tanh(x @ FIRST[:12])
    return lax.cond((x[:, 0] > 1.5).any(), lambda h: h.sum(-1), lambda h: jnp.sin(h).sum(-1), own)


def laplacian_of_all(function, x):
    def add(k, total):
        direction = jnp.broadcast_to(jnp.eye(12, dtype=x.dtype)[k], x.shape)
        return total + jax.jvp(lambda y: jax.jvp(function, (y,), (direction,))[1], (x,), (direction,))[1]

    return lax.fori_loop(0, 12, add, jnp.zeros(len(x), x.dtype)), function(x)


@pytest.mark.by_turns(4, "at_the_end")
@pytest.mark.parametrize("function", [at_the_end, in_the_body_of_a_loop, nested_loops, by_a_predicate_of_all,
                                      by_a_branch_of_all])  # fmt: skip
def test_walkers_that_mix_are_not_taken_in_parts(function, lowered, run_raised):
    with jax.enable_x64(True):
        program = lowered(lambda x: laplacian_of_all(function, x), R)
        truth = jax.jit(lambda x: laplacian_of_all(function, x), compiler_options=CPU_OPTIONS)(R)
    result = run_pipeline(program, parse_pipeline("sparsify-directions{chunks=4}"), Setting())
    assert not result.applied, result.events
    whole = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    np.testing.assert_allclose(run_raised(whole.program, [R])[0], truth[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("passes", ["sparsify-directions{chunks=4}", "transpose-replay"])
def test_a_loop_with_weights_and_a_number_for_all_walkers(passes, lowered, run_raised):
    """It carries its weights as they are, and a factor of its own; neither depends on the walkers."""

    def decaying(x):
        def layer(state, w):
            h, t = state
            return (jnp.tanh(h @ w) * t, t * 0.9), None

        (h, _), _ = lax.scan(layer, (x @ FIRST[:12], jnp.ones((), x.dtype)), jnp.stack([SECOND, SECOND.T]))
        return h.sum(-1)

    with jax.enable_x64(True):
        program = lowered(lambda x: laplacian_of_all(decaying, x), R)
        truth = jax.jit(lambda x: laplacian_of_all(decaying, x), compiler_options=CPU_OPTIONS)(R)
    result = run_pipeline(program, parse_pipeline(passes), Setting())
    assert result.applied, result.events
    np.testing.assert_allclose(run_raised(result.program, [R])[0], truth[0], rtol=1e-9, atol=1e-12)
