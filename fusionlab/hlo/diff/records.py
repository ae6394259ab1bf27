"""The difference of two programs as data: hunks of ops that were removed, added, moved, or read another value.

Values have one name through all programs of a pipeline: ``%arg3`` is an argument, ``%57`` value 57 of the first
program's view (the number in events of passes), and values that passes create are numbered on from there. Splat
constants are written as their number, and are not counted as ops.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

_TELL_THEMSELVES = ("dot_dimension_numbers", "value")


@dataclass(frozen=True)
class OpLine:
    """One op. ``scope`` is its JAX name stack; ``loop`` is the innermost loop around it, with its trips ("" if none).

    ``applies`` are the ops of a reduction's combiner, ``types`` those of the results (``1024x64xf32``).
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
        told = (value if name in _TELL_THEMSELVES else f"{name}={value}" for name, value in self.attributes)
        attributes = f" {{{', '.join(told)}}}" if self.attributes else ""
        operands = f" {', '.join(self.operands)}" if self.operands else ""
        types = f" : {', '.join(self.types)}" if self.types else ""
        return f"{results}{self.op}{applied}{operands}{attributes}{types}"

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for ops that differ in their values alone."""
        return self.op, self.attributes, self.applies, self.types


@dataclass(frozen=True)
class Moved:
    """An op that has moved to the loop ``to`` ("" for no loop)."""

    op: OpLine
    to: str


@dataclass(frozen=True)
class Rewired:
    """The same op of other values; ``now`` are its operands in the second program."""

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
    """Connected changes. ``reads`` are unchanged ops whose results the removed and added ones read."""

    scope: str
    loop: str
    reads: tuple[OpLine, ...]
    removed: tuple[OpLine, ...]
    added: tuple[OpLine, ...]
    moved: tuple[Moved, ...]
    rewired: tuple[Rewired, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for hunks that make the same change in other places."""
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
        """The number of ops that were ``removed``, ``added``, ``moved`` or ``rewired``."""
        return sum(len(getattr(hunk, what)) for hunk in self.hunks)

    def to_json(self) -> dict[str, Any]:
        """All fields and the counts, ready for ``json.dumps``."""
        counts = {what: self.count(what) for what in ("removed", "added", "moved", "rewired")}
        return {**counts, "unchanged": self.unchanged, "hunks": [dataclasses.asdict(hunk) for hunk in self.hunks]}
