"""The page about the characterisation: ``page.md`` with tables, claims and the circumstances of every figure."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from fusionlab.paper.claims import NOT_SHOWN, PAPER_JAX, VERDICTS, JudgedClaim
from fusionlab.paper.matrix import MatrixSetup
from fusionlab.paper.tables import PaperTable, claims_table


def page(
    record: str,
    given: MatrixSetup,
    versions: Sequence[str],
    measured: int,
    missing: int,
    tables: Sequence[PaperTable],
    judged: Sequence[JudgedClaim],
) -> str:
    """Markdown. ``given`` are the circumstances of all rows, ``versions`` those of the rows, ``measured`` the number of
    cells with a measured time, ``missing`` that of the 96 cells not in the record."""
    text = Path(__file__).with_name("page.md").read_text("utf-8")
    filled = text.format(
        given=_given(given),
        record=record,
        paper_jax=PAPER_JAX,
        versions="; ".join(versions) or "unknown",
        measured=""
        if measured
        else "There is no record of a measured step of these programs on one of these GPUs yet.",
        missing=f"{96 - missing} of 96 cells are measured; `-` is a figure that is not there yet." if missing else "",
        counts=counts(judged) + ".",
        claims=markdown(_claims(judged)),
        tables="\n\n".join(map(_section, tables)),
    )
    return re.sub("\n{3,}", "\n\n", "\n".join(map(_wrapped, filled.splitlines()))).rstrip() + "\n"


def counts(judged: Sequence[JudgedClaim]) -> str:
    """The number of claims by verdict."""
    found = Counter(one.finding.verdict for one in judged)
    return f"{len(judged)} claims: " + ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS)


def markdown(table: PaperTable) -> str:
    """The rows as a Markdown table."""
    head = [_row(table.columns), _row(["---"] * table.words + ["---:"] * (len(table.columns) - table.words))]
    return "\n".join([*head, *map(_row, table.rows)])


def _section(table: PaperTable) -> str:
    return f"### {table.title}\n\n{table.note}\n\n{markdown(table)}"


def _claims(judged: Sequence[JudgedClaim]) -> PaperTable:
    table = claims_table(judged)
    rows = [
        (*row[:-1], f"**{row[-1]}**" + (f": {_cause(one)}" if one.finding.verdict == "contradicted" else ""))
        for row, one in zip(table.rows, judged, strict=True)
    ]
    return PaperTable("", "", table.columns, tuple(rows), words=5)


def _given(found: MatrixSetup) -> str:
    size = "" if found.size == "full" else f"{found.size} widths, "
    return f"{size}{found.walkers:,} walkers, {found.dtype}"


def _cause(one: JudgedClaim) -> str:
    compiler = "differs by compiler version"
    if one.claim.differs.startswith(NOT_SHOWN):
        return one.claim.differs
    return f"{one.claim.differs}; or {compiler}" if one.claim.differs else f"times are modelled; or {compiler}"


def _wrapped(line: str) -> str:
    """A bullet in lines of at most 120 characters."""
    return textwrap.fill(line.rstrip(), 120, subsequent_indent="  ") if line.startswith("- ") else line


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
