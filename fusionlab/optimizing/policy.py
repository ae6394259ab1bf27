"""Policy: the options of ``optimize``, validated on creation."""

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
"""The default time limit of a program's exact check, seconds."""


@dataclass(frozen=True)
class Policy:
    """``check`` is how often original and rewritten are compared; ``on_difference`` the action on a difference: run the
    original with a warning, or ``NotEquivalentError``. ``folder`` is the cache on disk (None: no cache). ``exact_s`` is
    the time limit of a program's exact check; 0 skips it."""

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
        """True if all passes are in the catalogue, so that their choices can be written and read as text."""
        return all(PASSES.get(pass_.name) == (type(pass_).__module__, type(pass_).__name__) for pass_ in self.passes)

    @staticmethod
    def of(pipeline: str, check: str, on_difference: str, cache: bool | str | Path, exact_s: float = EXACT_S) -> Policy:
        """The policy of these options; InputError for an unknown one, with the nearest."""
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
