"""Content-addressed files: a result is stored under the digest of everything it depends on, sources included.

An entry is one JSON file, gzipped or not. It is written beside its place and renamed, so that a reader never sees half
of one and concurrent writers of one key do no harm. An entry that cannot be read is ignored and replaced; a folder that
cannot be written to is never an error: the work is done again later.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from fusionlab.files import replace_file

PACKAGE = Path(__file__).resolve().parent
CACHE_VARIABLE = "FUSIONLAB_CACHE"
_UNREADABLE = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError)
"""The exceptions of reading a damaged entry, or one of another format."""
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class Store:
    """The entries below ``folder``, which is made when the first one is stored.

    ``suffix`` ends in ``.gz`` for compressed entries. ``nested`` puts them into folders by the first two digits of the
    key. ``title`` names the store in the one warning when nothing can be written; without it there is no warning.
    """

    def __init__(self, folder: Path, suffix: str = ".json", *, nested: bool = True, title: str = "") -> None:
        self.folder = folder
        self._suffix, self._nested, self._title = suffix, nested, title
        self._writable = True

    def load(self, key: str, read: Callable[[Any], _T]) -> _T | None:
        """``read`` applied to the content under ``key``; None if there is none that it can read."""
        path = self.path(key)
        try:
            content = path.read_bytes()
            return read(json.loads(gzip.decompress(content) if path.suffix == ".gz" else content))
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            _log.info("ignoring the entry %s: %s", path, error)
            return None

    def store(self, key: str, content: Any) -> None:
        """Store ``content`` (JSON) under ``key``, unless a warning has said that writing failed."""
        if not self._writable:
            return
        path, data = self.path(key), json.dumps(content).encode()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, gzip.compress(data, compresslevel=6, mtime=0) if path.suffix == ".gz" else data)
        except OSError as error:
            self._writable = not self._title  # the warning says that it is off; the others try again
            level = logging.WARNING if self._title else logging.INFO
            _log.log(level, "%s is off: %s", self._title or f"the store {self.folder}", error.strerror or error)

    def path(self, key: str) -> Path:
        """The file of the entry."""
        return (self.folder / key[:2] if self._nested else self.folder) / f"{key}{self._suffix}"


def cache_folder() -> Path | None:
    """``$FUSIONLAB_CACHE``, else ``~/.cache/fusionlab``; None where the variable is ``off``, and without a home."""
    named = os.environ.get(CACHE_VARIABLE) or "~/.cache/fusionlab"
    return None if named == "off" else expanded(named, CACHE_VARIABLE)


def expanded(named: str, variable: str) -> Path | None:
    """The path ``named``, ``~`` expanded; None where there is no such home folder, with a warning that advises to set
    ``variable``."""
    try:
        return Path(named).expanduser()
    except RuntimeError:
        _warn_once(f"{named}: there is no such home folder, so nothing is kept there; set {variable} to another path")
        return None


@functools.cache
def _warn_once(line: str) -> None:
    _log.warning("%s", line)


def digest_of(*parts: Any) -> str:
    """SHA-256, hexadecimal, of values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def package_versions(*packages: str) -> dict[str, str]:
    """The versions of those ``packages`` that are installed."""
    found = {}
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@functools.cache
def sources_digest(folder: Path, names: tuple[str, ...] = (".",)) -> str:
    """SHA-256, hexadecimal, of the Python files ``names`` below ``folder``, recursively for folders; file names
    count."""
    digest = hashlib.sha256()
    for name in names:
        path = folder / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
