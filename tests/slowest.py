"""The tests that take longest: as a Markdown table, ``studies/slowest-tests.md``, and as the ids of ``slow_tests.txt``,
of which the slow tier has a fifth by turns.

    make test PYTEST_OPTIONS=--junit-xml=build/fast.xml
    make test-slow PYTEST_OPTIONS=--junit-xml=build/slow.xml
    python -m tests.slowest fast=build/fast.xml slow=build/slow.xml [--count 100] > studies/slowest-tests.md
    python -m tests.slowest fast=build/fast.xml --least 0.6 --kept 2.5 >> tests/slow_tests.txt
    python -m tests.slowest slow=build/slow.xml --least 3 >> tests/slow_tests.txt

Seconds are of the wall, a test's fixtures included where it is the first that needs them.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

RECORD = Path(__file__).with_name("slow_tests.txt")
"""A test per line that took 0.6 s or longer in the fast tier, or 3 s in the slow one, where they were measured; the
fastest case of a function of the fast tier is left out if it took less than 2.5 s."""
TURNS = 5
"""One in so many of the recorded tests is in the slow tier; ``make full`` has all."""

TITLE = """# The slowest tests of each tier

Written by `python -m tests.slowest` from the JUnit files of `make test` and `make test-slow`, two processes on two
cores. Seconds of the wall; the first test that needs a fixture has the fixture's.
"""


def seconds_of(path: Path) -> list[tuple[float, str, str]]:
    """(seconds, file below ``tests/``, test) of every test in a JUnit file, the slowest first."""
    rows = []
    for case in ElementTree.parse(path).iter("testcase"):
        parts = case.get("classname", "").split(".")
        rows.append((float(case.get("time", "0")), "/".join(parts[1:]) + ".py", case.get("name", "")))
    return sorted(rows, reverse=True)


def recorded() -> set[str]:
    """The ids in ``RECORD``, without ``tests/``."""
    return {line for line in RECORD.read_text().splitlines() if line and not line.startswith("#")}


def mark_recorded(items: Iterable[pytest.Item]) -> None:
    """Let the tests of ``RECORD`` take turns. Those of the versions of JAX stay: the slow tier has one version."""
    slow = recorded()
    for item in items:
        if item.nodeid.removeprefix("tests/") in slow and item.get_closest_marker("versions") is None:
            item.add_marker(pytest.mark.by_turns(TURNS))


def ids_from(path: Path, least_s: float, kept_s: float) -> list[str]:
    """The ids of the tests in a JUnit file that took at least ``least_s``, without ``tests/``, in order.

    The fastest case of a function is left out if it took less than ``kept_s``.
    """
    functions: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case in ElementTree.parse(path).iter("testcase"):
        if case.get("classname"):
            folders = case.get("classname", "").split(".")[1:]
            at = next(number for number, part in enumerate(folders) if part.startswith("test_")) + 1
            name = "::".join([f"{'/'.join(folders[:at])}.py", *folders[at:], case.get("name", "")])
            functions[name.partition("[")[0]].append((float(case.get("time", "0")), name))
    found = [(seconds, name, min(cases)) for cases in functions.values() for seconds, name in cases]
    return sorted(
        name for seconds, name, fastest in found
        if seconds >= least_s and not (fastest == (seconds, name) and seconds < kept_s)
    )  # fmt: skip


def table(tier: str, rows: list[tuple[float, str, str]], count: int) -> str:
    """A line per file of the ``count`` slowest: its tests among them with their seconds, and the seconds of all."""
    whole: dict[str, float] = defaultdict(float)
    slowest: dict[str, list[str]] = defaultdict(list)
    for seconds, file, _ in rows:
        whole[file] += seconds
    for seconds, file, name in rows[:count]:
        slowest[file].append(f"{name.removeprefix('test_').replace('|', '/')} {seconds:.1f}")
    lines = [
        f"## {tier.capitalize()}: {len(rows):,} tests, {sum(whole.values()):.0f} s; "
        f"the {min(count, len(rows))} slowest take {sum(seconds for seconds, _, _ in rows[:count]):.0f} s",
        "",
        "| file | s | its tests among the slowest, s |",
        "|---|---|---|",
        *(f"| `{file}` | {whole[file]:.0f} | {'; '.join(slowest[file])} |" for file in sorted(
            slowest, key=lambda file: -whole[file])),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tiers", nargs="+", metavar="TIER=FILE.xml")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--least", type=float, metavar="SECONDS", help="Print the ids of tests that took as long.")
    parser.add_argument(
        "--kept", type=float, default=0.0, metavar="SECONDS", help="But the fastest of a function below it."
    )
    given = parser.parse_args()
    if given.least is not None:
        ids = [one for word in given.tiers for one in ids_from(Path(word.partition("=")[2]), given.least, given.kept)]
        print(*(one for one in ids if one not in recorded()), sep="\n")
        return
    parts = [TITLE]
    for word in given.tiers:
        tier, _, path = word.partition("=")
        parts.append(table(tier, seconds_of(Path(path)), given.count))
    sys.stdout.write("\n".join(parts))


if __name__ == "__main__":
    main()
