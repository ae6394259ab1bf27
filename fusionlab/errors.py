"""Errors for users: what is wrong, where, and the remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(Exception):
    """The user's input is wrong; the message is the one line that is printed before exit code 2."""


class NotStudied(InputError):
    """A valid module with a construct that is not studied: ``what`` it is, and ``where``.

    ``apply`` passes ``content``, as read from the file ``path``, through unchanged; for every other command it is
    invalid input.
    """

    def __init__(self, path: str, what: str, where: str, content: bytes) -> None:
        super().__init__(f"{path}: {what}")
        self.path, self.what, self.where, self.content = path, what, where, content


class CompileError(RuntimeError):
    """XLA could not compile a program; the message is the first line of XLA's message."""


class NotEquivalentError(RuntimeError):
    """A rewritten function returns other numbers than the original; the message says where and by how much."""


class NotOptimizedWarning(UserWarning):
    """The original function runs instead of its rewriting, for the reason in the message."""


class NotOptimizedError(RuntimeError):
    """No pass was applied to a function whose rewriting is required; the message has the reasons."""


class FallbackWarning(UserWarning):
    """A function is rewritten in another way than the preferred one, which may need more memory: see the message."""


class DeadlockWarning(RuntimeWarning):
    """A program for the CPU may wait for itself for ever: its batched LAPACK calls share one pool of threads."""


_SHORT_LIST = 12


def unknown(kind: str, given: str, known: Iterable[str]) -> InputError:
    """The error for a name that is in no table, with the nearest names; all of a short list when none is near."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=3, cutoff=0.5)
    if not near:
        near = names if len(names) <= _SHORT_LIST else difflib.get_close_matches(given, names, n=3, cutoff=0.0)
    return InputError(f"unknown {kind} {given!r}; did you mean: {', '.join(near)}?")


def one_line(error: BaseException) -> str:
    """The error's type and the first line of its message."""
    return f"{type(error).__name__}: {(str(error).splitlines() or ['no message'])[0]}"


def missing_package(error: ModuleNotFoundError) -> str:
    """One line for a package that is not installed, as when fusionlab is run from a source checkout."""
    package = (error.name or "").partition(".")[0]
    return f"the Python package {package!r} is needed and not installed: pip install {package} (or pip install .)"
