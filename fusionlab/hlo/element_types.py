"""MLIR's element types, and the NumPy types that hold them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

NUMPY: dict[str, np.dtype[Any]] = {
    name: np.dtype(type_)
    for name, type_ in {
        "i1": np.bool_,
        "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
        "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
        "f16": np.float16, "bf16": jnp.bfloat16, "f32": np.float32, "f64": np.float64,
        "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    }.items()
}  # fmt: skip

FLOATS = ("f16", "bf16", "f32", "f64")
WIDE_FLOATS = ("f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
