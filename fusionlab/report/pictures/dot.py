"""DOT text: escaping, figures, labels of blocks, and a Drawing for Graphviz's ``dot``.

Families are marked by colour and by a character (``looks``), so that no reader depends on colours.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Iterator, Sequence

from fusionlab.report.pictures.drawing import Box, Drawing, Flow, PictureBlock, worth_drawing
from fusionlab.report.pictures.looks import (
    FAMILY_LOOKS,
    ROLE_WORDS,
    STAGE_COLOURS,
    STAGE_WORDS,
    family_colour,
    family_mark,
)
from fusionlab.units import BYTES, FLOPS, three_digits

WIDTHS = (172, 40, 80, 64, 84)
"""Points of the columns of a block of fixed size, so that a layout can rely on them."""
_ROW = 18
_BAR = 78
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
    return three_digits(size, BYTES, "B")


def flops_text(flops: float) -> str:
    """A count of FLOPs with three digits: ``11.6 GFLOP``."""
    return three_digits(flops, FLOPS, "FLOP")


def pen_width(size: int, most: int) -> float:
    """Width of an arrow of ``size`` bytes when the widest one is ``most``."""
    return 0.8 + 7.2 * math.sqrt(size / most if most else 0)


def widest_box(blocks: Iterable[PictureBlock]) -> int:
    """The bytes that fill the bar of a box."""
    return max((box.bytes for block in blocks for box in block.rows), default=0) or 1


def block_label(block: PictureBlock, widest: int, widths: Sequence[int] = ()) -> str:
    """A table: the head in the stage's colour, a row per box with a bar for its bytes (``widest`` fills it), notes.

    With ``widths``, of its columns, it is of fixed size: their sum wide and ``block_height`` high.
    """
    height = f' HEIGHT="{_ROW}"' if widths else ""
    sizes = [f' WIDTH="{width}"{height}' for width in widths] or [""] * 5
    colour = STAGE_COLOURS.get(block.stage, "#DDDDDD") if block.look == "panel" else "#E4E4E4"
    repeats = f"  &#215;{block.repeats}" if block.repeats > 1 else ""
    role = f" &#183; {text(ROLE_WORDS.get(block.role, block.role))}" if block.role else ""
    wider = "&#160;" * (len(block.title) // 6)  # renderers' bold is wider than Graphviz assumes
    rows = [f'<TD {_ACROSS} BGCOLOR="{colour}"{height}><B>{text(block.title)}{repeats}</B>{role}{wider}</TD>']
    for box in block.rows:
        cells = zip(_SIDES, sizes, _cells(box, widest), strict=True)
        rows.append("".join(f'<TD ALIGN="{side}"{size}>{cell}</TD>' for side, size, cell in cells))
    rows += [f"<TD {_ACROSS}{height}><I>{text(note)}</I></TD>" for note in block.notes]
    return _table(rows, 2 if widths else 3)


def block_height(block: PictureBlock) -> int:
    """Points that the label of ``block`` takes at fixed size."""
    return _ROW * (1 + len(block.rows) + len(block.notes))


def _table(rows: Iterable[str], padding: int = 3) -> str:
    look = f'CELLSPACING="0" CELLPADDING="{padding}" BGCOLOR="white" COLOR="#202020"'
    return f'<TABLE BORDER="1" CELLBORDER="0" {look}>' + "".join(f"<TR>{row}</TR>" for row in rows) + "</TABLE>"


def _cells(box: Box, widest: int) -> tuple[str, ...]:
    """Family, count, FLOPs, bytes, and a bar; of what is not 0 the bar has one point at least."""
    name = " + ".join(box.families) if len(box.families) < 3 else "mixed"
    unmodelled = f" ({box.unmodelled} unmodelled)" if box.unmodelled else ""
    marks = "".join(f'<FONT COLOR="{family_colour(one)}">{family_mark(one)}</FONT>' for one in box.families)
    filled = min(_BAR, max(1, round(_BAR * (box.bytes / widest)))) if box.bytes else 0
    parts = [(filled, f' BGCOLOR="{family_colour(box.families[0])}"'), (_BAR - filled, "")]
    bar = "".join(f'<TD FIXEDSIZE="TRUE" WIDTH="{n}" HEIGHT="10"{fill}></TD>' for n, fill in parts if n)
    flops, moved = flops_text(box.flops) if box.flops else "–", bytes_text(box.bytes) if box.bytes else "–"
    return f"{marks} {text(name + unmodelled)}", f"{box.count:,}", flops, moved, f'{_PLAIN}"0"><TR>{bar}</TR></TABLE>'


def title_label(head: str, lines: Iterable[str]) -> str:
    """A bold line and plain ones under it, for the whole picture."""
    rows = [(18, f"<B>{text(head)}</B>"), *((12, text(line)) for line in lines if line)]
    cells = (f'<TR><TD><FONT POINT-SIZE="{size}">{row}</FONT></TD></TR>' for size, row in rows)
    return f'{_PLAIN}"2">{"".join(cells)}</TABLE>'


def legend(blocks: Sequence[PictureBlock], counted: str, notes: Iterable[str]) -> str:
    """The key to the colours, marks, columns and arrows of these blocks."""
    boxes = [box for block in blocks for box in block.rows]
    shown = {family if family in FAMILY_LOOKS else "other" for box in boxes for family in box.families}
    swatch = '<TD BGCOLOR="{}" FIXEDSIZE="TRUE" WIDTH="14" HEIGHT="12"></TD><TD ALIGN="LEFT">{} {}   </TD>'
    swatches = [swatch.format(family_colour(f), family_mark(f), f) for f in FAMILY_LOOKS if f in shown]
    used = {block.stage for block in blocks if block.rows}
    words = {stage: text(f"{stage}  {said}" if stage else said) for stage, said in STAGE_WORDS.items()}
    known = [one for one in STAGE_COLOURS if one in used] if used - {""} else []
    stages = [f'<TD BGCOLOR="{STAGE_COLOURS[one]}">{words[one]}</TD>' for one in known]
    inner = '<TABLE ALIGN="LEFT" BORDER="0" CELLBORDER="0" CELLSPACING="4" CELLPADDING="2"><TR>{}</TR></TABLE>'
    tables = [inner.format("".join(cells)) for cells in (swatches, stages) if cells]
    columns = f"columns: op family, {counted}, FLOPs, bytes (bar: bytes); arrows: bytes, the wider the more"
    lines = ["<B>Legend</B>", *tables, *(text(line) for line in (columns, *notes) if line)]
    return _table(f'<TD ALIGN="LEFT">{line}</TD>' for line in lines)


def not_drawn(moved: Sequence[Flow], drawn: Sequence[Flow]) -> str:
    """A note on the flows that have no arrow, or the empty string."""
    hidden = [flow.bytes for flow in moved if flow not in drawn]
    flows = "1 smaller flow" if len(hidden) == 1 else f"{len(hidden)} smaller flows"
    return f"not drawn: {flows}, {bytes_text(sum(hidden))} together" if hidden else ""


def digraph(name: str, lines: Iterable[str]) -> str:
    """DOT text of a graph."""
    return "\n".join([f"digraph {name} {{", *(f"  {line}" for line in lines), "}", ""])


def drawing_dot(drawing: Drawing) -> str:
    """DOT text of ``drawing``; flows under a hundredth of the largest have no arrow, and the legend says so."""
    return digraph("drawing", _lines(drawing))


def _lines(drawing: Drawing) -> Iterator[str]:
    drawn = worth_drawing(drawing.flows, len(drawing.blocks), _SMALLEST_FLOW)
    title = title_label(drawing.title, drawing.lines)
    yield f'graph [rankdir=TB, fontname="Helvetica", labelloc=t, label=<{title}>, nodesep=0.35, ranksep=0.5];'
    yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
    yield 'edge [arrowsize=0.8, fontname="Helvetica", fontsize=10, color="#404040"];'
    yield from _level(drawing, (), widest_box(drawing.blocks))
    most = max((flow.bytes for flow in drawn), default=0)
    for flow in drawn:
        back = ", constraint=false" if flow.source > flow.target else ""
        label = bytes_text(flow.bytes) if flow.bytes else ""
        yield f'b{flow.source} -> b{flow.target} [penwidth={pen_width(flow.bytes, most):.1f}, label="{label}"{back}];'
    notes = (*drawing.notes, not_drawn(drawing.flows, drawn))
    yield f"legend [label=<{legend(drawing.blocks, drawing.counted, notes)}>];"
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
            yield f"b{i} [label=<{block_label(block, widest)}>];"
        elif (name := block.groups[depth]) not in done:
            done.add(name)
            group = drawing.groups[name]
            look = f"fontsize={16 if group.look == 'side' else 13}, margin=12, {_FRAMES[group.look]}"
            yield f"subgraph {quoted('cluster ' + '/'.join((*inside, name)))} {{"
            yield f"  graph [label={quoted(group.title)}, labelloc=t, labeljust=l, {look}];"
            yield from (f"  {line}" for line in _level(drawing, (*inside, name), widest))
            yield "}"
