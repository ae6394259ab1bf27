"""Which launches XLA puts into CUDA graphs: the thunk list before capture, set against the list after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlab.codegen.compile import Compiled
from fusionlab.measure.thunks import Thunk, parse_thunks


def captured_thunks(compiled: Compiled) -> dict[int, bool]:
    """Thunk id (of ``compiled.thunk_sequence``) to whether it runs inside a command buffer.

    Capturing wraps runs of thunks and keeps their order, so the leaves of both lists are paired one by one. Empty when
    XLA wrote no second list (the CPU) or when the two lists do not match.
    """
    if not compiled.captured_thunks.strip():
        return {}
    try:
        before = list(_leaves(parse_thunks(compiled.thunk_sequence, ""), False))
        after = list(_leaves(parse_thunks(compiled.captured_thunks, ""), False))
    except ValueError:
        return {}
    if [_identity(thunk) for thunk, _ in before] != [_identity(thunk) for thunk, _ in after]:
        return {}
    return {thunk.id: inside for (thunk, _), (_, inside) in zip(before, after, strict=True)}


def _leaves(thunks: Sequence[Thunk], inside: bool) -> Iterator[tuple[Thunk, bool]]:
    for thunk in thunks:
        if not thunk.sections:
            yield thunk, inside
        for section in thunk.sections:
            yield from _leaves(section.thunks, inside or thunk.kind == "kCommandBuffer")


def _identity(thunk: Thunk) -> tuple[str, str]:
    return thunk.kind, " ".join(thunk.description.split())
