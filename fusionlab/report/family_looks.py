"""Colour and mark of op families, for every picture: the graph views, the roofline plot and the page of the report.

Six colours are those of Okabe and Ito (2008). The other two, and the grey of the rest, were chosen beside them so that
any two families differ by at least 10 in CIE L*a*b*, also to readers with protanopia, deuteranopia or tritanopia, and
stand out from white and from the page's dark paper by at least 2 to 1 (tests/report/test_family_looks.py). A mark goes
with each colour, so that nothing is said by colour alone.
"""

from __future__ import annotations

_REST = "#777777"

FAMILY_LOOKS: dict[str, tuple[str, str]] = {
    "gemm": ("#D55E00", "◆"),
    "triangular-solve": ("#CC79A7", "◣"),
    "factorisation": ("#774422", "◩"),
    "attention": ("#9933EE", "✱"),
    "elementwise": ("#009E73", "●"),
    "reduction": ("#0072B2", "▼"),
    "layout": ("#E69F00", "□"),
    "gather-scatter": ("#56B4E9", "⋈"),
    "sort": (_REST, "↕"),
    "control": (_REST, "↻"),
    "constant": (_REST, "▪"),
    "other": (_REST, "?"),
}
"""Op family to colour and mark, in the order of legends; families that are not here look like ``other``."""


def family_colour(family: str) -> str:
    """``#RRGGBB``."""
    return FAMILY_LOOKS.get(family, FAMILY_LOOKS["other"])[0]


def family_mark(family: str) -> str:
    """One character."""
    return FAMILY_LOOKS.get(family, FAMILY_LOOKS["other"])[1]
