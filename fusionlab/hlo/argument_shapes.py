"""Arguments written as shapes, ``f32[8,3] i32[] key``: parsed to ``jax.ShapeDtypeStruct``."""

from __future__ import annotations

import math
import re
from typing import Any

import jax
import numpy as np

from fusionlab.errors import InputError, unknown

DTYPES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8",
    "u16": "uint16", "u32": "uint32", "u64": "uint64", "bool": "bool", "c64": "complex64", "c128": "complex128",
}  # fmt: skip
"""Short names of element types; their long names are accepted too. XLA's ``s32`` and ``pred`` are ``_OF_XLA``."""

KEY = "key"
"""The element type of a typed PRNG key, ``jax.random.key``."""

_OF_XLA = {"s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "pred": "bool"}
_ALL = DTYPES | _OF_XLA | {name: name for name in DTYPES.values()}
_WIDE = ("float64", "int64", "uint64", "complex128")
_MOST_ELEMENTS = 2**48
_ONE = re.compile(r"(?P<dtype>[A-Za-z]\w*)(?P<brackets>\[(?P<shape>\s*(?:\d+\s*(?:,\s*\d+\s*)*)?)\])?(?=[\s,]|$)")
_BETWEEN = re.compile(r"[\s,]*")


def parse_shapes(text: str, option: str = "--args") -> tuple[Any, ...]:
    """The arguments in ``text``, parted by spaces or commas: ``f32[8,3]``, ``i32[]``, ``bf16[4]``, ``key``, ``key[2]``.

    InputError points at the wrong place; it names ``option``.
    """
    found, at = [], _end_of_gap(text, 0)
    while at < len(text):
        match = _ONE.match(text, at)
        if match is None:
            raise _wrong(option, text, at, "expected an element type with a shape, as f32[8,3], i32[] or key")
        found.append(_argument(match, option, text))
        at = _end_of_gap(text, match.end())
    return tuple(found)


def _end_of_gap(text: str, at: int) -> int:
    gap = _BETWEEN.match(text, at)
    assert gap is not None
    return gap.end()


def _argument(match: re.Match[str], option: str, text: str) -> Any:
    name, at = match["dtype"], match.start()
    shape = tuple(int(size) for size in (match["shape"] or "").replace(",", " ").split())
    if math.prod(shape) > _MOST_ELEMENTS or max(shape, default=0) > _MOST_ELEMENTS:
        raise _wrong(option, text, match.start("shape"), "more elements than any memory holds")
    if name == KEY:
        return jax.ShapeDtypeStruct(shape, jax.eval_shape(jax.random.key, 0).dtype)
    if name not in _ALL:
        raise _wrong(option, text, at, str(unknown("element type", name, [*DTYPES, KEY])))
    if match["brackets"] is None:
        raise _wrong(option, text, match.end(), f"{name} has no shape; write {name}[] for a scalar")
    if _ALL[name] in _WIDE and not jax.config.jax_enable_x64:
        remedy = "write jax.config.update('jax_enable_x64', True) in the file, or set JAX_ENABLE_X64=1"
        raise _wrong(option, text, at, f"JAX makes {name} a 32-bit type here; {remedy}")
    return jax.ShapeDtypeStruct(shape, jax.numpy.dtype(_ALL[name]) if _ALL[name] != "bool" else np.dtype(bool))


def _wrong(option: str, text: str, at: int, why: str) -> InputError:
    """The error at the character ``at`` of ``text``, which is marked below it."""
    line = re.sub(r"\s", " ", text)
    return InputError(f"{option}: {why}\n  {line}\n  {' ' * at}^")
