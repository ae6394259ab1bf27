"""The Pareto front of a search as a table, and the pipeline that was chosen."""

from __future__ import annotations

from rich.console import Console

from fusionlab.report.tables import milliseconds, print_rows
from fusionlab.search.best import Found
from fusionlab.search.trials import Trial

_COLUMNS = ("pipeline", "launches", "GiB accessed", "temp MiB", "model ms", "compile s")
AS_IT_IS = "(the program as it is)"


def print_search(found: Found, console: Console) -> None:
    """The program as it is, the front with its best marked, what was tried, and the pipeline to repeat."""
    start = found.trials[0]
    rows = [_row(start, AS_IT_IS if not start.pipeline else f"{start.pipeline} (fixed)")]
    rows += [
        _row(trial, f"{'* ' if trial is found.best else '  '}{trial.pipeline or AS_IT_IS}") for trial in found.front
    ]
    if found.best not in found.front:
        rows.append(_row(found.best, f"* {found.best.pipeline or AS_IT_IS}"))
    goal = found.goal
    within = f" within {goal.memory_budget}" if goal.memory_budget is not None else ""
    title = f"Pareto front{within}: launches, bytes, temp memory, time; * least {goal.objective}"
    print_rows(title, _COLUMNS, rows, console)
    console.print(_tried(found), soft_wrap=True)
    for trial in found.trials:
        if trial.status in ("failed", "unfinished"):
            console.print(f"  {trial.status} {trial.pipeline}: {trial.reason}", soft_wrap=True, markup=False)
    chosen = f'--pipeline "{found.best.pipeline}"' if found.best.pipeline else "no pass: none makes it better"
    console.print(f"best: {chosen}", soft_wrap=True, style="bold", markup=False)


def _tried(found: Found) -> str:
    recorded = sum(trial.recorded for trial in found.trials)
    ended = "nothing was left to try" if found.complete else "the time was up; the same command goes on from here"
    said = [
        f"{len(found.trials)} pipelines in {found.seconds:.0f} s ({recorded} recorded before), {ended}",
        f"compiled {found.count('measured')}, the same program {found.count('same')}",
        f"nothing applied {found.count('nothing')}, failed {found.count('failed')}",
    ]
    return "; ".join(said)


def _row(trial: Trial, name: str) -> tuple[str, ...]:
    costs = trial.costs
    if costs is None:
        return name, "-", "-", "-", "-", "-"
    return (
        name,
        f"{costs.launches:,}",
        f"{costs.bytes_accessed / 2**30:,.2f}",
        f"{costs.temp_bytes / 2**20:,.0f}",
        milliseconds(costs.model_us, incomplete=costs.unmodelled_launches > 0),
        f"{costs.compile_s:,.1f}",
    )
