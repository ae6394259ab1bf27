"""Forms in which other codes write sums of second derivatives; none of them has code of its own in the pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.identity import compare_exactly

from ..laplacian_assertions import assert_rewritten, in_their_precision, lower

N, WALKERS, HIDDEN = 6, 8, 16
_random = np.random.default_rng(5)
W = _random.standard_normal((N, HIDDEN))
U, V = _random.standard_normal((HIDDEN, HIDDEN)), _random.standard_normal((HIDDEN, 3))
STATES = _random.standard_normal((2, N, HIDDEN))
X = _random.standard_normal((WALKERS, N))
SETS = _random.standard_normal((WALKERS, 2, N))


def network(x, outputs=3):
    return jnp.tanh(x @ W) @ V[:, :outputs]


def modulus(x):
    return -jnp.sum(jnp.log(jnp.cosh(jnp.tanh(x @ W) @ U)))


def phase(x):
    return jnp.sum(jnp.sin(x @ W))


def states_of(f):
    return lambda x: jnp.stack([f(x @ STATES[s]) for s in range(2)])


def in_a_loop(of, x, zero):
    """Sum of the diagonals of the Jacobian of ``of``."""
    _, push = jax.linearize(of, x)
    e = jnp.eye(N)
    return lax.fori_loop(0, N, lambda k, s: s + push(e[k])[..., k], zero)


def trailing(outputs):
    """[walker, m]: of each output of one network."""

    def one(x):
        f = lambda y: network(y, outputs)  # noqa: E731
        return in_a_loop(jax.jacrev(f), x, jnp.zeros(outputs)), f(x)

    return jax.vmap(one)


def states(is_complex):
    """[walker, set, state], by modulus and, if complex, by phase."""
    mod = states_of(lambda h: -jnp.sum(jnp.log(jnp.cosh(h))))
    angle = states_of(lambda h: jnp.sum(jnp.sin(h)))

    def one(x):
        e, push = jnp.eye(N), jax.linearize(jax.jacrev(mod), x)[1]
        turn = jax.linearize(jax.jacrev(angle), x)[1]
        zero = jnp.zeros(2, jnp.complex128 if is_complex else jnp.float64)

        def term(k):
            return push(e[k])[:, k] + (1j * turn(e[k])[:, k] if is_complex else 0)

        return lax.fori_loop(0, N, lambda k, s: s + term(k), zero), mod(x), angle(x)

    return jax.vmap(jax.vmap(one))


def whole_batch(direction):
    """The gradient of the sum over walkers, pushed along directions of the whole batch."""
    log_psi = lambda x: -jnp.sum(jnp.log(jnp.cosh(x @ W)), -1)  # noqa: E731

    def energy(x):
        def body(k, s):
            p, t = jax.jvp(jax.grad(lambda x: log_psi(x).sum()), (x,), (direction(k),))
            return s + p[:, k] ** 2 + t[:, k]

        return -0.5 * lax.fori_loop(0, N, body, jnp.zeros(WALKERS))

    return energy


DIRECTIONS = {
    "repeated": lambda k: jnp.eye(N)[None].repeat(WALKERS, 0)[..., k],
    "broadcast": lambda k: jnp.broadcast_to(jnp.eye(N)[None], (WALKERS, N, N))[..., k],
    "tiled": lambda k: jnp.tile(jnp.eye(N)[k][None], (WALKERS, 1)),
    "rows": lambda k: jnp.broadcast_to(jnp.eye(N)[k], (WALKERS, N)),
    "set": lambda k: jnp.zeros((WALKERS, N)).at[:, k].set(1.0),
}


def one_by_one(row):
    """Without a loop: the rows in a Python loop."""

    def one(x):
        h = jax.linearize(jax.grad(modulus), x)[1]
        return modulus(x), sum(h(row(k))[k] for k in range(N))

    return jax.vmap(one)


def twice(f, x, v):
    return jax.jvp(lambda x: jax.jvp(f, (x,), (v,))[1], (x,), (v,))[1]


def nested(squeezed):
    """The second derivative as jvp of jvp, of a network of one output, in a scan."""

    def one(x):
        f = lambda y: network(y, 1)  # noqa: E731
        total = lax.scan(lambda c, k: (c, twice(f, x, jax.nn.one_hot(k, N))), 0.0, jnp.arange(N))[1].sum(0)
        return total[0] if squeezed else total

    return jax.vmap(one)


def divergence(x):
    """Of a drift that is a gradient and something linear."""
    return jax.vmap(lambda y: jnp.trace(jax.jacfwd(lambda z: -z - 0.25 * jax.grad(modulus)(z))(y)))(x)


def with_complex_parts(x):
    def one(y):
        g, p = (jax.linearize(jax.grad(f), y)[1] for f in (modulus, phase))
        e = jnp.eye(N)
        return lax.fori_loop(0, N, lambda k, s: s + g(e[k])[k] + 1j * p(e[k])[k], 0j)

    return jax.vmap(one)(x)


def factor_of_each_walker(x):
    """A number of the walker multiplies the gradient that is differentiated."""

    def one(y):
        scale = 1 + y[0] ** 2
        h = jax.linearize(lambda z: scale * jax.grad(modulus)(z), y)[1]
        e = jnp.eye(N)
        return modulus(y), lax.fori_loop(0, N, lambda k, s: s + h(e[k])[k], 0.0)

    return jax.vmap(one)(x)


FORMS = {
    **{f"trailing-{outputs}": (trailing(outputs), X) for outputs in (1, 3)},
    **{f"states-{'complex' if each else 'real'}": (states(each), SETS) for each in (False, True)},
    **{f"whole-batch-{name}": (whole_batch(direction), X) for name, direction in DIRECTIONS.items()},
    "rows-of-an-identity": (one_by_one(lambda k: jnp.eye(N)[k]), X),
    "one-hot": (one_by_one(lambda k: jax.nn.one_hot(k, N)), X),
    "nested": (nested(False), X),
    "nested-squeezed": (nested(True), X),
    "divergence": (divergence, X),
    "complex": (with_complex_parts, X),
    "factor-of-each-walker": (factor_of_each_walker, X),
}


@pytest.mark.by_turns(3, "trailing-3", "states-complex", "whole-batch-repeated", "rows-of-an-identity", "divergence")
@pytest.mark.parametrize("name", FORMS)
def test_forms_without_code_of_their_own(name, run_raised):
    function, x = FORMS[name]
    result = assert_rewritten(run_raised, function, x)
    assert {event.pass_name for event in result.applied} == {"sparsify-directions"}
    with in_their_precision([x]):
        program = lower(function, x, keep_unused=True)
    assert compare_exactly(program, result.program).result == "identical"
