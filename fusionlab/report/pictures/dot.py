"""DOT text: escaping, figures, HTML-like labels of panels and blocks, and a Drawing for Graphviz's ``dot``.

Families are marked by colour and by a character (``looks``), so that no reader depends on colours.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence

from fusionlab.report.pictures.drawing import Box, Drawing, Flow, PictureBlock, worth_drawing
from fusionlab.report.pictures.looks import (
    BOX_FAMILIES,
    FAMILY_LOOKS,
    ROLE_WORDS,
    STAGE_COLOURS,
    STAGE_WORDS,
    family_colour,
    family_mark,
)
from fusionlab.report.pictures.panels import Panel

PANEL_WIDTHS = (172, 52, 80, 64, 84)
"""Points of a panel's columns; labels request them, so that a layout can rely on them."""
FRAME_WIDTH = 250
"""Points that ``frame_label`` requests."""
_ROW = 18
_SIDES = ("LEFT", "RIGHT", "RIGHT", "RIGHT", "LEFT")
_ACROSS = 'COLSPAN="5" ALIGN="LEFT"'
_PLAIN = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING='
_FRAMES = {
    "loop": 'style="rounded,filled", fillcolor="#F3F3F3", color="#202020", penwidth=3',
    "kernel": 'style="rounded,filled", fillcolor="#F3F3F3", color="#202020", penwidth=3',
    "side": 'style="rounded,dashed", color="#505050", penwidth=1.5',
    "scope": 'style="rounded", color="#909090", penwidth=1',
}
_SMALLEST_FLOW = 0.01


def text(content: object) -> str:
    """``content`` for an HTML-like label."""
    return html.escape(str(content), quote=True)


def quoted(content: object) -> str:
    """``content`` as a DOT string."""
    return '"' + str(content).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def bytes_text(size: float) -> str:
    """A size with three digits: ``0``, ``12.5 KiB``, ``880 MiB``."""
    return _scaled(size, 1024.0, ("B", "KiB", "MiB", "GiB", "TiB"))


