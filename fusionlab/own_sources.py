"""What a file that is kept depends on, beside its contents: the sources of this project that made it."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


@functools.cache
def sources_digest(folder: Path, names: tuple[str, ...] = (".",)) -> str:
    """SHA-256, hexadecimal, of the Python files ``names`` below ``folder``, and of all in those that are folders; each
    file counts with its name."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
