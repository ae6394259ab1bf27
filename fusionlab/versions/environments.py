"""Environments with one version of JAX each, made once and kept: JAX, jaxlib and the CUDA plugin, no library of NVIDIA.

An environment is made beside its place and renamed, so that it is whole or not there. ``uv`` makes it where it is on
the PATH, else ``venv`` and ``pip``, of the first Python that this version of JAX runs on.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fusionlab.bytesize import size_words
from fusionlab.codegen.cache import kept_folder
from fusionlab.errors import InputError
from fusionlab.store import CACHE_VARIABLE, cache_folder, package_versions
from fusionlab.subprocesses import Ended, Running

OLDEST = (0, 4, 34)
"""The first version whose plugin compiles for an absent GPU; 0.4.28 needs one."""
_VERSION = re.compile(r"\d{1,4}\.\d{1,4}\.\d{1,4}(\.dev\d{1,12})?", re.ASCII)
_NIGHTLY = re.compile(r"\b\d+\.\d+\.\d+\.dev\d+\b")
_PYTHONS = ("3.11", "3.12", "3.13")
_SINCE = {"3.12": (0, 11, 0)}
"""The first version of JAX that needs this Python or a newer one."""
_PACKAGES = ("jax", "jaxlib", "jax-cuda12-plugin")
_LIMIT_S = 1800.0
_LISTING_LIMIT_S = 120.0
_MADE = "bin/python"
_MAKING = ".making-"


class NoEnvironment(Exception):
    """The environment of a version cannot be made; the message is the reason."""


@dataclass(frozen=True)
class JaxEnvironment:
    """An environment with JAX ``version``, its interpreter, and its ``folder``, None for that of this process."""

    version: str
    python: Path
    folder: Path | None = None

    @staticmethod
    def in_folder(version: str, folder: Path) -> JaxEnvironment:
        """The environment that was made in ``folder``."""
        return JaxEnvironment(version, folder / _MADE, folder)


def parse_versions(text: str) -> tuple[str, ...]:
    """The versions in ``0.6.2,0.10.2``, the oldest first. InputError for what is none, for two equal ones, and for
    versions before OLDEST."""
    given = [one.strip() for one in text.split(",") if one.strip()]
    for one in given:
        if _VERSION.fullmatch(one) is None:
            raise InputError(f"--jax {text}: {one!r} is no version; write for example --jax 0.6.2,0.10.2")
        if numbers(one) < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise InputError(
                f"--jax {text}: JAX {one} cannot compile for an absent GPU; the oldest that can is {oldest}"
            )
    if not given:
        raise InputError("--jax names no version; write for example --jax 0.6.2,0.10.2")
    if len(set(map(numbers, given))) < len(given):
        raise InputError(f"--jax {text}: a version is named twice")
    return tuple(sorted(given, key=numbers))


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version: ``(0, 10, 2)``, with the date of a nightly as the fourth."""
    return tuple(map(int, version.replace("dev", "").split(".")))


def nightly_version() -> str:
    """The newest nightly of JAX in the indexes that pip is configured for; InputError where there is none."""
    listing = ["index", "versions", "jax", "--pre", "--python-version", _PYTHONS[-1]]
    ended = Running([sys.executable, "-m", "pip", *listing], _environment(), _LISTING_LIMIT_S).wait()
    if ended.exit_code != 0:
        raise InputError(f"--nightly: pip does not list the versions of JAX: {_reason(ended)}")
    found: list[str] = _NIGHTLY.findall(ended.output.decode("utf-8", "replace"))
    if not found:
        raise InputError("--nightly: no package index of pip has a nightly of JAX; name one with PIP_EXTRA_INDEX_URL")
    return max(found, key=numbers)


def environments_folder() -> Path:
    """The folder of all environments: ``environments`` beside the compile cache."""
    return kept_folder("environments")


def environment(version: str, progress: Callable[[str], None] = lambda line: None) -> JaxEnvironment:
    """The environment of that version, made if it is not there; that of this process has its version already.

    NoEnvironment says why it cannot be made.
    """
    if package_versions(*_PACKAGES) == dict.fromkeys(_PACKAGES, version):
        return JaxEnvironment(version, Path(sys.executable))
    folder = _own_folder(environments_folder()) / f"jax-{version}"
    if (folder / _MADE).exists():
        return JaxEnvironment.in_folder(version, folder)
    uv = shutil.which("uv")
    python = _python_for(version) or (_pythons_for(version)[0] if uv else None)  # uv fetches one
    if python is None:
        wanted = " or ".join(_pythons_for(version))
        raise NoEnvironment(f"JAX {version} needs Python {wanted}, and none was found; install one, or uv")
    progress(f"environment: JAX {version} by {'uv' if uv else 'pip'} in {folder}")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=_MAKING, ignore_cleanup_errors=True) as scratch:
        new, seconds = Path(scratch) / "new", 0.0
        for command in _commands(python, uv, new, [f"{name}=={version}" for name in _PACKAGES]):
            seconds += _run(command, version)
        _put(new, folder)
    progress(f"environment: JAX {version} made in {seconds:.0f} s, {size_words(disk_bytes(folder))} on disk")
    return JaxEnvironment.in_folder(version, folder)