def flops_text(flops: float) -> str:
    """A count of FLOPs with three digits: ``11.6 GFLOP``."""
    return _scaled(flops, 1000.0, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def _scaled(amount: float, step: float, units: tuple[str, ...]) -> str:
    if not amount:
        return "0"
    index = 0
    while amount >= 999.5 and index < len(units) - 1:
        amount /= step
        index += 1
    digits = 0 if index == 0 or amount >= 99.5 else 1 if amount >= 9.95 else 2
    return f"{amount:,.{digits}f} {units[index]}"


def pen_width(size: int, most: int) -> float:
    """Width of an arrow of ``size`` bytes when the widest one is ``most``."""
    return 0.8 + 7.2 * math.sqrt(size / most if most else 0)


def not_drawn(moved: Sequence[Flow], drawn: Sequence[Flow]) -> str:
    """A note on the flows that have no arrow, or the empty string."""
    hidden = [flow.bytes for flow in moved if flow not in drawn]
    flows = "1 smaller flow" if len(hidden) == 1 else f"{len(hidden)} smaller flows"
    return f"not drawn: {flows}, {bytes_text(sum(hidden))} together" if hidden else ""


def _table(rows: Iterable[str], padding: int = 2) -> str:
    look = f'CELLSPACING="0" CELLPADDING="{padding}" BGCOLOR="white" COLOR="#202020"'
    return f'<TABLE BORDER="1" CELLBORDER="0" {look}>' + "".join(f"<TR>{row}</TR>" for row in rows) + "</TABLE>"


def _figures(box: Box, widest: int, width: int, family: str) -> tuple[str, str, str]:
    """Cells of FLOPs, bytes and a bar that ``widest`` bytes fill; of what is not 0 the bar has one point at least."""
    filled = min(width, max(1, round(width * (box.bytes / widest)))) if box.bytes else 0
    parts = [(filled, f' BGCOLOR="{family_colour(family)}"'), (width - filled, "")]
    cells = "".join(f'<TD FIXEDSIZE="TRUE" WIDTH="{n}" HEIGHT="10"{fill}></TD>' for n, fill in parts if n)
    figures = (flops_text(box.flops) if box.flops else "", bytes_text(box.bytes) if box.bytes else "")
    flops, moved = (text(one) if one else "&#8211;" for one in figures)
    return flops, moved, f'{_PLAIN}"0"><TR>{cells}</TR></TABLE>'


def _rows(
    colour: str, head: str, boxes: Iterable[Sequence[str]], notes: Iterable[str], widths: Sequence[int] = ()
) -> Iterator[str]:
    """Rows of a panel or block: its head, five cells per box, and notes; of fixed size with ``widths``."""
    height = f' HEIGHT="{_ROW}"' if widths else ""
    sizes = [f' WIDTH="{width}"{height}' for width in widths] or [""] * 5
    yield f'<TD {_ACROSS} BGCOLOR="{colour}"{height}>{head}</TD>'
    for cells in boxes:
        columns = zip(_SIDES, sizes, cells, strict=True)
        yield "".join(f'<TD ALIGN="{side}"{size}>{cell}</TD>' for side, size, cell in columns)
    for note in notes:
        yield f"<TD {_ACROSS}{height}><I>{text(note)}</I></TD>"


def panel_label(panel: Panel, widest: int, reads: tuple[int, int] = (0, 0), title: str = "") -> str:
    """A table: the head in the stage's colour, a row per box with a bar for its bytes (``widest`` fills it).

    ``reads`` is the number and bytes of residuals that the panel reads; ``title`` replaces the stage's words.
    """
    scope = panel.title.replace("_", " ")
    what = title or (f"{panel.stage}  {STAGE_WORDS[panel.stage]}" if panel.stage else scope)
    lines = [f"<B>{text(what)}</B>", text(ROLE_WORDS[panel.role])]
    if panel.stage and scope and scope != f"stage {panel.stage.lower()}":
        lines.insert(1, text(scope))
    notes = [f"{_layers_words(panel)}; figures are of all"] if panel.layers else []
    if reads[0]:
        notes.append(f"reads {reads[0]} {'residual' if reads[0] == 1 else 'residuals'}, {bytes_text(reads[1])}")
    boxes = [_panel_cells(box, widest) for box in panel.boxes]
    return _table(_rows(STAGE_COLOURS[panel.stage], " &#183; ".join(lines), boxes, notes, PANEL_WIDTHS))


def panel_height(panel: Panel, *, noted: bool) -> int:
    """Points that ``panel_label`` takes, with a line of residuals or without."""
    return _ROW * (1 + len(panel.boxes) + noted + bool(panel.layers))


def _layers_words(panel: Panel) -> str:
    """The count of what the panel shows, in words that say if all are identical."""
    if list(panel.layers) == [len(panel.scope) - 1]:
        return panel.layers[len(panel.scope) - 1].words
    return "inside of alike layers"  # not necessarily of each: that is not counted


def _panel_cells(box: Box, widest: int) -> tuple[str, ...]:
    name = " + ".join(box.families) if len(box.families) < 3 else "mixed"
    unmodelled = f" ({box.unmodelled} unmodelled)" if box.unmodelled else ""
    marks = "".join(map(_mark, box.families))
    count = f"{box.count:,} {'op' if box.count == 1 else 'ops'}"
    return f"{marks} {text(name + unmodelled)}", count, *_figures(box, widest, 78, box.families[0])


def _mark(family: str) -> str:
    return f'<FONT COLOR="{family_colour(family)}">{family_mark(family)}</FONT>'


def frame_label(head: str, lines: Sequence[str]) -> str:
    """A grey frame, ``FRAME_WIDTH`` wide, with a bold first line."""
    first = f'<TD BGCOLOR="#E4E4E4" WIDTH="{FRAME_WIDTH}"><B>{text(head)}</B></TD>'
    return _table([first, *(f"<TD>{text(line)}</TD>" for line in lines)])


def title_label(head: str, *lines: str) -> str:
    """A bold line and plain ones under it, for the whole picture."""
    smaller = "".join(f'<BR/><FONT POINT-SIZE="12">{text(line)}</FONT>' for line in lines if line)
    return f'<FONT POINT-SIZE="18"><B>{text(head)}</B></FONT><BR/><FONT POINT-SIZE="4"> </FONT>{smaller}<BR/> '


def legend(of: Sequence[Panel], *notes: str) -> str:
    """The key to colours, marks, bars and arrows; only the stages and families of these panels."""
    colours = _stage_cells({panel.stage for panel in of})
    drawn = {family for panel in of for box in panel.boxes for family in box.families}
    marks = "    ".join(f"{_mark(family)} {text(family)}" for family in FAMILY_LOOKS if family in drawn)
    first, *rest = map(text, ("columns of a panel: op family, operations, FLOPs, bytes moved (bar: bytes)", *notes))
    across = f'COLSPAN="{len(colours) + 1}" ALIGN="LEFT"'
    lines = [f"<TD {across}>{line}</TD>" for line in (first, marks, *filter(None, rest))]
    return _table(["<TD><B>Legend</B></TD>" + "".join(colours), *lines])


def _stage_cells(stages: set[str]) -> list[str]:
    words = {stage: f"{stage}  {STAGE_WORDS[stage]}" if stage else STAGE_WORDS[""] for stage in STAGE_COLOURS}
    return [f'<TD BGCOLOR="{STAGE_COLOURS[one]}">{text(words[one])}</TD>' for one in STAGE_COLOURS if one in stages]


def drawing_dot(drawing: Drawing) -> str:
    """DOT text of ``drawing``; flows under a hundredth of the largest have no arrow, and the legend says so."""
    return "\n".join(["digraph drawing {", *(f"  {line}" for line in _lines(drawing)), "}", ""])


def _lines(drawing: Drawing) -> Iterator[str]:
    drawn = worth_drawing(drawing.flows, len(drawing.blocks), _SMALLEST_FLOW)
    yield f'graph [rankdir=TB, fontname="Helvetica", labelloc=t, label=<{_title(drawing)}>, nodesep=0.35, ranksep=0.5];'
    yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
    yield 'edge [arrowsize=0.8, fontname="Helvetica", fontsize=10, color="#404040"];'
    widest = max((box.bytes for block in drawing.blocks for box in block.rows), default=0) or 1
    yield from _level(drawing, (), widest)
    most = max((flow.bytes for flow in drawn), default=0)
    for flow in drawn:
        back = ", constraint=false" if flow.source > flow.target else ""
        label = bytes_text(flow.bytes) if flow.bytes else ""
        yield f'b{flow.source} -> b{flow.target} [penwidth={pen_width(flow.bytes, most):.1f}, label="{label}"{back}];'
    yield f"legend [label=<{_drawing_legend(drawing, drawn)}>];"
    followed = {flow.source for flow in drawn if flow.source < flow.target}
    yield from (f"b{i} -> legend [style=invis];" for i in range(len(drawing.blocks)) if i not in followed)


def _level(drawing: Drawing, inside: tuple[str, ...], widest: int) -> Iterator[str]:
    """The blocks of the group ``inside`` (a path of ids) and the groups in it, in order of their first block."""
    depth = len(inside)
    done: set[str] = set()
    for i, block in enumerate(drawing.blocks):
        if block.groups[:depth] != inside:
            continue
        if len(block.groups) == depth:
            yield f"b{i} [label=<{_block_label(block, widest)}>];"
        elif (name := block.groups[depth]) not in done:
            done.add(name)
            group = drawing.groups[name]
            look = f"fontsize={16 if group.look == 'side' else 13}, margin=12, {_FRAMES[group.look]}"
            yield f"subgraph {quoted('cluster ' + '/'.join((*inside, name)))} {{"
            yield f"  graph [label={quoted(group.title)}, labelloc=t, labeljust=l, {look}];"
            yield from (f"  {line}" for line in _level(drawing, (*inside, name), widest))
            yield "}"


def _block_label(block: PictureBlock, widest: int) -> str:
    colour = STAGE_COLOURS.get(block.stage, "#DDDDDD") if block.look == "panel" else "#E4E4E4"
    repeats = f"  &#215;{block.repeats}" if block.repeats > 1 else ""
    role = f" &#183; {text(ROLE_WORDS.get(block.role, block.role))}" if block.role else ""
    wider = "&#160;" * (len(block.title) // 6)  # renderers' bold is wider than Graphviz assumes
    boxes = [_block_cells(box, widest) for box in block.rows]
    return _table(_rows(colour, f"<B>{text(block.title)}{repeats}</B>{role}{wider}", boxes, block.notes), 3)


def _block_cells(box: Box, widest: int) -> tuple[str, ...]:
    family = _drawn_family(box.families[0])
    return f"{family_mark(family)} {text(box.families[0])}", f"{box.count:,}", *_figures(box, widest, 90, family)


def _drawn_family(family: str) -> str:
    """The family whose colour and mark ``family`` has."""
    known = BOX_FAMILIES.get(family, family)
    return known if known in FAMILY_LOOKS else "other"


def _drawing_legend(drawing: Drawing, drawn: Sequence[Flow]) -> str:
    shown = {_drawn_family(box.families[0]) for block in drawing.blocks for box in block.rows}
    swatch = '<TD BGCOLOR="{}" FIXEDSIZE="TRUE" WIDTH="14" HEIGHT="12"></TD><TD ALIGN="LEFT">{} {}   </TD>'
    swatches = [swatch.format(family_colour(f), family_mark(f), f) for f in FAMILY_LOOKS if f in shown]
    stages = _stage_cells({block.stage for block in drawing.blocks if block.rows})
    inner = '<TABLE ALIGN="LEFT" BORDER="0" CELLBORDER="0" CELLSPACING="4" CELLPADDING="2"><TR>{}</TR></TABLE>'
    words = [
        f"columns: op family, {drawing.counted}, FLOPs, bytes (bar: bytes); arrows: bytes, the wider the more",
        *drawing.notes,
        not_drawn(drawing.flows, drawn),
    ]
    tables = [inner.format("".join(cells)) for cells in (swatches, stages) if cells]
    lines = ["<B>Legend</B>", *tables, *(text(line) for line in words if line)]
    return _table((f'<TD ALIGN="LEFT">{line}</TD>' for line in lines), 3)


def _title(drawing: Drawing) -> str:
    head = f'<TR><TD><FONT POINT-SIZE="18"><B>{text(drawing.title)}</B></FONT></TD></TR>'
    lines = "".join(f'<TR><TD><FONT POINT-SIZE="12">{text(line)}</FONT></TD></TR>' for line in drawing.lines if line)
    return f'{_PLAIN}"2">{head}{lines}</TABLE>'
