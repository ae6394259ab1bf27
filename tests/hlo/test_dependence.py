"""Dependence on values, of loops trip by trip and of branches result by result."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes, reached, sources_of
from fusionlab.hlo.view import view_of

X = jnp.ones(3)


def view(function, *arrays):
    return view_of(jax.jit(function, keep_unused=True).lower(*arrays).compiler_ir("stablehlo"))


def results(flat, mnemonic):
    [value] = [value for node in flat.walk() if node.op.mnemonic == mnemonic for value in node.results]
    return value


def dependent_returns(function, *arrays):
    """For every result, the positions of the arguments that it depends on."""
    flat = view(function, *arrays)
    bits = sources_of(flat, flat.arguments)
    each = [reached(flat, [argument]) for argument in flat.arguments]
    found = [[i for i in range(len(each)) if bits.get(value, 0) >> i & 1] for value in flat.returns]
    assert found == [[i for i, after in enumerate(each) if value in after] for value in flat.returns]
    return found


def test_a_value_in_a_loop_depends_on_what_an_earlier_trip_computes():
    def function(x):
        def body(_, carry):
            a, b = carry
            return jnp.cos(a) + jnp.sin(b), b * 2.0

        return lax.fori_loop(0, 3, body, (jnp.zeros(3), x))

    flat = view(function, X)
    after = reached(flat, flat.arguments)
    assert results(flat, "cosine") in after
    assert results(flat, "sine") in after
    assert sources_of(flat, flat.arguments)[results(flat, "cosine")] == 1


def test_carried_values_are_kept_apart():
    def function(x, y, z):
        def body(_, carry):
            a, b, c, d = carry
            return a, jnp.sin(a) + b, jnp.cos(c), d + 1.0

        return lax.fori_loop(0, 3, body, (x, y, z, jnp.zeros(3)))

    assert dependent_returns(function, X, X, X) == [[0], [0, 1], [2], []]


def test_a_chain_of_carried_values_takes_as_many_trips():
    def function(x, y):
        def body(_, carry):
            return [*carry[1:], jnp.sin(carry[0])]

        return lax.fori_loop(0, 9, body, [x, *(jnp.zeros(3) for _ in range(6)), y])

    assert dependent_returns(function, X, X) == [[0, 1]] * 8


def test_what_an_inner_loop_carries_reaches_the_next_trip_of_the_outer_one():
    def function(x, y):
        def outer(_, carry):
            a, b, c = carry
            inner = lax.fori_loop(0, 2, lambda _, pair: (jnp.cos(pair[0]) + pair[1], pair[1]), (a, b))
            return inner[0], jnp.sin(c), c

        return lax.fori_loop(0, 3, outer, (jnp.zeros(3), jnp.zeros(3), x)), y

    flat = view(function, X, X)
    assert results(flat, "cosine") in reached(flat, flat.arguments[:1])
    assert dependent_returns(function, X, X) == [[0], [0], [0], [1]]


def test_the_condition_decides_all_that_a_trip_changes():
    def function(x, y, z):
        def body(carry):
            a, b, n = carry
            return a, b + 1.0, n + 1.0

        return lax.while_loop(lambda carry: carry[2].sum() < z.sum(), body, (x, y, jnp.zeros(3)))

    assert dependent_returns(function, X, X, X) == [[0], [1, 2], [2]]


def test_a_branch_is_followed_for_each_result_by_itself():
    def function(p, x, y):
        return lax.cond(p, lambda: (jnp.sin(x), jnp.cos(y), 1.0), lambda: (x, y, 2.0))

    assert dependent_returns(function, True, X, X) == [[0, 1], [0, 2], [0]]


def test_what_a_combiner_captures_or_compares_decides_all_results():
    def function(x, y):
        return lax.sort((x, y), num_keys=1)

    assert dependent_returns(function, X, X) == [[0, 1], [0, 1]]
    flat = view(lambda x: x.sum(), X)
    [node] = [node for node in flat.nodes if node.op is ops.REDUCE]
    assert {*node.regions[0].arguments, *node.regions[0].returns} <= reached(flat, flat.arguments)


def test_a_barrier_hands_on_each_value_by_itself():
    assert dependent_returns(lambda x, y: lax.optimization_barrier((x, y)), X, X) == [[0], [1]]


def test_one_op_is_followed_by_itself():
    flat = view(lambda x, y: (jnp.sin(x), y * x), X, X)
    [sine, product] = flat.nodes
    assert reached(sine, flat.arguments[:1]) == {flat.arguments[0], *sine.results}
    assert reached(product, flat.arguments[1:]) == {flat.arguments[1], *product.results}


def test_equal_sources_have_a_bit_each():
    flat = view(jnp.sin, X)
    assert sources_of(flat, flat.arguments * 2)[flat.returns[0]] == 0b11


def test_deep_nests_of_loops_take_no_longer_than_their_ops():
    """Two rounds of each loop within each round of the one around it would not end."""

    def nested(depth, x):
        if not depth:
            return jnp.sin(x)
        return lax.fori_loop(0, 2, lambda _, y: nested(depth - 1, y), x)

    flat = view(lambda x: nested(40, x), X)
    assert flat.returns[0] in reached(flat, flat.arguments)
    assert sources_of(flat, flat.arguments)[results(flat, "sine")] == 1


def test_live_nodes_are_those_that_the_outputs_need():
    flat = view(lambda x: (jnp.sin(jnp.cos(x)), jnp.tan(x)), X)
    cosine, sine = (results(flat, name).producer for name in ("cosine", "sine"))
    assert live_nodes(flat.nodes, flat.arguments, flat.returns[:1]) == [cosine, sine]
    assert live_nodes(flat.nodes, cosine.results, flat.returns[:1]) == [sine]
    with pytest.raises(ValueError, match="1 values come from outside"):
        live_nodes([sine], flat.arguments, sine.results)
