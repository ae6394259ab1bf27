"""What a kernel does in excess, and the op and source line that it comes from.

The kinds and their bars are in ``KINDS``. A finding's ``factor`` is how many times the necessary: bytes, sectors,
turns, slots of SMs. It is no time: most repeated reads hit a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from fusionlab.bytesize import size_words
from fusionlab.device_code.kernel_rows import KernelRow, OperandReads
from fusionlab.device_code.requests import WARP
from fusionlab.hlo.name_stacks import read_name
from fusionlab.hlo.optimised.kernel_cost import terms_of
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, element_bits
from fusionlab.ledger.dataflow import instructions, members
from fusionlab.ledger.origins import Origins

KINDS: dict[str, str] = {
    "spill": "registers run out: values go to local memory and back",
    "cas": "an atomic as a loop of compare-and-swap: threads that meet at an address go one by one",
    "recomputation": "2 or more bytes are read for each that is needed, because a value is computed several times",
    "repeated-read": "4 or more bytes are read for each that is needed, because many outputs take each",
    "strided-read": "loads move twice the sectors that they need or more: neighbouring threads read apart",
    "strided-write": "stores move twice the sectors that they need or more: neighbouring threads write apart",
    "bank-conflict": "threads of a warp meet at a bank of shared memory and take turns, 2 or more",
    "few-blocks": "the grid has blocks for less than half of the SMs",
    "low-occupancy": "an SM holds less than a quarter of its warps",
    "tail-wave": "the last wave of blocks is partly empty: a quarter of the time of whole waves, or more, is lost",
}
"""The kinds of findings, in the order of a kernel's list where factors are equal."""
_AGAIN = 1.5
"""A value is computed several times from this many on."""
_REPEATED, _READ_OFTEN, _SECTORS, _BANKS, _BUSY, _OCCUPANCY, _TAIL = 2.0, 4.0, 2.0, 2.0, 0.5, 0.25, 1.25
_WORTH = 0.25
_SEVERAL_BLOCKS_BYTES = 1 << 16
"""Strided accesses count from this share of all sectors that the kernel moves; a grid of few blocks counts from this
many bytes on, which are work for more."""

_COMPUTED_AGAIN = ("reduce", "dot", "reduce-window", "convolution", "scatter", "sort")
_OF_OWN_TERMS = ("reduce", "dot")
"""Ops whose terms are each read for one value: more reads are of values that are computed again."""
_REARRANGED = ("transpose", "reverse", "gather", "slice", "dynamic-slice", "concatenate", "pad", "broadcast", "copy")
_SPECIAL_OPS = frozenset(("scatter", "reduce", "select-and-scatter", "reduce-window"))


@dataclass(frozen=True)
class KernelFinding:
    """``words`` say what; ``op``, ``scope`` and ``source`` are those of the op that it comes from, which need not be
    the kernel's own; ``operand`` is the HLO value that is read, "" where that is not the point."""

    kind: str
    factor: float
    words: str
    op: str = ""
    scope: str = ""
    source: str = ""
    operand: str = ""

    @property
    def place(self) -> str:
        """``reduce_sum at model.py:41``; "" where neither is known."""
        return " at ".join(filter(None, (self.op, self.source)))


@dataclass(frozen=True)
class Recomputed:
    """An op inside of a kernel that is computed ``times`` for each value.

    ``member`` is its HLO instruction, whose result takes ``result_bytes``; ``operands`` are the arrays that the kernel
    reads for it.
    """

    member: str
    op: str
    scope: str
    source: str
    op_name: str
    times: float
    result_bytes: int
    operands: tuple[str, ...]

    @property
    def place(self) -> str:
        """``reduce_sum at model.py:41``."""
        return " at ".join(filter(None, (self.op, self.source)))


