"""What ops do along the axes that count walkers, against what changes where one walker's input does."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.raising import Raising, raise_program
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import (
    FactorKind,
    factors_along,
    keeps_apart,
    resized_shapes,
    united,
    varies,
    walker_axes,
)
from fusionlab.hlo.program import program_view
from fusionlab.hlo.view import view_of

B, N = 5, 3
X = np.random.default_rng(0).standard_normal((B, N, 2)).astype(np.float32)
STEPS = {
    "sine": jnp.sin,
    "twice": lambda x: x * x,
    "scaled": lambda x: x * jnp.arange(1.0, 1 + x.shape[-1], dtype=x.dtype),
    "numbered": lambda x: x * jnp.arange(1.0, 1 + len(x), dtype=x.dtype).reshape(-1, *(1,) * (x.ndim - 1)),
    "transposed": lambda x: jnp.moveaxis(x, 0, -1),
    "back": lambda x: jnp.moveaxis(x, -1, 0),
    "merged": lambda x: x.reshape(-1, x.shape[-1]),
    "split": lambda x: x.reshape(B, -1, x.shape[-1]),
    "split-at-the-end": lambda x: x.reshape(-1, B) if not x.size % B else x,
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x - x.mean(0),
    "largest": lambda x: x.max(0, keepdims=True) + x,
    "reversed": lambda x: x[::-1],
    "reversed-within": lambda x: x[..., ::-1],
    "sorted": lambda x: jnp.sort(x, 0),
    "sorted-within": lambda x: jnp.sort(x, -1),
    "shifted": lambda x: lax.pad(x, np.float32(0), [(1, -1, 0), *[(0, 0, 0)] * (x.ndim - 1)]),
    "padded": lambda x: lax.pad(x, np.float32(0), [*[(0, 0, 0)] * (x.ndim - 1), (1, 2, 0)]),
    "halved": lambda x: x[..., : max(x.shape[-1] // 2, 1)],
    "without-the-first": lambda x: x[1:] if len(x) > 1 else x,
    "joined": lambda x: jnp.concatenate([x, jnp.cos(x)], -1),
    "joined-first": lambda x: jnp.concatenate([x, jnp.cos(x)], 0),
    "cumulated": lambda x: lax.cumsum(x, 0),
    "cumulated-within": lambda x: lax.cumsum(x, x.ndim - 1),
    "contracted": lambda x: x.reshape(len(x), -1) @ x.reshape(len(x), -1).T,
    "over-walkers": lambda x: jnp.einsum("b...,bk->k...", x, x.reshape(len(x), -1)[:, :1]),
    "weights": lambda x: x @ jnp.linspace(-1.0, 1.0, 2 * x.shape[-1], dtype=x.dtype).reshape(-1, 2),
    "repeated": lambda x: jnp.broadcast_to(x[None], (2, *x.shape)),
    "read": lambda x: x[jnp.argsort(x.reshape(len(x), -1)[:, 0])],
    "read-at-own-numbers": lambda x: x + x[jnp.arange(len(x))],
    "read-within": lambda x: jnp.take(x, np.zeros(2, int), axis=-1),
    "chosen": lambda x: jnp.take_along_axis(x, jnp.argmax(x, -1, keepdims=True), -1),
    "written": lambda x: x.at[jnp.int32(jnp.abs(x.reshape(-1)[0]))].set(1.0),
    "written-at-own-numbers": lambda x: x + jnp.zeros_like(x).at[jnp.arange(len(x))].add(x),
    "sliced-at-data": lambda x: x * lax.dynamic_slice_in_dim(x, jnp.int32(jnp.abs(x.reshape(-1)[0])), 1, 0),
    "updated": lambda x: lax.dynamic_update_slice_in_dim(x, x[:1] * 2, 1 % len(x), 0),
    "updated-within": lambda x: lax.dynamic_update_slice_in_dim(x, x[..., :1] * 2, 0, x.ndim - 1),
    "loop": lambda x: lax.fori_loop(0, 2, lambda k, y: jnp.cos(y) + k, x),
    "loop-that-shifts": lambda x: lax.fori_loop(0, 2, lambda k, y: jnp.roll(y, 1, 0), x),
    "branches": lambda x: lax.cond(X[0, 0, 0] < 9.0, jnp.sin, lambda y: y[::-1], x),
    "until-all-are-done": lambda x: lax.while_loop(lambda y: (y < 1.0).any(), lambda y: y + 0.5, x),
    "determinants": lambda x: x * jnp.linalg.det(jnp.eye(2) + x.reshape(len(x), -1)[:, :1, None]).reshape(
        -1, *(1,) * (x.ndim - 1)
    ),
    "windows": lambda x: lax.reduce_window(x, -np.inf, lax.max, (1,) * (x.ndim - 1) + (1,), (1,) * x.ndim, "VALID"),
    "convolved": lambda x: lax.conv_general_dilated(x.reshape(len(x), 1, -1), jnp.ones((1, 1, 2)), (1,), "SAME"),
    "barrier": lambda x: lax.optimization_barrier((x, jnp.ones((len(x), 2))))[0],
}  # fmt: skip


APART = {
    "sine", "twice", "scaled", "numbered", "transposed", "back", "merged", "split", "sum", "reversed-within",
    "sorted-within", "padded", "halved", "joined", "cumulated-within", "weights", "repeated", "read-at-own-numbers",
    "read-within", "chosen", "written-at-own-numbers", "updated-within", "loop", "determinants", "windows", "convolved",
    "barrier",
}  # fmt: skip
"""The steps that compute every walker from the same walker alone; all are found to."""


def applied(names):
    def function(x):
        for name in names:
            x = STEPS[name](x)
        return x

    return function


def lowered(function, x=X):
    return view_of(jax.jit(function).trace(x).lower(lowering_platforms=("cpu",)).compiler_ir("stablehlo"))


def found_apart(flat, marks, **options):
    """True if every op keeps walkers apart, and the results have them."""
    kept = all(keeps_apart(node, marks, **options) for node in flat.walk())
    return kept and all(marks.get(value) for value in flat.returns)


def found_alike(flat, marks):
    """True if besides nothing but the arguments differs between walkers."""
    differs = (varies(n, axis) for n in flat.walk() for value in n.results for axis in marks.get(value, ()))
    return found_apart(flat, marks, own_places=False) and not any(differs)


def by_walker(array, axis, stride, walkers=B):
    """[walkers, ...]: the elements of each along an axis on which they have a stride."""
    array = np.moveaxis(array, axis, 0)
    parts = array.reshape(-1, walkers, stride, *array.shape[1:])
    return np.moveaxis(parts, 1, 0)


def of_walkers(function, marks, value):
    """The function, of any number of walkers, with these in front of its result."""
    [axis] = marks[value]
    [stride] = marks.strides[value, axis]
    call = jax.jit(function, compiler_options=CPU_OPTIONS)
    return lambda x: by_walker(np.asarray(call(x)), axis, stride, len(x))


def assert_apart(call):
    before = call(X)
    for walker in range(B):
        others = np.arange(B) != walker
        for change in (0.7, -3.0):
            x = X.copy()
            x[walker] += change
            np.testing.assert_array_equal(call(x)[others], before[others])


def assert_alike(call):
    order = np.roll(np.arange(B), 2)[::-1]
    np.testing.assert_allclose(call(X[order]), call(X)[order], rtol=1e-5, atol=1e-6)


def assert_sound(names):
    """What is found apart or alike is so; the program is the same one at fewer walkers then."""
    function, flat = applied(names), lowered(applied(names))
    marks = walker_axes(flat, [(flat.arguments[0], 0)])
    [value] = flat.returns
    if not (apart := found_apart(flat, marks)):
        return False
    call = of_walkers(function, marks, value)
    assert_apart(call)
    if found_alike(flat, marks):
        assert_alike(call)
        few = raise_program(flat, Raising(shapes=resized_shapes(marks, B, 2)))
        cut = of_walkers(lambda x: few(x)[0], marks, value)
        np.testing.assert_allclose(cut(X[:2]), call(X)[:2], rtol=1e-5, atol=1e-6)
    return apart


@pytest.mark.parametrize("name", STEPS)
def test_one_step(name):
    assert assert_sound([name]) == (name in APART)


def is_defined(names):
    try:
        return jax.eval_shape(applied(names), X).ndim > 0
    except (TypeError, ValueError):  # a step that does not fit the shape before it
        return False


def random_programs(seed, count):
    """Of two to four steps, most of which keep walkers apart."""
    draw = random.Random(seed)
    while count:
        names = [draw.choice(sorted(APART) if draw.random() < 0.75 else list(STEPS)) for _ in range(draw.randint(2, 4))]
        if is_defined(names):
            count -= 1
            yield names


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_programs(seed):
    apart = [assert_sound(names) for names in random_programs(seed, 40 if seed == 0 else 400)]
    assert len(apart) / 5 < sum(apart) < len(apart)


def test_one_axis_with_walkers_in_two_orders():
    """[B, N] and [N, B] merged: the elements of an axis that are added are of different walkers."""
    flat = lowered(lambda x: x[..., 0].reshape(-1) + x[..., 1].T.reshape(-1))
    marks = walker_axes(flat, [(flat.arguments[0], 0)])
    assert marks[flat.returns[0]] == {0}
    [unknown] = [node for node in flat.nodes if not keeps_apart(node, marks)]
    assert unknown.op in (ops.ADD, ops.RESHAPE)


def test_a_reshape_that_is_no_transpose():
    flat = lowered(lambda x: x[..., 0].T + x[..., 1].reshape(N, B))
    marks = walker_axes(flat, [(flat.arguments[0], 0)])
    assert not found_apart(flat, marks)


def test_walkers_of_two_axes():
    """The strides of both are kept where they merge."""
    x = np.zeros((2, 3, 4), np.float32)
    flat = lowered(lambda x: jnp.sin(x.reshape(-1, 4)).reshape(2, 3, 4), x)
    marks = united({axis: walker_axes(flat, [(flat.arguments[0], axis)]) for axis in (0, 1)})
    merged = flat.nodes[0].results[0]
    assert marks.strides[merged, 0] == {1, 3}
    assert {factor.kind for node in flat.nodes for factor in factors_along(node, marks)} == {FactorKind.PASSED}


UNKNOWN = "stablehlo.custom_call @mystery(%x) : (tensor<5x3xf32>) -> tensor<5x3xf32>"
RANDOM = "stablehlo.rng_bit_generator %s, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5x3xui32>)"
CONVERTED = "%y = stablehlo.convert %u : (tensor<5x3xui32>) -> tensor<5x3xf32>"


@pytest.mark.parametrize("op", [f"%y = {UNKNOWN}", f"%t, %u = {RANDOM}\n{CONVERTED}"], ids=["call", "random"])
def test_ops_that_the_table_does_not_know_keep_nothing_apart(op, program_of_text):
    flat = program_view(
        program_of_text(f"""
        func.func public @main(%x: tensor<5x3xf32>, %s: tensor<2xui64>) -> tensor<5x3xf32> {{
            {op}
            %z = stablehlo.add %x, %y : tensor<5x3xf32>
            return %z : tensor<5x3xf32>
        }}""")
    )
    marks = walker_axes(flat, [(flat.arguments[0], 0)])
    assert [keeps_apart(node, marks) for node in flat.nodes] == [False, *[True] * (len(flat.nodes) - 1)]


def test_every_op_without_a_rule_is_unknown():
    assert ops.op_of("sdy.all_reduce").axes == ops.OpDef("of.somebody").axes == "unknown"


def test_windows_longer_than_one_are_no_walkers_of_their_own():
    """Each reads two walkers, from its own number on."""
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    function = lambda x: lax.gather(x, jnp.arange(B)[:, None], numbers, (2,))  # noqa: E731
    flat = lowered(function, np.zeros(B, np.float32))
    marks = walker_axes(flat, [(flat.arguments[0], 0), (flat.returns[0], 0)])
    assert not found_apart(flat, marks)
