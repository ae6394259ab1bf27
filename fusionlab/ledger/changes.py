"""Two ledgers side by side: launches and copies that appeared, went, grew or shrank, and why.

Launches are matched in groups, by the first of six keys that both sides have: scope, source line and structure (op,
transformation, family); scope without the numbers of layers, and structure (the file was edited above); source line
and structure (a scope was renamed); source line, op and family (another transformation); op, family and size (another
spelling); structure alone for matrix products and convolutions. What is in no group of the other side appeared or went.
The ledgers explain a change: trips of loops, branches of conditionals, the kernel of the other side that holds the op,
XLA's refusals.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.ledger.origins import part_of
from fusionlab.ledger.refusals import makes_result
from fusionlab.ledger.saved import CopySite, LedgerRecord
from fusionlab.ledger.time.model import pair_error_of
from fusionlab.time_order import TimeOrder

APPEARED, WENT, GREW, SHRANK = "appeared", "went", "grew", "shrank"
_NUMBER = re.compile(r"\d+")
_TOP_LEVEL = re.compile(r"^jit\([^()]*\)/?")
_LEAST_BYTES_SHARE = 0.01
"""A matched group whose launches are equal has changed if its bytes changed by more than this."""
_UNLIKE = 0.5
_LIBRARY = ("gemm", "convolution")
"""Few kernels, each of its own op: those of one structure are alike wherever they are."""
_SOURCE = re.compile(r" \(([^/]*:\d+)\)$")
_MOST_NAMES = 3


@dataclass(frozen=True)
class LedgerChange:
    """One group of launches (``kind`` launch) or copies (copy) that differs between the sides.

    ``what`` is APPEARED, WENT, GREW or SHRANK (in launches, or in bytes where launches are equal). ``label`` is
    ``scope/op`` with the transformation; ``why`` are sentences, none where the ledgers do not say. ``launches`` and
    ``bytes`` are of all runs, before and after; ``kernels`` are the names on the side that has more.
    """

    kind: str
    what: str
    label: str
    source: str
    scope: str
    launches: tuple[int, int]
    sites: tuple[int, int]
    bytes: tuple[int, int]
    kernels: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def more_launches(self) -> int:
        """Launches after, less those before."""
        return self.launches[1] - self.launches[0]


@dataclass(frozen=True)
class LedgerDiff:
    """The comparison of two ledgers.

    ``matched`` are the launches in groups of both sides, before and after. ``refused`` are the numbers of refusals of a
    cause where they differ. ``summary`` says what happened to loops and conditionals, ``notes`` qualify the figures.
    """

    before: LedgerRecord
    after: LedgerRecord
    changes: tuple[LedgerChange, ...]
    matched: tuple[int, int]
    refused: tuple[tuple[str, int, int], ...]
    summary: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def is_same(self) -> bool:
        """True if both ledgers have the same launches, copies and memory, as far as both know them."""
        known = [(old, new) for _, old, new in self.figures() if old is not None and new is not None]
        return not self.changes and all(old == new for old, new in known)

    @property
    def is_memory_known(self) -> bool:
        """True if both sides know their temporary memory."""
        return self.before.temp_bytes is not None and self.after.temp_bytes is not None

    @property
    def time_order(self) -> TimeOrder | None:
        """The modelled time after beside that before; None where one is not known."""
        errors = (pair_error_of(row for row in one.rows if row.dynamic_launches) for one in (self.after, self.before))
        return TimeOrder.of(self.after.model_us, self.before.model_us, *errors)

    def figures(self) -> list[tuple[str, float | None, float | None]]:
        """The totals: name, before, after; None where a side does not know it."""
        sides = (self.before, self.after)
        refused = [None if one.refusals is None else len(one.refusals) for one in sides]
        pairs: list[tuple[str, Sequence[float | None]]] = [
            ("launches", [one.dynamic_launches for one in sides]),
            ("copies", [one.dynamic_copies for one in sides]),
            ("bytes", [one.bytes_accessed for one in sides]),
            ("temp_bytes", [one.temp_bytes for one in sides]),
            ("refusals", refused),
            ("conditionals", [one.conditionals for one in sides]),
            ("model_us", [one.model_us for one in sides]),
        ]
        return [(name, old, new) for name, (old, new) in pairs]

    def to_json(self) -> dict[str, Any]:
        """The document of ``diff --json``."""
        times = self.time_order
        return {
            "schema": "fusionlab-diff-1",
            "before": _side(self.before),
            "after": _side(self.after),
            "same": self.is_same,
            "totals": {name: {"before": old, "after": new} for name, old, new in self.figures()},
            "time_order": times and {"order": times.order, "apart": times.apart, "needed": times.needed},
            "matched_launches": {"before": self.matched[0], "after": self.matched[1]},
            "changes": [dataclasses.asdict(one) for one in self.changes],
            "refusals": [{"cause": cause, "before": old, "after": new} for cause, old, new in self.refused],
            "summary": list(self.summary),
            "notes": list(self.notes),
        }


def compare_ledgers(before: LedgerRecord, after: LedgerRecord) -> LedgerDiff:
    """What changed from ``before`` to ``after``, the largest change first."""
    sides = (_LedgerSide.of(before), _LedgerSide.of(after))
    groups = _matched([side.items for side in sides])
    found = [change for group in groups if (change := _change(group, sides)) is not None]
    matched = [group for group in groups if all(group) and group[0][0].kind == "launch"]
    return LedgerDiff(
        before,
        after,
        tuple(sorted(found, key=_size, reverse=True)),
        matched=(sum(_runs(group[0]) for group in matched), sum(_runs(group[1]) for group in matched)),
        refused=_refused(before, after),
        summary=tuple(_summary(matched, sides, before, after)),
        notes=_notes(before, after),
    )


@dataclass(frozen=True)
class _LoopAround:
    """The loops around an item: the ``name`` of the innermost, its trips times those of the loops around it (None where
    unknown), and whether there are several."""

    name: str
    trips: int | None
    is_nested: bool

    @property
    def words(self) -> str:
        if self.trips is None:
            return "in a loop of unknown trips"
        return f"{self.trips:,} times in nested loops" if self.is_nested else f"in a loop of {self.trips:,} trips"

    @property
    def short(self) -> str:
        if self.trips is None:
            return "of unknown trips"
        return f"nested of {self.trips:,} trips in all" if self.is_nested else f"of {self.trips:,} trips"


@dataclass(frozen=True)
class _Item:
    """A launch site or a copy; ``has_unknown_loops`` where the trips of a loop of its program are not known."""

    kind: str
    name: str
    scope: str
    op: str
    transform: str
    source: str
    family: str
    loop: str
    trips: int
    runs: int
    bytes: int
    parts: tuple[str, ...]
    has_unknown_loops: bool

    @property
    def part(self) -> str:
        return part_of(self.scope, self.op, self.source)

    @property
    def inner_scope(self) -> str:
        """The scope, "" at the top level of the program, whose name says nothing."""
        return "" if self.scope.startswith("jit(") else self.scope

    @property
    def loop_around(self) -> _LoopAround | None:
        """The loops around it; None outside of all. A loop of unknown trip count was taken as one trip."""
        names = [name for name in self.loop.split("/") if name and ":" not in name]
        if not names:
            return None
        trips = None if self.has_unknown_loops and self.trips == 1 else self.trips
        return _LoopAround(names[-1], trips, len(names) > 1)

    @property
    def structure(self) -> Hashable:
        return self.op, self.transform, self.family

    @property
    def label(self) -> str:
        transform = f" ({self.transform})" if self.transform not in ("", "primal") else ""
        return (part_of(self.scope, self.op, "") or self.name) + transform


_Group = tuple[tuple[_Item, ...], tuple[_Item, ...]]


@dataclass(frozen=True)
class _LedgerSide:
    """One ledger: the items that run, those that do not, the kernels that hold an op, the trips of its loops, and the
    names of all ops in it, of those that run and of those that do not."""

    items: tuple[_Item, ...]
    idle: tuple[_Item, ...]
    refusals: dict[str, str]
    holders: dict[str, list[_Item]]
    trips: frozenset[int | None]
    ops: tuple[frozenset[str], frozenset[str]]

    @staticmethod
    def of(ledger: LedgerRecord) -> _LedgerSide:
        unknown = bool(ledger.unknown_trip_loops)
        every = [*(_of_row(row, unknown) for row in ledger.rows), *(_of_copy(copy, unknown) for copy in ledger.copies)]
        running = tuple(one for one in every if one.runs)
        holders: dict[str, list[_Item]] = {}
        for one in running:
            for part in one.parts if one.kind == "launch" else ():
                for key in _part_keys(part):
                    holders.setdefault(key, []).append(one)
        causes = {one.kernel: one.cause for one in reversed(ledger.refusals or ())}
        trips = frozenset(loop.trips for one in running if (loop := one.loop_around))
        idle = tuple(one for one in every if not one.runs)
        return _LedgerSide(running, idle, causes, holders, trips, (_ops_of(running), _ops_of(idle)))

    def holding(self, part: str) -> list[_Item]:
        """The kernels with this op: those of its line, else those of a scope alike."""
        return next((self.holders[key] for key in _part_keys(part) if key in self.holders), [])


def _of_row(row: LaunchRow, unknown: bool) -> _Item:
    return _Item(
        "launch", row.name, row.scope, row.op, row.transform, row.source, row.family, row.loop, row.trip_count,
        row.dynamic_launches, row.bytes, row.parts, unknown,
    )  # fmt: skip


def _of_copy(copy: CopySite, unknown: bool) -> _Item:
    return _Item(
        "copy", copy.name, copy.scope, copy.op, copy.transform, copy.source, copy.kind, copy.loop, copy.trip_count,
        copy.dynamic_copies, copy.bytes, (), unknown,
    )  # fmt: skip


_KEYS: tuple[Callable[[_Item], Hashable], ...] = (
    lambda one: (one.inner_scope, one.source, one.structure),
    lambda one: (_without_numbers(one.inner_scope) or one.source.partition(":")[0], one.structure),
    lambda one: (one.source, one.structure),
    lambda one: (one.source or one.name, one.op, one.family),
    lambda one: (one.op, one.family, one.bytes // one.runs),
    lambda one: one.structure if one.family in _LIBRARY else one,
)


def _matched(sides: Sequence[Sequence[_Item]]) -> list[_Group]:
    """The groups of items, those of both sides by the first of _KEYS that both have, then the others of each side."""
    open_ = [list(items) for items in sides]
    found: list[_Group] = []
    for key in _KEYS:
        groups = [_by((one.kind, key(one)) for one in items) for items in open_]
        both = [name for name in groups[0] if name in groups[1]]
        for name in both:
            found.append(tuple(tuple(open_[i][at] for at in groups[i][name]) for i in (0, 1)))  # type: ignore[arg-type]
        open_ = [[one for one in items if (one.kind, key(one)) not in set(both)] for items in open_]
    for i, items in enumerate(open_):
        for places in _by((one.kind, _KEYS[0](one)) for one in items).values():
            of = tuple(items[at] for at in places)
            found.append((of, ()) if i == 0 else ((), of))
    return found


def _by(keys: Iterable[Hashable]) -> dict[Hashable, list[int]]:
    groups: dict[Hashable, list[int]] = {}
    for at, key in enumerate(keys):
        groups.setdefault(key, []).append(at)
    return groups


def _change(group: _Group, sides: tuple[_LedgerSide, _LedgerSide]) -> LedgerChange | None:
    """The change of one group; None where nothing changed."""
    old, new = group
    launches, moved = (_runs(old), _runs(new)), (_bytes(old), _bytes(new))
    more, more_bytes = launches[1] - launches[0], moved[1] - moved[0]
    if old and new and not more and abs(more_bytes) <= _LEAST_BYTES_SHARE * max(moved):
        return None
    grew = more > 0 or (not more and more_bytes > 0)
    what = APPEARED if not old else WENT if not new else GREW if grew else SHRANK
    first = (new if grew else old)[0] if new and old else (old or new)[0]
    return LedgerChange(
        kind=first.kind,
        what=what,
        label=first.label,
        source=first.source,
        scope=first.scope,
        launches=launches,
        sites=(len(old), len(new)),
        bytes=moved,
        kernels=tuple(dict.fromkeys(one.name for one in (new if grew else old) or new)),
        why=tuple(dict.fromkeys(_why(group, what, sides))),
    )


def _why(group: _Group, what: str, sides: tuple[_LedgerSide, _LedgerSide]) -> Iterable[str]:
    """What explains the change, as far as the ledgers say."""
    old, new = group
    if old and new:
        yield from _loops(old, new)
        yield from _branches(old, new)
        yield from _transforms(old, new)
        if old[0].kind == "copy":
            return
        if what == GREW and len(new) > len(old):
            yield from _kept_apart(new, old, sides[1])
        if what == SHRANK and len(new) < len(old):
            yield from _held(group, sides, is_new=False)
        if _runs(old) == _runs(new):
            each = [_bytes(items) / _runs(items) for items in group]
            yield f"the same launches move {size_words(each[1])} each, before {size_words(each[0])}"
        return
    items, other = (new, sides[0]) if new else (old, sides[1])
    known = list(_elsewhere(group, sides, is_new=bool(new)))
    yield from known
    if new and items[0].kind == "launch":
        yield from _kept_apart(new, (), sides[1])
    if not known and items[0].kind == "launch" and not any(_ops_of(items) & ops for ops in other.ops):
        yield "its op is new" if new else "its op is gone"


def _elsewhere(group: _Group, sides: tuple[_LedgerSide, _LedgerSide], *, is_new: bool) -> Iterable[str]:
    """Where the work of a group, which only one side has, is on the other side."""
    items, other = group[is_new], sides[not is_new]
    keys = {key for one in items for key in _part_keys(one.part)}
    if idle := [one for one in other.idle if _is_branch(one) and not keys.isdisjoint(_part_keys(one.part))]:
        left_out = "was in a branch of a conditional, which is not counted; it now always runs"
        yield f"{idle[0].name} {left_out if is_new else 'is now in a branch of a conditional, which is not counted'}"
    if items[0].kind == "launch":
        yield from _held(group, sides, is_new=is_new)
    loops = [loop for one in items if (loop := one.loop_around)]
    trips = {loop.trips for loop in loops}
    may_be_any = other.trips and None in {*trips, *other.trips}
    longest = _longest(loops)
    if longest and not may_be_any and trips.isdisjoint(other.trips):
        yield f"it runs {longest.words}, which the other side does not have"


def _loops(old: Sequence[_Item], new: Sequence[_Item]) -> Iterable[str]:
    """Loops that were unrolled or rolled, and trips that changed."""
    loops = [_longest([loop for one in items if (loop := one.loop_around)]) for items in (old, new)]
    before, after = (loop if loop and loop.trips != 1 else None for loop in loops)
    runs = f"{_count(_runs(old), 'run')} before, {_runs(new):,} after"
    if (before and before.trips) == (after and after.trips) and bool(before) == bool(after):
        return
    if before and not after:
        flat = before.trips is not None and len(new) >= _UNLIKE * len(old) * before.trips
        became = "unrolled" if flat else "gone"
        are = f"nested loops of {before.trips:,} trips in all are" if before.is_nested and before.trips else ""
        yield f"its {are or f'loop {before.short} is'} {became}: {runs}"
    elif after and not before:
        yield f"it now runs {after.words}: {runs}"
    elif before and after and (before.is_nested or after.is_nested or None in (before.trips, after.trips)):
        yield f"it runs {after.words}, before {before.words}: {runs}"
    elif before and after:
        yield f"its loop has {after.trips:,} trips, before {before.trips:,}: {runs}"


def _branches(old: Sequence[_Item], new: Sequence[_Item]) -> Iterable[str]:
    """Work that entered or left the branches of conditionals."""
    inside = [sum(map(_is_branch, items)) for items in (old, new)]
    if inside[0] and not inside[1]:
        yield "it was in one branch of a conditional; it now always runs"
    elif inside[1] and not inside[0]:
        yield "it now runs in one branch of a conditional"


def _transforms(old: Sequence[_Item], new: Sequence[_Item]) -> Iterable[str]:
    """Differentiation of another kind."""
    before, after = ({one.transform for one in items if one.transform} for items in (old, new))
    if before and after and before.isdisjoint(after):
        yield f"its transformation is {' and '.join(sorted(after))}, before {' and '.join(sorted(before))}"


def _held(group: _Group, sides: tuple[_LedgerSide, _LedgerSide], *, is_new: bool) -> Iterable[str]:
    """The kernels of the other side that hold the ops of a group, those of the group apart.

    Where as many others with the op run as often on this side, it did not move: there is more of it, or less.
    """
    items, beside = (dict.fromkeys(group[side]) for side in (is_new, not is_new))
    own, other = sides[is_new], sides[not is_new]
    moved, more, additions = Counter[str](), Counter[str](), 0
    for one in items:
        key = next((key for key in _part_keys(one.part) if key in other.holders), "")
        there = [holder for holder in dict.fromkeys(other.holders.get(key, ())) if holder not in beside]
        here = [holder for holder in dict.fromkeys(own.holders.get(key, ())) if holder not in items]
        stayed = len(here) >= len(there) and _runs(here) >= _runs(there)
        additions += bool(there) and stayed
        (more if stayed else moved).update(holder.name for holder in there)
    if not moved and not more:
        moved = _shared(list(items), other, frozenset(one.name for one in beside))
    if moved:
        yield f"its op {'was in' if is_new else 'is now in'} {_most_frequent(moved)}"
    elif more:
        yield f"{additions} {'more' if is_new else 'fewer'} of the op in {_most_frequent(more)}"


def _most_frequent(holders: Counter[str]) -> str:
    names = sorted(holders, key=lambda name: (-holders[name], name))[:_MOST_NAMES]
    return ", ".join(names) + (f" and {len(holders) - len(names)} more" if len(holders) > len(names) else "")


def _shared(items: Sequence[_Item], other: _LedgerSide, beside: Collection[str]) -> Counter[str]:
    """The kernels of the other side, without ``beside``, that hold at least half of the ops of ``items``, by how many
    they hold."""
    parts = dict.fromkeys(part for one in items for part in one.parts)
    holders = Counter(name for part in parts for name in dict.fromkeys(one.name for one in other.holding(part)))
    least = _UNLIKE * len(parts)
    return Counter({name: count for name, count in holders.items() if count >= least and name not in beside})


def _kept_apart(new: Sequence[_Item], old: Sequence[_Item], side: _LedgerSide) -> Iterable[str]:
    """XLA's most frequent reason not to fuse kernels that only one side has."""
    before = {one.name for one in old}
    causes = Counter(side.refusals[one.name] for one in new if one.name in side.refusals and one.name not in before)
    causes = Counter({cause: count for cause, count in causes.items() if not makes_result(cause)})
    if causes:
        yield f"XLA keeps it apart: {min(causes, key=lambda cause: (-causes[cause], cause))}"


