"""Colours, marks and words of families, stages and roles, for every picture: graphs, roofline plot and page.

The hues are those of Okabe and Ito (2008) and two more, as light or dark as the paper asks for: on white and on the
page's dark paper every colour has a contrast of at least 3 to 1 (WCAG 2, success criterion 1.4.11), and any two
families differ by at least 10 in CIE L*a*b*, also to readers with protanopia, deuteranopia or tritanopia
(tests/report/test_looks.py). Each colour has a mark, so that nothing depends on colour alone.
"""

from __future__ import annotations

from typing import NamedTuple

from fusionlab.hlo.stages import STAGES


class Look(NamedTuple):
    """``#RRGGBB`` on white paper and on dark paper, and one character."""

    colour: str
    on_dark: str
    mark: str


_REST = ("#6A6A6A", "#787878")

FAMILY_LOOKS: dict[str, Look] = {
    "gemm": Look("#BD4A00", "#FB7E2C", "◆"),
    "triangular-solve": Look("#BC6B99", "#CA78A6", "◣"),
    "factorisation": Look("#794624", "#FEBD96", "◩"),
    "attention": Look("#9029E6", "#A53FFA", "✱"),
    "elementwise": Look("#028C5F", "#23AB7F", "●"),
    "reduction": Look("#015D9B", "#3186C8", "▼"),
    "layout": Look("#C07D00", "#F9AF21", "□"),
    "gather-scatter": Look("#2994C7", "#6CC5FB", "⋈"),
    "sort": Look(*_REST, "↕"),
    "control": Look(*_REST, "↻"),
    "constant": Look(*_REST, "▪"),
    "other": Look(*_REST, "?"),
}
"""Op family to its look, in the order of legends; missing families look like ``other``."""

_SMALL = ("custom", "unknown", "rng", "fft", "collective")
BOX_FAMILIES = {"constant": "layout", "sort": "gather-scatter", **dict.fromkeys(_SMALL, "other")}
"""Families that share a box with a larger one."""

STAGE_COLOURS = {"A": "#56B4E9", "B": "#E69F00", "C": "#009E73", "D": "#CC79A7", "E": "#F0E442", "": "#BBBBBB"}
"""Stage to fill: the palette of Okabe and Ito (2008), distinguishable for colour-blind readers."""

STAGE_WORDS = {**STAGES, "": "no stage known"}
"""Stage to its meaning."""

ROLE_WORDS = {
    "primal": "values",
    "tangent": "tangents, forward pass",
    "cotangent": "reverse pass",
    "tangent-of-cotangent": "tangents, reverse pass",
}


def family_colour(family: str) -> str:
    """``#RRGGBB``, on white paper, for Graphviz and the roofline plot."""
    return FAMILY_LOOKS.get(family, FAMILY_LOOKS["other"]).colour


def family_mark(family: str) -> str:
    """One character."""
    return FAMILY_LOOKS.get(family, FAMILY_LOOKS["other"]).mark
