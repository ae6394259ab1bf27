"""HTML-like labels of the graph views: panels with their boxes as rows, plain frames, titles and the legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fusionlab.report.boxes import Box, Flow, Panel
from fusionlab.report.dot import STAGE_COLOURS, bar, bytes_text, flops_text, text
from fusionlab.report.family_looks import FAMILY_LOOKS, family_colour, family_mark

STAGE_WORDS = {
    "A": "features",
    "B": "correlation update",
    "C": "orbitals and readout",
    "D": "determinants, log|psi|",
    "E": "derivatives, Laplacian",
    "": "no stage known",
}
"""Stage to what it is (the characterisation, Section II)."""

ROLE_WORDS = {
    "primal": "values",
    "tangent": "tangents, forward pass",
    "cotangent": "reverse pass",
    "tangent-of-cotangent": "tangents, reverse pass",
}

_WIDTHS = (172, 52, 80, 64, 84)
_ROW = 18
PANEL_WIDTH = sum(_WIDTHS)
"""Points; labels ask for it, so that a layout can rely on it."""

FRAME_WIDTH = 250
"""Points that ``frame_label`` asks for."""

_BAR = 78
_TABLE = '<TABLE BORDER="{border}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2" BGCOLOR="white" COLOR="#202020">'


def panel_label(panel: Panel, widest: int, reads: tuple[int, int] = (0, 0), title: str = "") -> str:
    """A table: the head in the stage's colour, a row per box with a bar for its bytes (``widest`` fills it).

    ``reads`` is the number and bytes of residuals that the panel reads; ``title`` replaces the stage's words.
    """
    colour = STAGE_COLOURS[panel.stage]
    scope = panel.title.replace("_", " ")
    what = title or (f"{panel.stage}  {STAGE_WORDS[panel.stage]}" if panel.stage else scope)
    lines = [f"<B>{text(what)}</B>", text(ROLE_WORDS[panel.role])]
    if panel.stage and scope and scope != f"stage {panel.stage.lower()}":
        lines.insert(1, text(scope))
    head = " &#183; ".join(lines)
    rows = [_row([f'<TD COLSPAN="5" ALIGN="LEFT" BGCOLOR="{colour}" HEIGHT="{_ROW}">{head}</TD>'])]
    rows += [_box_row(box, widest) for box in panel.boxes]
    notes = [f"{layers}; figures are of all"] if (layers := _layers_words(panel)) else []
    if reads[0]:
        notes.append(f"reads {reads[0]} {'residual' if reads[0] == 1 else 'residuals'}, {bytes_text(reads[1])}")
    rows += [_row([f'<TD COLSPAN="5" ALIGN="LEFT" HEIGHT="{_ROW}"><I>{text(note)}</I></TD>']) for note in notes]
    return _TABLE.format(border=1) + "".join(rows) + "</TABLE>"


def panel_height(panel: Panel, *, noted: bool) -> int:
    """Points that ``panel_label`` takes, with a line of residuals or without."""
    return _ROW * (1 + len(panel.boxes) + noted + bool(panel.layers))


def frame_label(head: str, lines: Sequence[str]) -> str:
    """A grey frame, ``FRAME_WIDTH`` wide, with a bold first line."""
    rows = [f'<TD BGCOLOR="#E4E4E4" WIDTH="{FRAME_WIDTH}"><B>{text(head)}</B></TD>']
    rows += [f"<TD>{text(line)}</TD>" for line in lines]
    return _TABLE.format(border=1) + "".join(_row([row]) for row in rows) + "</TABLE>"


def title_label(head: str, *lines: str) -> str:
    """A bold line and plain ones under it, for the whole picture."""
    smaller = "".join(f'<BR/><FONT POINT-SIZE="12">{text(line)}</FONT>' for line in lines if line)
    return f'<FONT POINT-SIZE="18"><B>{text(head)}</B></FONT><BR/><FONT POINT-SIZE="4"> </FONT>{smaller}<BR/> '


def legend(stages: Iterable[str], families: Iterable[str], *notes: str) -> str:
    """What colours, marks, bars and arrows mean; only the stages and families that the picture shows."""
    shown = set(stages)
    colours = [
        f'<TD BGCOLOR="{colour}">{text(f"{stage}  {STAGE_WORDS[stage]}" if stage else STAGE_WORDS[""])}</TD>'
        for stage, colour in STAGE_COLOURS.items()
        if stage in shown
    ]
    drawn = set(families)
    marks = "    ".join(f"{_mark(family)} {text(family)}" for family in FAMILY_LOOKS if family in drawn)
    words = ("columns of a panel: op family, operations, FLOPs, bytes moved (bar: bytes)", *filter(None, notes))
    first, *rest = map(text, words)
    across = f'COLSPAN="{len(colours) + 1}" ALIGN="LEFT"'
    return (
        _TABLE.format(border=1)
        + _row(["<TD><B>Legend</B></TD>", *colours])
        + "".join(_row([f"<TD {across}>{line}</TD>"]) for line in (first, marks, *rest))
        + "</TABLE>"
    )


def not_drawn(moved: Sequence[Flow], drawn: Sequence[Flow]) -> str:
    """A note on the flows that have no arrow, or the empty string."""
    hidden = [flow.bytes for flow in moved if flow not in drawn]
    flows = "1 smaller flow" if len(hidden) == 1 else f"{len(hidden)} smaller flows"
    return f"not drawn: {flows}, {bytes_text(sum(hidden))} together" if hidden else ""


def _layers_words(panel: Panel) -> str:
    """How often what the panel shows is there, and whether it is the same each time; "" for what is there once."""
    if not panel.layers:
        return ""
    if len(panel.layers) == 1 and panel.layers[0].depth == len(panel.scope) - 1:
        return panel.layers[0].words
    return "inside of alike layers"  # not of each, perhaps: nobody has counted that


def _box_row(box: Box, widest: int) -> str:
    name = " + ".join(box.families) if len(box.families) < 3 else "mixed"
    marks = "".join(map(_mark, box.families))
    unmodelled = f" ({box.unmodelled} unmodelled)" if box.unmodelled else ""
    contents = [
        f"{marks} {text(name + unmodelled)}",
        f"{box.ops:,} {'op' if box.ops == 1 else 'ops'}",
        text(flops_text(box.flops)) if box.flops else "&#8211;",
        text(bytes_text(box.bytes)) if box.bytes else "&#8211;",
        bar(box.bytes / widest, _BAR, family_colour(box.families[0])),
    ]
    aligned = zip(contents, ("LEFT", "RIGHT", "RIGHT", "RIGHT", "LEFT"), _WIDTHS, strict=True)
    cells = [f'<TD ALIGN="{side}" WIDTH="{width}" HEIGHT="{_ROW}">{content}</TD>' for content, side, width in aligned]
    return _row(cells)


def _mark(family: str) -> str:
    return f'<FONT COLOR="{family_colour(family)}">{family_mark(family)}</FONT>'


def _row(cells: Sequence[str]) -> str:
    return "<TR>" + "".join(cells) + "</TR>"
