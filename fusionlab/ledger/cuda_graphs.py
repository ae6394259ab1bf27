"""Which launches XLA puts into CUDA graphs: the thunk list before capture, set against the list after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from fusionlab.codegen.compile import Compiled
from fusionlab.ledger.thunks import Thunk, parse_thunks

_log = logging.getLogger(__name__)


def captured_thunks(compiled: Compiled) -> dict[int, bool]:
    """Thunk id (of ``compiled.thunk_sequence``) to whether it runs inside a command buffer.

    Capturing wraps runs of thunks and keeps their order, so the leaves of both lists are paired one by one. Empty when
    XLA wrote no second list (the CPU) or, with a warning that says where, when the two lists do not match.
    """
    if not compiled.captured_thunks.strip():
        return {}
    try:
        before = list(_leaves(parse_thunks(compiled.thunk_sequence, ""), False))
        after = list(_leaves(parse_thunks(compiled.captured_thunks, ""), False))
    except ValueError as error:
        return _unknown(compiled, str(error))
    pairs = zip(before, after, strict=False)
    if odd := next((pair for pair in pairs if _identity(pair[0][0]) != _identity(pair[1][0])), None):
        return _unknown(compiled, f"before capture {_words(odd[0][0])}, after it {_words(odd[1][0])}")
    if len(before) != len(after):
        return _unknown(compiled, f"{len(before)} thunks before capture, {len(after)} after it")
    return {thunk.id: inside for (thunk, _), (_, inside) in zip(before, after, strict=True)}


def _unknown(compiled: Compiled, why: str) -> dict[int, bool]:
    _log.warning("%s: XLA's two thunk lists differ, so what runs in CUDA graphs is not known: %s", compiled.name, why)
    return {}


def _words(thunk: Thunk) -> str:
    return f"{thunk.id:03d}: {' '.join(_identity(thunk))}"


def _leaves(thunks: Sequence[Thunk], inside: bool) -> Iterator[tuple[Thunk, bool]]:
    for thunk in thunks:
        if not thunk.sections:
            yield thunk, inside
        for section in thunk.sections:
            yield from _leaves(section.thunks, inside or thunk.kind == "kCommandBuffer")


def _identity(thunk: Thunk) -> tuple[str, str]:
    return thunk.kind, " ".join(thunk.description.split())
