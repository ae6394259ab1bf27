"""Which axes count walkers: the same program raised with another number of walkers computes the same numbers."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import fusionlab
from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.raising import Raising, raise_program
from fusionlab.equivalence.samples import workload_samples
from fusionlab.hlo import lowering
from fusionlab.hlo.batch_axes import FactorKind, factors_along, resized_shapes, walker_axes
from fusionlab.hlo.program import program_view
from fusionlab.workloads import catalogue
from tests.optional_packages import needs_deepqmc

PACKAGE = Path(fusionlab.__file__).parent
B, N, F = 7, 4, 5
_random = np.random.default_rng(2)
X = _random.standard_normal((24, N, 3)).astype(np.float32)
W = _random.standard_normal((3, F)).astype(np.float32)
V = _random.standard_normal((F, F)).astype(np.float32)


def raised(flat, arrays, shapes):
    call = jax.jit(raise_program(flat, Raising(shapes=shapes)), compiler_options=CPU_OPTIONS)
    with jax.enable_x64(True):
        return [np.asarray(result) for result in call(*arrays)]


def marked(program, extent):
    """The flat program and the marks that follow from its leading argument of ``extent`` walkers."""
    flat = program_view(program)
    x = next(a for a in flat.arguments if len(a.type.shape) == 3 and a.type.shape[0] == extent)
    return flat, x, walker_axes(flat, [(x, 0)])


def unmarked(flat, marks, extent):
    """Values that something reads, with an axis of as many elements as there are walkers, that are not marked."""
    nodes = list(flat.walk())
    read = {*flat.returns, *(value for node in nodes for value in node.operands)}
    read.update(value for node in nodes for region in node.regions for value in region.returns)
    return [v for node in nodes for v in node.results if v in read and extent in v.type.shape and v not in marks]


# -- small programs


def _h(x):
    return jnp.tanh(x @ W)


def _mixed_layouts(x):
    y = jnp.moveaxis(_h(x), 0, 2)  # [N, F, B]
    return jnp.moveaxis(jnp.einsum("nfb,fg->gnb", y, V), 2, 0)


def _scattered(x):
    return _h(x).at[:, np.array([1, 3])].add(jnp.cos(_h(x)[:, :2])).at[:, 0].set(2.0)


def _determinants(x):
    a = jnp.sin(jnp.einsum("bnf,bmf->bnm", _h(x), x @ W)) + 3 * jnp.eye(N)
    return jnp.linalg.slogdet(a)[1], jnp.linalg.solve(a, _h(x)), jnp.linalg.det(a)


def _branches(x):
    return lax.cond(x.sum() < 1e6, lambda y: jnp.sin(y) * _h(x), lambda y: y**2, _h(x))


SMALL = [
    ("layers", lambda x: _h(x) @ V + x.sum(-1, keepdims=True)),
    ("layouts", _mixed_layouts),
    ("merged-with-electrons", lambda x: jnp.tanh(_h(x).reshape(-1, F) @ V).reshape(-1, N, F)),
    ("merged-features", lambda x: _h(x).reshape(x.shape[0], -1)),
    ("pairs", lambda x: jnp.linalg.norm(x[:, :, None] - x[:, None] + 1, axis=-1)),
    ("pair-list", lambda x: x[:, np.array([0, 0, 1])] - x[:, np.array([1, 2, 3])]),
    ("chosen-by-walker", lambda x: jnp.take_along_axis(_h(x), jnp.argmax(_h(x), 1, keepdims=True), 1)),
    ("index-of-walkers", lambda x: _h(x)[jnp.arange(x.shape[0])[:, None], jnp.argsort(x[:, :, 0], 1)]),
    ("scattered", _scattered),
    ("joined", lambda x: jnp.stack([jnp.pad(_h(x), ((0, 0), (1, 0), (0, 0)))[:, 1:], _h(x)[:, ::-1]], 1)),
    ("sorted", lambda x: (jnp.sort(x, 1), jnp.cumsum(x, 1), jnp.argmax(x, 2), lax.cummax(x, 1))),
    ("determinants", _determinants),
    ("loop", lambda x: lax.fori_loop(0, 3, lambda k, y: jnp.sin(y @ V) * k + _h(x), _h(x))),
    ("scan", lambda x: lax.scan(lambda c, v: (jnp.tanh(c @ v), c[:, 0]), _h(x), jnp.stack([V, V]))[0]),
    ("branches", _branches),
    ("vmapped", jax.vmap(lambda y: lax.dynamic_slice_in_dim(jnp.outer(y[0], y[1]), jnp.argmax(y[0]), 1))),
]


def assert_same_at(walkers, flat, marks, extent):
    """The program of ``extent`` walkers gives the same numbers where it is raised at ``walkers`` of them."""
    found = raised(flat, [X[:walkers]], resized_shapes(marks, extent, walkers))
    both = min(extent, walkers)
    for ours, theirs in zip(found, raised(flat, [X[:extent]], {}), strict=True):
        assert ours.shape == (walkers, *theirs.shape[1:])
        np.testing.assert_allclose(ours[:both], theirs[:both], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [pytest.param(function, id=name) for name, function in SMALL])
def test_small_programs_at_fewer_and_at_more_walkers(function, lowered):
    flat, _, marks = marked(lowered(function, X[:B]), B)
    assert unmarked(flat, marks, B) == []
    for walkers in (2, 12):
        assert_same_at(walkers, flat, marks, B)


@pytest.mark.parametrize("walkers", [1, 3, N, F, 3 * N], ids=["one", "axes", "electrons", "features", "coordinates"])
def test_as_many_walkers_as_there_are_of_something_else(walkers, lowered):
    """Axes are followed op by op, so that an equal extent elsewhere is not taken for walkers."""

    def function(x):
        y = _h(x).reshape(-1, F) @ V
        return _mixed_layouts(x).sum(1)[..., None] + y.reshape(-1, N, F) @ jnp.ones((F, N)), _determinants(x)[0]

    flat, _, marks = marked(lowered(function, X[:walkers]), walkers)
    assert all(max(axes) < len(v.type.shape) for v, axes in marks.items())
    assert_same_at(2, flat, marks, walkers)


def test_an_axis_merged_with_another_is_marked_once(lowered):
    flat, x, marks = marked(lowered(lambda x: jnp.sin(x.reshape(-1, 3)).reshape(-1, N * 3), X[:B]), B)
    shapes = resized_shapes(marks, B, 2)
    assert shapes[x] == (2, N, 3)
    assert [shapes[node.results[0]] for node in flat.nodes] == [(2 * N, 3), (2 * N, 3), (2, N * 3)]


def test_a_mean_over_walkers_ends_the_axis(lowered):
    """What is computed from a mean has the same shape at every number of walkers, and means over those there are."""

    def function(x):
        mean = _h(x).mean(0)
        return mean, _h(x) - mean

    flat, _, marks = marked(lowered(function, X[:B]), B)
    mean, difference = flat.returns
    assert mean not in marks
    assert marks[difference] == {0}
    first, _ = raised(flat, [X[:2]], resized_shapes(marks, B, 2))
    np.testing.assert_allclose(first, _h(X[:2]).sum(0) / B, rtol=1e-5)


def _matrices(x):
    """[B, B, B]: walkers first, and then as many rows and columns."""
    return 3 * jnp.eye(B) + jnp.einsum("bnf,fk,fl->bkl", jnp.sin(_h(x)), jnp.ones((F, B)), jnp.ones((F, B)))


LINEAR_ALGEBRA = {
    "determinant": lambda a: jnp.linalg.slogdet(a)[1],
    "solve": lambda a: jnp.linalg.solve(a, jnp.cos(a)),
    "triangular-solve": lambda a: lax.linalg.triangular_solve(a, jnp.cos(a), left_side=True),
    "matrix-of-a-solve": lambda a: lax.linalg.triangular_solve(a, jnp.ones_like(a), lower=True),
    "cholesky": lax.linalg.cholesky,
    "fourier": lambda a: jnp.fft.fft2(a).real,
}


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", LINEAR_ALGEBRA)
def test_matrices_of_walkers_are_told_from_matrices_along_them(name, platform, lowered):
    """A batch of matrices is one per walker; along their rows and columns, walkers are mixed."""

    def mixed(at):
        function = lambda x: LINEAR_ALGEBRA[name](jnp.moveaxis(_matrices(x), 0, at))  # noqa: E731
        flat, _, marks = marked(lowered(function, X[:B], platform=platform), B)
        return [
            node.name
            for node in flat.walk()
            if node.family in ("factorisation", "triangular-solve", "fft")
            and any(factor.kind is not FactorKind.PASSED for factor in factors_along(node, marks))
        ]

    assert mixed(0) == []
    assert mixed(1)
    assert mixed(2)


def test_what_is_not_walkers_is_not_marked(lowered):
    """Weights of their extent; and a part of the walkers, where a program of another number of them is another one."""
    weights = _random.standard_normal((3, B)).astype(np.float32)
    flat, _, marks = marked(lowered(lambda x, w: (jnp.tanh(x @ w) @ (w.T @ w), jnp.sin(x[1:])), X[:B], weights), B)
    whole, part = flat.returns
    assert marks[whole] == {0}
    assert not {flat.arguments[1], part} & marks.keys()


def test_electrons_before_walkers_in_a_merged_axis(lowered):
    """[N, B] -> [N B] -> [N, B]: the walkers are the inner part, also where B divides N."""

    def function(x):
        merged = jnp.sin(jnp.moveaxis(x, 0, 1).reshape(-1, 3))
        return jnp.moveaxis(merged.reshape(N, -1, 3), 1, 0)

    for walkers in (B, 2, N):
        flat, _, marks = marked(lowered(function, X[:walkers]), walkers)
        (whole,) = raised(flat, [X[:walkers]], {})
        (few,) = raised(flat, [X[:1]], resized_shapes(marks, walkers, 1))
        np.testing.assert_allclose(few, whole[:1], rtol=1e-6)


def test_known_axes_of_different_extents_are_an_error(lowered):
    flat = program_view(lowered(lambda x, y: x + y.sum(), X[:B], X[:3]))
    with pytest.raises(ValueError, match=r"different extents: \[3, 7\]"):
        walker_axes(flat, [(argument, 0) for argument in flat.arguments])


# -- one table

AXES = {
    "GatherDimensionNumbers", "ScatterDimensionNumbers", "ConvDimensionNumbers", "broadcast_dimensions", "permutation",
    "iota_dimension", "dimensions", "dimension", "edge_padding_low", "window_dimensions", "fft_length",
}  # fmt: skip
"""Names by which an op says which axes of its operands are which of its results."""
OF_ONE_OP = ("codegen/raising/rules/", "codegen/laplacian/", "equivalence/exact/rules/", "workloads/", "hlo/optimised/")
OTHERS = {
    *("hlo/constants.py", "hlo/cost.py", "hlo/diff/lines.py", "hlo/loops.py", "hlo/replay.py", "hlo/strided.py"),
    *("codegen/between_collectives.py", "codegen/kernels/dot_chains/parts.py", "codegen/kernels/row_programs.py"),
    "codegen/kernels/jet_layers/layer.py",
    *(f"passes/{name}.py" for name in ("batched_dot_kernels", "hoist_reduce_through_dot", "pack_isomorphic_slices")),
    *("passes/scatter_to_gather.py", "passes/sink_broadcast_through_dot.py"),
    "ledger/buffer_copies.py",
}
"""Files that evaluate, recognise, price or rewrite single ops; none follows axes through a program."""


def _named_in(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Attribute):
            yield node.attr
            if node.attr == "axes" and isinstance(node.value, ast.Attribute) and node.value.attr == "op":
                yield "op.axes"


def test_ops_say_in_one_file_what_they_do_along_axes():
    """All that follow axes ask it: programs at few walkers, guards, owners of elements, chains of contractions."""
    files = {path.relative_to(PACKAGE).as_posix(): set(_named_in(path)) for path in PACKAGE.rglob("*.py")}
    assert {name for name, named in files.items() if "op.axes" in named} == {"hlo/batch_axes.py"}
    readers = {name for name, named in files.items() if named & AXES and not name.startswith(OF_ONE_OP)}
    assert readers - OTHERS == {"hlo/batch_axes.py"}
    asking = {name for name, named in files.items() if named & {"keeps_apart", "factors_along", "factors_of"}}
    assert not asking & readers - {"hlo/batch_axes.py"}


# -- whole programs


def _assert_same_at_three_walkers(workload, platform):
    program = lowering.lower(workload, platform)
    flat, x, marks = marked(program, workload.walkers)
    assert unmarked(flat, marks, workload.walkers) == []
    with jax.enable_x64(True):
        arrays = list(list(workload_samples(workload))[1].arrays)
    (whole,) = raised(flat, arrays, {})
    arrays[flat.arguments.index(x)] = arrays[flat.arguments.index(x)][:3]
    (few,) = raised(flat, arrays, resized_shapes(marks, workload.walkers, 3))
    np.testing.assert_allclose(few, whole[:3], rtol=1e-10)


@pytest.mark.parametrize(
    "name",
    [
        *(
            pytest.param(name, marks=pytest.mark.by_turns(3))
            for name in ("psiformer", "paulinet", "ferminet", "orbformer")
        ),
        pytest.param("psiformer-deepqmc", marks=pytest.mark.full),
    ],
)
def test_local_energies_with_their_replay(name):
    workload = catalogue.build(name, "LiH", walkers=7, size="tiny", dtype="float64", laplacian="replay")
    _assert_same_at_three_walkers(workload, "cuda")


@needs_deepqmc  # two compiles of a whole local energy each
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("paulinet", marks=pytest.mark.slow),
        *(pytest.param(name, marks=pytest.mark.full) for name in ("ferminet", "psiformer", "deeperwin")),
    ],
)
@pytest.mark.parametrize("platform", [pytest.param("cpu", marks=pytest.mark.full), "cuda"])
def test_local_energies_of_deepqmc(name, platform):
    workload = catalogue.build(f"deepqmc:{name}", "CH4", walkers=7, dtype="float64")
    _assert_same_at_three_walkers(workload, platform)


@pytest.mark.slow
def test_whole_steps_are_marked():
    workload = catalogue.build("paulinet", "LiH", walkers=7, size="tiny", program="train-step", laplacian="replay")
    flat, _, marks = marked(lowering.lower(workload, "cuda"), 7)
    assert unmarked(flat, marks, 7) == []
