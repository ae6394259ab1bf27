"""The long run: damaged files, random programs, replays and pairs, with a record of what ran and what was found.

    python -m tests.fuzzing [--seed N] [--files N] [--programs N] [--replays N] [--pairs N] [--minutes M]
                            [--out FILE.json]

Pairs of expressions attack the exact check: equal by construction, or different by one edit (``pairs.py``).

The minutes are shared by the four parts in that order. Each is written into the record when it is done, with how much
of it ran; a part of which none is asked for stays as it is there. Exit code 1 when there are findings: each has the
seed that gives it again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

from fusionlab.codegen.compile import versions  # noqa: E402  # after load_jax
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.subprocesses import module_command  # noqa: E402
from tests.fuzzing.parsers import fuzz_parsers  # noqa: E402

_BATCH = {"programs": 20, "replays": 8}
_BATCH_LIMIT_S = 1200.0
_PAIRS = 5_000
"""In a process: it makes its tables once, in some seconds."""
_FINDINGS = ("edited: identical", "equal: not-identical, different in float64", "fault of the check")


def fuzz_programs(part: str, seed: int, count: int, deadline: float) -> dict[str, Any]:
    """``count`` examples in batches, each a process of its own with the next seed, until ``deadline``."""
    started = time.monotonic()
    tally: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    batches = -(-count // _BATCH[part])
    done = 0
    while done < batches and time.monotonic() < deadline:
        arguments = [part, str(seed + done), str(_BATCH[part])]
        command, environment = module_command("tests.fuzzing.batch", arguments)
        try:
            finished = subprocess.run(
                command, stdout=subprocess.PIPE, timeout=_BATCH_LIMIT_S, env=environment, check=False
            )
            found = json.loads(finished.stdout.splitlines()[-1]) if finished.returncode == 0 else None
            failure = found["failure"] if found else {"error": f"the process ended with {finished.returncode}"}
            tally.update(found["tally"] if found else {})
        except subprocess.TimeoutExpired:
            failure = {"error": f"no end within {_BATCH_LIMIT_S:.0f} s"}
        if failure:
            findings.append({"seed": seed + done, **failure})
        done += 1
        print(f"{part}: batch {done} of {batches}, {len(findings)} findings", file=sys.stderr, flush=True)
    return {
        "batches": done,
        "examples_in_a_batch": _BATCH[part],
        "seconds": round(time.monotonic() - started),
        "counts": dict(sorted(tally.items())),
        "findings": findings,
    }


def fuzz_pairs(seed: int, count: int, deadline: float, processes: int) -> dict[str, Any]:
    """``count`` pairs of expressions, ``_PAIRS`` at a time, until ``deadline``.

    A finding is an edit that the exact check calls identical though float64 shows it, a pair that is no equal one
    although an identity made it, or an error. What it does not know of equal pairs is listed, and so are some of the
    edited pairs that are the same function, as far as float64 shows.
    """
    started = time.monotonic()
    lines: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []

    def part(first: int) -> None:
        if time.monotonic() > deadline:
            return
        command, environment = module_command(
            "tests.fuzzing.pairs", [str(seed), str(first), str(min(_PAIRS, count - first))]
        )
        try:
            finished = subprocess.run(
                command, stdout=subprocess.PIPE, timeout=_BATCH_LIMIT_S, env=environment, check=False
            )
            if finished.returncode:
                failures.append({"first": first, "error": f"the process ended with {finished.returncode}"})
            lines.extend(map(json.loads, finished.stdout.splitlines()))
        except subprocess.TimeoutExpired:
            failures.append({"first": first, "error": f"no end within {_BATCH_LIMIT_S:.0f} s"})
        print(f"pairs: {sum(sum(line['classes'].values()) for line in lines)} of {count}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(part, range(0, count, _PAIRS)))
    looked = sorted((row for line in lines for row in line["looked_into"]), key=lambda row: str(row["pair"]).zfill(9))
    unseen = [row for row in looked if row["kind"].startswith("equal: not")]
    same = [row for row in looked if row["kind"].startswith("edited: identical, and")]
    classes = _added(line["classes"] for line in lines)
    return {
        "pairs": sum(classes.values()),
        "seconds": round(time.monotonic() - started),
        "classes": classes,
        "identities": _added(line["identities"] for line in lines),
        "edits": {
            edit: _added(line["edits"].get(edit, {}) for line in lines)
            for edit in sorted({edit for line in lines for edit in line["edits"]})
        },
        "equal_and_not_seen": unseen[:40],
        "edited_and_the_same": same[:20],
        "findings": [*failures, *(row for row in looked if row["kind"] in _FINDINGS)],
    }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(sorted(total.items()))


def main() -> int:
    """Run the parts, write the record, and say in one line each what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--programs", type=int, default=400)
    parser.add_argument("--replays", type=int, default=80)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--processes", type=int, default=2, help="Readers of damaged files, or comparers of pairs, at a time."
    )
    parser.add_argument("--out", type=Path, default=Path("studies/fuzzing.json"))
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    record: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    found: dict[str, int] = {}
    for part in ("files", *_BATCH, "pairs"):
        count = getattr(given, part)
        if not count:
            continue
        if part == "files":
            made = fuzz_parsers(given.seed, count, deadline, given.processes)
        elif part == "pairs":
            made = fuzz_pairs(given.seed, count, deadline, given.processes)
        else:
            made = fuzz_programs(part, given.seed, count, deadline)
        record[part] = {"versions": versions(), "seed": given.seed, **made}
        write_whole(given.out, json.dumps(record, indent=1) + "\n")
        found[part] = len(made["findings"])
    print(f"findings: {found}; the record is {given.out}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
