"""Memory by buffer: what is alive at the peak of temporary memory, which arrays share a slot, and the copies.

Sizes, offsets and live ranges are XLA's (``hlo.optimised.buffers``), origins those of launches (``origins``). An array
that a loop or a branch passes on in place is one buffer from its first writer to its last reader. The peak is the first
step of the schedule at which most bytes of temporary memory hold a value that is still read; what is left of XLA's temp
memory at that step is free (``free_bytes``): held and free bytes add to XLA's figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import InputError
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.buffers import (
    CONSTANT,
    HOST_MEMORY,
    OUTPUT,
    TEMP,
    BufferAllocation,
    BufferAssignment,
    BufferValue,
    parse_buffers,
)
from fusionlab.hlo.optimised.parser import Computation, Instruction
from fusionlab.ledger.buffer_copies import BufferCopy, buffer_copies
from fusionlab.ledger.dataflow import instructions, members
from fusionlab.ledger.ledger import launches
from fusionlab.ledger.origins import Origins

SCHEMA = "fusionlab-memory-1"

ARRAY, WORKSPACE, TABLE = "array", "workspace", "tuple table"


@dataclass(frozen=True)
class Buffer:
    """One array in memory, from its first writer to its last reader.

    ``producer`` is the HLO instruction that writes it, ``passed_on_as`` its names as state of loops and result of
    branches. ``what`` is array, workspace (of a library call) or tuple table (pointers). Steps are those of XLA's
    schedule, launches count from 1 (0: before the first).
    """

    name: str
    producer: str
    what: str
    shape: str
    bytes: int
    offset: int
    allocation: int
    born_step: int
    died_step: int
    born_launch: int
    died_launch: int
    scope: str
    op: str
    transform: str
    source: str
    attributed_by: str
    passed_on_as: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name, with what it is if that is no array of the program."""
        return self.name if self.what == ARRAY else f"{self.name} ({self.what})"

    @property
    def place(self) -> str:
        """Scope, op and source line in few words; "" where nothing is known."""
        return ", ".join(filter(None, ("/".join(filter(None, (self.scope, self.op))), self.source)))


@dataclass(frozen=True)
class SharedSlot:
    """Buffers at one offset of an allocation (temp or output), at different times; ``bytes`` are of the largest."""

    allocation: int
    role: str
    offset: int
    bytes: int
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True)
class MemoryPeak:
    """Where most temporary memory is held: the step, and the last launch until then with its origin.

    ``held_bytes`` are those of the ``buffers``, the largest first; ``free_bytes`` the rest of XLA's temp memory.
    ``in_outputs`` are alive then, too, in memory of outputs, and are no temp memory.
    """

    step: int
    launch: int
    instruction: str
    scope: str
    op: str
    source: str
    held_bytes: int
    free_bytes: int
    buffers: tuple[Buffer, ...]
    in_outputs: tuple[Buffer, ...]


