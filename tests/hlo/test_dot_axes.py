"""The axes of contractions, read in one place."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import fusionlab
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.view import view_of

PACKAGE = Path(fusionlab.__file__).parent


def axes_of(left, right, contracted, batch):
    def function(x, y):
        return lax.dot_general(x, y, (contracted, batch))

    flat = view_of(jax.jit(function).lower(jnp.ones(left), jnp.ones(right)).compiler_ir("stablehlo"))
    [node] = flat.nodes
    axes = DotAxes.of(node)
    for extent, pair in zip(node.results[0].type.shape, axes.result, strict=True):
        shared = [shape[axis] for shape, axis in zip(axes.shapes, pair, strict=True) if axis is not None]
        assert set(shared) == {extent}
    return axes


def test_every_axis_is_of_one_kind():
    axes = axes_of((2, 3, 4, 5, 6), (5, 7, 4, 2, 8), ((3,), (0,)), ((2, 0), (2, 3)))
    assert axes.batch == ((2, 0), (2, 3))
    assert axes.contracted == ((3,), (0,))
    assert axes.free == ((1, 4), (1, 4))
    assert axes.result == ((2, 2), (0, 3), (1, None), (4, None), (None, 1), (None, 4))
    assert axes.batch_pairs == ((2, 2), (0, 3))
    assert axes.contracted_pairs == ((3, 0),)
    assert axes.extents == (18, 56, 5)
    assert not axes.batch_in_front


@pytest.mark.parametrize(
    ("left", "right", "contracted", "batch", "result", "extents"),
    [
        ((3, 4), (4, 5), ((1,), (0,)), ((), ()), ((0, None), (None, 1)), (3, 5, 4)),
        ((3,), (3,), ((0,), (0,)), ((), ()), (), (1, 1, 3)),
        ((3,), (4,), ((), ()), ((), ()), ((0, None), (None, 0)), (3, 4, 1)),
        ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1)), ((0, 0), (1, 1)), (1, 1, 1)),
    ],
)
def test_kinds_may_have_no_axis(left, right, contracted, batch, result, extents):
    axes = axes_of(left, right, contracted, batch)
    assert (axes.result, axes.extents) == (result, extents)
    assert axes.batch_in_front


def test_intensity_is_that_of_one_batch_element():
    axes = axes_of((9, 2, 4), (9, 4, 3), ((2,), (1,)), ((0,), (0,)))
    assert axes.intensity == 2 * 2 * 3 * 4 / (4 * (2 * 4 + 4 * 3 + 2 * 3))


def test_no_other_file_reads_dimension_numbers_of_contractions():
    """Neither the attribute's class nor the attribute of an op."""
    readers = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            named = isinstance(node, ast.Attribute | ast.Name) and "DotDimensionNumbers" in ast.dump(node)
            read = isinstance(node, ast.Subscript) and isinstance(of := node.value, ast.Attribute)
            read = read and of.attr == "attributes" and ast.unparse(node.slice) == "'dot_dimension_numbers'"
            if named or read:
                readers.add(path.relative_to(PACKAGE).as_posix())
    assert readers == {"hlo/dot_axes.py"}