def _summary(
    matched: Sequence[_Group], sides: tuple[_LedgerSide, _LedgerSide], before: LedgerRecord, after: LedgerRecord
) -> Iterable[str]:
    """What happened to the loops and conditionals of the program."""
    loops = [{loop.name: loop for one in side.items if (loop := one.loop_around)} for side in sides]
    kinds = [Counter((loop.trips, loop.is_nested) for loop in found.values()) for found in loops]
    if kinds[0] != kinds[1]:
        inside = [group for group in matched if _is_looped(group[0]) and not _is_looped(group[1])]
        unrolled = [g for g in inside if len(g[1]) >= _UNLIKE * _runs(g[0])]
        yield f"loops: {_loops_text(loops[0].values())} before, {_loops_text(loops[1].values())} after"
        if unrolled:
            old, new = ([one for group in unrolled for one in group[i]] for i in (0, 1))
            yield f"unrolled: {_sites(old)} of {_runs(old):,} runs became {_sites(new)} of {_runs(new):,}"
    if before.conditionals > after.conditionals:
        run = ": both branches now run" if _idle_now_runs(*sides) else ""
        yield f"conditionals: {before.conditionals} before, {after.conditionals} after{run}"
    elif before.conditionals < after.conditionals:
        yield f"conditionals: {before.conditionals} before, {after.conditionals} after: one branch of each runs"


