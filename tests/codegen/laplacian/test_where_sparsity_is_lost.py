"""The op and line at which directions become dense, what is behind it, and the advice; and that nothing is lost."""

import inspect
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.codegen.laplacian.sparsity import NOTABLE, Mixing, Sparsity
from fusionlab.codegen.laplacian.state import Options

from .jet_cases import N, V, W, X, h

ALL = np.linspace(-1, 1, 3 * N * 5).reshape(3 * N, 5)
WIDE = np.linspace(-1, 1, 5 * 40).reshape(5, 40)


def all_in_one_layer(x):
    first = jnp.tanh(x.reshape(x.shape[0], -1) @ ALL)  # lost
    return jnp.tanh(first @ V).sum(-1)


def deep_sets(x):
    each = jnp.tanh(h(x) @ V)
    pooled = each.sum(1)  # lost
    return jnp.tanh(pooled @ WIDE).sum(-1)


def mean_joined(x):
    shared = jnp.broadcast_to(h(x).mean(1, keepdims=True), h(x).shape)
    both = jnp.concatenate([h(x), shared], -1)
    return jnp.tanh(both @ jnp.concatenate([V, V])).sum((1, 2))  # lost


def added(x):
    return jnp.tanh(h(x) * 2 + jnp.sin(h(x).sum(1, keepdims=True))).sum((1, 2))  # lost


def attention(x):
    scores = jnp.exp(jnp.einsum("bif,bjf->bij", h(x), h(x)))
    mixed = jnp.einsum("bij,bjf->bif", scores, h(x))  # lost
    return jnp.tanh(mixed @ WIDE).sum((1, 2))


def quadruples(x):
    pairs = h(x)[:, :, None] * h(x)[:, None]
    return jnp.sin(pairs[:, :, :, None, None] * pairs[:, None, None]).sum((1, 2, 3, 4, 5))  # lost


def chosen_by_data(x):
    one = jax.lax.dynamic_slice_in_dim(h(x), jnp.argmax(x[0, 0]), 1, 1)  # lost
    return jnp.tanh(one @ WIDE).sum((1, 2))


def layers_in_a_loop(x):
    return jax.lax.fori_loop(0, 3, lambda k, y: jnp.tanh(y @ V), h(x)).sum((1, 2))  # lost


def sorted_electrons(x):
    return jnp.tanh(jnp.sort(h(x), 1) @ WIDE).sum((1, 2))  # lost


def determinants(x):
    """As JAX writes ``jnp.linalg.det`` where it is differentiated."""
    factors, _, _ = jax.lax.linalg.lu(h(x) @ WIDE[:, :N])  # lost
    return jnp.prod(jnp.diagonal(factors, axis1=-2, axis2=-1), -1)


def factors(x):
    overlaps = jnp.einsum("bif,bjf->bij", h(x), h(x)) + 9 * jnp.eye(N)
    return jnp.tanh(jnp.linalg.cholesky(overlaps) @ WIDE.T[:N]).sum((1, 2))  # lost


LOST = {
    all_in_one_layer: ("dot_general", Mixing.CONTRACTION, 3),
    deep_sets: ("reduce", Mixing.REDUCTION, 3),
    mean_joined: ("dot_general", Mixing.JOINED, 3),
    added: ("add", Mixing.JOINED, 3),
    attention: ("dot_general", Mixing.CONTRACTION, 6),
    quadruples: ("multiply", Mixing.MANY, 6),
    chosen_by_data: ("dynamic_slice", Mixing.INDEX, 3),
    layers_in_a_loop: ("while", Mixing.LOOP, 3),
    sorted_electrons: ("sort", Mixing.WHOLE, 3),
    determinants: ("lapack_dgetrf_ffi", Mixing.DETERMINANT, 3),
    factors: ("lapack_dpotrf_ffi", Mixing.LIBRARY, 6),
}


def sum_of_each(x):
    return jnp.tanh(jnp.tanh(jnp.tanh(x @ (W[:3] @ V)) @ WIDE) @ WIDE.T).mean(-1).sum(1)


