"""The characterisation over again: measure what its matrix lacks, judge its claims, print and write the tables."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.errors import InputError
from fusionlab.measure.records import read_records
from fusionlab.output import require_writable, write_whole
from fusionlab.paper.claims import CLAIMS, PAPER_JAX, Judged, judge_all
from fusionlab.paper.figures import Figures, measured_times
from fusionlab.paper.jobs import Job, Plan, Progress, run_missing, workers_for
from fusionlab.paper.matrix import EVERY, Cell, Circumstances, select, sources_digest
from fusionlab.paper.page import counts, page
from fusionlab.paper.record import Record
from fusionlab.paper.tables import Table, claims_table, intensity_table, matrix_tables, ratio_tables, share_tables
from fusionlab.report.tables import print_rows

_BENCH_RECORDS = "studies/bench"


@dataclass(frozen=True)
class PaperOptions:
    """The options of the command. Comma lists choose cells (None: all); ``run=False`` measures nothing."""

    models: str | None = None
    molecules: str | None = None
    programs: str | None = None
    targets: str | None = None
    record: str = "studies/paper.json"
    bench_records: str | None = None
    """None: those in ``studies/bench``, if it is there."""
    page: str | None = None
    run: bool = True
    jobs: int | None = None
    scheduler: str | None = None
    most: int | None = None
    limit_s: float = 1800.0
    again: bool = False
    retry_failed: bool = False
    use_cache: bool = True
    circumstances: Circumstances = field(default_factory=Circumstances)


def paper(options: PaperOptions, progress: Progress, console: Console) -> tuple[dict[str, Any], int]:
    """Measure the chosen cells that the record lacks, then print (and write) tables and claims of all it holds.

    The document and the exit code: 1 when a chosen cell could not be measured. KeyboardInterrupt comes through; what
    was finished is in the record.
    """
    if options.scheduler is not None and options.jobs is not None:
        raise InputError("--jobs is for processes of this machine; a --scheduler has its own workers")
    cells = select(options.models, options.molecules, options.programs, options.targets)
    record = Record(Path(options.record), options.circumstances)
    measured = _measured(options)
    if options.page:
        require_writable(Path(options.page).resolve().parent)
    if options.run:
        require_writable(record.path.resolve().parent)
        job = Job(options.circumstances, options.limit_s, options.use_cache)
        plan = Plan(
            job, workers_for(options.jobs), options.scheduler, options.most, options.again, options.retry_failed
        )
        run_missing(record, cells, plan, progress)
    else:
        _say_out_of_date(record)
    figures = Figures(record.rows, measured)
    judged = judge_all(CLAIMS, figures)
    tables = _tables(figures)
    for table in [*tables, claims_table(judged)]:
        print_rows(table.title, table.columns, table.rows, console, words=table.words)
    failures = {str(cell): why for cell, why in {**record.failures, **record.failed_again}.items() if cell in cells}
    _print_end(record, judged, failures, console)
    if options.page:
        _write_page(options.page, record, figures, tables, judged)
        console.print(f"written: {options.page}", soft_wrap=True)
    return _document(options, record, figures, judged, failures), 1 if failures else 0


def _tables(figures: Figures) -> list[Table]:
    return [*matrix_tables(figures), *ratio_tables(figures), *share_tables(figures), intensity_table(figures)]


def _measured(options: PaperOptions) -> dict[Cell, float]:
    """InputError when records that were named are not there, or are none."""
    if options.bench_records is None and not Path(_BENCH_RECORDS).is_dir():
        return {}
    try:
        records = read_records([options.bench_records or _BENCH_RECORDS])
    except InputError as error:
        if options.bench_records is None:
            return {}
        raise InputError(f"--bench-records {options.bench_records}: {error}") from None
    try:
        return measured_times(records, options.circumstances.walkers)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        where = options.bench_records or _BENCH_RECORDS
        raise InputError(f"--bench-records {where}: a record lacks fields or has others: {error!r}") from None


def _say_out_of_date(record: Record) -> None:
    """On stderr: how many rows are of other versions or sources than those here."""
    from fusionlab.codegen.compile import versions

    old = len(record.out_of_date(versions(), sources_digest()))
    if old:
        words = "row is" if old == 1 else "rows are"
        print(
            f"fusionlab: {record.path}: {old} of {len(record.rows)} {words} of other versions or program sources "
            "than those here; without --no-run they are measured again",
            file=sys.stderr,
        )


def _versions(record: Record) -> list[str]:
    return sorted({str(row["versions"]) for row in record.rows.values()})


def _missing(record: Record) -> list[Cell]:
    return [cell for cell in EVERY if cell not in record.rows]


def _write_page(path: str, record: Record, figures: Figures, tables: Sequence[Table], judged: Sequence[Judged]) -> None:
    measured = sum(figures.measured_ms(cell) is not None for cell in figures.rows)
    given, missing = record.circumstances, len(_missing(record))
    text = page(str(record.path), given, _versions(record), measured, missing, tables, judged)
    write_whole(Path(path), text)


def _print_end(record: Record, judged: Sequence[Judged], failures: dict[str, str], console: Console) -> None:
    console.print(counts(judged))
    console.print(
        f"characterisation: JAX {PAPER_JAX}, times measured; ours: {'; '.join(_versions(record)) or 'nothing yet'}, "
        f"times modelled; {len(EVERY) - len(_missing(record))} of {len(EVERY)} cells in {record.path}",
        style="dim",
        soft_wrap=True,
    )
    for cell, why in failures.items():
        console.print(f"failed: {cell}: {why}", soft_wrap=True)


def _document(
    options: PaperOptions, record: Record, figures: Figures, judged: Sequence[Judged], failures: dict[str, str]
) -> dict[str, Any]:
    cells = [
        {
            "model": cell.model,
            "molecule": cell.molecule,
            "program": cell.program,
            "target": cell.target,
            "dynamic_launches": row["dynamic_launches"],
            "memory_bytes": figures.memory_bytes(cell),
            "model_us": row["model_us"],
            "unmodelled_us_launches": row["unmodelled_us_launches"],
            "measured_us": None if (ms := figures.measured_ms(cell)) is None else ms * 1e3,
            "versions": row["versions"],
        }
        for cell, row in sorted(record.rows.items())
    ]
    return {
        "record": str(record.path),
        "circumstances": options.circumstances.to_json(),
        "versions": _versions(record),
        "paper_jax": PAPER_JAX,
        "cells": cells,
        "not_measured": [str(cell) for cell in _missing(record)],
        "failed": failures,
        "claims": [one.to_json() for one in judged],
    }
