"""A picture as records, before it is drawn: blocks in nested groups, and the bytes that pass between blocks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fusionlab.report.boxes import Flow


@dataclass(frozen=True)
class Row:
    """What a block has of one op family: how many operations (or launches), FLOPs and bytes of all runs."""

    family: str
    count: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class Block:
    """One box: a scope, a cluster of launches, a kernel or an operation.

    ``groups`` are the ids of the groups around it, outermost first; ``repeats`` is how many alike parts it stands for.
    ``look`` is ``panel``, or ``gate`` where a loop begins or ends.
    """

    title: str
    groups: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    stage: str = ""
    role: str = ""
    notes: tuple[str, ...] = ()
    repeats: int = 1
    look: str = "panel"

    @property
    def bytes(self) -> int:
        """Of all rows."""
        return sum(row.bytes for row in self.rows)


@dataclass(frozen=True)
class Group:
    """A frame around blocks. ``look`` is ``loop`` (a boundary that data crosses once or in every trip), ``kernel``,
    ``side`` (before, after) or ``scope``."""

    title: str
    look: str = "scope"


@dataclass(frozen=True)
class Drawing:
    """Blocks, the groups that they name, and the flows between blocks (positions in ``blocks``)."""

    title: str
    lines: tuple[str, ...]
    groups: dict[str, Group]
    blocks: tuple[Block, ...]
    flows: tuple[Flow, ...]
    counted: str = "operations"
    """What ``Row.count`` counts."""
    notes: tuple[str, ...] = field(default=())

    @property
    def families(self) -> set[str]:
        """Every family in the picture."""
        return {row.family for block in self.blocks for row in block.rows}

    @property
    def stages(self) -> set[str]:
        """Every stage in the picture."""
        return {block.stage for block in self.blocks if block.rows}


def side_by_side(before: Drawing, after: Drawing, how: str) -> Drawing:
    """Two drawings in one, left and right, at one scale; ``how`` is the pipeline between them."""
    groups = {"before": Group("before", "side"), "after": Group(f"after {how}", "side")}
    blocks: list[Block] = []
    flows: list[Flow] = []
    for side, one in (("before", before), ("after", after)):
        start = len(blocks)
        groups |= {f"{side}/{name}": group for name, group in one.groups.items()}
        blocks += [replace(block, groups=(side, *(f"{side}/{name}" for name in block.groups))) for block in one.blocks]
        flows += [Flow(flow.source + start, flow.target + start, flow.bytes, flow.values) for flow in one.flows]
    lines = (*(f"before: {line}" for line in before.lines), *(f"after: {line}" for line in after.lines))
    return Drawing(before.title, lines, groups, tuple(blocks), tuple(flows), before.counted, before.notes)