def sum_of_pairs(x):
    pairs = jnp.tanh(h(x) @ WIDE)[:, :, None] * jnp.tanh(h(x) @ WIDE)[:, None]
    return jnp.tanh(pairs @ WIDE.T).mean(-1).sum((1, 2))


def line_of(function, marked="# lost"):
    lines, first = inspect.getsourcelines(function)
    [at] = [at for at, line in enumerate(lines) if line.rstrip().endswith(marked)]
    return f"{__file__.rpartition('/')[2]}:{first + at}"


@pytest.mark.parametrize("function", LOST, ids=lambda function: function.__name__)
def test_the_op_and_its_line_are_named(function, jets_of):
    op, mixing, before = LOST[function]
    found = jets_of(function, X).sparsity
    [lost, *_] = found.notable
    assert (lost.op, lost.mixing, lost.source) == (op, mixing, line_of(function))
    assert (lost.before, lost.after) == (before, 3 * N)
    assert f"lost at {op} ({line_of(function)}): {before} directions become {3 * N}" in found.line
    assert mixing.instead in found.lines()[1]


@pytest.mark.parametrize("function", [sum_of_each, sum_of_pairs], ids=lambda function: function.__name__)
def test_nothing_is_lost_up_to_a_sum(function, jets_of):
    found = jets_of(function, X).sparsity
    assert found.notable == ()
    assert found.lines() == [found.line]
    assert found.line.startswith("nothing lost")
    assert all(found.share(each) < NOTABLE for each in found.lost)  # the sum itself


def test_the_cost_is_that_of_the_rows_behind_the_op(jets_of):
    """One layer of 18 rows in place of 3, by hand; float64 of ``X``'s walkers."""

    def function(x):
        return jnp.tanh(x.reshape(x.shape[0], -1) @ ALL)

    [lost] = jets_of(function, X).sparsity.lost
    walkers, extra = X.shape[0], 3 * N - 3
    assert lost.cost.flops == extra * walkers * 5 * (2 * 3 * N + 3)
    assert lost.cost.bytes == extra * walkers * 8 * (3 * N + 5 + 5 + 5)
    assert (lost.behind, lost.count) == (2, 1)


def test_each_op_is_counted_at_one_loss(jets_of):
    found = jets_of(lambda x: mean_joined(x) * deep_sets(x), X).sparsity
    assert len(found.lost) > 2
    assert sum(each.cost.flops for each in found.lost) < found.whole.flops
    assert sum(each.cost.bytes for each in found.lost) < found.whole.bytes


def test_one_line_in_a_loop_of_layers_is_one_loss(jets_of):
    def function(x):
        y = h(x)
        return sum(jnp.tanh(jnp.sin(y * k).sum(1)).sum(-1) for k in (1.0, 2.0, 3.0))

    counts = [each.count for each in jets_of(function, X).sparsity.lost if each.mixing is Mixing.REDUCTION]
    assert counts == [3]


def test_a_concatenation_that_is_contracted_in_parts_is_no_loss(jets_of):
    """The parts keep their directions; the op that adds them up is named, and not the concatenation."""
    ops = {each.op for each in jets_of(mean_joined, X).sparsity.lost}
    assert "concatenate" not in ops


def test_a_dense_run_says_so(jets_of):
    found = jets_of(sum_of_each, X, options=Options(sparse=False)).sparsity
    assert found.lost == ()
    assert found.line == f"all {3 * N} directions are carried from the coordinates on"


def test_it_survives_json_and_lines_that_moved(jets_of):
    found = jets_of(deep_sets, X).sparsity
    read = Sparsity.from_json(json.loads(json.dumps(found.to_json())))
    assert read.lines() == found.lines()
    assert read.to_json() == found.to_json()
    moved = found.without_lines()
    assert [each.source for each in moved.lost] == [""] * len(found.lost)
    assert [each.place for each in moved.lost] == [each.scope for each in found.lost]


def test_the_time_is_that_of_a_model_if_there_is_one(jets_of):
    found = jets_of(deep_sets, X).sparsity
    assert "12.0 us" in found.lines(lambda cost: 12.0)[1]
    assert " us" not in found.lines()[1]
