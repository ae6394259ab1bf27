"""Weighted sums of second derivatives, with or without a loop: what they cost, and where they are defined."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.loops import find_loops
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

pytestmark = pytest.mark.slow

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


def test_the_kinetic_energy_of_each_electron_where_one_is_at_the_origin(lowered, run_raised):
    """A square that is undefined has the weight 0 in the sums of the others."""

    def kinetic(x):
        seconds, gradient = diagonal(with_decay, x), jax.grad(with_decay)(x)
        return with_decay(x), (seconds + gradient**2).reshape(N, 3).sum(-1)

    x = X.copy()
    x[0, :3] = 0
    original, program = rewritten(lowered, jax.vmap(kinetic), x)
    theirs, ours = (run_raised(each, [x])[1] for each in (original, program))
    np.testing.assert_array_equal(np.isfinite(theirs[0]), [False] + [True] * (N - 1))
    np.testing.assert_allclose(ours[np.isfinite(theirs)], theirs[np.isfinite(theirs)], rtol=1e-9, atol=1e-9)


@pytest.mark.by_turns(4, "3")
@pytest.mark.parametrize("real", [1, 3, 5])
def test_padding_at_the_origin(real, lowered, run_raised):
    """The Laplacian of the first electrons alone; the others are masked within, and their derivatives undefined."""
    mask = (np.arange(N) < real)[:, None]

    def masked(x):
        x = x.reshape(N, 3)
        features = jnp.concatenate([x, jnp.linalg.norm(x, axis=-1, keepdims=True)], -1)
        return (jnp.where(mask, jnp.tanh(features @ SECOND[:4]), 0).sum(0) ** 2).sum()

    def laplacian(x):
        _, push = jax.linearize(jax.grad(masked), x)
        directions = jnp.eye(x.size, dtype=x.dtype)
        return masked(x), lax.fori_loop(0, 3 * real, lambda k, total: total + push(directions[k])[k], 0.0)

    x = X.copy()
    x[:, 3 * real :] = 0
    with jax.enable_x64(True):
        original = lowered(jax.vmap(laplacian), x)
    result = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting())
    theirs, ours = (run_raised(each, [x])[1] for each in (original, result.program))
    assert np.isfinite(theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert result.applied  # by the adjoint: along a direction, a slope of 0 is times what is undefined


def test_a_loop_whose_sum_decays(lowered, run_raised):
    """No sum of directions, but one with the weights 2^-k."""

    def decayed(f, x):
        return lax.scan(lambda s, term: (s / 2 + term, None), 0.0, diagonal(f, x))[0]

    function = jax.vmap(functools.partial(decayed, network))
    original, program = rewritten(lowered, function, X)
    np.testing.assert_allclose(run_raised(program, [X])[0], run_raised(original, [X])[0], rtol=1e-9)


def mixed(x):
    """One layer [N, WIDTH] of all electrons; with ``SHIFT``, the first of them is not in the domain of a root."""
    u = jnp.tanh(x.reshape(N, 3) @ FIRST) @ SECOND
    return u + u.mean(0)


SHIFT = np.where(np.arange(N) == 0, -30.0, 30.0)[:, None]


def guarded(x):
    u = mixed(x)
    return jnp.where(u > -0.5, jnp.sqrt(u + 0.5), u**3).sum()


@jax.custom_jvp
def root(u):
    return jnp.where(u > -0.5, jnp.sqrt(u + 0.5), u**3)


@root.defjvp
def _root_jvp(primals, tangents):
    (u,), (t,) = primals, tangents
    safe = jnp.where(u > -0.5, u + 0.5, 1.0)
    return root(u), jnp.where(u > -0.5, 0.5 / jnp.sqrt(safe), 3 * u**2) * t


def written_over(x):
    return jnp.tanh(jnp.sqrt(mixed(x) + SHIFT).at[0].set(1.0) @ SECOND).sum()


def cut_off(x):
    return jnp.tanh(lax.pad(jnp.sqrt(mixed(x) + SHIFT), 0.0, [(-1, 0, 0), (0, 0, 0)]) @ SECOND).sum()


def real_part(x):
    u = mixed(x)
    return jnp.tanh(jnp.real(lax.complex(jnp.cos(u), jnp.sqrt(u - 30)) * np.ones((N, 1))) @ SECOND).sum()


PARTIAL = {
    "guarded": lambda x: (guarded(x), second_derivatives(guarded, x)),
    "guarded-beside-its-gradient": lambda x: (
        guarded(x), second_derivatives(guarded, x).reshape(-1, 3).sum(-1), jax.grad(guarded)(x)),
    "rule-of-its-own": lambda x: (root(mixed(x)).sum(), diagonal(lambda y: root(mixed(y)).sum(), x)),
    "written-over": lambda x: (written_over(x), second_derivatives(written_over, x)),
    "cut-off": lambda x: (cut_off(x), second_derivatives(cut_off, x)),
    "real-part": lambda x: (real_part(x), second_derivatives(real_part, x)),
}  # fmt: skip


@pytest.mark.by_turns(4, "guarded")
@pytest.mark.parametrize("name", PARTIAL)
def test_what_a_reverse_pass_would_leave_undefined(name, lowered, run_raised):
    """Forward, a slope that is NaN is dropped; reverse, it is multiplied by 0."""
    with jax.enable_x64(True):
        original = lowered(jax.vmap(PARTIAL[name]), X)
    program = run_pipeline(original, parse_pipeline("sparsify-directions"), Setting()).program
    theirs, ours = (run_raised(each, [X])[1] for each in (original, program))
    assert np.isfinite(theirs).all()
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_one_shape_in_two_precisions(lowered):
    """The trace and its float32 are of one shape: both types are candidates, in any order of hashes."""

    def function(x, offset):
        total = diagonal(network, x).sum()
        return network(x), total, total.astype(np.float32) + offset

    rewritten(lowered, jax.vmap(function), X, np.ones(WALKERS, np.float32))


def test_directions_that_a_system_of_equations_is_solved_for(lowered):
    """Its matrix is a constant, so that the solution is linear in them."""
    triangle = np.tril(np.ones((3 * N, 3 * N))) + 3 * np.eye(3 * N)

    def function(x):
        def f(x):
            return -jnp.tanh(jax.scipy.linalg.solve_triangular(triangle, x, lower=True)).sum()

        return f(x), jnp.trace(jax.vmap(lambda e: jax.jvp(jax.grad(f), (x,), (e,))[1])(jnp.eye(3 * N)))

    with jax.enable_x64(True):
        program = lowered(function, X[0])
    result = run_pipeline(program, parse_pipeline("collapse-replay"), Setting())
    assert result.applied or any("do not pay" in event.reason for event in result.events), result.events


@pytest.mark.by_turns(4, "shape0")
@pytest.mark.parametrize("shape", [(N, 1), (N, 2), (2 * N,), (1, 3 * N)])
def test_zero_directions_of_electrons_in_any_dimension(shape, lowered):
    """Positions [electrons, coordinates], in one axis, or with an axis of samples before them, as NetKet has it."""
    each = 2 if shape == (2 * N,) else shape[-1] if shape[0] > 1 else 3

    def log_psi(x):
        h = jnp.tanh(jnp.tanh(x.reshape(N, each) @ FIRST[:each]) @ SECOND)
        return jnp.tanh(h.sum(0) @ SECOND).sum() + jnp.sin(x.reshape(-1, 1) * np.ones((1, 4))).sum()

    function = jax.vmap(lambda x: (log_psi(x), diagonal(lambda y: log_psi(y.reshape(shape)), x.reshape(-1)).sum()))
    with jax.enable_x64(True):
        program = lowered(function, np.ones((WALKERS, *shape)))
    sparse, dense = (
        program_cost(run_pipeline(program, parse_pipeline(name), Setting()).program).flops
        for name in ("sparsify-directions", "collapse-replay")
    )
    assert sparse < 0.6 * dense, (sparse, dense)


@pytest.mark.by_turns(4, "constants-diagonal")
@pytest.mark.parametrize("form", [diagonal, second_derivatives])
@pytest.mark.parametrize("source", ["constants", "key", "bfloat16"])
def test_walkers_need_not_be_float_arguments(form, source, lowered):
    """They may be constants, or made of a random key, or converted: what the function has beside them varies."""

    def energies(scale, given):
        def log_psi(x):
            return scale * network(x)

        return jax.vmap(lambda x: (log_psi(x), form(log_psi, x).sum()))(made(given))

    given, made = {
        "constants": (np.ones(1), lambda _: jnp.asarray(X)),
        "key": (np.array([0, 1], np.uint32), lambda key: jax.random.normal(key, X.shape)),
        "bfloat16": (X.astype(jnp.bfloat16), lambda x: x.astype(np.float32)),
    }[source]
    program = lowered(energies, np.float32(1), given)
    events = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting()).events
    assert [event.pass_name for event in events if isinstance(event, Applied)] == ["sparsify-directions"], events


def with_term(term):
    """log|psi|, and the sum over k of ``term`` of its second derivative, first derivative, x and k."""

    def of_one(x):
        gradient, push = jax.linearize(jax.grad(network), x)
        eye = jnp.eye(x.size, dtype=x.dtype)

        def add(k, total):
            return total + term(push(eye[k])[k], gradient[k], x, k)

        return network(x), lax.fori_loop(0, x.size, add, jnp.zeros((), x.dtype))

    return jax.vmap(of_one)


@pytest.mark.by_turns(4, "masses", "times-coordinate")
@pytest.mark.parametrize(
    "term",
    [
        lambda h, g, x, k: h / (1.0 + k // 3),
        lambda h, g, x, k: jnp.where(k < 7, h, 0.0) - g**2,
        lambda h, g, x, k: h + jnp.where(k == 2 * N, jnp.sin(x[0]), 0.0),
        lambda h, g, x, k: (h + 1e-3) * (k + 1.0),
        lambda h, g, x, k: jnp.abs(h) * (k + 1.0),
        lambda h, g, x, k: h * x[k] * (k + 1.0),
    ],
    ids=["masses", "some", "another-in-one-trip", "constant-added", "magnitudes", "times-coordinate"],
)
def test_what_the_terms_of_trips_may_be(term, lowered, run_raised):
    """Functions of the second derivative."""
    with jax.enable_x64(True):
        program = lowered(with_term(term), X)
    result = run_pipeline(program, parse_pipeline("sparsify-directions"), Setting())
    assert result.applied
    with jax.enable_x64(True):
        for found, expected in zip(run_raised(result.program, [X]), with_term(term)(X), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10)


def _in_loop(trips, term):
    """The sum over ``trips`` of ``term`` of a function that returns d^2 F / d x_k^2, dF/dx and k."""

    def of_one(x):
        gradient, push = jax.linearize(jax.grad(network), x)
        eye = jnp.eye(x.size, dtype=x.dtype)

        def second(k):
            return push(eye[k])[k]

        start = jnp.zeros_like(term(second, gradient, 0))
        return network(x), lax.fori_loop(0, trips, lambda k, total: total + term(second, gradient, k), start)

    return of_one


def _of_electron(second, _, k):
    return sum(second(3 * k + c) for c in range(3)) / (1.0 + k)


def _by_electron(second, _, k):
    return (jnp.arange(N) == k // 3).astype(X.dtype) * second(k)


def _unrolled(x):
    _, push = jax.linearize(jax.grad(network), x)
    eye, masses = jnp.eye(x.size, dtype=x.dtype), jnp.asarray(1.0 + np.arange(x.size) // 3)

    def add(total, k):
        return total + push(eye[k])[k] / masses[k], None

    return network(x), lax.scan(add, jnp.zeros((), x.dtype), jnp.arange(x.size), unroll=3)[0]


def _of_a_product(x):
    """lap (f g), of which one loop adds the second derivatives, another the cross terms."""
    (f, push_f), (g, push_g) = (jax.linearize(jax.grad(each), x) for each in (network, jnp.sum))
    eye, product = jnp.eye(x.size, dtype=x.dtype), network(x) * jnp.sum(x)
    seconds = _looped(lambda k: push_f(eye[k])[k] * jnp.sum(x) + push_g(eye[k])[k] * network(x))
    return product, seconds + _looped(lambda k: 2 * jnp.dot(f, eye[k]) * jnp.dot(g, eye[k]))


def _looped(term):
    return lax.fori_loop(0, 3 * N, lambda k, total: total + term(k), 0.0)


def _shifted(x):
    [value, total] = _in_loop(3 * N, lambda second, gradient, k: second(k) + jnp.sum(gradient))(x)
    return value, total - 3 * N * jnp.sum(jax.grad(network)(x))


SEVERAL = {
    "three-in-a-trip": _in_loop(N, _of_electron),
    "one-hot-of-electrons": _in_loop(3 * N, _by_electron),
    "unrolled": _unrolled,
    "two-loops": _of_a_product,
    "shifted": _shifted,
}


SLOW = ("three-in-a-trip", "two-loops")


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.by_turns(4) if form in SLOW else ()) for form in SEVERAL]
)
def test_sums_whose_trips_are_no_terms_of_one_coordinate(form, lowered, run_raised):
    """What a trip adds tells nothing of them."""
    function = jax.vmap(SEVERAL[form])
    _, program = rewritten(lowered, function, X)
    assert not find_loops(simplified_view(program.parse()))
    with jax.enable_x64(True):
        for found, expected in zip(run_raised(program, [X]), function(X), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10)
