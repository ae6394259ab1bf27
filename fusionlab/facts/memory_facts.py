"""The temporary memory of a compiled program: the buffers alive at its peak, shared slots and copies."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fusionlab.bytesize import size_words
from fusionlab.facts.interface import Facts, table_lines
from fusionlab.ledger.memory import MemoryRecord
from fusionlab.report.tables import Table
from fusionlab.report.tables.memory import copy_table, held_table, memory_notes, memory_verdict, peak_table

_BUFFERS = 5
_IN_NOTEBOOK = 20
"""Buffers in ``repr``; buffers and copies in a notebook."""


@dataclass(frozen=True, repr=False)
class MemoryFacts(Facts):
    """The memory of one program on one target; ``record`` has every buffer, slot and copy.

    ``by`` is the view of the bytes held at the peak (``scope``, ``source`` or ``op``), "" for none. ``devices`` is 1
    without a ``shard_map``; figures are those of each device.
    """

    command = "memory"

    record: MemoryRecord
    by: str = ""
    devices: int = 1

    @property
    def temp_bytes(self) -> int:
        """XLA's temporary memory, bytes."""
        return self.record.temp_bytes

    @property
    def held_by(self) -> dict[str, int]:
        """Bytes held at the peak by the view ``by`` ("" where it is unknown), the most first; empty without a view."""
        return self.record.held_by(self.by) if self.by else {}

    @property
    def verdict(self) -> str:
        """The peak, and where it is."""
        return memory_verdict(self.record)

    @property
    def notes(self) -> tuple[str, ...]:
        """XLA's totals, and the meaning of the columns."""
        return (*memory_notes(self.record), *self.notes_of_devices)

    @property
    def notes_of_devices(self) -> tuple[str, ...]:
        """That figures are those of one of several devices."""
        return (f"of each of {self.devices} devices",) if self.devices > 1 else ()

    def lines(self) -> Sequence[str]:
        """The largest buffers alive at the peak and the largest copy; of a view, the bytes held by it."""
        found = self.record
        if self.by:
            return _untitled(held_table(found, self.by, _BUFFERS))
        if not found.peak.buffers:
            return memory_notes(found)[:1]
        copies = found.copies[:1]
        return [
            *_untitled(peak_table(found, _BUFFERS)),
            *(f"largest copy: {one.name}, {size_words(one.bytes)}: {one.cause or 'cause not known'}" for one in copies),
        ]

    def tables(self) -> Sequence[Table]:
        """Buffers at the peak, the bytes held by the view, copies."""
        found = self.record
        return (
            *([peak_table(found, _IN_NOTEBOOK)] if found.peak.buffers else []),
            *([held_table(found, self.by, _IN_NOTEBOOK)] if self.by else []),
            *([copy_table(found.copies, _IN_NOTEBOOK)] if found.copies else []),
        )

    def records(self) -> list[dict[str, Any]]:
        """A row per buffer alive at the peak, with every field of ``Buffer``."""
        return [dataclasses.asdict(one) for one in self.record.peak.buffers]

    def fields(self) -> dict[str, Any]:
        """The fields of ``memory --json``; ``failures`` are of the command's limits, of which a function has none."""
        held = {"by": self.by, "held_by": self.held_by} if self.by else {}
        return {**self.record.to_json(), **held, "notes": list(self.notes_of_devices), "failures": []}


def _untitled(table: Table) -> list[str]:
    return table_lines(dataclasses.replace(table, title=""))
