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
    def make(function, *arguments):
        program = lowered(function, *arguments)
        module = program.parse()
        return scope_tree(view_of(module))

    return make


def layer(x):
    return jnp.tanh(x) * 2


def test_identical_layers_are_one_repeat(tree_of):
    def network(x):
        for i in range(3):
            with jax.named_scope("stage_b"), jax.named_scope(f"interaction_{i}"):
                x = layer(x)
        return x

    tree = tree_of(network, X)
    repeat = next(group for group in tree.groups if group.kind == "repeat")
    assert (repeat.label, repeat.repeats, repeat.identical) == ("interaction ×3", 3, True)
    assert tree.groups[repeat.parent].label == "B primal"
    inside = [group.label for group in tree.groups if tree.groups[group.parent] is repeat]
    assert inside == ["interaction_0", "interaction_1", "interaction_2"]
    assert repeat.ops == len(tree.leaves) == 9


def test_layers_that_differ_are_said_to(tree_of):
    def network(x):
        for i in range(2):
            with jax.named_scope("stage_b"), jax.named_scope(f"interaction_{i}"):
                x = layer(x) if i else jnp.sin(x)
        return x

    repeat = next(group for group in tree_of(network, X).groups if group.kind == "repeat")
    assert (repeat.repeats, repeat.identical) == (2, False)


def test_a_loop_holds_its_body_times_its_trips(tree_of):
    tree = tree_of(lambda x: lax.fori_loop(0, 5, lambda k, s: s + x * 2.0, jnp.zeros_like(x)), X)
    loop = next(group for group in tree.groups if group.kind == "loop")
    assert loop.trips == 5
    product = next(leaf for leaf in tree.leaves if leaf.node.name == "stablehlo.multiply")
    assert product.runs == 5
    assert product.flops == 5 * X.size


def test_flows_say_what_a_loop_reads_again_and_what_it_carries(tree_of):
    def summed(x):
        y = jnp.tanh(x)
        return lax.fori_loop(0, 5, lambda k, s: jnp.sin(s) + y, x) * 3.0

    tree = tree_of(summed, X)
    place = {leaf.node.name.removeprefix("stablehlo."): i for i, leaf in enumerate(tree.leaves)}
    size = X.nbytes
    found = {(flow.source, flow.target, flow.kind): flow.bytes for flow in tree.flows}
    inner = next(i for i, leaf in enumerate(tree.leaves) if leaf.node.name == "stablehlo.add" and leaf.bytes > 5 * size)
    assert found[place["tanh"], inner, "residual"] == size
    assert found[inner, place["sine"], "carried"] == size
    assert found[-1, place["sine"], "data"] == size
    assert found[inner, place["multiply"], "data"] == size


def test_every_op_is_counted_once(tree_of):
    tree = tree_of(lambda x: jnp.linalg.slogdet(x @ x.T + jnp.eye(3))[1], X)
    assert tree.groups[0].ops == len(tree.leaves)
    assert tree.groups[0].bytes == sum(leaf.bytes for leaf in tree.leaves)
    assert all(group.parent < i for i, group in enumerate(tree.groups))
