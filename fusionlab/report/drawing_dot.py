"""A Drawing as DOT text for Graphviz's ``dot``: frames in frames, arrows as wide as their bytes, a legend.

Families are told by colour and by mark (``family_looks``), so that no reader depends on colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusionlab.report.arrows import pen_width
from fusionlab.report.boxes import BOX_FAMILIES, Flow
from fusionlab.report.dot import STAGE_COLOURS, bar, bytes_text, flops_text, quoted, text
from fusionlab.report.drawing import Block, Drawing, Group, Row
from fusionlab.report.family_looks import FAMILY_LOOKS, family_colour, family_mark
from fusionlab.report.grid import worth_drawing
from fusionlab.report.panel_label import ROLE_WORDS, STAGE_WORDS, not_drawn

_LOOKS = {
    "loop": 'style="rounded,filled", fillcolor="#F3F3F3", color="#202020", penwidth=3',
    "kernel": 'style="rounded,filled", fillcolor="#F3F3F3", color="#202020", penwidth=3',
    "side": 'style="rounded,dashed", color="#505050", penwidth=1.5',
    "scope": 'style="rounded", color="#909090", penwidth=1',
}
_BAR = 90
_TABLE = '<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="3" BGCOLOR="white" COLOR="#202020">'
_ARROW = "#404040"
_SMALLEST_FLOW = 0.01


def drawing_dot(drawing: Drawing) -> str:
    """DOT text of ``drawing``; flows under a hundredth of the largest have no arrow, and the legend says so."""
    return "\n".join(["digraph drawing {", *(f"  {line}" for line in _lines(drawing)), "}", ""])


def _lines(drawing: Drawing) -> Iterator[str]:
    drawn = worth_drawing(drawing.flows, len(drawing.blocks), _SMALLEST_FLOW)
    yield f'graph [rankdir=TB, fontname="Helvetica", labelloc=t, label=<{_title(drawing)}>, nodesep=0.35, ranksep=0.5];'
    yield 'node [shape=plain, fontname="Helvetica", fontsize=11];'
    yield f'edge [arrowsize=0.8, fontname="Helvetica", fontsize=10, color="{_ARROW}"];'
    widest = max((row.bytes for block in drawing.blocks for row in block.rows), default=0) or 1
    yield from _level(drawing, (), widest)
    most = max((flow.bytes for flow in drawn), default=0)
    for flow in drawn:
        back = ", constraint=false" if flow.source > flow.target else ""
        label = f"{bytes_text(flow.bytes)}" if flow.bytes else ""
        yield f'b{flow.source} -> b{flow.target} [penwidth={pen_width(flow.bytes, most):.1f}, label="{label}"{back}];'
    yield f"legend [label=<{_legend(drawing, drawn)}>];"
    for last in _last(drawing, drawn):
        yield f"b{last} -> legend [style=invis];"


def _last(drawing: Drawing, drawn: Sequence[Flow]) -> list[int]:
    """Blocks that nothing follows: the legend stands under them."""
    sources = {flow.source for flow in drawn if flow.source < flow.target}
    return [i for i in range(len(drawing.blocks)) if i not in sources]


def _level(drawing: Drawing, inside: tuple[str, ...], widest: int) -> Iterator[str]:
    """The blocks of the group ``inside`` (a path of ids) and the groups in it, in order of their first block."""
    depth = len(inside)
    done: set[str] = set()
    for i, block in enumerate(drawing.blocks):
        if block.groups[:depth] != inside:
            continue
        if len(block.groups) == depth:
            yield f"b{i} [label=<{_label(block, widest)}>];"
        elif block.groups[depth] not in done:
            name = block.groups[depth]
            done.add(name)
            yield f"subgraph {quoted('cluster ' + '/'.join((*inside, name)))} {{"
            yield f"  {_frame(drawing.groups[name])}"
            yield from (f"  {line}" for line in _level(drawing, (*inside, name), widest))
            yield "}"


def _frame(group: Group) -> str:
    size = 16 if group.look == "side" else 13
    place = f"labelloc=t, labeljust=l, fontsize={size}, margin=12"
    return f"graph [label={quoted(group.title)}, {place}, {_LOOKS[group.look]}];"


def _label(block: Block, widest: int) -> str:
    colour = STAGE_COLOURS.get(block.stage, "#DDDDDD") if block.look == "panel" else "#E4E4E4"
    repeats = f"  &#215;{block.repeats}" if block.repeats > 1 else ""
    head = f"<B>{text(block.title)}{repeats}</B>"
    if block.role:
        head += f" &#183; {text(ROLE_WORDS.get(block.role, block.role))}"
    head += "&#160;" * (len(block.title) // 6)  # renderers' bold is wider than Graphviz reckons
    rows = [f'<TR><TD COLSPAN="5" ALIGN="LEFT" BGCOLOR="{colour}">{head}</TD></TR>']
    rows += [_row(row, widest) for row in block.rows]
    rows += [f'<TR><TD COLSPAN="5" ALIGN="LEFT"><I>{text(note)}</I></TD></TR>' for note in block.notes]
    return _TABLE + "".join(rows) + "</TABLE>"


def _row(row: Row, widest: int) -> str:
    family = drawn_family(row.family)
    cells = (
        ("LEFT", f"{family_mark(family)} {text(row.family)}"),
        ("RIGHT", f"{row.count:,}"),
        ("RIGHT", text(flops_text(row.flops)) if row.flops else "&#8211;"),
        ("RIGHT", text(bytes_text(row.bytes)) if row.bytes else "&#8211;"),
        ("LEFT", bar(row.bytes / widest, _BAR, family_colour(family))),
    )
    return "<TR>" + "".join(f'<TD ALIGN="{side}">{content}</TD>' for side, content in cells) + "</TR>"


def drawn_family(family: str) -> str:
    """The family whose colour and mark ``family`` has."""
    known = BOX_FAMILIES.get(family, family)
    return known if known in FAMILY_LOOKS else "other"


def _legend(drawing: Drawing, drawn: Sequence[Flow]) -> str:
    families = [f for f in FAMILY_LOOKS if f in {drawn_family(one) for one in drawing.families}]
    swatch = '<TD BGCOLOR="{}" FIXEDSIZE="TRUE" WIDTH="14" HEIGHT="12"></TD><TD ALIGN="LEFT">{} {}   </TD>'
    swatches = "".join(swatch.format(family_colour(f), family_mark(f), f) for f in families)
    stages = "".join(
        f'<TD BGCOLOR="{colour}">{text(f"{stage}  {STAGE_WORDS[stage]}" if stage else STAGE_WORDS[stage])}</TD>'
        for stage, colour in STAGE_COLOURS.items()
        if stage in drawing.stages
    )
    words = [
        f"columns: op family, {drawing.counted}, FLOPs, bytes (bar: bytes); arrows: bytes, the wider the more",
        *drawing.notes,
        not_drawn(drawing.flows, drawn),
    ]
    lines = [_inner(swatches), _inner(stages), *(text(line) for line in words if line)]
    body = "".join(f'<TR><TD ALIGN="LEFT">{line}</TD></TR>' for line in lines if line)
    return f'{_TABLE}<TR><TD ALIGN="LEFT"><B>Legend</B></TD></TR>{body}</TABLE>'


def _inner(cells: str) -> str:
    table = '<TABLE ALIGN="LEFT" BORDER="0" CELLBORDER="0" CELLSPACING="4" CELLPADDING="2">'
    return f"{table}<TR>{cells}</TR></TABLE>" if cells else ""


def _title(drawing: Drawing) -> str:
    head = f'<TR><TD><FONT POINT-SIZE="18"><B>{text(drawing.title)}</B></FONT></TD></TR>'
    lines = "".join(f'<TR><TD><FONT POINT-SIZE="12">{text(line)}</FONT></TD></TR>' for line in drawing.lines if line)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2">{head}{lines}</TABLE>'
