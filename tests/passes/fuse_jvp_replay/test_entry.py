"""The passes that put a Laplacian in a replay's place, on small functions of walkers: the same numbers, or a reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Declined, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

B, N = 3, 4
_random = np.random.default_rng(23)
X = _random.standard_normal((B, N, 3))
W = 0.5 * _random.standard_normal((3, 5))
V = 0.5 * _random.standard_normal((5, 5))
PASSES = ("collapse-replay", "sparsify-directions", "transpose-replay")


def composed(x):
    """A function of y that goes on to a contraction, and to another function of y."""
    y = jnp.sin(x @ W) @ V
    z = jnp.tanh(y)
    return (jnp.tanh(z @ V) + z * jnp.sin(y)).sum((0, 1))


def in_parts(x):
    """Contractions of concatenations, with parts that are repeated along every axis and one that is constant."""
    y = jnp.sin(x @ W)
    mean = jnp.broadcast_to(y.mean(0, keepdims=True), (N, 5))
    feature = jnp.broadcast_to(x[:, :1] ** 2, (N, 5))
    joined = jnp.concatenate([y, mean, feature, jnp.ones((N, 5))], -1)
    repeated = jnp.concatenate([mean, jnp.broadcast_to(y[:1], (N, 5))], -1)
    weights = jnp.concatenate([V, V.T, -V, V])
    own = jnp.stack([weights * k for k in range(1, N + 1)])
    return (jnp.tanh(joined @ weights) + jnp.tanh(repeated @ weights[:10]) + jnp.einsum(
        "nf,nfg->ng", joined, own)).sum((0, 1))  # fmt: skip


def with_a_loop(x):
    return jnp.tanh(lax.fori_loop(0, 3, lambda k, y: jnp.sin(y @ V) + 0.1 * k, jnp.sin(x @ W))).sum((0, 1))


def with_a_determinant(x):
    a = jnp.sin(x @ W[:, :N]) + 2 * jnp.eye(N)
    return jnp.linalg.slogdet(a)[1] + (jnp.linalg.norm(x[:, None] - x[None] + jnp.eye(N)[..., None], axis=-1)).sum()


def local_laplacian(function):
    def of_one(x):
        flat = lambda y: function(y.reshape(N, 3))  # noqa: E731
        y = x.reshape(-1)
        _, hessian = jax.linearize(jax.grad(flat), y)
        eye = jnp.eye(y.size, dtype=y.dtype)
        return flat(y), lax.fori_loop(0, y.size, lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), y.dtype))

    return jax.vmap(of_one)


def with_merged_walkers(x):
    """[B, N, 3] -> [B], with walkers and electrons on one axis."""
    y = jnp.sin(x.reshape(-1, 3) @ W)
    return jnp.tanh(y @ V).reshape(B, -1).sum(1)


def laplacian_of_batch(x):
    """The same replay without ``vmap``: one direction for all walkers."""
    y = x.reshape(B, -1)
    _, hessian = jax.linearize(jax.grad(lambda z: with_merged_walkers(z.reshape(B, N, 3)).sum()), y)
    eye = jnp.eye(y.shape[1], dtype=y.dtype)
    start = jnp.zeros(B, y.dtype)
    return with_merged_walkers(x), lax.fori_loop(
        0, len(eye), lambda k, s: s + hessian(jnp.broadcast_to(eye[k], y.shape))[:, k], start
    )


@pytest.fixture(scope="module")
def programs(lowered):
    made = {}

    def get(function):
        if function not in made:
            laplacian = laplacian_of_batch if function is with_merged_walkers else local_laplacian(function)
            with jax.enable_x64(True):
                made[function] = lowered(laplacian, X, platform="cuda")
        return made[function]

    return get


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("function", [composed, in_parts, with_a_determinant], ids=lambda f: f.__name__)
def test_the_same_numbers(function, name, programs, run_raised):
    program = programs(function)
    result = run_pipeline(program, parse_pipeline(name), Setting())
    assert result.applied, result.events
    for ours, theirs in zip(run_raised(result.program, [X]), run_raised(program, [X]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (with_a_loop, "there is no adjoint: Reverse-mode differentiation does not work for lax.while_loop"),
        (with_merged_walkers, "has its walkers merged with another axis"),
    ],
)
def test_what_can_only_be_pushed_forward(function, why, programs, run_raised):
    program = programs(function)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert len(result.applied) == 1
    for ours, theirs in zip(run_raised(result.program, [X]), run_raised(program, [X]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)
    declined = run_pipeline(program, parse_pipeline("transpose-replay"), Setting())
    assert not declined.applied
    reasons = [event.reason for event in declined.events if isinstance(event, Declined)]
    assert any(why in reason for reason in reasons)


def test_every_loop_of_one_scope_is_looked_at(programs):
    """The replay of a function with a loop has the same scope as a loop of its gradient; both are reported."""
    events = run_pipeline(programs(with_a_loop), parse_pipeline("collapse-replay"), Setting()).events
    scopes = [event.location for event in events]
    assert len(scopes) > len(set(scopes))
    assert [isinstance(event, Declined) for event in events].count(False) == 1


def determinants_as_many_as_walkers(x):
    """[N, 3] -> scalar, with one determinant per walker of ``FOUR`` and zeros beside them, as there are of walkers."""
    a = jnp.sin(x @ W[:, :N]) * jnp.arange(1, len(FOUR) + 1)[:, None, None] + 2 * jnp.eye(N)
    sign, log = jnp.linalg.slogdet(a)
    return jnp.log(jnp.abs(jnp.where(sign == 0, 0.0, sign * jnp.exp(log)).sum()))


FOUR = _random.standard_normal((4, N, 3))


@pytest.mark.parametrize("function", [composed, with_a_determinant, determinants_as_many_as_walkers])
def test_walkers_in_parts(function, lowered, run_raised):
    """Also where there are as many walkers as determinants, electrons, and directions of a part."""
    with jax.enable_x64(True):
        program = lowered(local_laplacian(function), FOUR, platform="cuda")
    result = run_pipeline(program, parse_pipeline("sparsify-directions{chunks=2}"), Setting())
    (event,) = result.events
    assert "the walkers in 2 parts" in event.what
    for ours, theirs in zip(run_raised(result.program, [FOUR]), run_raised(program, [FOUR]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def sampled_first(weights, x):
    """Three steps of walkers that depend on what is differentiated after them, then its replay where they end."""

    def psi(y):
        return jnp.tanh(jnp.sin(y @ weights) @ V).sum((0, 1))

    def step(k, walkers):
        moved = walkers + 0.1 * jnp.cos(walkers.sum((1, 2), keepdims=True) + k)
        accepted = jax.vmap(psi)(moved) > jax.vmap(psi)(walkers)
        return jnp.where(accepted[:, None, None], moved, walkers)

    walkers = lax.fori_loop(0, 3, step, x)
    return local_laplacian(psi)(walkers)


@pytest.mark.parametrize("options", ["", "{chunks=2}"])
def test_positions_are_the_sampled_walkers_and_not_where_sampling_began(options, lowered, run_raised):
    with jax.enable_x64(True):
        program = lowered(sampled_first, W, FOUR, platform="cuda")
    result = run_pipeline(program, parse_pipeline(f"sparsify-directions{options}"), Setting())
    (event,) = result.applied
    (argument,) = [value for value in view_of(program.parse()).arguments if len(value.type.shape) == 3]
    assert f"with respect to %{argument.id} " not in event.what
    assert [loop.trips for loop in find_loops(view_of(result.program.parse()))] == ([3, 2] if options else [3])
    for ours, theirs in zip(run_raised(result.program, [W, FOUR]), run_raised(program, [W, FOUR]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
