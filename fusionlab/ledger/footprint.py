"""Footprint: the static costs of one compiled program, the record of ``dump`` and of each side of ``apply``; and XLA's
buffer assignment, in total and by buffer."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from fusionlab.codegen.compile import Compiled, Memory
from fusionlab.hlo.program import Program
from fusionlab.ledger.ledger import bytes_accessed, count_launches


@dataclass(frozen=True)
class Footprint:
    """Launches, memory and work of one program on one target.

    Launches are XLA's (``launch_source`` says from which of its lists), memory is XLA's buffer assignment;
    ``flops`` (None when not computed) and ``bytes_accessed`` are models, trips multiplied. Loops of unknown trip
    count are taken as one trip and counted in ``unknown_trip_loops``; ``walkers`` is None for a file.
    """

    name: str
    target: str
    walkers: int | None
    static_launches: int
    dynamic_launches: int
    dynamic_copies: int
    temp_bytes: int
    argument_bytes: int
    flops: float | None
    bytes_accessed: int
    compile_s: float
    stablehlo_ops: int
    unknown_trip_loops: int = 0
    launch_source: str = ""

    def to_json(self) -> dict[str, Any]:
        """The fields by name, ready for ``json.dumps``."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_json(record: dict[str, Any]) -> Footprint:
        """The inverse of ``to_json``; fields that this version does not know are ignored. KeyError: one is missing."""
        fields = dataclasses.fields(Footprint)
        return Footprint(
            **{
                one.name: record[one.name] if one.default is dataclasses.MISSING else record.get(one.name, one.default)
                for one in fields
            }
        )


def footprint(
    program: Program, compiled: Compiled, flops: float | None = None, walkers: int | None = None
) -> Footprint:
    """The footprint of ``compiled``, which was compiled from ``program``; ``flops`` come from fusionlab's rules."""
    counts = count_launches(compiled)
    return Footprint(
        name=program.name,
        target=compiled.target.name,
        walkers=walkers,
        static_launches=counts.static_launches,
        dynamic_launches=counts.dynamic_launches,
        dynamic_copies=counts.dynamic_copies,
        temp_bytes=compiled.memory.temp_bytes,
        argument_bytes=compiled.memory.argument_bytes,
        flops=flops,
        bytes_accessed=bytes_accessed(compiled),
        compile_s=compiled.compile_s,
        stablehlo_ops=program.ops,
        unknown_trip_loops=counts.unknown_trip_loops,
        launch_source=counts.launch_source,
    )


_ALLOCATION = re.compile(r"allocation (\d+): size (\d+), (.*)")
_VALUE = re.compile(r"\s*value: <\d+ (\S+?)(\{[\d,]*\})?(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (.*)")


@dataclass(frozen=True)
class Buffer:
    """The place of one HLO value: ``index`` is its position in a tuple (``{0}``; "" for an array)."""

    hlo_name: str
    index: str
    shape: str
    size_bytes: int
    offset_bytes: int
    allocation: int
    is_temp: bool


def peak_bytes(memory: Memory) -> int:
    """Bytes that must fit on the device at once: arguments, results that alias none of them, and temporaries."""
    return memory.argument_bytes + memory.output_bytes - memory.alias_bytes + memory.temp_bytes


def buffers(compiled: Compiled) -> tuple[Buffer, ...]:
    """Every value of XLA's buffer assignment, largest first.

    Values may share bytes: they then have the same allocation and overlapping offsets, at different times. ValueError
    when the program was not compiled with ``dump=True``.
    """
    ending = next((name for name in compiled.artifacts if name.endswith("buffer-assignment.txt")), None)
    if ending is None:
        raise ValueError(f"{compiled.name} was compiled without dump=True: XLA's buffer assignment was not kept")
    found: list[Buffer] = []
    allocation, is_temp = -1, False
    for line in compiled.artifacts[ending].splitlines():
        if head := _ALLOCATION.match(line):
            allocation, is_temp = int(head[1]), "preallocated-temp" in head[3] or head[3].startswith("temp")
        elif value := _VALUE.match(line):
            name, index, size, offset, shape = value.groups()
            found.append(Buffer(name, index or "", shape, int(size), int(offset), allocation, is_temp))
    return tuple(sorted(found, key=lambda one: -one.size_bytes))
