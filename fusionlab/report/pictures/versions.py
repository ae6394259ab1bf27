"""Figures of one program over versions of the compiler, as an SVG that needs no plotting library: a panel per figure.

Each panel begins at zero. A version that did not compile the program has a cross.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape

from fusionlab.units import BYTES, TIMES, three_digits
from fusionlab.versions.drift import Drift, VersionRow

_WIDTH, _TOP, _PANEL, _GAP, _BOTTOM = 720, 44, 110, 34, 40
_LEFT, _RIGHT = 40, 40
_PANELS: tuple[tuple[str, str, str, Callable[[float], str]], ...] = (
    ("launches", "kernel launches", "#015D9B", lambda value: f"{value:,.0f}"),
    ("temp_bytes", "temp memory", "#BD4A00", lambda value: three_digits(value, BYTES, "B")),
    ("model_us", "time (model)", "#028C5F", lambda value: three_digits(value, TIMES, "us")),
)


def versions_svg(found: Drift) -> str:
    """The SVG text."""
    height = _TOP + len(_PANELS) * (_PANEL + _GAP) + _BOTTOM
    title = f"{found.name} on {found.target} by version of JAX"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="Helvetica, Arial, '
        'sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    for at, (name, words, colour, label) in enumerate(_PANELS):
        lines += _panel(found.rows, name, words, colour, label, _TOP + at * (_PANEL + _GAP) + _GAP / 2)
    lines += _axis(found.rows, height - _BOTTOM)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _x(at: int, count: int) -> float:
    room = _WIDTH - _LEFT - _RIGHT
    return _LEFT + room * (at + 0.5) / count


def _panel(
    rows: Sequence[VersionRow], name: str, words: str, colour: str, label: Callable[[float], str], top: float
) -> Iterator[str]:
    values = [row.figures.get(name) for row in rows]
    most, bottom = max((value for value in values if value is not None), default=0.0) or 1.0, top + _PANEL
    yield f'<text x="{_LEFT}" y="{top - 4:.0f}" fill="{colour}" font-weight="bold">{words}</text>'
    yield f'<line x1="{_LEFT}" y1="{bottom:.1f}" x2="{_WIDTH - _RIGHT}" y2="{bottom:.1f}" stroke="#888888"/>'
    points = [
        (_x(at, len(rows)), bottom - (_PANEL - 24) * value / most, value)
        for at, value in enumerate(values)
        if value is not None
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y, value in points:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
        yield f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{escape(label(value))}</text>'


def _axis(rows: Sequence[VersionRow], top: float) -> Iterator[str]:
    for at, row in enumerate(rows):
        x = _x(at, len(rows))
        yield f'<text x="{x:.1f}" y="{top + 6:.1f}" text-anchor="middle">{escape(row.version)}</text>'
        if row.record is None:
            reason = f"<title>{escape(row.reason)}</title>"
            place = f'x="{x:.1f}" y="{top + 22:.1f}" text-anchor="middle" fill="#BD4A00"'
            yield f"<text {place}>✕ not compiled{reason}</text>"
