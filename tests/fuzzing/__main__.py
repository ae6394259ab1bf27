"""The long run: damaged files, random programs, replays, rules with integers and pairs; a record of what was found.

    python -m tests.fuzzing [--seed N] [--files N] [--programs N] [--replays N] [--integers N] [--pairs N]
                            [--minutes M] [--out FILE.json]

Pairs of expressions attack the exact check: equal by construction, or different by one edit (``pairs.py``).

The minutes are shared by the five parts in that order. Each is written into the record when it is done, with how much
of it ran; a part of which none is asked for stays as it is there. Exit code 1 when there are findings: each has the
seed that gives it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

from fusionlab.codegen.compile import versions  # noqa: E402  # after load_jax
from fusionlab.files import write_whole  # noqa: E402
from fusionlab.subprocesses import ProcessFailed, call  # noqa: E402
from tests.fuzzing import batch, pairs  # noqa: E402
from tests.fuzzing.parsers import fuzz_parsers  # noqa: E402

_BATCH = {"integers": 50, "programs": 20, "replays": 8}
_BATCH_LIMIT_S = 1200.0
_PAIRS = 5_000
"""In a process: it makes its tables once, in some seconds."""
_FINDINGS = (
    "edited: identical",
    "equal: not-identical, different in float64",
    "fault of the check",
    "typed, edited: identical, different at integers that are not drawn",
)


def fuzz_programs(part: str, seed: int, count: int, deadline: float, _: int) -> dict[str, Any]:
    """``count`` examples in batches, each a process of its own with the next seed, until ``deadline``."""
    started = time.monotonic()
    tally: Counter[str] = Counter()
    findings: list[dict[str, Any]] = []
    batches = -(-count // _BATCH[part])
    done = 0
    while done < batches and time.monotonic() < deadline:
        try:
            found = call(batch.run, part, seed + done, _BATCH[part], limit_s=_BATCH_LIMIT_S)
        except ProcessFailed as error:
            found = {"tally": {}, "failure": {"error": str(error)}}
        tally.update(found["tally"])
        if found["failure"]:
            findings.append({"seed": seed + done, **found["failure"]})
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
    runs: list[dict[str, Any]] = []
    failures: list[dict[str, Any]] = []

    def asked(first: int, number: int) -> None:
        """So many pairs in a process; where XLA ends it (compiling a division of constants), in smaller ones."""
        try:
            runs.extend(call(pairs.runs, seed, first, number, limit_s=_BATCH_LIMIT_S))
        except ProcessFailed as error:
            if number <= pairs.BATCH:
                failures.append({"first": first, "pairs": number, "error": str(error)})
                return
            for at in range(first, first + number, pairs.BATCH):
                asked(at, min(pairs.BATCH, first + number - at))

    def part(first: int) -> None:
        if time.monotonic() > deadline:
            return
        asked(first, min(_PAIRS, count - first))
        print(f"pairs: {sum(sum(run['classes'].values()) for run in runs)} of {count}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(part, range(0, count, _PAIRS)))
    looked = sorted((row for run in runs for row in run["looked_into"]), key=lambda row: row["pair"])
    classes = _added(run["classes"] for run in runs)
    return {
        "pairs": sum(classes.values()),
        "seconds": round(time.monotonic() - started),
        "classes": classes,
        "identities": _added(run["identities"] for run in runs),
        "edits": {
            edit: _added(run["edits"].get(edit, {}) for run in runs)
            for edit in sorted({edit for run in runs for edit in run["edits"]})
        },
        "equal_and_not_seen": [row for row in looked if row["kind"].startswith("equal: not")][:40],
        "edited_and_the_same": [row for row in looked if row["kind"].startswith("edited: identical, and")][:20],
        "findings": [*failures, *(row for row in looked if row["kind"] in _FINDINGS)],
    }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return dict(sorted(sum(map(Counter, counts), Counter()).items()))


_PARTS = {
    "files": (fuzz_parsers, 20_000),
    "programs": (partial(fuzz_programs, "programs"), 400),
    "replays": (partial(fuzz_programs, "replays"), 80),
    "integers": (partial(fuzz_programs, "integers"), 2_000),
    "pairs": (fuzz_pairs, 100_000),
}


def main() -> int:
    """Run the parts, write the record, and say in one line each what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    for part, (_, count) in _PARTS.items():
        parser.add_argument(f"--{part}", type=int, default=count)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument(
        "--processes", type=int, default=2, help="Readers of damaged files, or comparers of pairs, at a time."
    )
    parser.add_argument("--out", type=Path, default=Path("studies/fuzzing.json"))
    given = parser.parse_args()
    deadline = time.monotonic() + 60 * given.minutes
    record: dict[str, Any] = json.loads(given.out.read_text()) if given.out.exists() else {}
    found: dict[str, int] = {}
    for part, (run, _) in _PARTS.items():
        count = getattr(given, part)
        if not count:
            continue
        made = run(given.seed, count, deadline, given.processes)
        record[part] = {"versions": versions(), "seed": given.seed, **made}
        write_whole(given.out, json.dumps(record, indent=1) + "\n")
        found[part] = len(made["findings"])
    print(f"findings: {found}; the record is {given.out}")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
