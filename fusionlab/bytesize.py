"""Byte sizes as people write and read them: ``2GiB`` is 2^31, ``2GB`` is 2e9, a bare number is bytes."""

from __future__ import annotations

import re

from fusionlab.errors import InputError
from fusionlab.units import BYTES, in_unit

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    **{unit.lower(): int(size) for unit, size in BYTES},
}
MIB = _UNITS["mib"]
_TOO_MANY = 2**63


class ByteSize(int):
    """A number of bytes. Prints in the largest binary unit that is exact, so that printing and parsing round trip."""

    @staticmethod
    def parse(text: str) -> ByteSize:
        """The size that ``text`` names; InputError for anything that is not a positive number and a byte unit."""
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", text)
        if match is None or match[2].lower() not in _UNITS:
            raise InputError(f"{text!r} is not a size; write for example 2GiB, 1.5GB or 800MiB")
        count = float(match[1]) * _UNITS[match[2].lower()]
        if count >= _TOO_MANY:
            raise InputError(f"{text[:40]!r}: a size must be below {_TOO_MANY // 2**40} TiB")
        size = ByteSize(count)
        if size <= 0:
            raise InputError(f"{text!r}: a size must be positive")
        return size

    def __str__(self) -> str:
        for unit, size in BYTES:
            if self and self % int(size) == 0:
                return f"{self // int(size)}{unit}"
        return f"{int(self)}B"


UNBOUNDED = ByteSize(0)
"""The value of a ByteSize option for no limit."""


def size_words(count: float) -> str:
    """A number of bytes for a reader: ``176.0 MiB``, ``24 B``."""
    return in_unit(count, BYTES, "B")
