"""The search space of ``--pipeline best``: passes, their options, how often each is used, and the first pipelines.

A pass of the catalogue that is not named here is tried once, with its defaults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from fusionlab.passes.catalogue import PASSES, PIPELINES
from fusionlab.passes.interface import Pass
from fusionlab.passes.pipeline import parse_pipeline

VARIANTS: dict[str, tuple[str, ...]] = {
    "sparsify-directions": ("", "{chunks=2}", "{chunks=4}", "{chunks=8}"),
    "batch-replay": ("", "{chunk=10}"),
    "fuse-jvp-replay": (),
}
"""Options that are tried. fuse-jvp-replay only chooses among passes that are tried themselves."""

ONE_OF: tuple[frozenset[str], ...] = (
    frozenset({"sparsify-directions", "collapse-replay", "transpose-replay", "batch-replay"}),
)
"""Sets of passes of which a pipeline has at most one: they rewrite the same loop."""

MOST_USES: dict[str, int] = {"licm": 2}
"""Passes that may come twice: before batch-replay, and after a pass that makes more ops invariant."""


def moves() -> tuple[Pass, ...]:
    """Every pass with every choice of options that is tried."""
    return tuple(
        pass_ for name in PASSES for options in VARIANTS.get(name, ("",)) for pass_ in parse_pipeline(name + options)
    )


def allowed(pipeline: Sequence[Pass], move: Pass) -> bool:
    """True if ``move`` may follow ``pipeline``."""
    used = Counter(pass_.name for pass_ in pipeline)
    if any(move.name in names and any(used[name] for name in names) for names in ONE_OF):
        return False
    return used[move.name] < MOST_USES.get(move.name, 1)


def beginnings() -> Iterator[tuple[Pass, ...]]:
    """The pipelines that are tried first: the presets, and the Laplacian's rewrites alone and before these."""
    for text in PIPELINES.values():
        yield parse_pipeline(text)
    for name in ("sparsify-directions", "collapse-replay"):
        yield parse_pipeline(name)
        for text in PIPELINES.values():
            yield parse_pipeline(f"{name},{text}")
