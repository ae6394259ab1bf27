"""Scopes that repeat: layers of one kind under one scope, told by their names (``interaction_0``, ``interaction_1``).

Two scopes are *alike* when their names differ by the number at the end alone, they have the same families of matrix
products, solves and reductions, and the larger has at most twice the operations of the smaller: a first layer that
reads the features, or a last one without a message to pass on, is still that layer. *Identical* means the same number
of operations by name and result types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_NUMBERED = re.compile(r"(.+?)_?(\d+)")
_COMPUTING = ("gemm", "triangular-solve", "factorisation", "attention", "reduction")
_MOST = 2.0


@dataclass(frozen=True)
class Scope:
    """What is compared of a scope: its operations by name and result types, and by family."""

    operations: Mapping[str, int]
    families: Mapping[str, int]

    @staticmethod
    def of(facts: Sequence[Mapping[str, Any]]) -> Scope:
        """The scope of operations, from their attributes in ``hlo.graph``."""
        operations = Counter(f"{one['name']} {one['type']}" for one in facts)
        return Scope(operations, Counter(one["family"] for one in facts))

    @property
    def size(self) -> int:
        """Operations in all."""
        return sum(self.operations.values())


@dataclass(frozen=True)
class Repeat:
    """Names of alike scopes, in order, which all begin with ``stem``; ``title`` names them all."""

    names: tuple[str, ...]
    stem: str
    title: str
    identical: bool


def find_repeats(scopes: Mapping[str, Scope]) -> list[Repeat]:
    """The repeats among sibling scopes by name; every name is in one at most, single ones in none."""
    stems: dict[str, list[tuple[int, str]]] = {}
    for name in scopes:
        match = _NUMBERED.fullmatch(name)
        if match:
            stems.setdefault(match[1], []).append((int(match[2]), name))
    found = []
    for stem, numbered in stems.items():
        names = [name for _, name in sorted(numbered)]
        if len(names) > 1 and _alike([scopes[name] for name in names]):
            numbers = [number for number, _ in sorted(numbered)]
            identical = _identical([scopes[name] for name in names])
            found.append(Repeat(tuple(names), stem, f"{stem} {_range(numbers)}", identical))
    return found


def _alike(scopes: Sequence[Scope]) -> bool:
    kinds = [{family for family in _COMPUTING if scope.families.get(family)} for scope in scopes]
    sizes = [scope.size for scope in scopes]
    return all(kind == kinds[0] for kind in kinds) and max(sizes) <= _MOST * min(sizes)


def _identical(scopes: Sequence[Scope]) -> bool:
    return all(Counter(scope.operations) == Counter(scopes[0].operations) for scope in scopes)


def _range(numbers: Sequence[int]) -> str:
    together = numbers == list(range(numbers[0], numbers[-1] + 1))
    return f"{numbers[0]} to {numbers[-1]}" if together else ", ".join(map(str, numbers))
