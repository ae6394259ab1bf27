"""The matrix by JAX 0.4.35 beside today's: which contradictions differ by the compiler's version.

Both sides are one text, lowered by the JAX that is installed, and one model of time: the roofline of the target's spec,
for XLA's own estimates are of the newer version only. A claim is a matter of the compiler's version if today's figures
contradict it and the older ones confirm it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fusionlab.characterisation.claims import Claim, JudgedClaim, judge_all
from fusionlab.characterisation.figures import LAUNCH_MODEL, MatrixFigures
from fusionlab.characterisation.matrix import Cell, MatrixSetup, Row, row_of_compiled, sources_digest
from fusionlab.characterisation.run import check_row, json_of
from fusionlab.errors import InputError

OLD_JAX = "0.4.35"
"""The nearest to the characterisation's 0.4.28 that compiles for a GPU that is absent."""
RECORD_NAME = "paper-versions.json"
"""The record of both versions, beside that of the characterisation."""
OfCompiler = Literal["shown", "not", "not decidable", "agrees"]


def measure_sides(cell: Cell, given: MatrixSetup, old_jax: str = OLD_JAX) -> dict[str, Row]:
    """The rows of ``cell`` by version of JAX: that which is installed, and ``old_jax``.

    CompileError or NoEnvironment says why there is none.
    """
    from fusionlab.codegen.compile import compile_program
    from fusionlab.codegen.targets import load_target
    from fusionlab.hlo.lowering import lower
    from fusionlab.store import package_versions
    from fusionlab.versions.compiling import compile_apart
    from fusionlab.versions.drift import alike_in_all_versions
    from fusionlab.versions.environments import environment
    from fusionlab.workloads.catalogue import build

    started = time.perf_counter()
    workload = build(cell.model, cell.molecule, cell.program, walkers=given.walkers, dtype=given.dtype, size=given.size)
    target = load_target(cell.target)
    program = lower(workload, target.kind)
    lower_s = time.perf_counter() - started
    sides = {
        str(package_versions("jax")["jax"]): compile_program(program, target),
        old_jax: compile_apart(program, target, environment(old_jax)),
    }
    return {
        version: row_of_compiled(workload, program, alike_in_all_versions(compiled), lower_s)
        | {"versions": compiled.versions, "sources": sources_digest()}
        for version, compiled in sides.items()
    }


@dataclass(frozen=True)
class ClaimOfCompiler:
    """A claim judged by both sides' figures."""

    today: JudgedClaim
    before: JudgedClaim

    @property
    def verdict(self) -> OfCompiler:
        """``shown``: the older version confirms what today's contradicts; ``not``: it contradicts it, too, be it by
        some of the cells; ``agrees``: today's figures do not contradict it; ``not decidable``: see ``open_because``."""
        if self.open_because:
            return "not decidable"
        if self.today.finding.verdict != "contradicted":
            return "agrees"
        return "shown" if self.before.finding.verdict == "confirmed" else "not"

    @property
    def open_because(self) -> str:
        """Why it cannot be decided; "" where it is."""
        new, old = self.today.finding, self.before.finding
        if (new.verdict, old.verdict) == ("contradicted", "contradicted"):
            return ""
        if "not measured yet" in (new.verdict, old.verdict) or new.lacking or old.lacking:
            return "cells are missing"
        if new.verdict == "not decidable" or (new.verdict == "contradicted" and old.verdict == "not decidable"):
            return "the errors of the times leave it open"
        if new.verdict == "contradicted" and old.verdict != "confirmed":
            return f"the figures of JAX {OLD_JAX} do not test it"
        return ""


def judge_sides(
    claims: Iterable[Claim], today: Mapping[Cell, Row], before: Mapping[Cell, Row]
) -> list[ClaimOfCompiler]:
    """Every claim by the rows of today's version and of the older one, of cells that both have; times have the errors
    with which the characterisation is judged."""
    every, both = tuple(claims), today.keys() & before.keys()
    kept = ({cell: row for cell, row in rows.items() if cell in both} for rows in (today, before))
    sides = [judge_all(every, MatrixFigures(rows, errors=LAUNCH_MODEL)) for rows in kept]
    return [ClaimOfCompiler(*pair) for pair in zip(*sides, strict=True)]


def read_sides(path: Path, given: MatrixSetup) -> tuple[dict[Cell, Row], dict[Cell, Row]]:
    """``sides_of`` a record of ``benchmarks/paper_versions.py``; without rows where there is none, or one of other
    circumstances. InputError where it is none."""
    if not path.exists():
        return {}, {}
    record = json_of(path)
    _check(path, record)
    return sides_of(record) if record["circumstances"] == given.to_json() else ({}, {})


def _check(path: Path, record: Any) -> None:
    fields: dict[str, type] = {"versions": str, "circumstances": dict, "rows": dict}
    if not isinstance(record, dict) or not all(isinstance(record.get(name), kind) for name, kind in fields.items()):
        raise InputError(f"{path}: not a record of both versions, with {', '.join(fields)}; move it away")
    if not version_of(record):
        raise InputError(f"{path}: its versions name no JAX: {record['versions']!r}")
    for name, row in record["rows"].items():
        if not isinstance(row, dict):
            raise InputError(f"{path}: {name}: not an object; take the row out to have it measured again")
        for version, side in row.items():
            if version != "failed":
                check_row(f"{path}: {name}: {version}", name, side)


def version_of(record: Mapping[str, Any]) -> str:
    """The newer version of JAX in a record of both; "" where it names none."""
    found = re.match(r"jax (\S+?)(,|$)", record["versions"])
    return found[1] if found else ""


def sides_of(record: Mapping[str, Any]) -> tuple[dict[Cell, Row], dict[Cell, Row]]:
    """The rows of the record's newer version and those of the older, of cells that both compile."""
    today, before = dict[Cell, Row](), dict[Cell, Row]()
    for name, row in record["rows"].items():
        if (newer := row.get(version_of(record))) and OLD_JAX in row:
            today[Cell.parse(name)], before[Cell.parse(name)] = newer, row[OLD_JAX]
    return today, before


def differences(today: Row, before: Row) -> dict[str, Any]:
    """The figures of a cell by both versions: (older, newer) of launches, copies, temp memory and modelled time."""
    names = ("dynamic_launches", "dynamic_copies", "temp_bytes", "model_us")
    return {name: (before[name], today[name]) for name in names}