@dataclass(frozen=True)
class MemoryRecord:
    """The memory of one program on one target.

    ``argument_bytes``, ``output_bytes``, ``alias_bytes`` and ``temp_bytes`` are XLA's memory analysis;
    ``constant_bytes`` those of its allocations. ``temporaries`` are all buffers of temporary memory, the largest first;
    ``held_by_step`` has the bytes of those alive at each step.
    """

    name: str
    target: str
    versions: str
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temp_bytes: int
    constant_bytes: int
    steps: int
    launches: int
    peak: MemoryPeak
    slots: tuple[SharedSlot, ...]
    copies: tuple[BufferCopy, ...]
    temporaries: tuple[Buffer, ...]
    held_by_step: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """The document, with its schema."""
        return {"schema": SCHEMA, **dataclasses.asdict(self)}

    def held_by(self, view: str) -> dict[str, int]:
        """Bytes held at the peak by ``scope``, ``source`` or ``op`` ("" where it is unknown), the most first."""
        found: dict[str, int] = {}
        for one in self.peak.buffers:
            label = str(getattr(one, view))
            found[label] = found.get(label, 0) + one.bytes
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def memory_record(compiled: Compiled) -> MemoryRecord:
    """The memory of ``compiled``, buffer by buffer. InputError where XLA gave no buffer assignment, or one in a form
    that is not known."""
    if not compiled.buffer_assignment or not compiled.live_ranges:
        raise InputError(
            f"{compiled.name}: XLA wrote no buffer assignment with live ranges ({compiled.versions or 'HLO text'}); "
            "memory by buffer needs JAX 0.10 or later"
        )
    try:
        assignment = parse_buffers(compiled.buffer_assignment, compiled.live_ranges)
    except ValueError as error:
        raise InputError(f"{compiled.name}: XLA's {error}; this fusionlab does not read {compiled.versions}") from None
    timeline = _Timeline(compiled, assignment)
    of_temp = [one for one in assignment.allocations if one.role == TEMP and one.memory_space != HOST_MEMORY]
    of_outputs = [one for one in assignment.allocations if one.role == OUTPUT]
    temporaries, outputs = ([buffer for one in of for buffer in timeline.buffers(one)] for of in (of_temp, of_outputs))
    held = _held_by_step(temporaries, len(assignment.schedule))
    return MemoryRecord(
        name=compiled.name,
        target=compiled.target.name,
        versions=compiled.versions,
        argument_bytes=compiled.memory.argument_bytes,
        output_bytes=compiled.memory.output_bytes,
        alias_bytes=compiled.memory.alias_bytes,
        temp_bytes=compiled.memory.temp_bytes,
        constant_bytes=assignment.bytes_of(CONSTANT),
        steps=len(assignment.schedule),
        launches=timeline.launched[-1] if timeline.launched else 0,
        peak=timeline.peak(temporaries, outputs, held, compiled.memory.temp_bytes),
        slots=tuple(
            sorted(
                (slot for one in (*of_temp, *of_outputs) for slot in timeline.slots(one)), key=lambda slot: -slot.bytes
            )
        ),
        copies=buffer_copies(compiled, timeline.origins, timeline.sites),
        temporaries=tuple(sorted(temporaries, key=lambda one: -one.bytes)),
        held_by_step=tuple(held),
    )


