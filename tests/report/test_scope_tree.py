"""Levels of detail: where ops belong, what repeats, what flows into loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.scope_tree import scope_tree

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def tree_of(lowered):
    return lambda function: scope_tree(view_of(lowered(function, X).parse()))


def network(*layers):
    def apply(x):
        for i, layer in enumerate(layers):
            with jax.named_scope("stage_b"), jax.named_scope(f"interaction_{i}"):
                x = layer(x)
        return x

    return apply


def double(x):
    return jnp.tanh(x) * 2


@pytest.mark.parametrize(("layers", "identical", "ops"), [(3 * (double,), True, 9), ((jnp.sin, double), False, 4)])
def test_layers_are_one_repeat_that_says_if_they_are_identical(layers, identical, ops, tree_of):
    tree = tree_of(network(*layers))
    repeat = next(group for group in tree.groups if group.kind == "repeat")
    assert (repeat.label, repeat.repeats) == (f"interaction ×{len(layers)}", len(layers))
    assert repeat.identical == identical
    assert tree.groups[repeat.parent].label == "B primal"
    inside = [group.label for group in tree.groups if tree.groups[group.parent] is repeat]
    assert inside == [f"interaction_{i}" for i in range(len(layers))]
    assert repeat.ops == len(tree.leaves) == ops


def test_a_loop_holds_its_body_times_its_trips(tree_of):
    tree = tree_of(lambda x: lax.fori_loop(0, 5, lambda k, s: s + x * 2.0, jnp.zeros_like(x)))
    loop = next(group for group in tree.groups if group.kind == "loop")
    assert loop.trips == 5
    product = next(leaf for leaf in tree.leaves if leaf.node.name == "stablehlo.multiply")
    assert product.runs == 5
    assert product.flops == 5 * X.size


def test_flows_say_what_a_loop_reads_again_and_what_it_carries(tree_of):
    def summed(x):
        y = jnp.tanh(x)
        return lax.fori_loop(0, 5, lambda k, s: jnp.sin(s) + y, x) * 3.0

    tree = tree_of(summed)
    place = {leaf.node.name.removeprefix("stablehlo."): i for i, leaf in enumerate(tree.leaves)}
    size = X.nbytes
    found = {(flow.source, flow.target, flow.kind): flow.bytes for flow in tree.flows}
    inner = next(i for i, leaf in enumerate(tree.leaves) if leaf.node.name == "stablehlo.add" and leaf.bytes > 5 * size)
    assert found[place["tanh"], inner, "residual"] == size
    assert found[inner, place["sine"], "carried"] == size
    assert found[-1, place["sine"], "data"] == size
    assert found[inner, place["multiply"], "data"] == size


def test_every_op_is_counted_once(tree_of):
    tree = tree_of(lambda x: jnp.linalg.slogdet(x @ x.T + jnp.eye(3))[1])
    assert tree.groups[0].ops == len(tree.leaves)
    assert tree.groups[0].bytes == sum(leaf.bytes for leaf in tree.leaves)
    assert all(group.parent < i for i, group in enumerate(tree.groups))
