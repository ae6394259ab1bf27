"""What counts as one function, and what as two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.optimizing.same_function import same_function

X = jax.ShapeDtypeStruct((4, 3), np.float32)
W = np.arange(9, dtype=np.float32).reshape(3, 3)


def loop(x, steps=3, by=1.0):
    return jax.lax.fori_loop(0, steps, lambda _, y: jnp.tanh(y @ W) * by, x)


@jax.custom_jvp
def ramp(x):
    return jnp.maximum(x, 0)


ramp.defjvp(lambda primals, tangents: (ramp(*primals), tangents[0]))


def traced(function, x=X):
    return jax.make_jaxpr(function)(x)


@pytest.mark.parametrize("function", [loop, jax.jit(loop), lambda x: ramp(x) + 1, jax.grad(lambda x: loop(x).sum())])
def test_a_function_is_itself(function):
    assert same_function(traced(function), traced(function))


@pytest.mark.parametrize(
    "other",
    [
        lambda x: loop(x, steps=4),
        lambda x: loop(x, by=2.0),
        lambda x: loop(x) / 1.5,
        lambda x: loop(-x),
        jax.jit(loop),
        lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ (2 * W)) * 1.0, x),
        lambda x: jax.lax.fori_loop(0, 3, lambda _, y: jnp.tanh(y @ W.T) * 1.0, x),
        lambda x: loop(x).astype(jnp.float16).astype(jnp.float32),
    ],
    ids=["steps", "factor", "divided", "sign", "called", "weights", "transposed", "rounded"],
)
def test_another_function_is_not(other):
    assert not same_function(traced(loop), traced(other))


def test_another_order_of_arguments_is_another_function():
    one, other = jax.make_jaxpr(lambda x, y: x - y)(1.0, 2.0), jax.make_jaxpr(lambda x, y: y - x)(1.0, 2.0)
    assert same_function(one, one)
    assert not same_function(one, other)


def test_invariants_of_a_scan_are_read_where_they_are_defined():
    """As the casts of shard_map leave them: a literal in the body, or an operand of the scan that is one."""

    def scanned(*, as_operand=False, by=2.0, swapped=False):
        def function(x):
            first, second = (x.mean(), x.max())[:: -1 if swapped else 1]

            def body(y, factor):
                return y * factor + first - second * second, None

            if as_operand:  # a sharding constraint without effect only moves what it is given
                factor = jax.lax.with_sharding_constraint(
                    jnp.float32(by), jax.sharding.SingleDeviceSharding(jax.devices()[0])
                )
            else:
                factor = np.float32(by)
            return jax.lax.scan(lambda y, _: body(y, factor), x, length=3)[0]

        return traced(function)

    assert same_function(scanned(as_operand=True), scanned())
    assert not same_function(scanned(), scanned(by=3.0))
    assert not same_function(scanned(), scanned(swapped=True))


def test_how_arrays_lie_does_not_count():
    mesh = jax.make_mesh((1,), ("walkers",), axis_types=(jax.sharding.AxisType.Explicit,))
    placed = jax.device_put(np.ones((4, 3), np.float32), jax.NamedSharding(mesh, jax.P("walkers")))
    assert same_function(traced(loop, placed), traced(loop))
    divided = traced(lambda x: loop(x) / (1 + jax.typeof(x).sharding.mesh.size), placed)
    assert not same_function(divided, traced(lambda x: loop(x) / (1 + jax.typeof(x).sharding.mesh.size)))
