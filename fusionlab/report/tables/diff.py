"""Changes made by passes, as text for a terminal: ``-`` removed, ``+`` added, ``>`` moved, ``~`` reads another value.

The same change made in several places is shown once. Lines that do not fit are counted, never dropped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from fusionlab.hlo.diff.records import Hunk, ModuleDiff, OpLine

_STYLES = {"-": "red", "+": "green", ">": "cyan", "~": "yellow", " ": "dim", "@": "bold", "…": "dim"}
_READS = 3
_LEAST = 3
_KINDS_NAMED = 6
_REWIRED = "reading another value"


@dataclass(frozen=True)
class ShownLine:
    """``mark`` is one of ``-+>~ `` for an op, ``@`` for its place, ``…`` for omitted lines."""

    mark: str
    text: str
    scope: str = ""


def print_diffs(names: Sequence[str], diffs: Sequence[ModuleDiff], console: Console, *, most_lines: int) -> None:
    """The change that each pass of ``names`` made, in at most about ``most_lines`` lines each (0: all of it)."""
    for name, diff in zip(names, diffs, strict=True):
        console.print(Text(f"diff {name}: {summary(diff)}", style="bold"), soft_wrap=True)
        for line in shown_lines(diff, most_lines):
            console.print(_styled(line), soft_wrap=True)


def summary(diff: ModuleDiff) -> str:
    """``12 ops removed, 24 added, 18 read another value, 8,625 unchanged``."""
    if not diff.hunks:
        return f"nothing changed, {diff.unchanged:,} ops"
    said = (("removed", "removed"), ("added", "added"), ("moved", "moved"), ("rewired", "read another value"))
    counts = [f"{diff.count(what):,} {words}" for what, words in said if diff.count(what)]
    return f"ops: {', '.join(counts)}, {diff.unchanged:,} unchanged"


def shown_lines(diff: ModuleDiff, most_lines: int) -> Iterator[ShownLine]:
    """The lines of ``diff``; with ``most_lines``, changes of one kind once, long ones cut, and the rest counted."""
    groups: dict[object, list[Hunk]] = {}
    for at, hunk in enumerate(diff.hunks):
        groups.setdefault(hunk.kind if most_lines else at, []).append(hunk)
    left, waiting = most_lines, list(groups.values())
    while waiting:
        if most_lines and left < _LEAST + 2:
            rest = [hunk for group in waiting for hunk in group]
            yield ShownLine("…", f"{len(rest):,} more: {_counted(rest)}; --diff-lines 0 shows all")
            return
        first, *others = waiting.pop(0)
        sections = sum(bool(lines) for lines in (first.removed, first.added, first.moved, first.rewired))
        room = max(_LEAST, left // (sections * (2 if waiting else 1))) if most_lines else 0
        for line in _hunk_lines(first, room):
            left -= 1
            yield line
        if others:
            left -= 1
            places = list(dict.fromkeys(_place(hunk) for hunk in others))
            more = f", and {len(places) - 3} other places" if len(places) > 3 else ""
            times = "once more" if len(others) == 1 else f"{len(others)} more times"
            yield ShownLine("…", f"the same {times}: {'; '.join(places[:3])}{more}")


def _hunk_lines(hunk: Hunk, room: int) -> Iterator[ShownLine]:
    yield ShownLine("@", _place(hunk))
    moved = [(f"{one.op.text}  to {one.to or 'outside of the loop'}", one.op) for one in hunk.moved]
    sections = (
        (" ", "read", min(room, _READS), [(line.text, line) for line in hunk.reads]),
        ("-", "removed", room, [(line.text, line) for line in hunk.removed]),
        ("+", "added", room, [(line.text, line) for line in hunk.added]),
        (">", "moved", room, moved),
        ("~", _REWIRED, room, [(one.text, one.op) for one in hunk.rewired]),
    )
    for mark, what, most, lines in sections:
        shown = lines if not most or len(lines) <= most + 1 else lines[:most]
        said = ""
        for text, line in shown:
            scope = _inner_scope(line, hunk)
            yield ShownLine(mark, text, scope if scope != said else "")
            said = scope
        if rest := [line for _, line in lines[len(shown) :]]:
            yield ShownLine("…", f"{len(rest):,} more {what}: {_kinds(rest)}")


def _inner_scope(line: OpLine, hunk: Hunk) -> str:
    """The scope of ``line`` below its hunk's, and its loop where that is another one."""
    path = line.scope.split("/")[:-1]
    below = "/".join(path[len(hunk.scope.split("/")) if hunk.scope else 0 :])
    return "; ".join(part for part in (below, line.loop if line.loop != hunk.loop else "") if part)


def _place(hunk: Hunk) -> str:
    """``in while %57 (30 trips), scope jit(f)/vmap(stage_b)``."""
    return f"{f'in {hunk.loop}, ' if hunk.loop else ''}scope {hunk.scope or '(several)'}"


def _kinds(lines: Sequence[OpLine]) -> str:
    counts = Counter(line.op for line in lines).most_common()
    named = ", ".join(f"{count:,} {op}" for op, count in counts[:_KINDS_NAMED])
    return f"{named}, ..." if len(counts) > _KINDS_NAMED else named


def _counted(hunks: Sequence[Hunk]) -> str:
    words = {"removed": "removed", "added": "added", "moved": "moved", "rewired": _REWIRED}
    counts = {said: sum(len(getattr(hunk, what)) for hunk in hunks) for what, said in words.items()}
    return ", ".join(f"{count:,} ops {said}" for said, count in counts.items() if count)


def _styled(line: ShownLine) -> Text:
    margin = {"@": "  ", "…": "      "}.get(line.mark, f"    {line.mark} ")
    text = Text(f"{margin}{line.text}", style=_STYLES[line.mark])
    return text.append(f"  # {line.scope}", style="dim") if line.scope else text
