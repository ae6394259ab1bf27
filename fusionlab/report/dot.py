"""DOT text: escaping, figures, the palette, and writing a picture to files."""

from __future__ import annotations

import html
import shutil
from dataclasses import dataclass
from pathlib import Path

from fusionlab.errors import InputError
from fusionlab.output import require_writable, write_whole

HINT = (
    "no Graphviz on this machine: install it (Debian: apt-get install graphviz), then run: "
    "dot -T{format} {dot} -o {picture}"
)

STAGE_COLOURS = {
    "A": "#56B4E9",
    "B": "#E69F00",
    "C": "#009E73",
    "D": "#CC79A7",
    "E": "#F0E442",
    "": "#BBBBBB",
}
"""Stage to fill: the palette of Okabe and Ito (2008), made to be told apart by colour-blind readers."""


@dataclass(frozen=True)
class Written:
    """The files of a picture; ``hint`` says how to render it when no renderer was found, else it is empty."""

    paths: tuple[Path, ...]
    hint: str


PICTURES = (".svg", ".png", ".pdf")
"""What Graphviz makes of a DOT file here."""


def write_graph(dot_text: str, out: str | Path) -> Written:
    """Write ``out`` with suffix .dot and, with Graphviz on PATH, the picture next to it: .svg, or what ``out`` says of
    .png and .pdf. Existing files are replaced whole.

    InputError when one of the files cannot be written, with nothing written if that can be told before;
    ``graphviz.CalledProcessError`` when Graphviz refuses the text, with nothing written.
    """
    if Path(out).is_dir():
        raise InputError(f"{out}: is a directory; give the name of a file")
    suffix = Path(out).suffix if Path(out).suffix in PICTURES else ".svg"
    dot_path, picture_path = (Path(out).with_suffix(one) for one in (".dot", suffix))
    contents = {dot_path: dot_text.encode()}
    rendered = shutil.which("dot") is not None
    if rendered:
        import graphviz

        contents[picture_path] = graphviz.Source(dot_text).pipe(format=suffix[1:])
    for path in contents:
        if path.is_dir():
            raise InputError(f"{path}: is a directory; give another name")
    require_writable(dot_path.parent)
    for path, content in contents.items():
        write_whole(path, content)
    hint = HINT.format(format=suffix[1:], dot=dot_path, picture=picture_path)
    return Written(tuple(contents), "" if rendered else hint)


def rendered_svg(dot_text: str) -> bytes | None:
    """The picture as SVG; None without Graphviz on PATH."""
    if shutil.which("dot") is None:
        return None
    import graphviz

    return bytes(graphviz.Source(dot_text).pipe(format="svg"))


def text(content: object) -> str:
    """``content`` for an HTML-like label."""
    return html.escape(str(content), quote=True)


def quoted(content: object) -> str:
    """``content`` as a DOT string."""
    return '"' + str(content).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def bar(share: float, width: int, colour: str) -> str:
    """A bar for an HTML-like label: ``share`` of ``width`` points is filled, of what is not 0 one point at least."""
    filled = min(width, max(1, round(width * share))) if share else 0
    parts = [(filled, f' BGCOLOR="{colour}"'), (width - filled, "")]
    cells = "".join(f'<TD FIXEDSIZE="TRUE" WIDTH="{n}" HEIGHT="10"{fill}></TD>' for n, fill in parts if n)
    return f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{cells}</TR></TABLE>'


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
