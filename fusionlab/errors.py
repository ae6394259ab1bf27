"""Errors for people: what is wrong, where, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(Exception):
    """The user's input is wrong; the message is the one line that is printed before exit code 2."""


class NotStudied(InputError):
    """A whole and valid module with something in it that is not studied: ``what`` it is, and ``where``.

    ``apply`` passes ``content``, which is what was read of the file ``path``, through as it is; for every other command
    it is wrong input.
    """

    def __init__(self, path: str, what: str, where: str, content: bytes) -> None:
        super().__init__(f"{path}: {what}")
        self.path, self.what, self.where, self.content = path, what, where, content


class CompileError(RuntimeError):
    """XLA could not compile a program; the message is the first line of XLA's."""


class NotEquivalentError(RuntimeError):
    """A function that was rewritten gives other numbers than the original; the message says where and by how much."""


class NotOptimizedWarning(UserWarning):
    """The original function runs in place of its rewriting, for the reason that the message gives."""


_SHORT_LIST = 12


def unknown(kind: str, given: str, known: Iterable[str]) -> InputError:
    """The error for a name that is in no table, with the nearest names; all of a short list when none is near."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    if not near:
        near = names if len(names) <= _SHORT_LIST else difflib.get_close_matches(given, names, n=3, cutoff=0.0)
    return InputError(f"unknown {kind} {given!r}; did you mean: {', '.join(near)}?")


def missing_package(error: ModuleNotFoundError) -> str:
    """One line for a package that is not installed, as when fusionlab is run from a source checkout."""
    package = (error.name or "").partition(".")[0]
    return f"the Python package {package!r} is needed and not installed: pip install {package} (or pip install .)"
