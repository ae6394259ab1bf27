"""A picture as records, before it is drawn: blocks in nested groups, and the bytes that pass between blocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fusionlab.report.pictures.looks import BOX_FAMILIES


@dataclass(frozen=True)
class Box:
    """The part of a block of one op family (of several small ones): operations or launches, FLOPs, bytes of all runs.

    FLOPs and bytes follow the conventions of ``cost``; ``unmodelled`` counts operations without a FLOP rule.
    """

    families: tuple[str, ...]
    count: int
    flops: int
    bytes: int
    unmodelled: int = 0

    @staticmethod
    def total(boxes: Sequence[Box], families: tuple[str, ...] = ()) -> Box:
        """All of ``boxes`` in one."""
        figures = ("count", "flops", "bytes", "unmodelled")
        return Box(families, *(sum(getattr(box, figure) for box in boxes) for figure in figures))


def boxes_of(nodes: Iterable[Mapping[str, Any]], runs: int = 1, *, few: bool = False) -> list[Box]:
    """A box per family of ``nodes`` run ``runs`` times, most bytes first; ``few`` puts small families into larger ones.

    ``nodes`` are attributes of operations (as in ``hlo.graph``) or of launches, whose figures are of all their runs.
    """
    sums: dict[str, list[Box]] = defaultdict(list)
    for one in nodes:
        name = one["family"] or "other"
        name = BOX_FAMILIES.get(name, name) if few else name
        count, unmodelled = one.get("launches", 1), one.get("unmodelled", 0)
        sums[name].append(Box((name,), count, one["flops"] * runs, one["bytes"] * runs, unmodelled))
    return sorted((Box.total(ones, (name,)) for name, ones in sums.items()), key=lambda box: (-box.bytes, box.families))


@dataclass(frozen=True)
class PictureBlock:
    """One block: a scope, a cluster of launches, a kernel or an operation.

    ``groups`` are the ids of the groups around it, outermost first; ``repeats`` is the number of alike parts it
    represents. ``look`` is ``panel``, or ``gate`` where a loop begins or ends.
    """

    title: str
    groups: tuple[str, ...]
    rows: tuple[Box, ...] = ()
    stage: str = ""
    role: str = ""
    notes: tuple[str, ...] = ()
    repeats: int = 1
    look: str = "panel"


@dataclass(frozen=True)
class DrawingGroup:
    """A frame around blocks. ``look`` is ``loop`` (a boundary that data crosses once or in every trip), ``kernel``,
    ``side`` (before, after) or ``scope``."""

    title: str
    look: str = "scope"


@dataclass(frozen=True)
class Flow:
    """Bytes and values that pass from one block to another (positions in a list of blocks)."""

    source: int
    target: int
    bytes: int
    values: int


@dataclass(frozen=True)
class Drawing:
    """Blocks, the groups that they name, and the flows between blocks; ``counted`` is what ``Box.count`` counts."""

    title: str
    lines: tuple[str, ...]
    groups: dict[str, DrawingGroup]
    blocks: tuple[PictureBlock, ...]
    flows: tuple[Flow, ...]
    counted: str = "operations"
    notes: tuple[str, ...] = ()


def side_by_side(before: Drawing, after: Drawing, how: str) -> Drawing:
    """Two drawings side by side at one scale; ``how`` is the pipeline between them."""
    groups = {"before": DrawingGroup("before", "side"), "after": DrawingGroup(f"after {how}", "side")}
    blocks: list[PictureBlock] = []
    flows: list[Flow] = []
    for side, one in (("before", before), ("after", after)):
        start = len(blocks)
        groups |= {f"{side}/{name}": group for name, group in one.groups.items()}
        blocks += [replace(block, groups=(side, *(f"{side}/{name}" for name in block.groups))) for block in one.blocks]
        flows += [replace(flow, source=flow.source + start, target=flow.target + start) for flow in one.flows]
    lines = (*(f"before: {line}" for line in before.lines), *(f"after: {line}" for line in after.lines))
    return Drawing(before.title, lines, groups, tuple(blocks), tuple(flows), before.counted, before.notes)


def gathered(edges: Iterable[tuple[int, int, Hashable, int]]) -> tuple[Flow, ...]:
    """The flows between blocks from edges (source, target, value, bytes): every value once per block that reads it."""
    moved: dict[tuple[int, int], dict[Hashable, int]] = defaultdict(dict)
    for source, target, value, size in edges:
        if source != target:
            values = moved[source, target]
            values[value] = max(values.get(value, 0), size)
    return tuple(Flow(*pair, sum(values.values()), len(values)) for pair, values in sorted(moved.items()))


def worth_drawing(moved: Sequence[Flow], blocks: int, share: float = 0.005) -> list[Flow]:
    """Flows of at least ``share`` of the largest, and for a block without one in (or out) its largest in (or out)."""
    most = max((flow.bytes for flow in moved), default=0)
    kept = {flow for flow in moved if flow.bytes >= share * most}
    for i in range(blocks):
        for ends in ([f for f in moved if f.source == i], [f for f in moved if f.target == i]):
            if ends and kept.isdisjoint(ends):
                kept.add(max(ends, key=lambda flow: flow.bytes))
    return [flow for flow in moved if flow in kept]