class _Timeline:
    """The steps of a program, with the launches that they are and their origins; ``sites`` are launches and copies."""

    def __init__(self, compiled: Compiled, assignment: BufferAssignment) -> None:
        self._places = {one.name: (computation, one) for computation, one in instructions(compiled.module)}
        self.origins = Origins(compiled.module)
        self._steps = assignment.schedule
        self.sites = launches(compiled)
        named = {site.hlo_name for site in self.sites if not site.is_copy}
        self._is_launch = [
            name in named
            or (name in self._places and any(one.name in named for one in members(compiled.module, self._one(name))))
            for name in self._steps
        ]
        self.launched = list(accumulate(map(int, self._is_launch)))

    def _one(self, name: str) -> Instruction:
        return self._places[name][1]

    def _launches_until(self, step: int) -> int:
        return self.launched[min(step, len(self.launched) - 1)] if self.launched else 0

    def buffers(self, allocation: BufferAllocation) -> list[Buffer]:
        """The buffers of an allocation in the order of their birth; a value that is passed on in place is no new one.

        A carried value continues what lies in its place until the step at which it is born.
        """
        found: list[list[BufferValue]] = []
        last: dict[tuple[int, int], list[BufferValue]] = {}
        alive = sorted((one for one in allocation.values if one.born >= 0), key=lambda one: (one.born, one.died))
        for value in alive:
            at = (value.offset, value.bytes)
            before = last.get(at)
            if value.is_carried and before is not None and max(one.died for one in before) >= value.born:
                before.append(value)
            else:
                last[at] = [value]
                found.append(last[at])
        return [self._buffer(allocation, values) for values in found]

    def _buffer(self, allocation: BufferAllocation, values: Sequence[BufferValue]) -> Buffer:
        first, died = values[0], max(one.died for one in values)
        place = self._places.get(first.instruction)
        return Buffer(
            name=first.name,
            producer=first.instruction,
            what=_what(first, place),
            shape=first.shape,
            bytes=first.bytes,
            offset=first.offset,
            allocation=allocation.number,
            born_step=first.born,
            died_step=died,
            born_launch=self._launches_until(first.born),
            died_launch=self._launches_until(died),
            passed_on_as=tuple(one.name for one in values[1:]),
            **self._origin(first.instruction),
        )

    def _origin(self, name: str) -> dict[str, str]:
        place = self._places.get(name)
        if place is None:
            return dict.fromkeys(("scope", "op", "transform", "source", "attributed_by"), "")
        origin = self.origins.of(*place)
        stack = read_name(origin.op_name)
        return {
            "scope": stack.scope,
            "op": origin.op,
            "transform": stack.transform if origin.op_name else "",
            "source": origin.source,
            "attributed_by": origin.by,
        }

    def slots(self, allocation: BufferAllocation) -> list[SharedSlot]:
        """The offsets of an allocation at which several buffers lie."""
        at: dict[int, list[Buffer]] = {}
        for one in self.buffers(allocation):
            at.setdefault(one.offset, []).append(one)
        return [
            SharedSlot(allocation.number, allocation.role, offset, max(one.bytes for one in found), tuple(found))
            for offset, found in at.items()
            if len(found) > 1
        ]

    def peak(
        self, temporaries: Sequence[Buffer], outputs: Sequence[Buffer], held: Sequence[int], temp_bytes: int
    ) -> MemoryPeak:
        """The first step at which most is held, and what is alive there."""
        step = max(range(len(held)), key=held.__getitem__, default=0)
        alive, in_outputs = (
            sorted(_apart(one for one in of if one.born_step <= step <= one.died_step), key=lambda one: -one.bytes)
            for of in (temporaries, outputs)
        )
        launch = next((at for at in range(min(step, len(self._steps) - 1), -1, -1) if self._is_launch[at]), step)
        name = self._steps[launch] if self._steps else ""
        origin = self._origin(name)
        total = sum(one.bytes for one in alive)
        return MemoryPeak(
            step=step,
            launch=self._launches_until(step),
            instruction=name,
            scope=origin["scope"],
            op=origin["op"],
            source=origin["source"],
            held_bytes=total,
            free_bytes=temp_bytes - total,
            buffers=tuple(alive),
            in_outputs=tuple(in_outputs),
        )


def _what(value: BufferValue, place: tuple[Computation, Instruction] | None) -> str:
    """What a value is: a library call's array of bytes beside its result is its workspace."""
    if value.is_table:
        return TABLE
    called = place is not None and place[1].opcode == "custom-call"
    return WORKSPACE if called and value.index not in ("{}", "{0}") and value.shape.startswith("s8[") else ARRAY


def _apart(alive: Iterable[Buffer]) -> list[Buffer]:
    """The buffers without those that lie in another: an op in place has its operand and its result there. Of equals
    the last written stays."""
    found: list[Buffer] = []
    end: dict[int, int] = {}
    for one in sorted(alive, key=lambda one: (one.allocation, one.offset, -one.bytes, -one.born_step)):
        if one.offset >= end.get(one.allocation, 0):
            found.append(one)
            end[one.allocation] = one.offset + one.bytes
    return found


def _held_by_step(temporaries: Iterable[Buffer], steps: int) -> list[int]:
    """Bytes that are alive at each step, those in one place counted once (``_apart``)."""
    born: dict[int, list[Buffer]] = {}
    for one in temporaries:
        born.setdefault(one.born_step, []).append(one)
    alive, held = list[Buffer](), list[int]()
    for step in range(steps + 1):
        left = [one for one in alive if one.died_step >= step]
        if step in born or len(left) < len(alive) or not held:
            alive = [*left, *born.get(step, ())]
            held.append(sum(one.bytes for one in _apart(alive)))
        else:
            held.append(held[-1])
    return held
