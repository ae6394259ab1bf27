"""The long tests, which run before a release: ``make full``, with a record of what ran under what.

    python -m tests.full [--numprocesses N] [--out FILE.json] [pytest's options, e.g. -k NAME]

They are marked ``full`` or ``by_turns``; every one has a smaller case in the tiers of CI. The record has each test with
its outcome and seconds, and is committed with the release.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fusionlab.codegen.compile import versions
from tests import turns

ROOT = Path(__file__).parents[1]


class Record:
    """Outcome and seconds of each test, as pytest reports its phases."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        row = self.tests.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0})
        row["seconds"] = round(row["seconds"] + report.duration, 1)
        if not report.passed:
            row["outcome"] = report.outcome


def _revision() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    return subprocess.check_output([git, "describe", "--always", "--dirty"], cwd=ROOT, text=True).strip()


def main() -> int:
    """Run them and write the record; pytest's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--numprocesses", default="2")
    parser.add_argument("--out", type=Path, default=ROOT / "studies" / "full-run.json")
    given, others = parser.parse_known_args()
    record, started = Record(), time.monotonic()
    tier = ["-m", "full", turns.OPTION]
    words = [*tier, "--numprocesses", given.numprocesses, "--dist", "loadfile", *others, str(ROOT / "tests")]
    code = int(pytest.main(words, plugins=[record]))
    document = {
        "revision": _revision(),
        "versions": f"Python {platform.python_version()}, {versions()}",
        "processors": len(os.sched_getaffinity(0)),
        "processes": int(given.numprocesses),
        "seconds": round(time.monotonic() - started),
        "outcomes": dict(sorted(Counter(row["outcome"] for row in record.tests.values()).items())),
        "tests": dict(sorted(record.tests.items())),
    }
    given.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"the record is {given.out}")
    return code


if __name__ == "__main__":
    sys.exit(main())
