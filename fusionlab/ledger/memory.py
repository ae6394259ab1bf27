"""Memory of a compiled program: XLA's buffer assignment, in total and buffer by buffer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusionlab.codegen.compile import Compiled, Memory

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
    """Bytes that must fit on the device at once: arguments, results that reuse none of them, and temporaries."""
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
