"""Large families of tests take turns: the slow tier has a part of each, ``make full`` all.

A test of such a family is marked ``by_turns(n, *fast)``. Those of the ids ``fast`` are in the fast tier. Of the others
the state of the sources decides which of n parts is in the slow tier: the same in every run on one tree, and another on
the next tree. With n = 1 all of them are. A part is every n-th test of one function, in the order of collection, so
that a function of at least n such tests has one in every run.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OPTION = "--all-turns"


@functools.cache
def digest_of_sources() -> str:
    """Of the files that decide what a program becomes: fusionlab's and the workloads'."""
    digest = hashlib.sha256()
    for path in sorted(path for top in ("fusionlab", "workloads") for path in (ROOT / top).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def has_its_turn(family: str, rank: int, parts: int, digest: str) -> bool:
    """Whether the test of this ``rank`` in its ``family`` is in the part of the sources' ``digest``.

    It is for one of ``parts`` ranks in a row; families begin at different ones, so that small ones take turns, too.
    """
    own = int(hashlib.sha256(family.encode()).hexdigest(), 16)
    return (rank + own + int(digest, 16)) % parts == 0


def mark_turns(items: Iterable[pytest.Item], all_turns: bool) -> None:
    """Mark tests of families ``slow`` where it is their turn, and ``full`` where not; all ``full`` if ``all_turns``.

    Of several marks of a test the one of most parts counts, and it is in the fast tier if it is so by all of them.
    """
    ranks: Counter[tuple[str, int]] = Counter()  # the next one of each function and number of parts
    for item in items:
        marks = list(item.iter_markers("by_turns"))
        if not marks or all(is_fast(item.name, mark.args[1:]) for mark in marks):
            continue
        parts = max(mark.args[0] for mark in marks)
        family = item.nodeid.partition("[")[0]
        rank = ranks[family, parts]
        ranks[family, parts] += 1
        slow = parts == 1 or (not all_turns and has_its_turn(family, rank, parts, digest_of_sources()))
        item.add_marker("slow" if slow else "full")


def is_fast(name: str, fast: Iterable[str]) -> bool:
    """Whether the id of the test ``name[id]`` is one of ``fast``, or has it among its parts between hyphens."""
    own = name.partition("[")[2].removesuffix("]")
    return any(f"-{each}-" in f"-{own}-" for each in fast)
