"""The characterisation's cells by JAX 0.4.35 beside today's, and which contradictions the compiler's version explains.

    python benchmarks/paper_versions.py --claims [--most N] [--page FILE.md]
    python benchmarks/paper_versions.py [--molecules CH4,LiH] [--targets a5000] [--most N] [--page FILE.md]

``--claims`` measures the cells that decide contradictions of ``studies/paper.json``, those of most claims for the
least time first, until all are decided. Each cell is lowered once and compiled by both versions, in a process of its
own; a finished one is written to ``--out`` at once, and one that is there is measured again if the programs' sources
changed. ``--most 0`` prints the page from the record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from rows import Row, add_options, fill_record, measure_apart, read_record  # noqa: E402

from fusionlab.characterisation.claims import CLAIMS, Claim, judge_all  # noqa: E402
from fusionlab.characterisation.deciding import deciding_sets, next_cells, version_may_explain  # noqa: E402
from fusionlab.characterisation.figures import LAUNCH_MODEL, MatrixFigures  # noqa: E402
from fusionlab.characterisation.matrix import EVERY, Cell, MatrixSetup, select, sources_digest  # noqa: E402
from fusionlab.characterisation.old_compiler import (  # noqa: E402
    OLD_JAX,
    differences,
    judge_sides,
    measure_sides,
    sides_of,
    version_of,
)
from fusionlab.characterisation.run import Record  # noqa: E402
from fusionlab.codegen.compile import versions  # noqa: E402  # after load_jax
from fusionlab.errors import CompileError  # noqa: E402
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.store import package_versions  # noqa: E402
from fusionlab.versions.environments import NoEnvironment  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
PAPER = ROOT / "studies" / "paper.json"
TODAY = str(package_versions("jax")["jax"])
HEAD = """{known} of {every} cells, printed by `python benchmarks/paper_versions.py`. Each program is lowered once, by
JAX {today}, and compiled by both: changes of *lowering* are not in the figures. Launches, copies and memory are XLA's.
Times are the roofline of the target's spec for both, without XLA's estimates: not those of [the page](paper.md). The
error of this roofline alone was not measured. Claims are judged with the ranges of the page: measured times were
{least:g} to {most:g} times those by XLA's estimates and rooflines, by family of kernels."""
OF_CLAIMS = """A claim *differs by compiler version* where today's figures contradict it and those of {old} confirm it.
It does **not** where both contradict it; some of its cells may do for that. *Agrees*: by this roofline today's figures
do not contradict it. Of the {count} contradictions of [the page](paper.md) whose cause may be the compiler: **shown**
for {shown}, **not** for {not}, *agrees* for {agrees}, **not decidable** for {open}."""


def page(record: Mapping[str, Row]) -> str:
    """The page: cells, families, claims."""
    today, before = sides_of(record)
    version = version_of(record)
    least, most = LAUNCH_MODEL.unknown
    failed = {name: row["failed"] for name, row in record["rows"].items() if "failed" in row}
    lines = [
        "# The characterisation's programs by JAX 0.4.35 and today's",
        "",
        HEAD.format(known=len(today), every=len(EVERY), today=version, least=least, most=most),
        "",
        f"## Cells: {OLD_JAX} -> {version}",
        "",
        "| cell | launches | copies | temp MiB | model ms |",
        "|---|---|---|---|---|",
        *(f"| {cell} | {_figures(today[cell], before[cell])} |" for cell in sorted(today)),
        "",
        *(f"- {name}: {why}" for name, why in failed.items()),
        *([""] if failed else []),
        f"## Shares of modelled time by family (%): {OLD_JAX} -> {version}",
        "",
        *_families(today, before),
        "",
        "## Claims",
        "",
        *_claims(today, before, version),
    ]
    return "\n".join(lines) + "\n"


def _figures(today: Row, before: Row) -> str:
    found = differences(today, before)
    scales = {"dynamic_launches": 1, "dynamic_copies": 1, "temp_bytes": 2**20, "model_us": 1e3}
    digits = {"model_us": 1}
    cells = []
    for name, (old, new) in found.items():
        words = [f"{value / scales[name]:,.{digits.get(name, 0)}f}" for value in (old, new)]
        cells.append(words[0] if words[0] == words[1] else " -> ".join(words))
    return " | ".join(cells)


def _families(today: Mapping[Cell, Row], before: Mapping[Cell, Row]) -> list[str]:
    cells = [cell for cell in sorted(today) if (cell.molecule, cell.program) == ("CH4", "inference-step")]
    sides = [MatrixFigures(rows) for rows in (before, today)]
    shares = {
        cell: [{name: work.model_us or 0.0 for name, work in one.by_family(cell).items()} for one in sides]
        for cell in cells
    }
    names = sorted({name for pair in shares.values() for one in pair for name in one})
    rows = []
    for name in names:
        words = []
        for cell in cells:
            old, new = (100 * one.get(name, 0.0) / (sum(one.values()) or 1.0) for one in shares[cell])
            words.append(f"{old:.1f} -> {new:.1f}" if f"{old:.1f}" != f"{new:.1f}" else f"{new:.1f}")
        rows.append(f"| {name} | " + " | ".join(words) + " |")
    head = "| family | " + " | ".join(f"{cell.model} {cell.target}" for cell in cells) + " |"
    return [head, "|---" * (len(cells) + 1) + "|", *rows]


