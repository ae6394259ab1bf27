"""Large families of tests take turns: the slow tier has a part of each, ``make full`` all.

A test of such a family is marked ``by_turns(n)``. The state of the sources decides which of its n parts is in the slow
tier: it is the same in every run on one tree, and another on the next tree.
"""

from __future__ import annotations

import functools
import hashlib
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


def has_its_turn(name: str, parts: int, digest: str) -> bool:
    """Whether the part of ``parts`` that the test ``name`` belongs to is the one of the sources' ``digest``."""
    own = int(hashlib.sha256(name.encode()).hexdigest(), 16)
    return (own + int(digest, 16)) % parts == 0


def mark_turns(items: Iterable[pytest.Item], all_turns: bool) -> None:
    """Mark tests of families ``slow`` where it is their turn, and ``full`` where not; all ``full`` if ``all_turns``."""
    for item in items:
        mark = item.get_closest_marker("by_turns")
        if mark is not None:
            name = item.nodeid.partition("::")[2]
            slow = not all_turns and has_its_turn(name, *mark.args, digest_of_sources())
            item.add_marker("slow" if slow else "full")
