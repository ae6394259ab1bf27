"""Progress of many jobs on stderr: a bar with the remaining time on a terminal, else a line per job."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

import click


class MatrixProgress:
    """A context manager that receives finished jobs. ``quiet`` prints nothing; ``terminal`` draws a bar."""

    def __init__(self, *, quiet: bool, terminal: bool) -> None:
        self._quiet, self._terminal = quiet, terminal and not quiet
        self._bar: Any = None
        self._total = self._done = 0
        self._started = time.monotonic()

    def __enter__(self) -> MatrixProgress:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, total: int, known: int) -> None:
        """``total`` jobs are to be done; ``known`` have their results already."""
        self._total, self._started = total, time.monotonic()
        if known:
            self._say(f"{known} {'is' if known == 1 else 'are'} in the record already")
        if total and self._terminal:
            from rich import progress
            from rich.console import Console

            counts = (progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn())
            columns = ("{task.description}", *counts, "left:", progress.TimeRemainingColumn())
            self._bar = progress.Progress(*columns, console=Console(stderr=True))
            self._bar.add_task("measuring", total=total)
            self._bar.start()

    def done(self, name: object, row: dict[str, Any]) -> None:
        """The job ``name`` has returned ``row``."""
        self._done += 1
        said = row["failed"] if "failed" in row else f"{row['dynamic_launches']:,} launches"
        line = f"{name}: {said}"
        if self._bar is None:
            self._say(f"{self._done}/{self._total} {line} ({time.monotonic() - self._started:.0f} s)")
            return
        self._bar.console.print(line, soft_wrap=True, highlight=False)
        self._bar.advance(self._bar.task_ids[0])

    def _say(self, line: str) -> None:
        if not self._quiet:
            click.echo(line, err=True)
