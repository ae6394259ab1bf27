"""What changed between two programs, as data: hunks of ops that were removed, added, moved, or read another value.

Values have one name through all programs of a pipeline: ``%arg3`` is an argument, ``%57`` value 57 of the first
program's view (the number that events of passes say), and what passes make is numbered on from there. Constants of one
number are written as that number, and are not counted as ops.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import Any

_TELL_THEMSELVES = ("dot_dimension_numbers", "value")


@dataclass(frozen=True)
class OpLine:
    """One op. ``scope`` is its JAX name stack; ``loop`` is the innermost loop around it, with its trips ("" if none).

    ``applies`` are the ops that a reduction applies, ``types`` those of the results (``1024x64xf32``).
    """

    results: tuple[str, ...]
    op: str
    operands: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    applies: tuple[str, ...]
    types: tuple[str, ...]
    scope: str
    loop: str

    @property
    def text(self) -> str:
        """``%7 = dot_general %3, %arg0 {contracting_dims=[1] x [0]} : 1024x64xf32``."""
        results = f"{', '.join(self.results)} = " if self.results else ""
        applied = f"[{', '.join(self.applies)}]" if self.applies else ""
        attributes = (
            " {"
            + ", ".join(value if name in _TELL_THEMSELVES else f"{name}={value}" for name, value in self.attributes)
            + "}"
        )
        operands = f" {', '.join(self.operands)}" if self.operands else ""
        types = f" : {', '.join(self.types)}" if self.types else ""
        return f"{results}{self.op}{applied}{operands}{attributes if self.attributes else ''}{types}"

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is the same for two ops that do the same to other values."""
        return self.op, self.attributes, self.applies, self.types


@dataclass(frozen=True)
class Moved:
    """An op that is now computed elsewhere: in loop ``to`` ("" for no loop)."""

    op: OpLine
    to: str


@dataclass(frozen=True)
class Rewired:
    """An op that does the same to another value; ``now`` are its operands in the second program."""

    op: OpLine
    now: tuple[str, ...]

    @property
    def text(self) -> str:
        """The op, each changed operand as ``%old→%new``."""
        old = self.op.operands
        pairs = zip(old, self.now, strict=True)
        shown = tuple(was if was == now else f"{was}→{now}" for was, now in pairs) if len(old) == len(self.now) else old
        return dataclasses.replace(self.op, operands=shown).text


@dataclass(frozen=True)
class Hunk:
    """Changes that hang together. ``reads`` are unchanged ops whose results the removed and added ones read."""

    scope: str
    loop: str
    reads: tuple[OpLine, ...]
    removed: tuple[OpLine, ...]
    added: tuple[OpLine, ...]
    moved: tuple[Moved, ...]
    rewired: tuple[Rewired, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What is the same for two hunks that make the same change in other places."""
        return (
            bool(self.loop),
            *(tuple(line.kind for line in lines) for lines in (self.removed, self.added)),
            *(tuple((one.op.kind) for one in ones) for ones in (self.moved, self.rewired)),
        )


@dataclass(frozen=True)
class ModuleDiff:
    """All changes from one program to the next, in the order of the first."""

    hunks: tuple[Hunk, ...]
    unchanged: int

    def count(self, what: str) -> int:
        """How many ops were ``removed``, ``added``, ``moved`` or ``rewired``."""
        return sum(len(getattr(hunk, what)) for hunk in self.hunks)

    def by_op(self, what: str) -> Counter[str]:
        """Names of the ``removed`` or ``added`` ops, with how many of each."""
        return Counter(line.op for hunk in self.hunks for line in getattr(hunk, what))

    def to_json(self) -> dict[str, Any]:
        """The whole of it, with the counts, ready for ``json.dumps``."""
        counts = {what: self.count(what) for what in ("removed", "added", "moved", "rewired")}
        return {**counts, "unchanged": self.unchanged, "hunks": [dataclasses.asdict(hunk) for hunk in self.hunks]}
