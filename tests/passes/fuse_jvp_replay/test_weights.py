"""Weighted sums of second derivatives, with or without a loop: what they cost, and where they are defined."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.passes.fuse_jvp_replay.recognise import candidates_without_loop, identities
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

N, WIDTH, WALKERS = 6, 48, 3
_random = np.random.default_rng(11)
FIRST, SECOND = 0.5 * _random.standard_normal((3, WIDTH)), _random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5
X = _random.standard_normal((WALKERS, 3 * N))


def network(x):
    """One-electron layers, and two that mix all electrons."""
    h = jnp.tanh(x.reshape(N, 3) @ FIRST)
    for _ in range(2):
        h = h + jnp.tanh(h @ SECOND + h.mean(0) @ SECOND.T)
    return h.sum()


def with_decay(x):
    """Its derivative by an electron at the origin is undefined."""
    return network(x) - jnp.linalg.norm(x.reshape(N, 3), axis=-1).sum()


def diagonal(f, x):
    return jnp.diag(jax.hessian(f)(x))


def diagonal_of_loop(f, x):
    _, push = jax.linearize(jax.grad(f), x)
    directions = jnp.eye(x.size, dtype=x.dtype)
    return lax.map(lambda k: push(directions[k])[k], jnp.arange(x.size))


def second_derivatives(f, x):
    """By nested ``jvp``, without a reverse pass."""

    def second(e):
        return jax.jvp(lambda y: jax.jvp(f, (y,), (e,))[1], (x,), (e,))[1]

    return lax.map(second, jnp.eye(x.size, dtype=x.dtype))


def rewritten(lowered, function, *arrays):
    """The program, and what sparsify-directions makes of it."""
    with jax.enable_x64(True):
        program = lowered(function, *arrays)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert result.applied, result.events
    return program, result.program


@pytest.mark.parametrize("form", [diagonal, diagonal_of_loop])
def test_all_second_derivatives_cost_little_more_than_their_sum(form, lowered, run_raised):
    """They share the derivatives, and come from one adjoint."""
    programs = {}
    for name, reduced in {"sum": jnp.sum, "electrons": lambda d: d.reshape(-1, 3).sum(-1), "all": lambda d: d}.items():
        function = jax.vmap(lambda x, of=reduced: (network(x), of(form(network, x))))
        _, programs[name] = rewritten(lowered, function, X)
    flops = {name: program_cost(program).flops for name, program in programs.items()}
    assert max(flops["electrons"], flops["all"]) < 1.3 * flops["sum"], flops
    with jax.enable_x64(True):
        truth = jax.jit(jax.vmap(functools.partial(diagonal, network)))(X)
    np.testing.assert_allclose(run_raised(programs["all"], [X])[1], truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", [diagonal, diagonal_of_loop])
def test_masses_that_are_an_argument(form, lowered, run_raised):
    def kinetic(masses, x):
        return -0.5 * ((form(network, x) + jax.grad(network)(x) ** 2) / masses).sum()

    function = jax.vmap(kinetic, (None, 0))
    masses = np.linspace(1.0, 2.0, 3 * N)
    original, program = rewritten(lowered, function, masses, X)
    assert program_cost(program).flops < 0.7 * program_cost(original).flops
    for given in (masses, masses[::-1] ** 2):
        with jax.enable_x64(True):
            truth = jax.jit(function, compiler_options=CPU_OPTIONS)(given, X)
        np.testing.assert_allclose(run_raised(program, [given, X])[0], truth, rtol=1e-9)


@pytest.mark.parametrize("form", [diagonal, diagonal_of_loop])
def test_an_electron_at_the_origin_leaves_the_others_defined(form, lowered, run_raised):
    """Only its own second derivatives are undefined in the original."""
    x = X.copy()
    x[0, 3:6] = 0
    function = jax.vmap(lambda x: (with_decay(x), form(with_decay, x)))
    original, program = rewritten(lowered, function, x)
    theirs, ours = (run_raised(each, [x])[1] for each in (original, program))
    np.testing.assert_array_equal(np.isfinite(theirs[0]), [True] * 3 + [False] * 3 + [True] * (3 * N - 6))
    np.testing.assert_allclose(ours[np.isfinite(theirs)], theirs[np.isfinite(theirs)], rtol=1e-9, atol=1e-9)


def test_a_loop_whose_sum_decays(lowered, run_raised):
    """No sum of directions, but one with the weights 2^-k."""

    def decayed(f, x):
        return lax.scan(lambda s, term: (s / 2 + term, None), 0.0, diagonal(f, x))[0]

    function = jax.vmap(functools.partial(decayed, network))
    original, program = rewritten(lowered, function, X)
    np.testing.assert_allclose(run_raised(program, [X])[0], run_raised(original, [X])[0], rtol=1e-9)


def test_a_program_without_a_reverse_pass_gets_none(lowered, run_raised):
    """Reverse, the slope of a root that is not taken is 0 times NaN; forward, it is dropped."""

    def roots(x):
        u = jnp.tanh(x.reshape(N, 3) @ FIRST) @ SECOND
        return jnp.where(u > -0.5, jnp.sqrt(u + 0.5), u**3).sum()

    function = jax.vmap(lambda x: (roots(x), second_derivatives(roots, x)))
    original, program = rewritten(lowered, function, X)
    theirs, ours = (run_raised(each, [X])[1] for each in (original, program))
    assert np.isfinite(theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(N, 1), (N, 2), (2 * N,), (1, 3 * N)])
def test_zero_directions_of_electrons_in_any_dimension(shape, lowered):
    """Positions [electrons, coordinates], in one axis, or with an axis of samples before them, as NetKet has it."""
    each = 2 if shape == (2 * N,) else shape[-1] if shape[0] > 1 else 3

    def log_psi(x):
        h = jnp.tanh(jnp.tanh(x.reshape(N, each) @ FIRST[:each]) @ SECOND)
        return jnp.tanh(h.sum(0) @ SECOND).sum()

    function = jax.vmap(lambda x: (log_psi(x), diagonal(lambda y: log_psi(y.reshape(shape)), x.reshape(-1)).sum()))
    with jax.enable_x64(True):
        program = lowered(function, np.ones((WALKERS, *shape)))
    sparse, dense = (
        program_cost(run_pipeline(program, parse_pipeline(name), Setting()).program).flops
        for name in ("sparsify-directions", "collapse-replay")
    )
    assert sparse < 0.6 * dense, (sparse, dense)


@pytest.mark.parametrize(
    ("function", "may_be"),
    [
        (lambda x: x.reshape(3, 3) + jnp.eye(3), False),
        (lambda x: jax.scipy.linalg.solve_triangular(x.reshape(3, 3), jnp.eye(3)), False),
        (lambda x: x.reshape(3, 3) * jnp.eye(3), True),
    ],
    ids=["added", "solved", "multiplied"],
)
def test_identities_that_are_no_directions(function, may_be, lowered):
    """One that is added to orbitals, and one of which a system of equations is solved, for an inverse."""

    def columns(x):
        rows = function(x) @ x[:3]
        return jnp.tanh(x[:3]).sum() * rows, rows.sum()

    flat = simplified_view(lowered(jax.vmap(columns), np.ones((WALKERS, 9))).parse())
    assert len(identities(flat)) == 1
    assert any(True for _ in candidates_without_loop(flat)) == may_be