def _idle_now_runs(before: _LedgerSide, after: _LedgerSide) -> bool:
    """True if an op that ran in no kernel of ``before``, as the shorter branch of a conditional, runs in ``after``."""
    idle = (one for one in before.idle if one.kind == "launch" and _is_branch(one))
    news = after.ops[0] - before.ops[0]
    return any(one.op in news or (after.holding(one.part) and not before.holding(one.part)) for one in idle)


def _is_looped(items: Sequence[_Item]) -> bool:
    return any(one.loop_around for one in items)


def _longest(loops: Sequence[_LoopAround]) -> _LoopAround | None:
    """The loop of most trips; an unknown number counts as most."""
    return max(loops, key=_trips_or_most, default=None)


def _trips_or_most(loop: _LoopAround) -> float:
    return math.inf if loop.trips is None else loop.trips


def _loops_text(loops: Iterable[_LoopAround]) -> str:
    every = Counter(loop.short for loop in sorted(loops, key=_trips_or_most, reverse=True))
    return ", ".join(f"{count} {short}" for short, count in every.items()) or "none"


def _refused(before: LedgerRecord, after: LedgerRecord) -> tuple[tuple[str, int, int], ...]:
    """Refusals by cause, before and after, where the numbers differ; those of results apart."""
    if before.refusals is None or after.refusals is None:
        return ()
    old, new = (Counter(one.cause for one in side) for side in (before.refusals, after.refusals))
    causes = [cause for cause in dict.fromkeys([*old, *new]) if not makes_result(cause)]
    changed = [(cause, old[cause], new[cause]) for cause in causes if old[cause] != new[cause]]
    return tuple(sorted(changed, key=lambda one: -abs(one[2] - one[1])))


