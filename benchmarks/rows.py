"""Rows of a benchmark: each measured in a process of its own, within a time limit, and kept in one JSON record.

A script that measures a row when it is called with ``--one NAME`` prints what it knows of the row as JSON, one line
each time that it knows more; the last line counts. So one failure costs one row and does not end the run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fusionlab.files import write_whole

Row = dict[str, Any]
OF_EACH_ROW = "of each row"
"""The versions of a record whose rows are measured in several environments."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of every script of rows: ``--limit-s``, ``--again`` and the inner ``--one``."""
    parser.add_argument("--limit-s", type=float, default=1500.0, help="Seconds for one row.")
    parser.add_argument("--again", action="store_true", help="Measure rows that are there, too.")
    parser.add_argument("--one", help=argparse.SUPPRESS)


def measure_apart(script: str, name: str, options: Sequence[str], limit_s: float) -> Row:
    """The row ``name`` as ``script --one NAME OPTIONS`` prints it; what stopped it early is in ``failed``."""
    command = [sys.executable, script, "--one", name, *options]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, timeout=limit_s, check=False)
        output, failed = done.stdout, f"the process ended with {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as error:
        output, failed = error.stdout or b"", f"not finished within {limit_s:.0f} s"
    rows = [json.loads(line) for line in output.decode().splitlines()]
    row: Row = rows[-1] if rows else {}
    return {**row, "failed": failed} if failed else row


def revision_of(*paths: str) -> str:
    """Names the sources in ``paths`` of this repository by their Git trees; "" where they are not those of a commit."""
    root = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout

    try:
        if git("status", "--porcelain", "--", *paths).strip():
            return ""
        return "-".join(line[:7] for line in git("rev-parse", *(f"HEAD:{path}" for path in paths)).split())
    except (OSError, subprocess.CalledProcessError):
        return ""


def read_record(path: Path, versions: str) -> dict[str, Any]:
    """The record in ``path`` as it is, or an empty one of these ``versions``."""
    if path.exists():
        record: dict[str, Any] = json.loads(path.read_text())
        return record
    return {"versions": versions, "rows": {}}


def fill_record(
    path: Path,
    versions: str,
    names: Sequence[str],
    measure: Callable[[str], Row],
    is_current: Callable[[str, Row], bool] = lambda name, row: True,
    circumstances: Mapping[str, Any] | None = None,
) -> Mapping[str, Row]:
    """Measure the rows of ``names`` that are missing, of other versions or out of date; every finished one is written
    at once. Returns all rows of ``versions``.

    A row of other versions names them. With OF_EACH_ROW every row does, and ``is_current`` alone decides.
    ``circumstances`` of the measurement are kept beside the rows, where they are given.
    """
    beside = {} if circumstances is None else {"circumstances": circumstances}
    for name in names:
        known = _of_versions(versions, read_record(path, versions))
        if name in known and is_current(name, known[name]):
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        row = measure(name)
        record = read_record(path, versions)  # again: two runs may fill one record
        rows = {**_labelled(versions, record), name: row}
        write_whole(path, json.dumps({**record, "versions": versions, **beside, "rows": rows}, indent=1) + "\n")
    return _of_versions(versions, read_record(path, versions))


def _labelled(versions: str, record: Mapping[str, Any]) -> dict[str, Row]:
    """The rows of ``record``; those of other versions than these have them in ``versions``."""
    rows: dict[str, Row] = record["rows"]
    if record["versions"] == versions:
        return rows
    return {name: {"versions": record["versions"], **row} for name, row in rows.items()}


def _of_versions(versions: str, record: Mapping[str, Any]) -> dict[str, Row]:
    """The rows of ``record`` that were measured with these versions."""
    rows = _labelled(versions, record)
    if versions == OF_EACH_ROW:
        return rows
    return {name: row for name, row in rows.items() if row.get("versions", versions) == versions}