class Findings:
    """The findings of the kernels of one module."""

    def __init__(self, module: HloModule) -> None:
        self._module = module
        self._origins = Origins(module)
        self._instructions = {one.name: one for _, one in instructions(module)}
        self._homes = {one.name: computation for computation, one in instructions(module)}

    def of(self, row: KernelRow) -> tuple[KernelFinding, ...]:
        """What ``row`` does in excess, the greatest factor first."""
        checks = (
            self._spills, self._swaps, self._recomputation, self._strided_reads, self._strided_writes,
            self._bank_conflicts, self._blocks, self._tail,
        )  # fmt: skip
        found = [one for check in checks for one in check(row)]
        return tuple(sorted(found, key=lambda one: -one.factor))

    def recomputed(self, row: KernelRow) -> tuple[Recomputed, ...]:
        """The reductions and products that ``row`` computes several times for each value, most often first."""
        found: dict[str, tuple[float, list[str]]] = {}
        for operand in row.operands:
            member = self._reader(row, operand, _COMPUTED_AGAIN)
            times = self._times_computed(row, operand, member)
            if member is not None and times >= _AGAIN:
                known, operands = found.setdefault(member.name, (0.0, []))
                found[member.name] = max(known, times), [*operands, operand.name]
        order = sorted(found, key=lambda name: -found[name][0])
        return tuple(self._as_recomputed(row, name, *found[name]) for name in order)

    def _as_recomputed(self, row: KernelRow, name: str, times: float, operands: Sequence[str]) -> Recomputed:
        inside = self._homes[name]
        member = inside.by_name[name]
        origin = self._origins.of_members(member)
        return Recomputed(
            member=name,
            op=origin.op,
            scope=read_name(origin.op_name).scope or row.launch.scope,
            source=origin.source or row.launch.source,
            op_name=member.op_name,
            times=times,
            result_bytes=member.shape.byte_size,
            operands=tuple(operands),
        )

    def _spills(self, row: KernelRow) -> Iterator[KernelFinding]:
        if row.resources and row.spill_bytes:
            moved = max(1, row.read_bytes + row.written_bytes)
            said = f"{row.spill_bytes:,} bytes of spills a thread ({row.resources.registers} registers)"
            yield self._of_launch(row, "spill", 1 + row.spill_bytes * row.threads / moved, said)

    def _swaps(self, row: KernelRow) -> Iterator[KernelFinding]:
        for one in row.atomics:
            if one.operation == "cas":
                scope = {"cta": "block", "cluster": "cluster", "gpu": "GPU", "sys": "system"}[one.scope]
                said = f"a compare-and-swap loop at {scope} scope ({one.type})"
                member = self._member(row, lambda each: each.opcode in _SPECIAL_OPS)
                yield self._of_member(row, member, "cas", float(WARP), said)

    def _recomputation(self, row: KernelRow) -> Iterator[KernelFinding]:
        if row.reads_per_needed < _REPEATED or not row.operands:
            return
        worst = max(row.operands, key=lambda one: one.read_bytes - one.needed_bytes)
        member = self._reader(row, worst, _COMPUTED_AGAIN)
        again, reads = (
            self._times_computed(row, worst, member),
            f"{row.reads_per_needed:.1f} bytes read per byte needed",
        )
        if member is not None and again >= _AGAIN:
            kind, said = "recomputation", f"{self._named(member)} is computed {again:.1f} times for each value: {reads}"
        elif row.reads_per_needed >= _READ_OFTEN:
            times = worst.read_bytes / max(1, worst.needed_bytes)
            often = f"{size_words(worst.needed_bytes)} of %{worst.name}, {times:,.0f} times"
            kind, said = "repeated-read", f"{reads}: {often}"
        else:
            return
        yield self._of_member(row, member, kind, row.reads_per_needed, said, worst.name)

    def _times_computed(self, row: KernelRow, operand: OperandReads, member: Instruction | None) -> float:
        """How often each value of a reduction or product is computed: the reads of an operand over the terms of all
        that take it."""
        if member is None or member.opcode not in _OF_OWN_TERMS:
            return 0.0
        home = self._homes[member.name]
        arrays = [home.by_name[name].shape for name in member.operands if name in home.by_name]
        widest = max((element_bits(shape.dtype) for shape in arrays if not shape.is_tuple), default=32)
        taking = self._nearest(row, operand) or [member]
        return operand.read_bytes / (sum(terms_of(home, one) for one in taking) * widest / 8)

    def _nearest(self, row: KernelRow, operand: OperandReads) -> list[Instruction]:
        """The reductions and products that take ``operand``, and not through another one."""
        instruction = self._instructions.get(row.name)
        if instruction is None or not instruction.is_fusion:
            return []
        inside = self._module.computations[instruction.called[0]]
        behind = _behind(inside, inside.parameters[operand.index], _OF_OWN_TERMS)
        return [one for one in behind if one.opcode in _OF_OWN_TERMS]

    def _strided_reads(self, row: KernelRow) -> Iterator[KernelFinding]:
        ratio, surplus = row.loads.sectors_over_least, row.loads.sectors - row.loads.least_sectors
        if ratio < _SECTORS or surplus < _WORTH * (row.loads.sectors + row.stores.sectors) or not row.operands:
            return
        worst = max(row.operands, key=lambda one: one.surplus_sectors)
        said = f"loads move {ratio:.1f} times the bytes that they need{_apart(worst.stride_bytes)}"
        yield self._of_member(row, self._reader(row, worst, _REARRANGED), "strided-read", ratio, said, worst.name)

    def _strided_writes(self, row: KernelRow) -> Iterator[KernelFinding]:
        ratio, surplus = row.stores.sectors_over_least, row.stores.sectors - row.stores.least_sectors
        if ratio < _SECTORS or surplus < _WORTH * (row.loads.sectors + row.stores.sectors):
            return
        said = f"stores move {ratio:.1f} times the bytes that they need{_apart(row.store_stride_bytes)}"
        member = self._member(row, lambda one: one.opcode in _REARRANGED)
        yield self._of_member(row, member, "strided-write", ratio, said)

    def _bank_conflicts(self, row: KernelRow) -> Iterator[KernelFinding]:
        ways = row.shared.conflict_ways
        if ways >= _BANKS:
            said = f"{ways:.1f} turns for each access of shared memory: threads of a warp meet at a bank"
            member = self._member(row, lambda one: one.opcode in ("transpose", "reduce", "scatter"))
            yield self._of_member(row, member, "bank-conflict", ways, said)

    def _blocks(self, row: KernelRow) -> Iterator[KernelFinding]:
        held = row.occupancy
        if held is None:
            return
        if held.busy_sms < _BUSY and row.read_bytes + row.written_bytes >= _SEVERAL_BLOCKS_BYTES:
            blocks = row.threads // row.threads_per_block
            said = f"{blocks:,} {'block' if blocks == 1 else 'blocks'}: {held.busy_sms:.0%} of the SMs have work"
            yield self._of_launch(row, "few-blocks", 1 / held.busy_sms, said)
        if held.share < _OCCUPANCY:
            said = f"an SM holds {held.share:.0%} of its warps: {held.limit} are the limit"
            yield self._of_launch(row, "low-occupancy", _OCCUPANCY / held.share, said)

    def _tail(self, row: KernelRow) -> Iterator[KernelFinding]:
        if row.occupancy and row.occupancy.tail >= _TAIL:
            said = f"{row.occupancy.waves:.2f} waves of blocks: the last one is partly empty"
            yield self._of_launch(row, "tail-wave", row.occupancy.tail, said)

    def _of_launch(self, row: KernelRow, kind: str, factor: float, words: str) -> KernelFinding:
        return KernelFinding(kind, factor, words, row.launch.op, row.launch.scope, row.launch.source)

    def _of_member(
        self, row: KernelRow, member: Instruction | None, kind: str, factor: float, words: str, operand: str = ""
    ) -> KernelFinding:
        """A finding with the origin of ``member``, as far as that is known; the rest is the launch's."""
        if member is None:
            return KernelFinding(kind, factor, words, row.launch.op, row.launch.scope, row.launch.source, operand)
        origin = self._origins.of_members(member)
        scope = read_name(origin.op_name).scope or row.launch.scope
        return KernelFinding(kind, factor, words, origin.op, scope, origin.source or row.launch.source, operand)

    def _named(self, one: Instruction) -> str:
        """The op as JAX names it, else by its HLO opcode."""
        return self._origins.of_members(one).op

    def _member(self, row: KernelRow, wanted: Callable[[Instruction], bool]) -> Instruction | None:
        """The first op of the kernel that is ``wanted``."""
        instruction = self._instructions.get(row.name)
        inside = members(self._module, instruction) if instruction else ()
        return next((one for one in inside if wanted(one)), None)

    def _reader(self, row: KernelRow, operand: OperandReads, wanted: Sequence[str]) -> Instruction | None:
        """The nearest op behind ``operand`` in the kernel that is ``wanted``, else the first that is no view."""
        instruction = self._instructions.get(row.name)
        if instruction is None or not instruction.is_fusion:
            return instruction
        inside = self._module.computations[instruction.called[0]]
        if operand.index >= len(inside.parameters):
            return None
        behind = list(_behind(inside, inside.parameters[operand.index]))
        computing = (one for one in behind if one.opcode not in ("bitcast", "tuple", "convert"))
        return next((one for one in behind if one.opcode in wanted), None) or next(computing, None)


def _behind(inside: Computation, parameter: Instruction, until: Sequence[str] = ()) -> Iterator[Instruction]:
    """The ops that depend on ``parameter``, the nearest first; not those behind an op of the kinds ``until``."""
    pending, seen = list(inside.users[parameter.name]), set[str]()
    while pending:
        one = pending.pop(0)
        if one.name not in seen:
            seen.add(one.name)
            yield one
            pending += () if one.opcode in until else inside.users[one.name]


def _apart(stride: int | None) -> str:
    return "" if stride is None else f" (neighbouring threads {abs(stride):,} bytes apart)"
