"""What the warps of a kernel do: their index arithmetic and branches, executed for a sample of them.

Every address and branch of a kernel that depends on thread and block indices alone is computed exactly, without a GPU:
loops run their trips, and of a concatenation each warp takes its own branch. Data in memory is not known. A branch that
depends on it is not taken, so a guard around an access lets it through and a loop until convergence runs once; how many
such branches there are is told. Threads that part meet again at the lowest instruction (the usual order of SIMT
hardware; Collange, "Stack-less SIMT reconvergence at low cost", 2011).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusionlab.device_code.arithmetic import Bits, Known, Lanes, evaluate, literal
from fusionlab.device_code.ptx import PtxInstruction, PtxKernel, split_operands
from fusionlab.device_code.requests import SECTOR_BYTES, WARP, Requests, of_global, of_shared, stride_of

MOST_WARPS = 128
_MOST_STEPS = 30_000
"""The warps that are sampled of a grid, and the instructions that are executed for them (all of them at once)."""
_GOLDEN = 0.6180339887498949
_ARRAY_BITS = 40
"""Each array of global memory has 2^40 addresses of its own."""
_REGISTER = re.compile(r"%[\w$]+(?:\.[xyz])?")
_NO_RESULT = frozenset(
    ("st", "red", "bra", "ret", "exit", "bar", "barrier", "fence", "membar", "cp", "prefetch", "trap", "call",
     "griddepcontrol", "mbarrier")
)  # fmt: skip

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class Access:
    """One memory instruction as the sampled warps executed it.

    ``parameter`` is the kernel parameter whose array it accesses (-1: none of them, or not known); ``stride_bytes`` is
    the most frequent distance between neighbouring threads (None: not known).
    """

    instruction: PtxInstruction
    space: str
    parameter: int
    requests: Requests
    stride_bytes: int | None


@dataclass(frozen=True)
class WarpTrace:
    """The execution of a sample of warps.

    ``warp_sectors`` are, by kernel parameter, the sectors that a warp loads from, each once for each warp: what a
    perfect cache of its own would let through. ``lane_runs`` has, by instruction, the threads that executed it (guards
    apart). ``data_branches`` are branches that depend on data; ``complete`` is False where the limit of steps ended the
    execution.
    """

    kernel: PtxKernel
    accesses: tuple[Access, ...]
    warp_sectors: Mapping[int, int]
    lane_runs: tuple[int, ...] = field(repr=False)
    sampled_warps: int
    warps: int
    data_branches: int
    complete: bool

    @property
    def scale(self) -> float:
        """Warps of the grid for each in the sample."""
        return self.warps / max(1, self.sampled_warps)

    def of(self, space: str, *kinds: str) -> tuple[Access, ...]:
        """The accesses of that space and these kinds (all, without any)."""
        return tuple(
            one for one in self.accesses if one.space == space and (not kinds or one.instruction.access in kinds)
        )

    def runs(self, wanted: Sequence[bool]) -> float:
        """Executions of the instructions that are ``wanted``, by threads of the whole grid."""
        return self.scale * sum(count for count, chosen in zip(self.lane_runs, wanted, strict=True) if chosen)


def trace(kernel: PtxKernel, grid: Grid) -> WarpTrace:
    """Execute a sample of the warps that ``grid`` blocks of ``kernel`` have."""
    return _Execution(kernel, grid).run()


class _Execution:
    def __init__(self, kernel: PtxKernel, grid: Grid) -> None:
        self._kernel = kernel
        self._per_block = -(-kernel.threads_per_block // WARP)
        self._warps = grid[0] * grid[1] * grid[2] * self._per_block
        chosen = _sample(self._warps)
        lane = np.tile(np.arange(WARP, dtype=np.int64), len(chosen))
        warp = np.repeat(chosen, WARP)
        thread, block = (warp % self._per_block) * WARP + lane, warp // self._per_block
        self._count, self._sampled = len(lane), len(chosen)
        self._special = _special_registers(kernel.threads, grid, thread, block, lane)
        self._registers: dict[str, Lanes] = {}
        self._at = np.where(thread < kernel.threads_per_block, 0, len(kernel.instructions))
        self._needed = _needed(kernel.instructions)
        self._leaders = _leaders(kernel)
        self._lane_runs = np.zeros(len(kernel.instructions) + 1, np.int64)
        self._requests: dict[tuple[int, str, int], Requests] = defaultdict(Requests)
        self._strides: dict[int, int | None] = {}
        self._sectors: dict[int, list[Bits]] = defaultdict(list)
        self._warp_of_lane = np.repeat(np.arange(len(chosen), dtype=np.int64), WARP) << np.int64(_ARRAY_BITS)
        self._data_branches: set[int] = set()

    def run(self) -> WarpTrace:
        """Execute block after basic block, always the first that a thread waits at."""
        end, steps = len(self._kernel.instructions), 0
        while steps < _MOST_STEPS and (at := int(self._at.min())) < end:
            steps += self._basic_block(at, self._at == at)
        return WarpTrace(
            kernel=self._kernel,
            accesses=tuple(
                Access(self._kernel.instructions[index], space, parameter, found, self._strides.get(index))
                for (index, space, parameter), found in sorted(self._requests.items())
            ),
            warp_sectors={at: len(np.unique(np.concatenate(parts))) for at, parts in self._sectors.items()},
            lane_runs=tuple(self._lane_runs[:-1].tolist()),
            sampled_warps=self._sampled,
            warps=self._warps,
            data_branches=len(self._data_branches),
            complete=int(self._at.min()) >= end,
        )

    def _basic_block(self, start: int, mask: Known) -> int:
        """Execute from ``start`` on to the end of the basic block; the steps that it took."""
        index, steps, lanes = start, 1, int(mask.sum())
        while True:
            one = self._kernel.instructions[index]
            self._lane_runs[index] += lanes
            if one.is_branch:
                self._branch(index, one, mask)
                return steps
            if index in self._needed:
                self._step(index, one, mask)
                steps += 1
            index += 1
            if index in self._leaders:
                self._at[mask] = index
                return steps

    def _branch(self, index: int, one: PtxInstruction, mask: Known) -> None:
        if one.guard:
            guard = self._read(one.guard)
            unknown = mask & ~guard.known
            if unknown.any():
                self._data_branches.add(index)
            taken = mask & guard.known & ((guard.bits != 0) ^ one.negated)
        else:
            taken = mask
        end = len(self._kernel.instructions)
        self._at[mask] = index + 1
        self._at[taken] = self._kernel.labels.get(one.operands[-1], end) if one.operands else end

    def _step(self, index: int, one: PtxInstruction, mask: Known) -> None:
        if one.guard:
            guard = self._read(one.guard)
            mask = mask & (~guard.known | ((guard.bits != 0) ^ one.negated))
        if one.access:
            self._access(index, one, mask)
        names = _results(one)
        if names:
            self._assign(one, names, mask)

    def _assign(self, one: PtxInstruction, names: Sequence[str], mask: Known) -> None:
        if one.access or (one.base not in ("mov", "ld") and len(names) > 1 and one.base != "setp"):
            values = [Lanes.unknown(self._count)] * len(names)
        elif one.base == "ld":  # of a parameter or a constant
            values = [self._pointer(one)] * len(names)
        elif one.base == "mov" and "{" in "".join(one.operands):
            values = self._moved(one, names)
        else:
            values = [evaluate(one.parts, [self._read(source) for source in one.operands[1:]])]
            values += [Lanes(value.bits ^ 1, value.known) for value in values] * (len(names) - 1)  # setp p|q
        everywhere = bool(mask.all())
        for name, value in zip(names, values, strict=False):
            found = value if len(value.bits) == self._count else Lanes.unknown(self._count)
            self._registers[name] = found if everywhere else self._read(name).merged(found, mask)

    def _moved(self, one: PtxInstruction, names: Sequence[str]) -> list[Lanes]:
        """A register taken apart, or put together from several, the lowest bits first."""
        width = int(re.sub(r"\D", "", one.parts[-1]) or 64)
        if len(names) > 1:
            value, part = self._read(one.operands[1]), width // len(names)
            mask = np.int64((1 << part) - 1)
            return [Lanes((value.bits >> np.int64(at * part)) & mask, value.known) for at in range(len(names))]
        sources = [self._read(name) for name in split_operands(one.operands[1].strip("{}"))]
        part, bits = width // len(sources), np.zeros(self._count, np.int64)
        for at, source in enumerate(sources):
            bits = bits | (source.bits << np.int64(at * part))
        return [Lanes(bits, np.logical_and.reduce([source.known for source in sources]))]

    def _access(self, index: int, one: PtxInstruction, mask: Known) -> None:
        address = self._address(one.address)
        if not mask.any():
            return
        known = mask & address.known
        arrays = address.bits[known] >> _ARRAY_BITS
        at = int(arrays[0]) - 1 if len(arrays) else -1
        space = one.space if one.space != "generic" else ("shared" if len(arrays) and at < 0 else "global")
        if space == "shared":
            found = of_shared(address.bits, address.known, mask, one.bytes_per_lane)
        else:
            found = of_global(address.bits, address.known, mask, one.bytes_per_lane)
        parameter = at if space == "global" and 0 <= at < len(self._kernel.parameters) else -1
        self._requests[index, space, parameter] += found
        if parameter >= 0 and one.access == "load":
            offset = address.bits & np.int64((1 << _ARRAY_BITS) - 1)
            self._sectors[parameter].append(np.unique((self._warp_of_lane + offset // SECTOR_BYTES)[known]))
        if self._strides.get(index) is None:
            self._strides[index] = stride_of(address.bits, address.known, mask)

    def _pointer(self, one: PtxInstruction) -> Lanes:
        name = one.address.partition("+")[0]
        if one.space != "param" or name not in self._kernel.parameters:
            return Lanes.unknown(self._count)
        return Lanes.of((self._kernel.parameters.index(name) + 1) << _ARRAY_BITS, self._count)

    def _address(self, text: str) -> Lanes:
        name, _, offset = text.replace(" ", "").partition("+")
        base, constant = self._read(name), literal(offset) if offset else 0
        if constant is None:
            return Lanes.unknown(self._count)
        return Lanes(base.bits + np.int64(constant), base.known)

    def _read(self, name: str) -> Lanes:
        """The value of an operand: a register, a number, the address of an array."""
        if name in self._registers:
            return self._registers[name]
        if name in self._special:
            return Lanes.of(self._special[name], self._count)
        if (number := literal(name)) is not None:
            return Lanes.of(number, self._count)
        if name in self._kernel.shared:
            return Lanes.of(self._kernel.shared[name], self._count)
        if name in self._kernel.symbols:
            at = len(self._kernel.parameters) + 1 + self._kernel.symbols.index(name)
            return Lanes.of(at << _ARRAY_BITS, self._count)
        return Lanes.unknown(self._count)


def _sample(warps: int) -> Bits:
    """Numbers of warps, spread evenly over all; the same ones for the same number."""
    if warps <= MOST_WARPS:
        return np.arange(warps, dtype=np.int64)
    spread = (np.arange(MOST_WARPS) + 0.5) * _GOLDEN % 1.0
    return np.unique((spread * warps).astype(np.int64))


def _special_registers(threads: Grid, grid: Grid, thread: Bits, block: Bits, lane: Bits) -> dict[str, Bits | int]:
    found: dict[str, Bits | int] = {"%laneid": lane, "WARP_SZ": WARP}
    for names, index, sizes in ((("%tid", "%ntid"), thread, threads), (("%ctaid", "%nctaid"), block, grid)):
        for axis, size in zip("xyz", sizes, strict=True):
            found[f"{names[0]}.{axis}"], found[f"{names[1]}.{axis}"] = index % size, size
            index = index // size
    return found


def _results(one: PtxInstruction) -> list[str]:
    """The registers that an instruction writes."""
    if one.base in _NO_RESULT or not one.operands:
        return []
    return _REGISTER.findall(one.operands[0])


def _sources(one: PtxInstruction) -> Iterator[str]:
    operands = one.operands if not _results(one) else one.operands[1:]
    for operand in [one.address] if one.access else operands:
        yield from _REGISTER.findall(operand)
    if one.guard:
        yield one.guard


def _needed(instructions: Sequence[PtxInstruction]) -> frozenset[int]:
    """The instructions that addresses and branches depend on, and the accesses themselves."""
    makers: dict[str, list[int]] = defaultdict(list)
    for index, one in enumerate(instructions):
        for name in _results(one):
            makers[name].append(index)
    pending = [index for index, one in enumerate(instructions) if one.access or (one.is_branch and one.guard)]
    needed = set(pending)
    while pending:
        for name in _sources(instructions[pending.pop()]):
            more = [index for index in makers[name] if index not in needed]
            needed.update(more)
            pending += more
    return frozenset(needed)


def _leaders(kernel: PtxKernel) -> frozenset[int]:
    """The first instructions of basic blocks."""
    behind = (index + 1 for index, one in enumerate(kernel.instructions) if one.is_branch)
    return frozenset((*kernel.labels.values(), *behind, len(kernel.instructions)))