def _notes(before: LedgerRecord, after: LedgerRecord) -> tuple[str, ...]:
    notes = []
    if before.target != after.target:
        notes.append(f"the targets differ: {before.target} and {after.target}")
    if before.versions != after.versions and before.versions and after.versions:
        notes.append(f"the compilers differ: {before.versions} and {after.versions}")
    for side, one in (("before", before), ("after", after)):
        if one.unknown_trip_loops:
            notes.append(f"{side}: loops of unknown trip count, taken as one trip: {one.unknown_trip_loops}")
        if one.conditionals:
            notes.append(f"{side}: conditionals, each counted as its longest branch: {one.conditionals}")
    return tuple(notes)


def _side(one: LedgerRecord) -> dict[str, Any]:
    return {"name": one.name, "target": one.target, "versions": one.versions, "launch_source": one.launch_source}


def _size(change: LedgerChange) -> tuple[bool, int, int]:
    return (
        change.kind == "launch",
        abs(change.more_launches),
        abs(change.bytes[1] - change.bytes[0]),
    )


def _runs(items: Sequence[_Item]) -> int:
    return sum(one.runs for one in items)


def _bytes(items: Sequence[_Item]) -> int:
    return sum(one.bytes for one in items)


def _is_branch(one: _Item) -> bool:
    return ":" in one.loop


def _sites(items: Sequence[_Item]) -> str:
    return _count(len(items), "kernel")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _without_numbers(scope: str) -> str:
    """A scope without the numbers of layers."""
    return _NUMBER.sub("#", scope)


def _part_keys(part: str) -> tuple[str, ...]:
    """What an op is found by on the other side: scope, op and line; then without the numbers of layers; then, in a
    scope of its own, without the line."""
    path, source = _path_and_source(part)
    alike = _without_numbers(path)
    return tuple(dict.fromkeys((f"{path} ({source}", f"{alike} ({source}", *([alike] if "/" in path else []))))


def _path_and_source(part: str) -> tuple[str, str]:
    """``scope/op`` without the compiled function, and the line of an op as text."""
    found = _SOURCE.search(part)
    return _TOP_LEVEL.sub("", part[: found.start()] if found else part), found[1] if found else ""


def _ops_of(items: Iterable[_Item]) -> frozenset[str]:
    """The names of the ops in ``items``."""
    return frozenset(
        _path_and_source(part)[0].rpartition("/")[2] for one in items for part in (one.part, *one.parts)
    ) - {""}
