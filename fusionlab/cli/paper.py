"""``fusionlab paper``: the characterisation reproduced: measure its missing cells, judge its claims, show both."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.exit_codes import exit_code
from fusionlab.cli.terminal import is_terminal, say
from fusionlab.errors import InputError
from fusionlab.files import require_writable, write_whole

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.characterisation.figures import MatrixFigures
    from fusionlab.characterisation.matrix import Cell, Row
    from fusionlab.characterisation.run import Record, RunPlan

_BENCH_RECORDS = "studies/bench"
_CELL_MINUTES = {"full": 1.5, "tiny": 0.25}
"""The mean time of a program on one core, an estimate: to lower (5 s), to compile (54 s), to start and to analyse."""


@click.command("paper")
@click.option("--models", help="Only these: paulinet,ferminet,psiformer,orbformer.")
@click.option("--molecules", help="Only these: LiH,CH4,C2H6,C4H4.")
@click.option("--programs", help="Only these: inference-step,train-step.")
@click.option("--targets", help="Only these: a5000,a100,h200.")
@click.option("--record", default="studies/paper.json", show_default=True, help="What was measured; it goes on there.")
@click.option(
    "--bench-records", help="Folder (or record) with measured times.  [default: studies/bench, if it is there]"
)
@click.option("--page", help="Write the tables and claims as Markdown.")
@click.option("--yes", is_flag=True, help="Start without a question.")
@click.option("--run/--no-run", default=True, help="Measure what the record lacks, or only show it.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes at a time.  [default: by cores and memory]")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers measure: tcp://HOST:8786.")
@click.option("--most", type=click.IntRange(min=0), help="Measure at most so many cells now.")
@click.option("--time-limit", default=1800.0, show_default=True, type=float, help="Seconds one cell may take.")
@click.option("--again", is_flag=True, help="Measure also what is in the record, and compile afresh.")
@click.option("--retry-failed", is_flag=True, help="Try the cells that failed once more.")
@click.option("--walkers", default=1024, show_default=True, type=click.IntRange(min=1))
@click.option("--size", default="full", show_default=True, type=click.Choice(["full", "tiny"]))
@options.cache
@options.verb
def command(
    models: str | None,
    molecules: str | None,
    programs: str | None,
    targets: str | None,
    record: str,
    bench_records: str | None,
    page: str | None,
    yes: bool,
    run: bool,
    jobs: int | None,
    scheduler: str | None,
    time_limit: float,
    walkers: int,
    size: str,
    console: Console,
    where: dict[str, Any],
    **how: Any,
) -> tuple[dict[str, Any], int]:
    """Measure the characterisation's tables and claims again.

    It has 4 ansätze, 4 molecules, 3 GPUs and both programs.

    Hours of compiling for everything, so that it asks first (or --yes); what is finished is kept, and an interrupted
    run goes on where it was.
    """
    from fusionlab.characterisation.figures import LAUNCH_MODEL, MatrixFigures
    from fusionlab.characterisation.matrix import MatrixSetup, select
    from fusionlab.characterisation.old_compiler import RECORD_NAME, read_sides
    from fusionlab.characterisation.run import CellJob, Record, RunPlan, open_cells, run_missing, workers_for
    from fusionlab.report.matrix_progress import MatrixProgress

    if not 0 < time_limit <= options.MOST_SECONDS:
        raise InputError(f"--time-limit must be above 0 seconds and at most {options.MOST_SECONDS}, not {time_limit}")
    if scheduler is not None and jobs is not None:
        raise InputError("--jobs is for processes of this machine; a --scheduler has its own workers")
    cells = select(models, molecules, programs, targets)
    kept = Record(Path(record), MatrixSetup(walkers=walkers, size=size))
    measured = _measured(bench_records, walkers)
    if page:
        options.require_file_name(page, "--page")
    sides = read_sides(kept.path.with_name(RECORD_NAME), kept.circumstances) if page else ({}, {})
    if run:
        plan = RunPlan(
            CellJob(kept.circumstances, time_limit, not where["no_cache"]), workers_for(jobs), scheduler, **how
        )
        if not yes:
            _ask(len(open_cells(kept, cells, plan)[: plan.most]), plan, kept)
        require_writable(kept.path.resolve().parent)
        quiet = click.get_current_context().params["quiet"]
        try:
            with MatrixProgress(quiet=quiet, terminal=is_terminal(sys.stderr)) as progress:
                run_missing(kept, cells, plan, progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped; what was finished is in {record}: run again to go on") from None
    else:
        _say_out_of_date(kept)
    failures = {str(cell): why for cell, why in {**kept.failures, **kept.failed_again}.items() if cell in cells}
    document = _show(kept, MatrixFigures(kept.rows, measured, LAUNCH_MODEL), failures, page, sides, console)
    return document, exit_code(["not measured"] if failures else [])


def _ask(count: int, plan: RunPlan, kept: Record) -> None:
    """Say how long it takes and where it writes, and go on if the user agrees. InputError where nobody can."""
    if not count:
        return
    minutes = count * _CELL_MINUTES[kept.circumstances.size] / plan.workers
    length = f"about {minutes / 60:.1f} hours" if minutes > 90 else f"about {max(1, round(minutes))} min"
    by = f"{plan.workers} at a time" if plan.scheduler is None else f"by the workers of {plan.scheduler}"
    what = f"paper measures {count} programs ({by}{f', {length}' if plan.scheduler is None else ''})"
    where = f"and writes {kept.path.resolve()}"
    if not _on_a_terminal():
        raise InputError(f"{what} {where}: start it with --yes, or show what is recorded with --no-run")
    if not click.confirm(f"fusionlab: {what} {where}. Start?", err=True):
        say("nothing was started; --no-run shows what is recorded")
        sys.exit(exit_code(["done"]))


def _on_a_terminal() -> bool:
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def _measured(named: str | None, walkers: int) -> dict[Cell, float]:
    """Measured times by cell; InputError when records that were ``named`` do not exist, or are invalid."""
    from fusionlab.characterisation.figures import measured_times
    from fusionlab.measure.records import read_records

    path = named or _BENCH_RECORDS
    if named is None and not Path(path).is_dir():
        return {}
    try:
        records = read_records([path])
    except InputError as error:
        if named is None:
            return {}
        raise InputError(f"--bench-records {path}: {error}") from None
    try:
        return measured_times(records, walkers)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"--bench-records {path}: a record lacks fields or has others: {error!r}") from None


def _say_out_of_date(record: Record) -> None:
    """Report on stderr the number of rows of other versions or sources than the present ones."""
    from fusionlab.characterisation.matrix import sources_digest
    from fusionlab.codegen.compile import versions

    old = len(record.out_of_date(versions(), sources_digest()))
    if old:
        words = "row is" if old == 1 else "rows are"
        say(
            f"{record.path}: {old} of {len(record.rows)} {words} of other versions or program sources "
            "than those here; without --no-run they are measured again"
        )


def _show(
    record: Record,
    figures: MatrixFigures,
    failures: dict[str, str],
    page: str | None,
    sides: tuple[Mapping[Cell, Row], Mapping[Cell, Row]],
    console: Console,
) -> dict[str, Any]:
    """Print the tables and the judged claims, write them to the file ``page``, with verdicts by the ``sides`` of two
    compilers, and return the document."""
    from fusionlab.characterisation.claims import CLAIMS, PAPER_JAX, judge_all
    from fusionlab.characterisation.figures import MatrixFigures
    from fusionlab.characterisation.matrix import EVERY
    from fusionlab.characterisation.old_compiler import judge_sides
    from fusionlab.characterisation.page import (
        claims_table,
        counts,
        intensity_table,
        matrix_tables,
        ratio_tables,
        share_tables,
        surviving,
    )
    from fusionlab.characterisation.page import page as page_of
    from fusionlab.report.tables import note, print_rows

    judged, exactly = judge_all(CLAIMS, figures), judge_all(CLAIMS, MatrixFigures(record.rows))
    tables = [*matrix_tables(figures), *ratio_tables(figures), *share_tables(figures), intensity_table(figures)]
    for table in [*tables, claims_table(judged)]:
        print_rows(table.title, table.columns, table.rows, console, words=table.words)
    rows, path = record.rows, str(record.path)
    versions = sorted({str(row["versions"]) for row in rows.values()})
    missing = [str(cell) for cell in EVERY if cell not in rows]
    console.print(counts(judged))
    console.print(surviving(judged, exactly), soft_wrap=True)
    note(
        console,
        f"characterisation: JAX {PAPER_JAX}, times measured; ours: {'; '.join(versions) or 'nothing yet'}, "
        f"times modelled; {len(EVERY) - len(missing)} of {len(EVERY)} cells in {path}",
    )
    for name, why in failures.items():
        console.print(f"failed: {name}: {why}", soft_wrap=True)
    if page:
        measured = sum(figures.measured_ms(cell) is not None for cell in figures.rows)
        both = judge_sides(CLAIMS, *sides)
        text = page_of(path, record.circumstances, versions, measured, len(missing), tables, judged, exactly, both)
        write_whole(Path(page), text)
        console.print(f"written: {page}", soft_wrap=True)
    return {
        "record": path,
        "circumstances": record.circumstances.to_json(),
        "versions": versions,
        "paper_jax": PAPER_JAX,
        "cells": [
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
            for cell, row in sorted(rows.items())
        ],
        "not_measured": missing,
        "failed": failures,
        "claims": [one.to_json() for one in judged],
    }
