"""Untrusted files, read whole and once; atomic writes of files and folders, beside their destination and renamed."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def require_writable(folder: Path) -> None:
    """Make ``folder`` if need be; InputError saying why when nothing can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from None


def require_plain_file(path: Path) -> None:
    """InputError where ``path`` is a device, a pipe or a link, which would be replaced and not written through."""
    if path.is_symlink():
        raise InputError(f"{path}: is a symbolic link; name the file itself")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise InputError(f"{path}: is a device or a pipe; name a file")


def write_whole(path: Path, content: str | bytes) -> None:
    """Write ``content`` to ``path`` so that a reader sees the old file or the new one; InputError when it fails."""
    require_plain_file(path)
    try:
        replace_file(path, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def replace_file(path: Path, content: bytes) -> None:
    """Write ``content`` beside ``path`` and rename it; OSError when that fails, with nothing left behind."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=_hidden(path))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    finally:  # also when interrupted
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _hidden(path: Path) -> str:
    """The beginning of a temporary name beside ``path``, short enough for what ``tempfile`` adds."""
    return f".{path.name[:48]}."


@dataclass(frozen=True)
class Own:
    """The mark of a folder of ours: every file name matches a pattern of ``names``, and ``mark`` is a JSON object among
    them whose ``format`` begins with ``format``."""

    names: Sequence[str]
    mark: str
    format: str


def require_own_folder(folder: Path, own: Own) -> None:
    """InputError unless ``write_folder`` may put ``folder`` in place: its parent can be written to, nobody is in it,
    and it is new, empty, or one of ours."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder}: is not a folder")
    place = folder.resolve()
    if Path.cwd().is_relative_to(place):
        raise InputError(f"{folder}: the current directory is in it, and it is replaced as a whole; name another")
    require_writable(place.parent)
    if not folder.exists():
        return
    try:
        found = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from None
    others = [path.name for path in found if not _is_own(path, own.names)]
    if others:
        raise InputError(f"{folder}: holds other files ({', '.join(others[:3])}); name a folder of its own")
    if found and not _is_marked(folder / own.mark, own.format):
        raise InputError(f"{folder}: holds files, and no {own.mark} that says they are ours; name a folder of its own")


def write_folder(folder: Path, files: Mapping[str, str | bytes], own: Own) -> None:
    """Make ``folder`` with ``files``, so that a reader sees the old folder or the new one, never a part of either.

    A folder that is replaced keeps its permissions. InputError as in ``require_own_folder``, or when it fails.
    """
    require_own_folder(folder, own)
    place = folder.resolve()
    try:
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=_hidden(place)) as scratch:
            new, old = Path(scratch) / "new", Path(scratch) / "old"
            new.mkdir()
            for name, content in files.items():
                write_whole(new / name, content)
            try:
                if place.exists():
                    os.chmod(new, stat.S_IMODE(place.stat().st_mode))
                    os.rename(place, old)
                os.rename(new, place)
            except BaseException:  # an interrupt, too: what is in scratch is deleted
                if old.exists() and not place.exists():
                    os.rename(old, place)
                raise
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _is_own(path: Path, own: Sequence[str]) -> bool:
    return path.is_file() and any(fnmatch.fnmatchcase(path.name, pattern) for pattern in own)


def _is_marked(path: Path, format: str) -> bool:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and str(content.get("format", "")).startswith(format)


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
