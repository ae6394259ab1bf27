"""Which panel goes where, and which flows between panels are worth an arrow.

Two columns: forward passes left, reverse passes right. A row holds one scope's values and their reverse pass, or its
tangents and the tangents of its reverse pass.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from fusionlab.report.boxes import Flow, Panel

_UPWARDS = 3.0


def column(panel: Panel) -> int:
    """0 for what runs forward through the program, 1 for what runs backward."""
    return 1 if "cotangent" in panel.role else 0


def grid_rows(panels: Sequence[Panel]) -> list[list[int]]:
    """Positions of panels, those of one row together, left first; rows in the order of their first panel."""
    rows: dict[tuple[tuple[str, ...], bool], list[int]] = defaultdict(list)
    for i, panel in enumerate(panels):
        rows[panel.scope, panel.role.startswith("tangent")].append(i)
    return [sorted(row, key=lambda i: column(panels[i])) for row in rows.values()]


def reading_order(rows: Sequence[Sequence[int]], panels: Sequence[Panel], moved: Iterable[Flow]) -> list[list[int]]:
    """``rows`` with the scopeless ones first, the others so that flows go a short way (forward down, reverse up)."""
    given = sorted(rows, key=lambda row: (bool(panels[row[0]].scope), min(row)))
    number = {i: position for position, row in enumerate(given) for i in row}
    down: dict[tuple[int, int], float] = defaultdict(float)
    for flow in moved:
        upper, lower = number[flow.source], number[flow.target]
        if column(panels[flow.target]):
            upper, lower = lower, upper
        down[upper, lower] += math.log1p(flow.bytes)
    fixed = sum(not panels[row[0]].scope for row in given)
    return [list(given[i]) for i in ordered(len(given), down, fixed)]


def ordered(rows: int, down: Mapping[tuple[int, int], float], fixed: int = 0) -> list[int]:
    """An order of ``rows`` in which the weights ``down[i, j]`` (i should be above j) go a short way, and down.

    The first ``fixed`` stay in place. Steepest descent over moving one row; an arrow costs its length, and three times
    that when it points up.
    """

    def cost(order: Sequence[int]) -> float:
        place = {row: position for position, row in enumerate(order)}
        falls = ((place[j] - place[i], weight) for (i, j), weight in down.items())
        return sum(weight * (fall if fall >= 0 else -_UPWARDS * fall) for fall, weight in falls)

    best = list(range(rows))
    while True:
        moves = [_moved(best, i, j) for i in range(fixed, rows) for j in range(fixed, rows) if i != j]
        better = min(moves, key=cost, default=best)
        if cost(better) >= cost(best):
            return best
        best = better


def worth_drawing(moved: Sequence[Flow], panels: int, share: float = 0.005) -> list[Flow]:
    """Flows of at least ``share`` of the largest, and for a panel without one in (or out) its largest in (or out)."""
    most = max((flow.bytes for flow in moved), default=0)
    kept = {flow for flow in moved if flow.bytes >= share * most}
    for i in range(panels):
        for ends in ([f for f in moved if f.source == i], [f for f in moved if f.target == i]):
            if ends and kept.isdisjoint(ends):
                kept.add(max(ends, key=lambda flow: flow.bytes))
    return [flow for flow in moved if flow in kept]


def _moved(order: Sequence[int], source: int, target: int) -> list[int]:
    rest = [*order[:source], *order[source + 1 :]]
    return [*rest[:target], order[source], *rest[target:]]
