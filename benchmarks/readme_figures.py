"""README's figures of PauliNet, in its table and its picture, from the record of ``fuse_jvp_replay.py``.

python benchmarks/fuse_jvp_replay.py --models paulinet --molecules CH4    # measures what is out of date
python benchmarks/readme_figures.py                                       # writes README.md and the picture
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "studies" / "fuse-jvp-replay-a100.json"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "replay-to-forward.svg"
TABLE = {
    "replay, as lowered": "paulinet CH4 replay",
    "folx's forward Laplacian": "paulinet CH4 folx-dense",
    "replay, rewritten": "paulinet CH4 fused",
}
"""Program in README's table: the row of the record."""
PICTURED = {"replay-figures": "paulinet CH4 replay", "rewritten-figures": "paulinet CH4 fused"}
"""Id of a text in the picture: the row of the record."""


class Figures(NamedTuple):
    """Launches, temp memory and work of one program, as they are printed."""

    launches: str
    temp_mib: str
    gflop: str


def figures(row: dict[str, Any]) -> Figures:
    """The figures of a row of the record."""
    launches, temp_mib, gflop = row["dynamic_launches"], row["temp_bytes"] / 2**20, row["flops"] / 1e9
    return Figures(f"{launches:,}", f"{temp_mib:,.0f}", f"{gflop:,.0f}")


def table_of(readme: str) -> dict[str, Figures]:
    """The figures in README's table, by program."""
    return {
        program: Figures(*(cell.strip(" *") for cell in match[2].split("|")))
        for program in TABLE
        if (match := _line(program).search(readme))
    }


def pictured_in(picture: str) -> dict[str, Figures]:
    """The figures in the picture, by the id of their text."""
    found = {}
    for name in PICTURED:
        if match := re.search(rf'id="{name}".*?>([\d,]+) launches &#183; ([\d,]+) GFLOP &#183; ([\d,]+) MiB<', picture):
            found[name] = Figures(match[1], match[3], match[2])
    return found


def with_figures(readme: str, picture: str, rows: dict[str, dict[str, Any]]) -> tuple[str, str]:
    """README and picture with the figures of ``rows``; the rewritten program's are bold in the table."""
    for program, name in TABLE.items():
        bold = "**" if program == "replay, rewritten" else ""
        cells = " | ".join(f"{bold}{one}{bold}" for one in figures(rows[name]))
        readme = _line(program).sub(lambda match, cells=cells: f"{match[1]}| {cells} |", readme)
    for text, name in PICTURED.items():
        one = figures(rows[name])
        words = f"{one.launches} launches &#183; {one.gflop} GFLOP &#183; {one.temp_mib} MiB"
        picture = re.sub(rf'(id="{text}"[^>]*>)[^<]*', lambda match, words=words: match[1] + words, picture)
    return readme, picture


def _line(program: str) -> re.Pattern[str]:
    """The line of a program in README's table: what is before its figures, and these."""
    return re.compile(rf"^(\| {re.escape(program)} \|[^|]*)\|([^|]*\|[^|]*\|[^|]*)\|$", re.MULTILINE)


def main() -> None:
    """Write the figures of the record into README and its picture."""
    rows = json.loads(RECORD.read_text())["rows"]
    readme, picture = with_figures(README.read_text(), PICTURE.read_text(), rows)
    README.write_text(readme)
    PICTURE.write_text(picture)


if __name__ == "__main__":
    main()
