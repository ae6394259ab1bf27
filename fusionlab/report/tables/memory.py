"""The memory of a program for a terminal: the peak, what shares a slot, copies, and XLA's totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from fusionlab.bytesize import size_words
from fusionlab.ledger.buffer_copies import BufferCopy
from fusionlab.ledger.memory import Buffer, MemoryRecord, SharedSlot
from fusionlab.report.tables import UNKNOWN, Cell, Table, field, note, number

_MOST_IN_A_SLOT = 6


def print_memory(
    found: MemoryRecord,
    top: int,
    by: str | None,
    console: Console,
    failures: Sequence[str] = (),
    *,
    verbose: bool = False,
) -> None:
    """The verdict in a line and ``failures`` after it, then the ``top`` largest buffers, slots and copies (0: all).

    ``verbose`` adds the totals and what the columns mean.
    """
    console.print(memory_verdict(found), style="bold", soft_wrap=True, markup=False)
    for line in failures:
        console.print(f"failed: {line}", soft_wrap=True, markup=False)
    if found.peak.buffers:
        peak_table(found, top).print(console)
    for one in _some(found.peak.in_outputs, top):
        line = f"beside it, in memory of an output: {size_words(one.bytes)} {one.title}" + f" ({one.place})" * bool(
            one.place
        )
        console.print(line, soft_wrap=True, markup=False)
    if found.alias_bytes:
        held = f"{size_words(found.alias_bytes)} of {size_words(found.output_bytes)} of results"
        console.print(f"in the place of donated arguments: {held}", soft_wrap=True, markup=False)
    if by:
        held_table(found, by, top).print(console)
    if found.slots:
        shown = _some(found.slots, top)
        console.print(f"the {len(shown)} largest of {len(found.slots)} shared slots", style="bold")
        for slot in shown:
            console.print(f"  {_slot_words(slot)}", soft_wrap=True, markup=False)
    if found.copies:
        copy_table(found.copies, top).print(console)
    for line in memory_notes(found) if verbose else ():
        note(console, line)


def memory_verdict(found: MemoryRecord) -> str:
    """Where most temporary memory is held, in one line."""
    peak = found.peak
    if not found.temp_bytes:
        return f"{found.name} on {found.target}: no temporary memory"
    scope = "/".join(filter(None, (peak.scope, peak.op))) or peak.instruction
    at = f"at launch {peak.launch:,} of {found.launches:,}" if peak.launch else "before the first launch"
    where = f", in {scope}" + (f" ({peak.source})" if peak.source else "")
    return f"{found.name} on {found.target}. Peak: {size_words(peak.held_bytes)} temp {at}{where}"


def memory_notes(found: MemoryRecord) -> tuple[str, ...]:
    """XLA's totals in a line, and what the columns mean."""
    aliased = f" ({size_words(found.alias_bytes)} in arguments' place)" if found.alias_bytes else ""
    return (
        f"XLA's memory analysis: arguments {size_words(found.argument_bytes)}, outputs "
        f"{size_words(found.output_bytes)}{aliased}, temp {size_words(found.temp_bytes)}, constants "
        f"{size_words(found.constant_bytes)}",
        "alive: from the launch that writes a buffer to the last that reads it; offsets and live ranges are XLA's",
    )


def peak_table(found: MemoryRecord, top: int) -> Table:
    """The ``top`` largest buffers alive at the peak (0: all), the rest, and what of XLA's temp memory is free there."""
    alive = found.peak.buffers
    shown = _some(alive, top)
    rest = sum(one.bytes for one in alive) - sum(one.bytes for one in shown)
    blank = [""] * 3
    rows = [
        *([one.title, one.scope, one.op, one.source or UNKNOWN, size_words(one.bytes), _alive(one)] for one in shown),
        *([[f"{len(alive) - len(shown)} smaller", *blank, size_words(rest), ""]] if len(shown) < len(alive) else []),
        ["free at that step", *blank, size_words(found.peak.free_bytes), ""],
        ["XLA's temp memory", *blank, size_words(found.temp_bytes), ""],
    ]
    title = f"the {len(shown)} largest of {len(alive)} buffers alive at the peak"
    return Table(title, ("buffer", "scope", "op", "source", "size", "alive"), rows, words=4)


def held_table(found: MemoryRecord, by: str, top: int) -> Table:
    """Bytes held at the peak by a view, the ``top`` largest."""
    rows = [[label or "unattributed", size_words(size)] for label, size in _some([*found.held_by(by).items()], top)]
    return Table(f"held at the peak by {by}", (by, "size"), rows)


def copy_table(copies: Sequence[BufferCopy], top: int) -> Table:
    """The ``top`` largest copies with their cause."""
    shown = _some(copies, top)
    columns: dict[str, Cell] = {
        "copy": field("name"),
        "cause": lambda one: one.cause or "not known",
        "source": lambda one: one.source or UNKNOWN,
        "size": lambda one: size_words(one.bytes),
        "runs": number("runs"),
    }
    return Table.of(f"the {len(shown)} largest of {len(copies)} copies", shown, columns, words=3)


def _some(found: Sequence[Any], top: int) -> Sequence[Any]:
    return found[: top or None]


def _alive(one: Buffer) -> str:
    return f"{one.born_launch:,}-{one.died_launch:,}"


def _slot_words(slot: SharedSlot) -> str:
    names = [f"{one.title} [{_alive(one)}]" for one in slot.buffers]
    more = [f"and {len(names) - _MOST_IN_A_SLOT} more"] if len(names) > _MOST_IN_A_SLOT else []
    of = f"{slot.role} {slot.allocation}, offset {slot.offset:,}"
    return f"{size_words(slot.bytes)} ({of}): {', '.join([*names[:_MOST_IN_A_SLOT], *more])}"