def contradicted(paper: Path) -> list[Claim]:
    """The claims that the record ``paper`` contradicts, and of which the compiler may be the cause."""
    figures = MatrixFigures(Record(paper, MatrixSetup()).rows, errors=LAUNCH_MODEL)
    return [one.claim for one in judge_all(CLAIMS, figures) if version_may_explain(one.claim, one.finding)]


def _claims(today: Mapping[Cell, Row], before: Mapping[Cell, Row], version: str) -> list[str]:
    judged = judge_sides(contradicted(PAPER), today, before)
    counts = {name: sum(one.verdict == name for one in judged) for name in ("shown", "not", "agrees")}
    lines = [
        OF_CLAIMS.format(old=OLD_JAX, count=len(judged), open=len(judged) - sum(counts.values()), **counts),
        "",
        f"| where | claim | paper | {OLD_JAX} | {version} | differs by compiler version |",
        "|---|---|---|---|---|---|",
    ]
    for one in judged:
        claim = one.today.claim
        cells = (claim.where, claim.statement, claim.paper, one.before.finding.ours, one.today.finding.ours)
        said = [cell.replace("|", "\\|") or "-" for cell in cells]
        because = f": {one.open_because}" if one.open_because else ""
        lines.append("| " + " | ".join(said) + f" | **{one.verdict}**{because} |")
    return lines


def measure(name: str) -> Row:
    """The row of a cell in this process."""
    try:
        return dict(measure_sides(Cell.parse(name), MatrixSetup()))
    except (CompileError, NoEnvironment) as error:
        return {"failed": str(error)}


def main() -> None:
    """Measure, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models")
    parser.add_argument("--molecules")
    parser.add_argument("--programs")
    parser.add_argument("--targets")
    parser.add_argument("--claims", action="store_true", help="Only the cells that decide contradictions.")
    parser.add_argument("--most", type=int)
    parser.add_argument("--out", type=Path, default=ROOT / "studies" / "paper-versions.json")
    parser.add_argument("--page", type=Path)
    add_options(parser)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)), flush=True)
        return
    if given.claims and given.again:
        parser.error("--claims measures what is missing; --again goes with names of cells, as --models")
    if given.claims:
        decide(given)
    else:
        asked = [str(cell) for cell in select(given.models, given.molecules, given.programs, given.targets)]
        fill(given, asked, given.most)
    text = page(read_record(given.out, versions()))
    if given.page:
        write_whole(given.page, text)
    else:
        print(text)


def fill(given: argparse.Namespace, asked: Iterable[str], most: int | None) -> int:
    """Measure at most so many of ``asked`` that the record lacks; returns their number."""
    known = {} if given.again else read_record(given.out, versions())["rows"]
    names = missing(asked, known)[:most]
    fill_record(
        given.out,
        versions(),
        names,
        lambda name: measure_apart(__file__, name, [], given.limit_s),
        lambda name, row: not given.again and _is_current(row),
        MatrixSetup().to_json(),
    )
    return len(names)


def decide(given: argparse.Namespace) -> None:
    """Measure cells until every contradiction of the record of the paper is decided, or ``--most`` cells are."""
    rows, claims = Record(PAPER, MatrixSetup()).rows, contradicted(PAPER)

    def seconds(cell: Cell) -> float:
        return float(rows[cell]["lower_s"] + 2 * rows[cell]["compile_s"])

    sets = [deciding_sets(claim, rows, seconds) for claim in claims]
    left = len(EVERY) if given.most is None else given.most
    while left > 0:
        record = read_record(given.out, versions())
        known = {name: row for name, row in record["rows"].items() if _is_current(row)}
        both = judge_sides(claims, *sides_of({"versions": versions(), "rows": known}))
        open_sets = [each for each, one in zip(sets, both, strict=True) if one.verdict == "not decidable"]
        wanted = next_cells(open_sets, [Cell.parse(name) for name in known], seconds)
        if not wanted:
            return
        left -= fill(given, map(str, wanted), left)


def missing(asked: Iterable[str], known: Mapping[str, Row]) -> list[str]:
    """The names without a row, or with one of other sources or of another version than today's."""
    return [name for name in asked if name not in known or not _is_current(known[name])]


def _is_current(row: Row) -> bool:
    return "failed" in row or (TODAY in row and row[TODAY]["sources"] == sources_digest())


if __name__ == "__main__":
    main()
