"""Programs at fewer walkers: the same function of each, or no other number of walkers at all."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.identity import compare_functions
from fusionlab.equivalence.few_walkers import resized
from fusionlab.equivalence.oracle import program_runner, xla_runner
from fusionlab.hlo.program import program_view
from fusionlab.hlo.view import constant_array

WALKERS, N, F = 7, 4, 5
X = jax.ShapeDtypeStruct((WALKERS, N, 3), np.float32)
W = np.linspace(-1.0, 1.0, 3 * F, dtype=np.float32).reshape(3, F)
OF_WALKERS = np.arange(WALKERS, dtype=np.float32)


def layer(x):
    return jnp.tanh(x @ W)


def determinant(x):
    return jnp.linalg.slogdet(layer(x)[..., :N] + jnp.eye(N))[1]


ALIKE = {
    "layers": lambda x: layer(x) @ W.T,
    "reduced": lambda x: layer(x).max((1, 2)),
    "other-layout": lambda x: jnp.moveaxis(jnp.moveaxis(layer(x), 0, 2) * 2.0, 2, 0),
    "pairs": lambda x: jnp.linalg.norm(x[:, :, None] - x[:, None] + 1, axis=-1),
    "pair-list": lambda x: x[:, np.array([0, 0, 1])] - x[:, np.array([1, 2, 3])],
    "scattered": lambda x: layer(x).at[:, np.array([1, 3])].add(jnp.cos(layer(x)[:, :2])),
    "chosen-by-walker": lambda x: jnp.take_along_axis(layer(x), jnp.argmax(layer(x), 1, keepdims=True), 1),
    "sorted-and-reversed": lambda x: jnp.sort(x, 1)[:, ::-1],
    "joined": lambda x: jnp.concatenate([jnp.pad(x, ((0, 0), (1, 0), (0, 0))), x], 1),
    "diagonal": lambda x: jax.vmap(lambda y: jnp.diagonal(y @ y.T))(x),
    "determinants": determinant,
    "loop": lambda x: lax.fori_loop(0, 3, lambda k, y: jnp.sin(y) * k + lax.dynamic_slice_in_dim(y, k, 1, 1), x),
    "branches": lambda x: lax.cond(W.sum() < 1.0, jnp.sin, jnp.cos, x),
    "barrier": lambda x: lax.optimization_barrier((x, jnp.sin(x)))[1],
    "beside-a-mean": lambda x: (lambda e: (e, e.mean(0)))(layer(x).sum((1, 2)))[0],
    "cumulated": lambda x: jnp.cumsum(x, 1),
    "equal-constants": lambda x: x + np.broadcast_to(np.arange(3, dtype=np.float32), x.shape),
}
MIXED = {
    "mean": lambda x: layer(x) - layer(x).mean(0),
    "scalar": lambda x: layer(x).sum(),
    "between-walkers": lambda x: jnp.einsum("bnc,anc->ba", x, x),
    "contracted": lambda x: jnp.einsum("bnc,anc,an->bc", x, x, x[..., 0]),
    "exchanged": lambda x: x[::-1],
    "rolled": lambda x: jnp.roll(x, 1, 0),
    "shifted": lambda x: jnp.pad(x, ((1, 0), (0, 0), (0, 0)))[:-1] * x,
    "sorted": lambda x: jnp.sort(x, 0),
    "summed-up": lambda x: jnp.cumsum(x, 0),
    "one-for-all": lambda x: x * x[:1],
    "one-changed": lambda x: x.at[3].set(1.0),
    "added-elsewhere": lambda x: x.at[jnp.int32(x[:, 0, 0])].add(x),
    "numbered": lambda x: x * jnp.arange(WALKERS, dtype=np.float32)[:, None, None],
    "constants": lambda x: x * OF_WALKERS[:, None, None],
    "a-table": lambda x: x * jnp.concatenate([jnp.ones(1), OF_WALKERS])[1:, None, None],
    "looked-up": lambda x: x[jnp.argsort(x[:, 0, 0])],
    "padded-and-cut": lambda x: lax.pad(x, np.float32(0), [(1, -1, 0), (0, 0, 0), (0, 0, 0)]) * x,
    "in-windows": lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 1, 1), (1, 1, 1), "SAME") * x,
    "joined-halves": lambda x: jnp.concatenate([x[:3], 2 * x[3:]]) * x,
    "numbered-by-an-index": lambda x: x * lax.dynamic_slice_in_dim(x, jnp.int32(x[0, 0, 0]), 1, 0),
    "written-to-by-all": lambda x: x * jnp.zeros(N).at[jnp.int32(x[:, 0, 0])].add(x[:, 0, 1])[None, :, None],
    "until-all-are-done": lambda x: lax.while_loop(lambda y: (y < 5.0).any(), lambda y: y + 1.0, x),
}


def each(cases):
    return pytest.mark.parametrize("function", [pytest.param(function, id=name) for name, function in cases.items()])


@each(ALIKE)
def test_walkers_that_are_treated_alike(function, lowered):
    """The program at 2 walkers is the one that is lowered at 2; electrons that are treated alike are walkers, too."""
    [found] = (made := resized([lowered(function, X)])).programs
    assert found.inputs[0].shape[0] == 2
    few = lowered(function, jax.ShapeDtypeStruct(found.inputs[0].shape, np.float32))
    assert (found.inputs, found.outputs) == (few.inputs, few.outputs)
    assert compare_functions(program_view(few), program_view(found)).result == "identical"
    given = np.random.default_rng(0).standard_normal(X.shape).astype(np.float32)
    expected = xla_runner(lowered(function, X))([given])
    found = xla_runner(found)(made.part([given]))[0]
    np.testing.assert_allclose(found, expected[0][tuple(map(slice, found.shape))], 1e-5, 1e-6)


@each(ALIKE)
@pytest.mark.parametrize("walkers", [2, WALKERS])
def test_more_walkers_than_there_were(function, walkers, lowered):
    """The program is the one that is lowered for so many."""
    many = 2 * WALKERS
    program = lowered(function, jax.ShapeDtypeStruct((walkers, N, 3), np.float32))
    assert resized([program], many) is None
    [found] = (made := resized([program], many, grow=True)).programs
    assert (made.walkers, found.inputs[0].shape) == (many, (many, N, 3))
    more = lowered(function, jax.ShapeDtypeStruct((many, N, 3), np.float32))
    assert (found.inputs, found.outputs) == (more.inputs, more.outputs)
    assert compare_functions(program_view(more), program_view(found)).result == "identical"


@each(MIXED)
def test_walkers_that_are_not(function, lowered):
    assert resized([lowered(function, X)]) is None
    assert resized([lowered(function, X)], 2 * WALKERS, grow=True) is None


def test_two_programs_are_resized_together_or_not_at_all(lowered):
    weights = jax.ShapeDtypeStruct((WALKERS, 3), np.float32)
    assert resized([lowered(f, X, weights) for f in (lambda x, w: x @ w.T, lambda x, w: x * w[:, None])]) is None
    alike = resized([lowered(f, X) for f in (jnp.sin, jnp.cos)])
    assert alike is not None
    assert resized(alike.programs) is None  # as few as asked for


def test_a_difference_is_seen_at_few_walkers(lowered):
    both = resized([lowered(lambda x, f=f: layer(x).sum((1, 2)) * f, X) for f in (1.0, 1.0000001)])
    verdict = compare_functions(*map(program_view, both.programs))
    assert verdict.result == "not-identical"
    assert "test_few_walkers.py" in verdict.first_difference


@pytest.mark.parametrize(
    ("leading", "few"), [((1, 9), (1, 2)), ((1, 1, 9), (1, 1, 2)), ((3, 9), (2, 2)), ((9, 1), (2, 1)), ((2, 9), (2, 2))]
)
def test_all_vmapped_axes_are_resized(leading, few, lowered):
    def function(w, x):
        return determinant((x + w)[None])[0]

    for _ in leading:
        function = jax.vmap(function, (None, 0))
    weights, x = (jax.ShapeDtypeStruct(shape, np.float32) for shape in ((3,), (*leading, N, 3)))
    found = resized([lowered(function, weights, x)])
    assert [type_.shape for type_ in found.programs[0].inputs] == [(3,), (*few, N, 3)]
    assert [type_.shape for type_ in found.programs[0].outputs] == [few]
    assert found.axes == (frozenset(), frozenset(axis for axis, n in enumerate(leading) if n > 2))


def test_a_function_is_resized_by_its_calls(lowered):
    """One function is called with walkers and without them, and within a loop."""
    shared = jax.jit(lambda y: jnp.tanh(y) * 2)
    weights = jax.ShapeDtypeStruct((WALKERS, N, 3), np.float32)

    def function(x, w):
        return lax.fori_loop(0, 2, lambda _, y: shared(y) + shared(x), x).sum((1, 2)) + shared(w).sum()

    [found] = resized([lowered(function, X, weights)]).programs
    assert [type_.shape for type_ in found.inputs] == [(2, N, 3), weights.shape]
    few = lowered(function, jax.ShapeDtypeStruct((2, N, 3), np.float32), weights)
    assert compare_functions(program_view(few), program_view(found)).result == "identical"


def test_a_constant_of_another_axis_keeps_its_elements_where_walkers_grow(lowered):
    [found] = resized([lowered(ALIKE["equal-constants"], X)], 9, grow=True).programs
    np.testing.assert_array_equal(xla_runner(found)([np.zeros((9, N, 3), np.float32)])[0][8], [[0, 1, 2]] * N)


@pytest.mark.parametrize("dtype", [np.complex64, jnp.bfloat16, np.bool_, np.int32])
def test_elements_of_every_type_are_cut(dtype, lowered):
    table = np.broadcast_to((np.arange(3) % 2).astype(dtype) * np.array(1.5).astype(dtype), (WALKERS, 3))
    given = jax.ShapeDtypeStruct((WALKERS, 3), dtype)
    [found] = resized([lowered(lambda x: jnp.where(x == table, x, table), given)]).programs
    x = np.zeros((2, 3), dtype)
    np.testing.assert_array_equal(program_runner(found)([x])[0], table[:2])


ONES = {
    "complex<f32>": "(1.0, -0.0)", "complex<f64>": "(1.0, 2.5)", "f16": "1.0", "bf16": "1.0", "f8E4M3FN": "1.0",
    "f8E5M2": "0x7F", "i4": "-1", "i1": "true", "ui64": "18446744073709551615", "f32": "0x7FC00000",
}  # fmt: skip
"""An element of each type."""


@pytest.mark.parametrize("dtype", ONES)
def test_constants_of_one_element_of_every_type_are_cut(dtype, program_of_text):
    """A splat of all walkers; beside it a scalar, and one without elements, which keep their extents."""
    whole, one, none = (f"tensor<{shape}{dtype}>" for shape in ("7x3x", "", "7x0x"))
    types = f"tensor<7x3xf32>, {whole}, tensor<7x{dtype}>, {none}"
    program = program_of_text(f"""
        func.func public @main(%x: tensor<7x3xf32>) -> ({types}) {{
            %0 = stablehlo.constant dense<{ONES[dtype]}> : {whole}
            %1 = stablehlo.constant dense<{ONES[dtype]}> : {one}
            %2 = stablehlo.broadcast_in_dim %1, dims = [] : ({one}) -> tensor<7x{dtype}>
            %3 = stablehlo.constant dense<> : {none}
            return %x, %0, %2, %3 : {types}
        }}
    """)
    few = resized([program])
    if dtype in ("f8E4M3FN", "f8E5M2", "i4"):  # elements that NumPy does not have are not cut
        assert few is None
        return
    [found] = few.programs
    assert [type_.shape for type_ in found.outputs] == [(2, 3), (2, 3), (2,), (2, 0)]
    expected, cut = (constant_array(program_view(one).returns[1].producer) for one in (program, found))
    np.testing.assert_array_equal(cut, expected[:2])
    assert constant_array(program_view(found).returns[3].producer).shape == (2, 0)


@pytest.mark.parametrize("name", ["token_in_a_loop", "axes_named_by_a_broadcast", "unreadable_constant"])
def test_what_is_not_followed_keeps_its_size(name, program_of_text):
    assert resized([program_of_text((Path(__file__).parent / f"{name}.mlir").read_text())]) is None
