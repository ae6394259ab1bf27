"""Untrusted files, read whole and once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from fusionlab.errors import InputError

MOST_BYTES = 2**30
"""Twenty times the largest program that is studied."""
_PART = 2**24


def read_file(path: Path) -> bytes:
    """The content of the file or pipe ``path``; InputError where it cannot be read, or is too large."""
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            if stat.S_ISREG(about.st_mode) and about.st_size <= MOST_BYTES:
                return file.read()
            parts, size = [], about.st_size
            while size <= MOST_BYTES and (part := file.read(_PART)):
                parts.append(part)
                size += len(part)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    if size > MOST_BYTES:
        raise InputError(f"{path}: is larger than {MOST_BYTES >> 30} GiB, which no program is that can be studied")
    return b"".join(parts)
