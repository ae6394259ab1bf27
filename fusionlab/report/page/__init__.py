"""``report.html``: one file that presents a study document, with inline style and script, and no network.

The parts are files of their own beside this one. The script is plain JavaScript without a framework; a Content Security
Policy in the page allows that script and style, by their digests, and nothing else. Text from programs is data: it is
embedded as JSON that cannot end its element, and the script puts it into the page as text only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fusionlab.hlo.stages import LEGEND
from fusionlab.report.pictures.looks import FAMILY_LOOKS

SCRIPTS = (
    "dom.js", "data.js", "tables.js", "details.js", "summary.js", "launches.js", "layout.js", "graph.js", "findings.js",
    "kernels.js", "memory.js", "roofline.js", "records.js", "search.js", "main.js",
)  # fmt: skip
"""Scripts in the order of concatenation: a file comes after those it uses at load time."""

LAUNCH_COLUMNS = (
    ("launch", "name", "launch"),
    ("model time", "model_us", "us"),
    ("runs", "dynamic_launches", "count"),
    ("bytes", "bytes", "bytes"),
    ("FLOPs", "flops", "flops"),
    ("family", "family", "family"),
    ("stage", "stage", "text"),
    ("role", "role", "text"),
    ("op", "op", "text"),
    ("transform", "transform", "text"),
    ("source", "source", "source"),
    ("scope", "op_name", "scope"),
)
"""Columns of launch tables: label, one of ``document.LAUNCH_FIELDS``, and its format in the script (``tables.js``).
Stage and role are shown where there are stages, op and transform elsewhere."""

_FOLDER = Path(__file__).parent


def page(document: Mapping[str, Any]) -> str:
    """The HTML of ``report.html`` for a study document; ValueError for a number that JSON cannot represent."""
    style = _family_style() + _read("report.css")
    given: dict[str, Any] = {
        "FAMILIES": {family: look.mark for family, look in FAMILY_LOOKS.items()},
        "LAUNCH_COLUMNS": LAUNCH_COLUMNS,
        "STAGE_LEGEND": LEGEND,
    }
    constants = "".join(f"const {name} = {json.dumps(one, ensure_ascii=False)};\n" for name, one in given.items())
    script = '"use strict";\n(() => {\n' + constants + "\n".join(map(_read, SCRIPTS)) + "})();\n"
    parts = {
        "@SCRIPT_HASH@": _digest(script),
        "@STYLE_HASH@": _digest(style),
        "@STYLE@": style,
        "@STUDY@": embedded(document),
        "@SCRIPT@": script,
    }
    found = _read("report.html")
    pieces = []
    for mark, content in parts.items():
        before, _, found = found.partition(mark)
        pieces += [before, content]
    return "".join([*pieces, found])


def embedded(document: Mapping[str, Any]) -> str:
    """``document`` as JSON for the inside of a script element: no ``<``, so that no text in it can end the element."""
    text = json.dumps(document, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    for character in ("<", "\u2028", "\u2029"):
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _family_style() -> str:
    """The colours of families as custom properties, on light and on dark paper."""
    light = " ".join(f"--family-{family}: {look.colour};" for family, look in FAMILY_LOOKS.items())
    dark = " ".join(f"--family-{family}: {look.on_dark};" for family, look in FAMILY_LOOKS.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def _digest(content: str) -> str:
    """The source expression of a Content Security Policy for an inline element with that content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (_FOLDER / name).read_text("utf-8")
