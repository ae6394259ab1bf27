"""The roofline as an SVG that needs no plotting library: two roofs, kernels as small dots, families as labelled ones.

Both axes are logarithmic: FLOP per byte across, GFLOP/s (modelled) upwards. The area of a family's dot is its share of
the modelled time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from fusionlab.ledger.roofline import Point
from fusionlab.ledger.time.model import Ceilings
from fusionlab.report.pictures.looks import family_colour, family_mark

_WIDTH, _HEIGHT = 900, 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 190, 50, 60


class _Axes:
    """Decades shown: 10^x0 to 10^x1 FLOP/byte across, 10^y0 to 10^y1 FLOP/s upwards."""

    def __init__(self, points: Sequence[Point], ceilings: Ceilings) -> None:
        across = [ceilings.ridge_flop_per_byte, *(point.intensity_flop_per_byte for point in points)]
        upwards = [ceilings.flops_per_s, *(point.model_flops_per_s or 1.0 for point in points)]
        self.x0, self.y0 = max(-5, math.floor(math.log10(min(across)))), max(6, math.floor(math.log10(min(upwards))))
        self.x1 = max(math.ceil(math.log10(max(across) * 2)), self.x0 + 1)
        self.y1 = max(math.ceil(math.log10(max(upwards))), self.y0 + 1)

    def x(self, value: float) -> float:
        share = (math.log10(value) - self.x0) / (self.x1 - self.x0)
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        share = (math.log10(value) - self.y0) / (self.y1 - self.y0)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def roofline_svg(
    title: str, families: Sequence[Point], kernels: Sequence[tuple[Point, str]], ceilings: Ceilings
) -> str:
    """The SVG text. ``kernels`` come with their family; points that compute nothing are left out (log axes)."""
    drawn = [point for point in families if _drawable(point) and point.name != "all"]
    dots = [(point, name) for point, name in kernels if _drawable(point)]
    axes = _Axes([*drawn, *(point for point, _ in dots)], ceilings)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="Helvetica, Arial, '
        'sans-serif" font-size="12">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_LEFT}" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
        *_grid(axes),
        *_roofs(axes, ceilings),
        *(_dot(axes, point, 2.5, family_colour(name), 0.35) for point, name in dots),
        *_families(axes, drawn),
        *_above([point for point, _ in dots]),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _drawable(point: Point) -> bool:
    return point.intensity_flop_per_byte > 0 and bool(point.model_flops_per_s)


def _text(x: str, y: str, words: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}"{more}>{words}</text>'


def _grid(axes: _Axes) -> Iterator[str]:
    bottom, right, centred = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT, ' text-anchor="middle"'
    for decade in range(axes.x0, axes.x1 + 1):
        x = f"{axes.x(10.0**decade):.1f}"
        yield f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}" stroke="#e4e4e4"/>'
        yield _text(x, f"{bottom + 18}", _power(decade), centred)
    for decade in range(axes.y0, axes.y1 + 1):
        y = axes.y(10.0**decade)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#e4e4e4"/>'
        yield _text(f"{_LEFT - 8}", f"{y + 4:.1f}", _power(decade - 9), ' text-anchor="end"')
    yield _text(f"{(_LEFT + right) / 2:.0f}", f"{_HEIGHT - 16}", "FLOP per byte (model)", centred)
    middle = f"{(_TOP + bottom) / 2:.0f}"
    yield _text("22", middle, "GFLOP/s (modelled time)", f'{centred} transform="rotate(-90 22 {middle})"')


def _power(decade: int) -> str:
    return f'10<tspan dy="-5" font-size="9">{decade}</tspan>'


def _roofs(axes: _Axes, ceilings: Ceilings) -> Iterator[str]:
    start = max(10.0**axes.x0, 10.0**axes.y0 / ceilings.bytes_per_s)
    roof = ceilings.flops_per_s
    corners = ((start, start * ceilings.bytes_per_s), (ceilings.ridge_flop_per_byte, roof), (10.0**axes.x1, roof))
    path = " ".join(f"{axes.x(across):.1f},{axes.y(up):.1f}" for across, up in corners)
    yield f'<polyline points="{path}" fill="none" stroke="black" stroke-width="2"/>'
    words = f"{roof / 1e12:.1f} TFLOP/s, {ceilings.bytes_per_s / 1e9:,.0f} GB/s ({ceilings.source})"
    yield _text(f"{_LEFT + 10}", f"{_TOP + 18}", f"roof: {escape(words)}")


def _families(axes: _Axes, points: Sequence[Point]) -> Iterator[str]:
    """Dots, then their labels to the right of the plot, in order of height and without overlap."""
    for point in points:
        yield _dot(axes, point, 4 + 16 * math.sqrt(point.model_share or 0.0), family_colour(point.name), 0.8)
    at, left = float(_TOP), _WIDTH - _RIGHT + 14
    for point in sorted(points, key=lambda one: -(one.model_flops_per_s or 0.0)):
        x, y = axes.x(point.intensity_flop_per_byte), axes.y(point.model_flops_per_s or 1.0)
        at = max(at + 34, y - 40)
        colour = family_colour(point.name)
        line = f'x1="{x:.1f}" y1="{y:.1f}" x2="{left - 4}" y2="{at - 4:.1f}"'
        yield f'<line {line} stroke="{colour}" stroke-width="0.6"/>'
        mark = f'<tspan fill="{colour}">{family_mark(point.name)}</tspan>'
        yield _text(f"{left}", f"{at:.1f}", f"{mark} {escape(point.name)}", ' font-weight="bold"')
        words = f"{point.model_share or 0.0:.0%} of time, {point.dynamic_launches:,} launches"
        yield _text(f"{left}", f"{at + 14:.1f}", words, ' font-size="11"')


def _above(kernels: Sequence[Point]) -> Iterator[str]:
    """The reason for kernels above the roof, if there are any (1 up to rounding is on it)."""
    above = sum(1 for point in kernels if point.roof_share is not None and point.roof_share > 1.02)
    if above:
        words = f"{above} of {len(kernels)} kernels, which use a part of operands that are counted whole"
        yield _text(f"{_LEFT + 10}", f"{_TOP + 34}", f"above the roof: {words}", ' font-size="11"')


def _dot(axes: _Axes, point: Point, radius: float, colour: str, opacity: float) -> str:
    x, y = axes.x(point.intensity_flop_per_byte), axes.y(point.model_flops_per_s or 1.0)
    words = (
        f"{point.name}: {point.intensity_flop_per_byte:.3g} FLOP/byte, {(point.model_flops_per_s or 0) / 1e9:,.1f} "
        f"GFLOP/s, {(point.model_us or 0.0) / 1e3:,.3f} ms, {point.bound}-bound"
    )
    look = f'r="{radius:.1f}" fill="{colour}" fill-opacity="{opacity}"'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" {look}><title>{escape(words)}</title></circle>'
