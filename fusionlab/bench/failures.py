"""Failures, with step and reason: a variant that cannot be made or run does not end the run of the others."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fusionlab.errors import CompileError, InputError

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
_MOST_WORDS = 400


@dataclass(frozen=True)
class Failure:
    """``step`` is lower, rewrite, check, compile, run, or trace; ``reason`` is one line."""

    name: str
    step: str
    reason: str


def attempt(name: str, step: str, do: Callable[[], _Result], failures: list[Failure]) -> _Result | None:
    """The result of ``do``; None, with an entry appended to ``failures``, when it raises."""
    try:
        return do()
    except (InputError, CompileError) as error:
        failures.append(Failure(name, step, _line(str(error))))
    except Exception as error:  # anything else that third-party code raises, a failed allocation included
        _log.info("%s failed in step %s", name, step, exc_info=True)
        failures.append(Failure(name, step, _line(f"{type(error).__name__}: {error}")))
    return None


def _line(text: str) -> str:
    return " ".join(text.split())[:_MOST_WORDS]
