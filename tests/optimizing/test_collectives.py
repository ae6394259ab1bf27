"""Functions with collectives are divided at these; on several devices: ``several_devices.py``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxpr_as_fun

import fusionlab
from fusionlab.errors import NotOptimizedError
from fusionlab.optimizing.collectives import evaluate, has_collectives

pytestmark = pytest.mark.versions

W = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
X = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 2, 3)


def energies(x):
    return lax.fori_loop(0, 2, lambda k, total: total + jnp.sin(k * x @ W).sum(-1), jnp.zeros(len(x)))


def mean(x):
    return lax.pmean(x.mean(), "w")


def clipped(x):
    local = energies(x)
    return jnp.clip(local, mean(local) - 0.1, mean(local) + 0.1), mean(energies(x * mean(local)))


FUNCTIONS = {
    "levels": clipped,
    "jit": lambda x: jax.jit(clipped)(x),
    "scan": lambda x: lax.scan(lambda y, s: (y + s * clipped(y)[1], clipped(y)[0]), x, jnp.arange(3.0), reverse=True),
    "while": lambda x: lax.while_loop(
        lambda carry: carry[0] < 3, lambda carry: (carry[0] + 1, carry[1] + clipped(carry[1])[1]), (0, x)
    ),
    "cond": lambda x: lax.cond(mean(x) > 0.4, lambda y: clipped(y)[1], lambda y: mean(energies(y) ** 2), x),
    "checkpoint": lambda x: jax.checkpoint(clipped)(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_stands_between_collectives_is_bound_and_returns_the_same(name):
    bound = []

    def bind(part, operands):
        bound.append(part)
        return jaxpr_as_fun(part)(*operands)

    def divided(x):
        closed, shapes = jax.make_jaxpr(FUNCTIONS[name], return_shape=True)(x)
        assert has_collectives(closed.jaxpr)
        return jax.tree.unflatten(jax.tree.structure(shapes), evaluate(closed, [x], bind))

    found, expected = (jax.jit(jax.vmap(f, axis_name="w"))(X) for f in (divided, FUNCTIONS[name]))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert bound
    assert not any(has_collectives(part.jaxpr) for part in bound)
    assert all(type_.shape[:1] == (2,) for part in bound for type_ in part.out_avals), "no sum over the walkers"


def test_a_sum_over_walkers_that_a_contraction_needs_is_part_of_the_function():
    parts = []

    def centred(x):
        local = energies(x)
        return lax.psum(energies(x - local.mean()), "w")

    def divided(x):
        closed = jax.make_jaxpr(centred)(x)
        return evaluate(closed, [x], lambda part, given: parts.append(part) or jaxpr_as_fun(part)(*given))[0]

    np.testing.assert_array_equal(jax.vmap(divided, axis_name="w")(X), jax.vmap(centred, axis_name="w")(X))
    assert len(parts) == 1


def test_the_function_that_is_differentiated_stays_beside_its_replay():
    """Of one walker, it is a sum along a first axis, which the replay does not read."""

    def centred(x):
        value, push = jax.linearize(lambda y: jnp.sin(y @ W).sum(-1).sum(), x)
        total = lax.fori_loop(0, 2, lambda k, total: total + push(x * k), 0.0)
        return total - lax.pmean(total, "w"), value

    parts = []

    def divided(x):
        closed = jax.make_jaxpr(centred)(x)
        return evaluate(closed, [x], lambda part, given: parts.append(part) or jaxpr_as_fun(part)(*given))

    jax.vmap(divided, axis_name="w")(X)
    assert [len(part.out_avals) for part in parts] == [2]


def test_a_rule_of_its_own_keeps_a_function_with_collectives_whole():
    @jax.custom_jvp
    def own(x):
        return mean(energies(x))

    own.defjvp(lambda primals, tangents: (own(*primals), 7.0 * tangents[0].sum()))

    def divided(x):
        closed = jax.make_jaxpr(own)(x)
        return evaluate(closed, [x], lambda part, given: pytest.fail("it is bound"))[0]

    found = jax.vmap(jax.grad(divided), axis_name="w")(X)
    np.testing.assert_array_equal(found, np.full_like(X, 7))


def test_where_no_part_is_rewritten_that_is_said_once_or_an_error():
    mesh = jax.make_mesh((1,), ("walkers",), axis_types=(jax.sharding.AxisType.Auto,))

    def doubled(x):
        return jax.lax.psum(jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y) * 2, x), "walkers")

    spec = jax.sharding.PartitionSpec("walkers")
    function = jax.shard_map(doubled, mesh=mesh, in_specs=spec, out_specs=jax.sharding.PartitionSpec())
    optimized = fusionlab.optimize(function, cache=False, exact_s=0)
    with pytest.warns(fusionlab.NotOptimizedWarning, match="doubled runs as it was: .* links one trip to the next"):
        expected = optimized(jnp.ones(4))
    np.testing.assert_array_equal(optimized(jnp.ones(4)), expected)
    required = fusionlab.optimize(function, cache=False, exact_s=0, require_applied=True)
    for _ in range(2):
        with pytest.raises(NotOptimizedError, match="doubled is not rewritten, as require_applied demands"):
            required(jnp.ones(4))
