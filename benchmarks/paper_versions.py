"""The characterisation's cells by JAX 0.4.35 beside today's, and which contradictions the compiler's version explains.

    python benchmarks/paper_versions.py [--molecules CH4,LiH] [--targets a5000] [--most N] [--page FILE.md]

Each cell is lowered once and compiled by both versions, in a process of its own; a finished one is written to ``--out``
at once, and one that is there is measured again if the programs' sources changed. ``--most 0`` prints the page from
the record.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from fusionlab import jax_setup

jax_setup.load_jax()

from rows import Row, add_options, fill_record, measure_apart, read_record  # noqa: E402

from fusionlab.characterisation.claims import CLAIMS  # noqa: E402
from fusionlab.characterisation.figures import LAUNCH_MODEL, MatrixFigures  # noqa: E402
from fusionlab.characterisation.matrix import EVERY, Cell, MatrixSetup, select, sources_digest  # noqa: E402
from fusionlab.characterisation.old_compiler import OLD_JAX, differences, judge_sides, measure_sides  # noqa: E402
from fusionlab.codegen.compile import versions  # noqa: E402  # after load_jax
from fusionlab.errors import CompileError  # noqa: E402
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.store import package_versions  # noqa: E402
from fusionlab.versions.environments import NoEnvironment  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
TODAY = str(package_versions("jax")["jax"])
HEAD = """{known} of {every} cells, printed by `python benchmarks/paper_versions.py`. Each program is lowered once, by
JAX {today}, and compiled by both: changes of *lowering* are not in the figures. Launches, copies and memory are XLA's.
Times are the roofline of the target's spec for both, without XLA's estimates: not those of [the page](paper.md). The
error of this roofline alone was not measured. Claims are judged with the ranges of the page: measured times were
{least:g} to {most:g} times those by XLA's estimates and rooflines, by family of kernels."""
OF_CLAIMS = """A claim *differs by compiler version* where today's figures contradict it and those of {old} confirm it.
Of the {count} claims that a compiler can decide: **shown** for {shown}, **not** for {not} (both contradict it),
{agrees} are not contradicted today by this model of time, {missing} are not decidable: cells are missing, the
older version lost the phases of its kernels, or the errors of the times leave it open."""


def sides_of(rows: Mapping[str, Row]) -> dict[str, dict[Cell, Row]]:
    """The rows by version, of cells that both versions compile."""
    found = {name: row for name, row in rows.items() if {OLD_JAX, TODAY} <= row.keys()}
    return {version: {Cell.parse(name): row[version] for name, row in found.items()} for version in (OLD_JAX, TODAY)}


def page(record: Mapping[str, Row]) -> str:
    """The page: cells, families, claims."""
    sides = sides_of(record["rows"])
    before, today = sides[OLD_JAX], sides[TODAY]
    least, most = LAUNCH_MODEL.unknown
    failed = {name: row["failed"] for name, row in record["rows"].items() if "failed" in row}
    lines = [
        "# The characterisation's programs by JAX 0.4.35 and today's",
        "",
        HEAD.format(known=len(today), every=len(EVERY), today=TODAY, least=least, most=most),
        "",
        f"## Cells: {OLD_JAX} -> {TODAY}",
        "",
        "| cell | launches | copies | temp MiB | model ms |",
        "|---|---|---|---|---|",
        *(f"| {cell} | {_figures(today[cell], before[cell])} |" for cell in sorted(today)),
        "",
        *(f"- {name}: {why}" for name, why in failed.items()),
        *([""] if failed else []),
        f"## Shares of modelled time by family (%): {OLD_JAX} -> {TODAY}",
        "",
        *_families(today, before),
        "",
        "## Claims",
        "",
        *_claims(today, before),
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


def _phases(row: Row) -> set[str]:
    """The phases with at least a hundredth of the launches: 0.4.35 leaves scopes outside of a loop out in its body."""
    at = [row["groups"]["columns"].index(name) for name in ("phase", "dynamic_launches")]
    launches: Counter[str] = Counter()
    for group in row["groups"]["rows"]:
        launches[str(group[at[0]])] += group[at[1]]
    return {phase for phase, count in launches.items() if count >= 0.01 * launches.total()}


def _claims(today: Mapping[Cell, Row], before: Mapping[Cell, Row]) -> list[str]:
    alike = {cell: row for cell, row in before.items() if _phases(row) == _phases(today[cell])}
    judged = [one for one in judge_sides(CLAIMS, today, alike) if one.today.finding.verdict != "not testable here"]
    counts = {name: sum(one.verdict == name for one in judged) for name in ("shown", "not", "agrees", "not decidable")}
    lines = [
        OF_CLAIMS.format(old=OLD_JAX, count=len(judged), missing=counts["not decidable"], **counts),
        "",
        f"| where | claim | paper | {OLD_JAX} | {TODAY} | differs by compiler version |",
        "|---|---|---|---|---|---|",
    ]
    for one in judged:
        if one.verdict in ("shown", "not"):
            claim = one.today.claim
            cells = (claim.where, claim.statement, claim.paper, one.before.finding.ours, one.today.finding.ours)
            said = [cell.replace("|", "\\|") for cell in cells]
            lines.append("| " + " | ".join(said) + f" | **{one.verdict}** |")
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
    parser.add_argument("--most", type=int)
    parser.add_argument("--out", type=Path, default=ROOT / "studies" / "paper-versions.json")
    parser.add_argument("--page", type=Path)
    add_options(parser)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)), flush=True)
        return
    asked = [str(cell) for cell in select(given.models, given.molecules, given.programs, given.targets)]
    known = read_record(given.out, versions())["rows"]
    fill_record(
        given.out,
        versions(),
        missing(asked, {} if given.again else known)[: given.most],
        lambda name: measure_apart(__file__, name, [], given.limit_s),
        lambda name, row: not given.again and _is_current(row),
    )
    text = page(read_record(given.out, versions()))
    if given.page:
        write_whole(given.page, text)
    else:
        print(text)


def missing(asked: Iterable[str], known: Mapping[str, Row]) -> list[str]:
    """The names without a row, or with one of other sources or of another version than today's."""
    return [name for name in asked if name not in known or not _is_current(known[name])]


def _is_current(row: Row) -> bool:
    return "failed" in row or (TODAY in row and row[TODAY]["sources"] == sources_digest())


if __name__ == "__main__":
    main()
