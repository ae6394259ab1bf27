"""Positions of blocks in a fixed picture and routes of the arrows between them, as DOT lines with pinned positions.

Two columns: forward passes left, reverse passes right. A row has one scope's values and their reverse pass, or its
tangents and the tangents of its reverse pass. The places are computed here and pinned (Graphviz engine ``neato``,
chosen by the graph itself), because ``dot`` neither keeps columns in a cluster nor routes labelled arrows within a rank
reliably. Lengths are points, y upwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fusionlab.report.pictures.dot import WIDTHS, block_height, block_label, bytes_text, pen_width, text, widest_box
from fusionlab.report.pictures.drawing import Flow, PictureBlock

_WIDTH = sum(WIDTHS)
_BETWEEN_COLUMNS = 116
_BETWEEN_ROWS = 32
_LANE = 50
_MARGIN = 20.0

Point = tuple[float, float]


class Grid:
    """``blocks`` in ``rows`` (of their positions), and arrows for the flows ``drawn``.

    ``centres`` are of the blocks, ``bounds`` the rectangle (left, bottom, right, top) around blocks and arrows.
    """

    def __init__(self, blocks: Sequence[PictureBlock], rows: Sequence[Sequence[int]], drawn: Sequence[Flow]) -> None:
        self._blocks, self._drawn = blocks, drawn
        self._columns = [column_of(block.role) for block in blocks]
        self._heights = [block_height(block) for block in blocks]
        self.centres: dict[int, Point] = {}
        top = 0.0
        for row in rows:
            height = max(self._heights[i] for i in row)
            for i in row:
                self.centres[i] = self._columns[i] * (_WIDTH + _BETWEEN_COLUMNS), top - height / 2
            top -= height + _BETWEEN_ROWS
        self._lanes = self._lanes_of(rows)
        used = [
            max((lane for ends, lane in self._lanes.items() if self._columns[ends[0]] == c), default=-1) for c in (0, 1)
        ]
        left, right = (_MARGIN + _LANE * (1 + lane) for lane in used)
        right += max(self._columns, default=0) * (_WIDTH + _BETWEEN_COLUMNS) + _WIDTH / 2
        self.bounds = (-_WIDTH / 2 - left, top + _BETWEEN_ROWS - _MARGIN, right, _MARGIN)

    def _lanes_of(self, rows: Sequence[Sequence[int]]) -> dict[tuple[int, int], int]:
        """A lane beside the column for each flow that passes a row, the shortest flows nearest."""
        row_of = {i: number for number, row in enumerate(rows) for i in row}
        taken: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        lanes = {}
        for flow in sorted(self._drawn, key=lambda flow: abs(row_of[flow.source] - row_of[flow.target])):
            low, high = sorted((row_of[flow.source], row_of[flow.target]))
            column = self._columns[flow.source]
            if column == self._columns[flow.target] and high - low >= 2:
                lane = 0
                while any(low < b and a < high for a, b in taken[column, lane]):
                    lane += 1
                taken[column, lane].append((low, high))
                lanes[flow.source, flow.target] = lane
        return lanes

    def lines(self, most: int) -> Iterator[str]:
        """DOT lines of the blocks and the arrows between them; ``most`` bytes are the widest arrow."""
        widest = widest_box(self._blocks)
        for i, block in enumerate(self._blocks):
            yield f"p{i} [label=<{block_label(block, widest, WIDTHS)}>, {pin(self.centres[i])}];"
        for number, flow in enumerate(self._drawn):
            path, label_at = self._route(flow)
            yield from polyline(f"f{number}", path, pen_width(flow.bytes, most))
            cell = f"<TR><TD>{text(bytes_text(flow.bytes))}</TD></TR>"
            label = f'<TABLE BORDER="0" CELLBORDER="0" CELLPADDING="1" BGCOLOR="#FAFAFA">{cell}</TABLE>'
            yield f"f{number}label [label=<{label}>, fontsize=10, {pin(label_at)}];"

    def _route(self, flow: Flow) -> tuple[list[Point], Point]:
        """The corners of an arrow and the position of its label."""
        (x, y), (u, v) = self.centres[flow.source], self.centres[flow.target]
        half = _WIDTH / 2
        if x != u:
            side = 1 if u > x else -1
            y, v = (y, v) if side > 0 else (y - 22, v - 22)  # beside an arrow in the other direction
            return [(x + side * half, y), (u - side * half, v)], ((x + u) / 2, (y + v) / 2 + (14 if y == v else 0))
        up = 1 if v > y else -1
        if (flow.source, flow.target) in self._lanes:
            side = 1 if self._columns[flow.source] else -1
            lane = x + side * (half + _MARGIN + _LANE * (self._lanes[flow.source, flow.target] + 0.5))
            start, end = y - 6 * up, v + 6 * up
            return [(x + side * half, start), (lane, start), (lane, end), (u + side * half, end)], (lane, (y + v) / 2)
        start = y + up * self._heights[flow.source] / 2
        end = v - up * self._heights[flow.target] / 2
        return [(x + 40 * up, start), (x + 40 * up, end)], (x + 74 * up, (start + end) / 2)


def column_of(role: str) -> int:
    """0 for forward passes, 1 for reverse passes."""
    return 1 if "cotangent" in role else 0


def pin(point: Point) -> str:
    """The DOT attribute that fixes a node's centre."""
    return f'pos="{point[0]:.1f},{point[1]:.1f}!"'


def polyline(name: str, path: Sequence[Point], width: float) -> Iterator[str]:
    """DOT lines of an arrow through the points of ``path``."""
    for i, point in enumerate(path):
        yield f'{name}_{i} [shape=point, width=0.01, label="", style=invis, {pin(point)}];'
    for i in range(len(path) - 1):
        head = "normal" if i == len(path) - 2 else "none"
        yield f'{name}_{i} -> {name}_{i + 1} [penwidth={width:.1f}, color="#40404099", arrowhead={head}];'
