"""The folding of any program: transformation, layer, scope, source line, and never many members in one group."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo.view import view_of
from fusionlab.report.pictures.folding import MOST_MEMBERS, fold, is_hidden
from fusionlab.report.pictures.scope_tree import scope_tree

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def view_for(lowered):
    return lambda function, *args: view_of(lowered(function, *(args or (X,))).parse())


def labels(folding, name):
    """The paths of the ops called ``name``, as text."""
    return {
        "/".join(step.label for step in path)
        for node, path in folding.paths.items()
        if node.name == f"stablehlo.{name}"
    }


def network(x):
    with jax.named_scope("encoder"):
        x = jnp.sin(x)
    with jax.named_scope("decoder"):
        return jnp.sum(jnp.exp(x))


def test_transformation_and_scope_are_the_groups(view_for):
    folding = fold(view_for(lambda x: x - jax.grad(network)(x)))
    assert not folding.staged
    assert labels(folding, "sine") == {"jvp (forward pass)/encoder"}
    assert labels(folding, "cosine") == {"jvp (forward pass)/encoder"}
    assert labels(folding, "multiply") == {"transpose (reverse pass)/decoder", "transpose (reverse pass)/encoder"}
    assert labels(folding, "subtract") == {"primal (values)"}
    assert {one.role for one in folding.attributions.values()} == {""}


def test_one_transformation_is_no_group(view_for):
    assert labels(fold(view_for(network)), "sine") == {"encoder"}


def test_a_loop_stands_in_its_scope_and_holds_the_scopes_inside(view_for):
    def model(x):
        with jax.named_scope("rollout"):

            def body(carry, _):
                with jax.named_scope("cell"):
                    return jnp.tanh(carry), ()

            return lax.scan(body, x, None, length=5)[0]

    assert labels(fold(view_for(model)), "tanh") == {"rollout/while/cell"}


def test_a_constant_read_by_a_loop_stays_outside_of_it(view_for):
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    folding = fold(view_for(lambda x: lax.fori_loop(0, 5, lambda k, y: jnp.sin(y) + table, x)))
    arrays = [path for node, path in folding.paths.items() if node.name == "stablehlo.constant"]
    assert arrays
    assert not [path for path in arrays if any(step.kind == "loop" for step in path)]


HEADS = np.random.default_rng(0).random(900) < 0.5


def unrolled(count):
    """``count`` steps in no regular order, from one line, without scopes."""

    def model(x):
        for i in range(count):
            x = jnp.sin(x) if HEADS[i] else jnp.tanh(x) * (1 + i)
        return x

    return model


def chain(x):
    for i in range(45):
        if HEADS[i]:
            x = x * (1.5 + i)
        x = jnp.sin(x)
    return x


@pytest.mark.parametrize("function", [unrolled(30), unrolled(900), chain])
def test_no_group_has_many_members_and_nothing_is_lost(function, view_for):
    view = view_for(function)
    tree = scope_tree(view)
    members = Counter(leaf.group for leaf in tree.leaves if not is_hidden(leaf.node))
    members += Counter(group.parent for group in tree.groups if group.parent >= 0)
    assert max(members.values()) <= MOST_MEMBERS
    assert tree.groups[0].ops == len(tree.leaves) == len(fold(view).paths)


def test_ops_without_scopes_are_grouped_by_source_line(view_for):
    groups = [group for group in scope_tree(view_for(chain)).groups if group.kind == "source"]
    assert len(groups) == 2
    assert all(group.label.startswith("test_folding.py:") for group in groups)


def test_layers_without_scopes_are_one_repeat(view_for):
    def model(x):
        for _ in range(5):
            x = x + jnp.tanh(x @ x.T @ x) * jnp.exp(-x) / (1 + jnp.sin(x) ** 2) - jnp.cos(x)
        return x

    (repeat,) = [group for group in scope_tree(view_for(model)).groups if group.kind == "repeat"]
    assert (repeat.label, repeat.repeats, repeat.identical) == ("part ×5", 5, True)


def test_a_run_of_loops_is_counted_and_has_its_lines(view_for):
    def in_one_line(x):
        for _ in range(50):
            x = lax.fori_loop(0, 5, lambda k, y: jnp.sin(y) + k, x)
        return x

    def in_two_lines(x):
        for _ in range(13):
            x = lax.fori_loop(0, 5, lambda k, y: jnp.sin(y) + k, x)
            x = lax.fori_loop(0, 6, lambda k, y: jnp.cos(y) + k, x)
            x = lax.while_loop(lambda y: jnp.all(y < 1), lambda y: y * 2, x)
            x = lax.cond(jnp.all(x > 1), jnp.sin, jnp.cos, x)
        return x

    def runs(function):
        found = [group.label for group in scope_tree(view_for(function)).groups if group.kind == "run"]
        return {"".join("#" if character.isdigit() else character for character in label) for label in found}

    assert any(label.startswith("## × while (test_folding.py:###)") for label in runs(in_one_line)), runs(in_one_line)
    for function in (in_one_line, in_two_lines):
        assert not [label for label in runs(function) if "while to while" in label]
