"""Integer arithmetic and conversions are XLA's, at the edges of every type."""

import jax
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo import arithmetic

TYPES = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]
BINARY = {
    "divide": (arithmetic.divided, lax.div),
    "remainder": (arithmetic.remainder, lax.rem),
    "shift_left": (lambda x, y: arithmetic.shifted("shift_left", x, y), lax.shift_left),
    "shift_right_logical": (lambda x, y: arithmetic.shifted("shift_right_logical", x, y), lax.shift_right_logical),
    "shift_right_arithmetic": (
        lambda x, y: arithmetic.shifted("shift_right_arithmetic", x, y),
        lax.shift_right_arithmetic,
    ),
}


def edges(dtype):
    limits, bits = np.iinfo(dtype), 8 * dtype.itemsize
    near = {limits.min, limits.min + 1, limits.max - 1, limits.max, limits.max // 2, -bits, bits - 1, bits, bits + 1}
    return np.array([v for v in sorted(near | set(range(-4, 5))) if limits.min <= v <= limits.max], dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_integer_arithmetic_is_what_xla_runs(dtype):
    x, y = (grid.ravel() for grid in np.meshgrid(edges(dtype), edges(dtype)))
    with jax.enable_x64(True), np.errstate(all="ignore"):
        expected = jax.jit(lambda x, y: {name: theirs(x, y) for name, (_, theirs) in BINARY.items()})(x, y)
        for name, (ours, _) in BINARY.items():
            found = ours(x, y)
            assert found.dtype == dtype
            assert np.array_equal(found, expected[name]), name


FLOATS = np.array(
    [0, -0.5, 1.5, -2.5, 127.5, 128, -129, 300, 65536, 2.0**31, -(2.0**31), 2.0**63, 1e30, np.inf, -np.inf, np.nan]
)


@pytest.mark.parametrize("of", [np.float32, np.float64, np.complex128])
def test_conversions_are_what_xla_runs(of):
    x = FLOATS.astype(of) + (1j if of is np.complex128 else 0)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for dtype in (*TYPES, np.dtype(bool)):
            expected = jax.jit(lambda x, dtype=dtype: lax.convert_element_type(x.real, dtype))(x)
            assert np.array_equal(arithmetic.converted(x, dtype), expected), dtype


def test_what_xla_runs_and_folds_otherwise_has_no_meaning():
    yes, no = np.array([True, False]), np.array([False, False])
    assert arithmetic.added(yes, no).tolist() == [True, False]
    with pytest.raises(arithmetic.NoOneMeaning, match="add of i1"):
        arithmetic.added(yes, yes)
    assert arithmetic.power(np.array([0, -2], np.int8), np.array([0, 7], np.int8)).tolist() == [1, -128]
    with pytest.raises(arithmetic.NoOneMeaning, match="exponent"):
        arithmetic.power(np.array([2]), np.array([-1]))
