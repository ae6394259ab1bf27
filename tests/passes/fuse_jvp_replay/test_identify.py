"""What is a Laplacian, and what only looks like one: terms that no random point shows, in a sum alone and in both."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import jet

from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.hlo import lowering
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of
from fusionlab.passes.fuse_jvp_replay.identify import evaluating
from fusionlab.passes.interface import Applied, Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline
from fusionlab.passes.sparsify_directions import SparsifyDirections
from fusionlab.workloads.catalogue import build

from ..laplacian_assertions import assert_refused_or_identical, assert_rewritten, rewritten
from ..laplacian_functions import WEIGHTS, W, X, both, exact, features, fori, jvp_in_loop, local_energy, of, psi, smooth

stopped = lax.stop_gradient
NONE = "none has the Laplacian"


def quick(cases, names):
    """The names of ``cases``, those besides ``names`` by turns."""
    return [name if name in names else pytest.param(name, marks=pytest.mark.by_turns(4)) for name in cases]


def wave(y):
    return jnp.sin(y).sum()


def indicator(y, i):
    return jnp.where(y[i, i] > 0.9, 1.0, 0.0)


def count(y):
    return (y > 0.9).sum()


def rare(y):
    return jnp.where(y.ravel() > 0.4, 1.0, 0.0)


TABLE = np.array([0.0] * 8 + [1.0, 1.0])
COMBINED = {
    "all": lambda y: jnp.where(jnp.all(y > 0.4), 1.0, 0.0),
    "any": lambda y: jnp.where(jnp.any(y > 0.0), 0.0, 1.0),
    "select": lambda y: jnp.where(jax.lax.select(y[0, 0] > 0.9, y[1, 1] > 0.9, False), 1.0, 0.0),
    "product": lambda y: indicator(y, 0) * indicator(y, 1),
    "converted": lambda y: (y[0, 0] > 0.9).astype(y.dtype) * (y[1, 1] > 0.9).astype(y.dtype),
    "of-all": lambda y: jnp.prod(jnp.where(y > 0.4, 1.0, 0.0)),
    "contracted": lambda y: jnp.where(y[0, :1] > 0.9, 1.0, 0.0) @ jnp.where(y[1, 1:2] > 0.9, 1.0, 0.0),
    "count": lambda y: jnp.where(count(y) >= 8, 1.0, 0.0),
    "equal-count": lambda y: jnp.where(count(y) == 9, 1.0, 0.0),
    "sum": lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() > 7.5, 1.0, 0.0),
    "equal-sum": lambda y: jnp.where(jnp.where(y > 0.9, 1.0, 0.0).sum() == 9.0, 1.0, 0.0),
    "polynomial": lambda y: (n := indicator(y, 0) + indicator(y, 1)) * (n - 1),
    "power": lambda y: (n := indicator(y, 0) + indicator(y, 1)) ** 2 - n,
    "quotient": lambda y: (count(y) // 8).astype(y.dtype),
    "excess": lambda y: jnp.maximum(count(y) - 7, 0).astype(y.dtype),
    "table": lambda y: jnp.asarray(TABLE)[count(y)],
}
"""Conjunctions, counts and products of predicates: factors of a wave."""
ONE_AFTER_ANOTHER = {
    "product": lambda y: indicator(y, 0) * (indicator(y, 1) * jnp.sin(y).sum()),
    "selections": lambda y: jnp.where(y[0, 0] > 0.9, jnp.where(y[1, 1] > 0.9, jnp.sin(y).sum(), 0.0), 0.0),
    "elements": lambda y: (indicator(y, 0) * (jnp.where(y[1, 1] > 0.9, 1.0, 0.0) * jnp.sin(y))).sum(),
}
"""Whole terms behind two predicates."""
ELSEWHERE = {
    "two-rare-predicates": lambda y: jnp.where((y[0, 0] > 0.9) & (y[1, 1] > 0.9), 1.0, 0.0),
    "far-away": lambda y: jnp.where((y**2).sum() > 1e6, 1.0, 0.0),
    "floor-of-a-square": lambda y: jnp.floor(1e-3 * (y**2).sum()),
    "inverse-over-a-period": lambda y: jnp.arctan(jnp.tan(0.05 * y[0, 0])) - 0.05 * y[0, 0],
    "complex-logarithm": lambda y: jnp.log(jnp.exp(0.05j * y[0, 0])).imag - 0.05 * y[0, 0],
}
"""Factors of a wave that are constant near by."""
HIDDEN = {
    "product-of-maxima": lambda y: stopped(jnp.maximum(y[0, 0] - 0.9, 0) * jnp.maximum(y[1, 1] - 0.9, 0)),
    "product-of-signs": lambda y: (1 + jnp.sign(y[0, 0] - 0.9)) * (1 + jnp.sign(y[1, 1] - 0.9)),
    "mask-of-indices": lambda y: jnp.prod(jnp.where(jnp.arange(9) < 8, rare(y), 1.0)),
    "triangle": lambda y: jnp.prod(jnp.where(jnp.triu(jnp.ones((3, 3), bool)), rare(y).reshape(3, 3), 1.0)),
    "mask-that-is-scattered": lambda y: jnp.prod(1 - (1 - rare(y)) * jnp.ones(9).at[3].set(1.0)),
    "sorted": lambda y: jnp.sort(rare(y))[0],
    "scattered": lambda y: jnp.ones(2).at[jnp.array([0] * 8 + [1])].multiply(rare(y))[0],
    "shifted": lambda y: ((y > 0.9).sum() >> 3).astype(y.dtype),
    "determinant": lambda y: jnp.linalg.det(jnp.diag(jnp.where(jnp.diagonal(y) > 0.9, 1.0, 0.0))),
    "loop": lambda y: lax.fori_loop(0, 9, lambda i, c: c * rare(y)[i], 1.0),
    "scan": lambda y: lax.scan(lambda c, v: (c * v, None), 1.0, rare(y))[0],
    "equal-to-the-largest": lambda y: jnp.where(
        jnp.max(jnp.concatenate([y.ravel(), jnp.array([5.0])])) == y[0, 0], 1.0, 0.0
    ),
    "equal-to-the-larger": lambda y: jnp.where(jnp.maximum(y[0, 0], 5.0) == y[0, 0], 1.0, 0.0),
    "sign-bit": lambda y: jnp.where(jnp.signbit(5 - y[0, 0]), 1.0, 0.0),
    "no-number": lambda y: jnp.where(jnp.prod(rare(y)) / jnp.prod(rare(y)) == 1.0, 1.0, 0.0),
    "angle": lambda y: jnp.arctan2(0.0, 5 - y[0, 0]),
    "integral-part": lambda y: jnp.where((100 * y[0, 0]).astype(jnp.int32) == 137, 1.0, 0.0),
    "floor": lambda y: jnp.where(jnp.floor(y[0, 0]) == 1.0, 1.0, 0.0),
    "periodic-cell": lambda y: jnp.where(jnp.round(y[0, 0] / 4) == 1.0, 1.0, 0.0),
    "two-counts": lambda y: jnp.where((y > 0).sum() + (y > 1).sum() == 7, 1.0, 0.0),
    "order": lambda y: jnp.where((jnp.argsort(y.ravel()) == jnp.arange(9)).all(), 1.0, 0.0),
    "precision": lambda y: 1e3 * (lax.reduce_precision(y[0, 0], 8, 7) - y[0, 0]),
}
"""Factors of a wave by other ops: maxima, signs, orders, loops, integral parts, bits."""


def term_of(name):
    if name in ONE_AFTER_ANOTHER:
        return ONE_AFTER_ANOTHER[name]
    return lambda y: {**COMBINED, **ELSEWHERE, **HIDDEN}[name](y) * wave(y)


SHARED = quick({**COMBINED, **ONE_AFTER_ANOTHER}, ("all", "count", "selections"))
QUICK = (
    "product-of-maxima", "triangle", "sorted", "loop", "equal-to-the-larger", "sign-bit", "angle", "floor",
    "two-counts",
)  # fmt: skip


@pytest.mark.by_turns(4, "all-count", "two-rare-predicates", "sorted", "sign-bit", "floor")
@pytest.mark.parametrize("name", [*SHARED, *ELSEWHERE, *quick(HIDDEN, QUICK)])
def test_a_term_of_the_sum_alone(name):
    """A product of the whole sum is none of psi alone; what the term is a product of may be a value of the program."""
    assert_refused_or_identical(of(lambda y: psi(None, y) + term_of(name)(y)), X)


@pytest.mark.by_turns(4, "all-count")
@pytest.mark.parametrize("name", SHARED)
def test_a_term_of_both_is_rewritten(name, run_raised):
    function = both(lambda y: psi(None, y) + term_of(name)(y))
    assert_rewritten(run_raised, function, X, at=[np.concatenate([X, 1.5 + 0.1 * X])[: len(X)]])


KEPT = {
    "cubes-of-relu": lambda y: (jax.nn.relu(1.8 - y) ** 3).sum(),
    "maximum": lambda y: (jnp.maximum(y, 0.2) ** 2).sum(),
    "absolute-value": lambda y: (jnp.abs(y) * y).sum(),
    "clip": lambda y: jnp.sin(2 * jnp.clip(y, -1, 1)).sum(),
    "smoothstep": lambda y: ((t := jnp.clip((y + 0.5) / 1.5, 0, 1)) * t * (3 - 2 * t)).sum(),
    "logarithm-of-a-sum": lambda y: jnp.logaddexp(y, 2 * y[::-1]).sum() + jax.nn.softplus(y).sum(),
    "hypotenuse": lambda y: jnp.hypot(y, y[::-1]).sum(),
    "logsumexp-with-signs": lambda y: jax.scipy.special.logsumexp(y, b=y[::-1], axis=-1, return_sign=True)[0].sum(),
    "hard-tanh": lambda y: jnp.sin(jax.nn.hard_tanh(y)).sum(),
}


@pytest.mark.by_turns(4, "maximum")
@pytest.mark.parametrize("name", quick(KEPT, ("maximum", "smoothstep", "logarithm-of-a-sum")))
def test_pieces_that_a_value_and_its_replay_share_are_rewritten(name):
    result = rewritten(both(lambda y: psi(None, y) + KEPT[name](y)), X)[1]
    assert result.applied, result.events


@pytest.mark.parametrize(
    "name", [pytest.param("orbformer", marks=pytest.mark.slow), pytest.param("psiformer", marks=pytest.mark.full)]
)
def test_predicates_of_a_network_are_those_of_its_replay(name):
    workload = build(name, "LiH", laplacian="replay", walkers=4, size="tiny", dtype="float32")
    result = SparsifyDirections().run(lowering.lower(workload, "cuda"), Setting(platform="cuda"))
    assert result.applied, result.events


def core(y):
    return jnp.log(1 + ((y @ W) ** 2).sum())


def behind(name, function):
    """A term behind a predicate."""
    return lambda y: psi(None, y) + COMBINED[name](y) * function(y).sum()


ANOTHER = {
    "clip": (lambda y: core(jnp.clip(y, -50, 50)), core),
    "far-away": (lambda y: core(jnp.where((y**2).sum() > 1e6, 2 * y, y)), core),
    "rounded": (lambda y: core(y + jnp.floor(1e-3 * (y**2).sum())), core),
    "region": (lambda y: core(jax.lax.cond(y[0, 0] > 50, lambda: 2 * y, lambda: y)), core),
    **{f"behind-{name}": (behind(name, jnp.sin), behind(name, lambda y: jnp.cos(2 * y))) for name in ("all", "of-all")},
}
"""Values of several pieces, and what is summed over directions, which is another function on one of them."""


@pytest.mark.by_turns(4, "clip", "behind-all")
@pytest.mark.parametrize("name", ANOTHER)
def test_a_sum_of_another_function_somewhere(name):
    assert_refused_or_identical(both(*ANOTHER[name]), X, why=NONE)


SAME_DERIVATIVES = {
    "absolute-value": lambda y: jnp.log(jnp.abs(1 + ((y @ W) ** 2).sum())),
    "constant-apart": lambda y: core(y) + jnp.where((y**2).sum() > 1e6, 1.0, 0.0),
}


@pytest.mark.parametrize("name", SAME_DERIVATIVES)
def test_pieces_with_the_same_derivatives(name, run_raised):
    assert_rewritten(run_raised, both(SAME_DERIVATIVES[name], core), X, at=[9e3 * X])


GRADIENTS = {
    "limited-length": lambda g, _: g * jnp.minimum(1.0, 1e6 / jnp.sqrt((g**2).sum())),
    "term-behind-a-gate": lambda g, y: g + jnp.where(y > 9, 1e6, 0.0),
    "floor": lambda g, y: jnp.where(jnp.floor(y) == 30, 2 * g, g),
    "precision": lambda g, _: jax.lax.reduce_precision(g, 8, 7),
    "clip-and-product": lambda g, y: jnp.clip(g, -1e6, 1e6) * (1 + jax.nn.relu(y - 9)),
}


@pytest.mark.by_turns(4, "limited-length")
@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_that_is_another_elsewhere(name, run_raised):
    def singular(_, y):
        return psi(None, y) + (y**4).sum()

    def of_one(y):
        return singular(None, y), fori(singular, None, y), GRADIENTS[name](jax.grad(singular, 1)(None, y), y)

    assert_rewritten(run_raised, jax.vmap(of_one), X, at=[40 * X])


def normalised(h):
    """A variance that a rounding could make negative is clamped at zero."""
    mean = h.mean(-1, keepdims=True)
    variance = jnp.maximum((h**2).mean(-1, keepdims=True) - mean**2, 0.0)
    return (h - mean) / jnp.sqrt(variance + 1e-5)


def attention(weights, x, normalise):
    """Two heads of two features, in three dimensions."""
    h = features(weights, x)
    z = normalise(h).reshape(-1, 2, 2)
    scores = jax.nn.softmax(jnp.einsum("nhd,mhd->hnm", z, z), -1)
    return jnp.log(1 + ((h + jnp.einsum("hnm,mhd->nhd", scores, z).reshape(h.shape)) ** 2).sum())


FUNCTIONS = {
    "clamped-variance": (lambda w, x: attention(w, x, normalised), fori),
    "attention-in-a-loop-of-jvp": (lambda w, x: attention(w, x, lambda h: h), jvp_in_loop),
    "softplus-in-a-loop-of-jvp": (lambda w, x: jax.nn.softplus(features(w, x)).sum(), jvp_in_loop),
    "relu-in-a-loop-of-jvp": (lambda w, x: jax.nn.relu(features(w, x)).sum() ** 2, jvp_in_loop),
    "relu6": (lambda w, x: (jax.nn.relu6(3 * x).sum(-1) ** 2).sum(), fori),
    "sorted-distances": (lambda w, x: jnp.tanh(jnp.sort((x**2).sum(-1)) @ jnp.arange(1.0, 4.0)), fori),
}


@pytest.mark.by_turns(4, "relu-in-a-loop-of-jvp")
@pytest.mark.parametrize("name", quick(FUNCTIONS, ("relu-in-a-loop-of-jvp", "sorted-distances")))
def test_a_right_program_is_rewritten(name, run_raised):
    log_psi, method = FUNCTIONS[name]
    function, expected = local_energy(log_psi, method), local_energy(log_psi, exact)
    assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected)


@pytest.mark.by_turns(4, "-0.5")
@pytest.mark.parametrize("factor", [1.0, -0.5])
def test_a_loop_of_tangents_and_squared_primals(factor, run_raised):
    def of_one(weights, x):
        y, gradient = x.reshape(-1), jax.grad(lambda y: smooth(weights, y.reshape(x.shape)))
        directions = jnp.eye(y.size)

        def trip(k, total):
            primal, tangent = jax.jvp(gradient, (y,), (directions[k],))
            return total + factor * (primal[k] ** 2 + tangent[k])

        return smooth(weights, x), lax.fori_loop(0, y.size, trip, 0.0)

    def truth(weights, x):
        squares = (jax.grad(smooth, 1)(weights, x) ** 2).sum()
        return smooth(weights, x), factor * (exact(smooth, weights, x) + squares)

    function, expected = (jax.vmap(one, (None, 0)) for one in (of_one, truth))
    assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected)


PLAIN = both(lambda y: psi(None, y))


@pytest.fixture
def evaluated(monkeypatch):
    """The number of draws of every evaluation, and the estimate of the elements that one of them holds."""
    draws, sizes = [], []
    outputs, estimate = Evaluator.outputs, evaluating.elements_at_once

    def counted(evaluator, lowered, arguments):
        draws.append(len(evaluator.arithmetic.seeds))
        return outputs(evaluator, lowered, arguments)

    def noted(*given, **options):
        sizes.append(estimate(*given, **options))
        return sizes[-1]

    monkeypatch.setattr(Evaluator, "outputs", counted)
    monkeypatch.setattr(evaluating, "elements_at_once", noted)
    return draws, sizes


@pytest.mark.by_turns(4, "plain")
@pytest.mark.parametrize("hidden", [False, True], ids=["plain", "hidden-term"])
def test_fewer_draws_at_a_time_where_memory_is_short(hidden, evaluated, monkeypatch):
    """What is found is the same, also of a term that no random point shows: it has a weight, 0 or 1."""
    function = of(lambda y: psi(None, y) + COMBINED["all"](y) * wave(y)) if hidden else PLAIN
    draws, sizes = evaluated
    _, whole = rewritten(function, X)
    assert max(draws) == 8  # of equal inputs
    monkeypatch.setattr(evaluating, "AT_ONCE", min(sizes))
    draws.clear()
    _, result = rewritten(function, X)
    assert set(draws) == {1}
    assert result.applied == whole.applied
    assert result.applied


def out_of_memory(*_):
    raise MemoryError


@pytest.mark.parametrize(
    ("owner", "name", "limit", "why"),
    [
        pytest.param(evaluating, "MOST_ELEMENTS", 1000, "the loop is too large to be identified", id="elements"),
        pytest.param(evaluating, "MOST_SECONDS", -1.0, "the loop was not identified within -1 s", id="seconds"),
        pytest.param(Evaluator, "outputs", out_of_memory, "the loop needs more memory", id="memory"),
    ],
)
def test_beyond_a_limit_it_is_declined_in_one_line(owner, name, limit, why, monkeypatch):
    monkeypatch.setattr(owner, name, limit)
    program, result = rewritten(PLAIN, X)
    assert not result.applied
    assert result.program is program
    [event] = result.events
    assert event.reason.startswith(why)
    assert "\n" not in event.reason


def test_elements_that_are_alive_together(lowered):
    """A product of [4, 8] is alive with its operand, then with its sum; what is dead is not counted."""
    chain = lowered(lambda x: jnp.tanh(jnp.sin(jnp.exp(x))).sum(), np.zeros((4, 8), np.float32))
    flat = view_of(chain.parse())
    assert 64 <= evaluating.elements_at_once(flat, Prepared()) <= 66


def test_broadcasts_hold_no_elements_of_their_own(lowered):
    """Of [4, 8, 1000] the sine alone is held."""
    x = np.zeros((4, 8), np.float32)
    repeated = lowered(lambda x: jnp.sin(jnp.broadcast_to(x[..., None], (4, 8, 1000))).sum(), x)
    assert 32_000 <= evaluating.elements_at_once(view_of(repeated.parse()), Prepared()) <= 32_100


def test_taylor_coefficients_of_a_root_whose_value_is_computed_apart(run_raised):
    """``jax.jit`` drops the value that ``jet`` computes as x**0.5; what is left, by the square root, has 1 / 2y."""

    def f(x):
        return jnp.tanh(jnp.sqrt((x**2).sum() + 0.3)) + (x**3).sum()

    def energy(x):
        def second(e):
            return jet.jet(f, (x,), ((e, jnp.zeros_like(e)),))[1][1]

        return jax.vmap(second)(jnp.eye(x.size)).sum(), f(x)

    x = np.random.default_rng(3).standard_normal((5, 6)).astype(np.float32)
    module = jax.jit(jax.vmap(energy)).lower(x).compiler_ir("stablehlo")
    program = Program.from_module(module, name="energy", provenance="a test")
    result = SparsifyDirections().run(program, Setting())
    assert result.applied, result.events
    truth = jax.vmap(lambda x: jnp.trace(jax.hessian(f)(x)))(x)
    np.testing.assert_allclose(run_raised(result.program, [x])[0], truth, rtol=1e-5, atol=1e-5)


@pytest.mark.by_turns(4, "True-sqrt")
@pytest.mark.parametrize("power", [jnp.sqrt, lambda s: s**1.5, lambda s: s**-0.5, lambda s: jnp.sqrt(s) + s**0.75])
@pytest.mark.parametrize("returns_f", [True, False])
def test_taylor_coefficients_of_powers(power, returns_f, lowered, run_raised):
    """jax.experimental.jet differentiates x**c as c x**c / x: modulo p another value than c x**(c - 1) or 1 / 2y."""

    def f(x):
        return jnp.tanh(power((x**2).sum() + 0.3)).sum() + (x**3).sum()

    def energy(x):
        def second(e):
            return jet.jet(f, (x,), ((e, jnp.zeros_like(e)),))[1][1]

        laplacian = jax.vmap(second)(jnp.eye(x.size, dtype=x.dtype)).sum()
        return (laplacian, f(x)) if returns_f else (laplacian,)

    x = np.random.default_rng(3).standard_normal((5, 6))
    with jax.enable_x64(True):
        program = lowered(jax.vmap(energy), x)
        truth = jax.jit(jax.vmap(lambda x: jnp.trace(jax.hessian(f)(x))))(x)
    result = SparsifyDirections().run(program, Setting())
    assert result.applied, result.events
    np.testing.assert_allclose(run_raised(result.program, [x])[0], truth, rtol=1e-9)


def of_an_inner_value(x, w, v):
    """The function is no value that nothing else is computed from; a hidden layer is one beside it."""
    layers = [jnp.tanh(x @ w)]
    layers += [jnp.tanh(layers[0] @ v)]

    def log_psi(y):
        return -(jnp.tanh(jnp.tanh(y @ w) @ v) ** 2).sum()

    gradient, hessian = jax.linearize(jax.grad(log_psi), x)
    eye = jnp.eye(len(x), dtype=x.dtype)
    total = lax.fori_loop(0, len(x), lambda k, s: s + hessian(eye[k])[k], jnp.zeros((), x.dtype))
    return total + gradient @ gradient, jnp.exp(-(layers[1] ** 2).sum()), layers[1]


def test_outputs_that_are_too_large_together_are_tried_apart(lowered, monkeypatch):
    random = np.random.default_rng(0).standard_normal
    arrays = [random(shape).astype(np.float32) for shape in ((16, 6), (6, 24), (24, 24))]
    program = lowered(jax.vmap(of_an_inner_value, (0, None, None)), *arrays)
    sizes = []
    real = evaluating.elements_at_once

    def noted(*given, **options):
        sizes.append(real(*given, **options))
        return sizes[-1]

    monkeypatch.setattr(evaluating, "elements_at_once", noted)
    assert run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting()).applied
    together, fewer = max(sizes), sizes[-1]
    assert fewer < together
    monkeypatch.setattr(evaluating, "MOST_ELEMENTS", together - 1)
    found = run_pipeline(program, parse_pipeline("fuse-jvp-replay"), Setting())
    assert any(isinstance(event, Applied) and "Laplacian" in event.what for event in found.events), found.events


def test_what_directions_do_not_reach_is_evaluated_apart(lowered, monkeypatch):
    """The function in two parts is the function; it stays whole where the first part's results need too much memory."""

    def function(x, d):
        return jnp.tanh(x[:, None] * np.arange(3.0, dtype=np.float32)) * d, jnp.exp(x).sum(), d + 1

    flat = view_of(lowered(function, np.ones(4, np.float32), np.ones(3, np.float32)).parse())
    evaluator = Evaluator(PrimeField(primes(1)[0], (0, 1)))
    arguments = evaluator.drawn_arguments(flat)
    same, rest, _ = evaluating.in_two_parts(flat, flat.arguments[1:], Prepared())
    assert {"stablehlo.tanh", "stablehlo.exponential"} <= {node.name for node in same.nodes}
    assert not {"stablehlo.tanh", "stablehlo.exponential"} & {node.name for node in rest.nodes}
    found = evaluator.outputs(rest, [*arguments, *evaluator.region(same, arguments, {})])
    for ours, whole in zip(found, evaluator.outputs(flat, arguments), strict=True):
        np.testing.assert_array_equal(ours, whole)
    monkeypatch.setattr(evaluating, "AT_ONCE", 1)
    same, rest, _ = evaluating.in_two_parts(flat, flat.arguments[1:], Prepared())
    assert not same.nodes
    assert rest is flat


def test_a_loop_that_directions_reach_in_part_is_evaluated_with_them(lowered):
    """What one of its results leads to is evaluated there, too, though no direction reaches it."""

    def function(x, d):
        def trip(k, carried):
            y, tangent = carried
            return jnp.sin(y), tangent * jnp.cos(y)

        y, tangent = lax.fori_loop(0, 2, trip, (x, d))
        return jnp.exp(y), tangent, jnp.exp(2 * x)

    flat = view_of(lowered(function, *[np.ones(4, np.float32)] * 2).parse())
    evaluator = Evaluator(PrimeField(primes(1)[0], (0, 1)))
    arguments = evaluator.drawn_arguments(flat)
    same, rest, _ = evaluating.in_two_parts(flat, flat.arguments[1:], Prepared())
    assert [node.name for node in same.nodes if node.name == "stablehlo.exponential"] == ["stablehlo.exponential"]
    found = evaluator.outputs(rest, [*arguments, *evaluator.region(same, arguments, {})])
    for ours, whole in zip(found, evaluator.outputs(flat, arguments), strict=True):
        np.testing.assert_array_equal(ours, whole)
