"""Shapes of HLO text: arrays with layouts, tuples, tokens; their sizes in bytes."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass

_BITS = {
    "pred": 8, "token": 0, "opaque": 0, "tuple": 0,
    "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f4e2m1fn": 4, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """An array (``elements`` empty) or a tuple (``dtype`` is ``tuple``) of HLO.

    ``dtype`` is HLO's spelling (``f32``, ``pred``, ``s32``), ``layout`` the text between the braces, minor to major,
    e.g. ``1,0`` or ``1,0:S(5)`` ("" when the text has none).
    """

    dtype: str
    dims: tuple[int, ...] = ()
    layout: str = ""
    elements: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        """True if it is a tuple, of any number of elements."""
        return self.dtype == "tuple"

    @property
    def size(self) -> int:
        """Number of array elements (0 for a tuple)."""
        return 0 if self.is_tuple else math.prod(self.dims)

    @property
    def byte_size(self) -> int:
        """Bytes of data, of all elements of a tuple; tokens have none. ValueError for an unknown element type."""
        if self.is_tuple:
            return sum(element.byte_size for element in self.elements)
        return -(-self.size * element_bits(self.dtype) // 8)

    def __str__(self) -> str:
        if self.is_tuple:
            return f"({', '.join(map(str, self.elements))})"
        return f"{self.dtype}[{','.join(map(str, self.dims))}]" + (f"{{{self.layout}}}" if self.layout else "")


def element_bits(dtype: str) -> int:
    """Bits of one element; ValueError when the type is not known."""
    if dtype in _BITS:
        return _BITS[dtype]
    if re.fullmatch(r"f8e\w+", dtype):
        return 8
    raise ValueError(f"unknown HLO element type {dtype!r}")


_COMMENT = re.compile(r"/\*.*?\*/")
_ARRAY = re.compile(r"\s*([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?\s*")


@functools.lru_cache(maxsize=16384)
def parse_shape(text: str) -> Shape:
    """The shape that ``text`` spells, e.g. ``(f32[2,3]{1,0}, /*index=1*/s32[])``; ValueError for other text."""
    stripped = _COMMENT.sub("", text)
    shape, end = _parse(stripped, 0)
    if stripped[end:].strip():
        raise ValueError(f"not a shape: {text!r}")
    return shape


def _parse(text: str, start: int) -> tuple[Shape, int]:
    while start < len(text) and text[start].isspace():
        start += 1
    if text.startswith("(", start):
        return _parse_tuple(text, start + 1)
    match = _ARRAY.match(text, start)
    if match is None:
        raise ValueError(f"not a shape: {text!r}")
    dtype, dims, layout = match.groups()
    try:
        sizes = tuple(int(size.strip().removeprefix("<=")) for size in dims.split(",") if size.strip())
    except ValueError:
        raise ValueError(f"not a shape: {text!r}") from None
    return Shape(dtype, sizes, layout or ""), match.end()


def _parse_tuple(text: str, start: int) -> tuple[Shape, int]:
    elements: list[Shape] = []
    while True:
        while start < len(text) and text[start] in " ,":
            start += 1
        if start >= len(text):
            raise ValueError(f"not a shape: {text!r}: a parenthesis is never closed")
        if text[start] == ")":
            end = start + 1
            while end < len(text) and text[end].isspace():
                end += 1
            return Shape("tuple", elements=tuple(elements)), end
        element, start = _parse(text, start)
        elements.append(element)
