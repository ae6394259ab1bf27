"""XLA's buffer assignment: the place of every array in memory, and when it is alive, from two texts that XLA dumps.

``*buffer-assignment.txt`` lists allocations, each with the arrays in it: size, offset, and where they are made.
``*live-range.txt`` has the schedule, with the bodies of loops and branches in line, and the steps of each array. Both
name instructions as the optimised HLO does. (The same as a protocol buffer has numbers for names, and JAX 0.10 gives
none of a GPU that is not there.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

ARGUMENT, OUTPUT, CONSTANT, KERNEL, TEMP = "argument", "output", "constant", "kernel", "temp"
"""What an allocation is for; ``kernel`` is memory of one thread, inside a kernel."""
HOST_MEMORY = 5
"""XLA's number of the memory space on the host."""

_ALLOCATION = re.compile(r"allocation (\d+): size (\d+)(.*):")
_VALUE = re.compile(r" value: <\d+ ([^\s{]+)(\{[\d,]*\})?( \(phi\))? @-?\d+> \(size=(\d+),offset=(\d+)\): (.*)")
_RANGE = re.compile(r"    ([^\s{]+)(\{[\d,]*\}):(\d+)-(\d+)")
_STEP = re.compile(r"    (\d+):(\S+)")
_SCHEDULE, _RANGES = "  InstructionSequence:", "  BufferLiveRange:"


@dataclass(frozen=True)
class BufferValue:
    """An array in an allocation: what ``instruction`` makes, or its element ``index`` (``{0}``; ``{}`` for all).

    ``is_carried``: it is state of a loop or the result of a branch, and the memory was written before. ``born`` and
    ``died`` are the first and the last step at which it is alive; -1 where XLA says none (inside of kernels).
    """

    instruction: str
    index: str
    is_carried: bool
    bytes: int
    offset: int
    shape: str
    born: int
    died: int

    @property
    def name(self) -> str:
        """The instruction with its index, if it makes several arrays."""
        return self.instruction + (self.index if self.index != "{}" else "")

    @property
    def is_table(self) -> bool:
        """True for the pointers of a tuple."""
        return self.shape.startswith("(")


@dataclass(frozen=True)
class BufferAllocation:
    """One block of memory and the arrays in it. ``role`` is argument, output, constant, kernel or temp."""

    number: int
    bytes: int
    role: str
    memory_space: int
    values: tuple[BufferValue, ...]


@dataclass(frozen=True)
class BufferAssignment:
    """All memory of a program. ``schedule`` has the instruction of each step."""

    allocations: tuple[BufferAllocation, ...]
    schedule: tuple[str, ...]

    def bytes_of(self, role: str) -> int:
        """The bytes on the device of all allocations of a role."""
        return sum(one.bytes for one in self.allocations if one.role == role and one.memory_space != HOST_MEMORY)


def parse_buffers(assignment: str, live_ranges: str) -> BufferAssignment:
    """XLA's two texts as records. ValueError names the first line that is in another form."""
    steps, ranges = _parse_ranges(live_ranges)
    allocations: list[tuple[re.Match[str], list[BufferValue]]] = []
    for number, line in _lines(assignment):
        if match := _ALLOCATION.fullmatch(line):
            allocations.append((match, []))
        elif (match := _VALUE.fullmatch(line)) and allocations:
            allocations[-1][1].append(_value(match, ranges))
        elif line != "BufferAssignment:":
            raise _unexpected("buffer assignment", number, line)
    return BufferAssignment(tuple(_allocation(match, values) for match, values in allocations), steps)


def allocated_bytes(assignment: str) -> dict[str, int]:
    """The bytes of all allocations by role, from the list alone: before JAX 0.10 a text follows on it."""
    found: dict[str, int] = {}
    for match in filter(None, map(_ALLOCATION.fullmatch, assignment.splitlines())):
        one = _allocation(match, ())
        if one.memory_space != HOST_MEMORY:
            found[one.role] = found.get(one.role, 0) + one.bytes
    return found


def places_of(assignment: str) -> dict[str, tuple[int, int]]:
    """Allocation and offset of each array, by its name and index: ``sort.4{0}``, ``add.1{}``."""
    found: dict[str, tuple[int, int]] = {}
    allocation = -1
    for line in assignment.splitlines():
        if match := _ALLOCATION.fullmatch(line):
            allocation = int(match[1])
        elif match := _VALUE.fullmatch(line):
            found[f"{match[1]}{match[2] or '{}'}"] = allocation, int(match[5])
    return found


def _parse_ranges(text: str) -> tuple[tuple[str, ...], Mapping[tuple[str, str], tuple[int, int]]]:
    """The schedule, and the first and last step of each array by instruction and index."""
    steps: list[str] = []
    ranges: dict[tuple[str, str], tuple[int, int]] = {}
    part = ""
    for number, line in _lines(text):
        if line.startswith("  ") and not line.startswith("    "):
            part = line
        elif part == _SCHEDULE:
            match = _STEP.fullmatch(line)
            if match is None or int(match[1]) != len(steps):
                raise _unexpected("live ranges", number, line)
            steps.append(match[2])
        elif part == _RANGES:
            if (match := _RANGE.fullmatch(line)) is None:
                raise _unexpected("live ranges", number, line)
            ranges[match[1], match[2]] = int(match[3]), int(match[4])
    return tuple(steps), ranges


def _lines(text: str) -> Iterator[tuple[int, str]]:
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip())


def _unexpected(what: str, number: int, line: str) -> ValueError:
    return ValueError(f"{what}, line {number}: {line.strip()[:60]!r} is in a form that is not known")


def _allocation(match: re.Match[str], values: Iterable[BufferValue]) -> BufferAllocation:
    words = re.sub(r"\|[^|]*\|", "", match[3])  # shapes
    named = {word.strip().partition(" ")[0]: word.strip().partition(" ")[2] for word in words.split(",")}
    roles = {
        "parameter": ARGUMENT, "constant": CONSTANT, "thread-local": KERNEL, "maybe-live-out": OUTPUT,
    }  # fmt: skip
    role = next((role for word, role in roles.items() if word in named), TEMP)
    return BufferAllocation(int(match[1]), int(match[2]), role, int(named.get("color") or 0), tuple(values))


def _value(match: re.Match[str], ranges: Mapping[tuple[str, str], tuple[int, int]]) -> BufferValue:
    index = match[2] or "{}"
    born, died = ranges.get((match[1], index), (-1, -1))
    return BufferValue(match[1], index, bool(match[3]), int(match[4]), int(match[5]), match[6], born, died)
