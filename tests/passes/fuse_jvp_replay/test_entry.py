"""The passes that put a Laplacian in a replay's place, on small functions of walkers: the same numbers, or a reason."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.view import view_of
from fusionlab.passes.interface import Declined

from ..laplacian_assertions import assert_refused, assert_rewritten, rewritten
from ..laplacian_functions import fori

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


@pytest.mark.by_turns(4, "composed-sparsify-directions", "composed-transpose-replay")
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("function", [composed, in_parts, with_a_determinant], ids=lambda f: f.__name__)
def test_the_same_numbers(function, name, run_raised):
    assert_rewritten(run_raised, local_laplacian(function), X, passes=name, rtol=1e-10)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (
            local_laplacian(with_a_loop),
            "there is no adjoint: Reverse-mode differentiation does not work for lax.while_loop",
        ),
        (laplacian_of_batch, "has its walkers merged with another axis"),
    ],
    ids=["a loop", "merged walkers"],
)
def test_what_can_only_be_pushed_forward(function, why, run_raised):
    assert len(assert_rewritten(run_raised, function, X, rtol=1e-10).applied) == 1
    assert_refused(function, X, passes="transpose-replay", why=why)


def test_every_loop_of_one_scope_is_looked_at():
    """The replay of a function with a loop has the same scope as a loop of its gradient; both are reported."""
    _, result = rewritten(local_laplacian(with_a_loop), X, passes="collapse-replay")
    scopes = [event.location for event in result.events]
    assert len(scopes) > len(set(scopes))
    assert [isinstance(event, Declined) for event in result.events].count(False) == 1


def determinants_as_many_as_walkers(x):
    """[N, 3] -> scalar, with one determinant per walker of ``FOUR`` and zeros beside them, as there are of walkers."""
    a = jnp.sin(x @ W[:, :N]) * jnp.arange(1, len(FOUR) + 1)[:, None, None] + 2 * jnp.eye(N)
    sign, log = jnp.linalg.slogdet(a)
    return jnp.log(jnp.abs(jnp.where(sign == 0, 0.0, sign * jnp.exp(log)).sum()))


FOUR = _random.standard_normal((4, N, 3))


@pytest.mark.by_turns(4, "composed")
@pytest.mark.parametrize("function", [composed, with_a_determinant, determinants_as_many_as_walkers])
def test_walkers_in_parts(function, run_raised):
    """Also where there are as many walkers as determinants, electrons, and directions of a part."""
    result = assert_rewritten(run_raised, local_laplacian(function), FOUR, passes="sparsify-directions{chunks=2}")
    (event,) = result.events
    assert "the walkers in 2 parts" in event.what


@pytest.mark.by_turns(4, "fuse-jvp-replay-leading0")
@pytest.mark.parametrize("leading", [(1, 72), (1, 1, 72), (72, 1), (2, 36), (3, 24)])
@pytest.mark.parametrize("passes", ["fuse-jvp-replay", "sparsify-directions{chunks=3}"])
def test_several_leading_axes(leading, passes, run_raised):
    """More walkers than are all evaluated; only one longer axis can be taken in parts."""
    function = local_laplacian(with_a_determinant)
    for _ in leading[1:]:
        function = jax.vmap(function)
    x = _random.standard_normal((*leading, N, 3))
    if "chunks" in passes and min(leading) > 1:
        assert_refused(function, x, why="cannot be taken in parts", passes=passes)
        return
    (event,) = assert_rewritten(run_raised, function, x, passes=passes, rtol=1e-7).events
    assert event.resolved.startswith("sparsify-directions")
    assert ("the walkers in 3 parts" in event.what) == ("chunks" in passes)


def sampled_first(weights, x):
    """Three steps of walkers that depend on what is differentiated after them, then its replay where they end."""

    def psi(y):
        return jnp.tanh(jnp.sin(y @ weights) @ V).sum((0, 1))

    def step(k, walkers):
        moved = walkers + 0.1 * jnp.cos(walkers.sum((1, 2), keepdims=True) + k)
        accepted = jax.vmap(psi)(moved) > jax.vmap(psi)(walkers)
        return jnp.where(accepted[:, None, None], moved, walkers)

    return local_laplacian(psi)(lax.fori_loop(0, 3, step, x))


@pytest.mark.parametrize("options", ["", "{chunks=2}"])
def test_positions_are_the_sampled_walkers_and_not_where_sampling_began(options, run_raised):
    result = assert_rewritten(run_raised, sampled_first, W, FOUR, passes=f"sparsify-directions{options}")
    (event,) = result.applied
    view = view_of(result.program.parse())
    assert f"with respect to %{view.arguments[1].id} " not in event.what
    assert [loop.trips for loop in find_loops(view)] == ([3, 2] if options else [3])


def test_positions_that_the_program_concatenates(run_raised):
    """Of electrons of either spin: they are contracted as they are, and not as parts that have no derivatives."""

    def log_psi(y):
        return jnp.tanh(jnp.tanh(y @ jnp.concatenate([W, W - 0.5, W + 0.5, W * 0.7])) @ V).sum()

    def energies(up, down):
        y = jnp.concatenate([up.reshape(B, -1), down.reshape(B, -1)], 1)
        return jax.vmap(log_psi)(y), jax.vmap(lambda z: fori(lambda _, x: log_psi(x), None, z))(y)

    assert_rewritten(run_raised, energies, X[:, :3], X[:, 3:])