def _own_folder(folder: Path) -> Path:
    """``folder``, made where it is not there. Where the cache is off it is among temporary files, of this user alone:
    interpreters in it are executed. InputError where it cannot be."""
    advice = f"set {CACHE_VARIABLE} to another folder"
    try:
        if cache_folder() is None:
            folder.parent.mkdir(mode=0o700, exist_ok=True)
            found = folder.parent.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
                raise InputError(
                    f"{folder.parent}: not a folder of this user alone, and what lies there runs; {advice}"
                )
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror or error}; {advice}") from None
    return folder


def _put(new: Path, folder: Path) -> None:
    """``new`` as ``folder``: in place of one without interpreter; one that another process made meanwhile stays."""
    if (folder / _MADE).exists():
        return
    try:
        if folder.exists():
            shutil.rmtree(folder)
        new.rename(folder)
    except OSError as error:
        if not (folder / _MADE).exists():
            raise InputError(f"{folder}: cannot be made: {error.strerror or error}") from None


def _commands(python: str, uv: str | None, new: Path, packages: Sequence[str]) -> list[list[str]]:
    if uv:
        return [
            [uv, "venv", "--quiet", "--python", python, str(new)],
            [uv, "pip", "install", "--quiet", "--python", str(new / _MADE), *packages],
        ]
    install = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    return [[python, "-m", "venv", str(new)], [str(new / _MADE), *install, *packages]]


def _run(command: Sequence[str], version: str) -> float:
    """The seconds of ``command``; NoEnvironment with its last line if it fails."""
    ended = Running([shutil.which(command[0]) or command[0], *command[1:]], _environment(), _LIMIT_S).wait()
    if ended.exit_code:
        raise NoEnvironment(f"JAX {version} cannot be installed: {_reason(ended)}")
    if ended.exit_code is None:
        raise NoEnvironment(f"JAX {version} was not installed within {_LIMIT_S:g} s")
    return ended.seconds


def _environment() -> dict[str, str]:
    """Without variables that point Python elsewhere: they belong to the environment of this process."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def _reason(ended: Ended) -> str:
    """pip's last line with ERROR; else uv's first with ``error:`` and the last line, which has the details."""
    lines = [line.strip() for line in ended.errors.splitlines()]
    if of_pip := [line for line in lines if line.startswith("ERROR")]:
        return of_pip[-1]
    of_uv = [line for line in lines if line.startswith("error:")]
    return ": ".join(dict.fromkeys(filter(None, [*of_uv[:1], ended.last_line]))) or "no message"


def disk_bytes(folder: Path) -> int:
    """Bytes of the files in ``folder``."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def kept_environments() -> list[JaxEnvironment]:
    """The environments that are there, the oldest version first."""
    found = [path for path in environments_folder().glob("jax-*") if (path / _MADE).exists()]
    named = [(path.name.removeprefix("jax-"), path) for path in found]
    ours = [(version, path) for version, path in named if _VERSION.fullmatch(version)]
    return [JaxEnvironment.in_folder(version, path) for version, path in sorted(ours, key=lambda one: numbers(one[0]))]


def incomplete_folders() -> list[Path]:
    """What is left of environments that were not made to the end, or whose interpreter is gone."""
    parent = environments_folder()
    broken = [path for path in parent.glob("jax-*") if not (path / _MADE).exists()]
    return sorted([*parent.glob(f"{_MAKING}*"), *broken])


def remove(folder: Path) -> int:
    """Delete an environment; the bytes that it took. InputError where that fails."""
    size = disk_bytes(folder)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise InputError(f"{folder}: cannot be deleted: {error.strerror or error}") from None
    return size


def _pythons_for(version: str) -> tuple[str, ...]:
    least = max((_PYTHONS.index(python) for python, since in _SINCE.items() if numbers(version) >= since), default=0)
    return _PYTHONS[least:]


def _python_for(version: str) -> str | None:
    return next((found for python in _pythons_for(version) if (found := _interpreter(python)) is not None), None)


@cache
def _interpreter(python: str) -> str | None:
    """The path of a Python of that version that can make environments. A shim of pyenv on the PATH can end with an
    error, and HOME can be unset or another's: pyenv's own folders are looked through as well."""
    code = "import ensurepip, sys, venv; print(sys.executable, '%d.%d' % sys.version_info[:2])"
    for candidate in _candidates(python):
        try:
            said = subprocess.run(
                [candidate, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        path, _, found = said.stdout.strip().rpartition(" ")
        if said.returncode == 0 and found == python:
            return path
    return None


def _candidates(python: str) -> Iterator[str]:
    yield from (f"python{python}", "python3", sys.executable)
    homes = [os.environ.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a user without an entry
        homes.append(pwd.getpwuid(os.getuid()).pw_dir)
    roots = [os.environ.get("PYENV_ROOT", ""), *(f"{home}/.pyenv" for home in homes if home)]
    for root in dict.fromkeys(filter(None, roots)):
        yield from map(str, sorted(Path(root, "versions").glob(f"{python}*/bin/python")))
