"""Policy: what ``optimize`` was asked to do, checked when it is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from fusionlab.codegen.cache import default_cache
from fusionlab.errors import InputError, unknown
from fusionlab.passes.catalogue import PASSES
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import parse_pipeline, print_pipeline

Check = Literal["once", "always", "never"]
OnDifference = Literal["original", "raise"]


EXACT_S = 20.0
"""Seconds that the exact check of a program may take where nothing else is asked for."""


@dataclass(frozen=True)
class Policy:
    """``check`` says how often original and rewritten are compared; ``on_difference`` what follows where they differ:
    the original runs and a warning says so, or ``NotEquivalentError``. ``folder`` holds what is remembered on disk,
    None for nothing. ``exact_s`` is how many seconds the exact check of a program may take; 0: there is none."""

    passes: tuple[Pass, ...]
    check: Check = "once"
    on_difference: OnDifference = "original"
    folder: Path | None = None
    exact_s: float = EXACT_S

    @property
    def pipeline(self) -> str:
        """The pipeline as text."""
        return print_pipeline(self.passes)

    @property
    def known(self) -> bool:
        """Whether the passes are those of the catalogue, so that their choices can be written and read as text."""
        return all(PASSES.get(pass_.name) == (type(pass_).__module__, type(pass_).__name__) for pass_ in self.passes)

    @staticmethod
    def of(pipeline: str, check: str, on_difference: str, cache: bool | str | Path, exact_s: float = EXACT_S) -> Policy:
        """The policy of these words; InputError for one that is not known, with the nearest."""
        if not isinstance(pipeline, str):
            raise InputError(f"pipeline is the names of passes, as 'fuse-jvp-replay', and not {pipeline!r}")
        if not isinstance(cache, bool | str | Path):
            raise InputError(f"cache is True, False or a folder, and not {cache!r}")
        if check not in get_args(Check):
            raise unknown("check", str(check), get_args(Check))
        if on_difference not in get_args(OnDifference):
            raise unknown("on_difference", str(on_difference), get_args(OnDifference))
        if not isinstance(exact_s, int | float) or not 0 <= exact_s < math.inf:
            raise InputError(f"exact_s is a number of seconds, 0 for no exact check, and not {exact_s!r}")
        return Policy(
            parse_pipeline(pipeline),
            check,  # type: ignore[arg-type]
            on_difference,  # type: ignore[arg-type]
            _folder(cache),
            exact_s,
        )


def _folder(cache: bool | str | Path) -> Path | None:
    if not isinstance(cache, bool):
        return Path(cache).expanduser()
    of_all = default_cache()
    return of_all.folder / "optimized" if cache and of_all is not None else None
