"""Files and folders that are either whole or not there: written beside their place and renamed."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from fusionlab.errors import InputError


def require_writable(folder: Path) -> None:
    """Make ``folder`` if need be; InputError saying why when nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from None


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one; InputError when it fails."""
    content = content.encode() if isinstance(content, str) else content
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def require_own_folder(folder: Path, own: Sequence[str]) -> None:
    """InputError unless ``write_folder`` may put ``folder`` in place: its parent can be written to, and it is new,
    empty, or holds nothing but files whose names match patterns of ``own``."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder}: is not a folder")
    require_writable(folder.resolve().parent)
    if not folder.exists():
        return
    try:
        others = sorted(path.name for path in folder.iterdir() if not _is_own(path, own))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    if others:
        raise InputError(f"{folder}: holds other files ({', '.join(others[:3])}); name a folder of its own")


def write_folder(folder: Path, files: Mapping[str, str | bytes], own: Sequence[str]) -> None:
    """Make ``folder`` with ``files``, so that a reader sees the old folder or the new one, never a part of either.

    InputError as in ``require_own_folder``, or when it fails.
    """
    require_own_folder(folder, own)
    place = folder.resolve()
    try:
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as scratch:
            new, old = Path(scratch) / "new", Path(scratch) / "old"
            new.mkdir()
            for name, content in files.items():
                write_whole(new / name, content)
            if place.exists():
                os.rename(place, old)
            try:
                os.rename(new, place)
            except OSError:
                if old.exists():
                    os.rename(old, place)
                raise
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _is_own(path: Path, own: Sequence[str]) -> bool:
    return path.is_file() and any(fnmatch.fnmatchcase(path.name, pattern) for pattern in own)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
