"""The picture of one kernel: what was fused into it, who makes what it reads, who reads what it makes."""

from __future__ import annotations

from collections.abc import Sequence

from fusionlab.codegen.compile import Compiled
from fusionlab.errors import unknown
from fusionlab.hlo.families import family_of_kernel
from fusionlab.hlo.optimized import Computation, HloModule, Instruction
from fusionlab.hlo.stages import attribute
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.report.boxes import Flow
from fusionlab.report.dot import bytes_text, flops_text
from fusionlab.report.drawing import Block, Drawing, Group, Row
from fusionlab.report.launch_graph import launch_graph

_INVISIBLE = ("bitcast", "get-tuple-element", "tuple")
_MOST = 80


def kernel_drawing(compiled: Compiled, name: str) -> Drawing:
    """The kernel ``name`` (its HLO name, as in the ledger): its instructions in a frame, its neighbours around it.

    A fusion of more than 80 instructions is drawn with its largest ones. InputError with the nearest names when there
    is no such launch.
    """
    rows = {row.name: row for row in reversed(launch_rows(compiled)) if row.dynamic_launches}
    if name not in rows:
        raise unknown("kernel", name, sorted(rows))
    view = launch_graph(compiled, tuple(rows[one] for one in reversed(list(rows))))
    row = rows[name]
    before, after = list(view.predecessors(name)), list(view.successors(name))
    inside, edges = _inside(compiled.module, name)
    blocks = [_neighbour(rows[one]) for one in before]
    blocks += [_member(one) for one in inside]
    start = len(before)
    blocks += [_neighbour(rows[one]) for one in after]
    position = {one.name: start + i for i, one in enumerate(inside)}
    flows = [Flow(position[a], position[b], size, 1) for a, b, size in edges]
    firsts = [i for i, one in enumerate(inside) if one.opcode == "parameter"] or [0]
    roots = [i for i, one in enumerate(inside) if one.is_root] or [len(inside) - 1]
    entry = _parameters(view, compiled.module, name, before, inside)
    for i, maker in enumerate(before):
        flows.append(
            Flow(i, start + entry.get(maker, firsts[0]), view.edges[maker, name]["bytes"] // row.trip_count, 1)
        )
    for i, reader in enumerate(after):
        size = view.edges[name, reader]["bytes"] // rows[reader].trip_count
        flows.append(Flow(start + roots[-1], start + len(inside) + i, size, 1))
    time = "time not known" if row.model_us is None else f"{row.model_us / 1e3:,.3f} ms ({row.model_source})"
    return Drawing(
        f"{name} on {compiled.target.name}",
        (
            f"{row.family}, {row.dynamic_launches:,} launches: {flops_text(row.flops)}, {bytes_text(row.bytes)}, "
            f"{row.intensity_flop_per_byte:,.2f} FLOP/byte, {time}",
            row.op_name,
        ),
        {"kernel": Group(f"{name}: one kernel", "kernel")},
        tuple(blocks),
        tuple(flows),
        counted="instructions",
        notes=("sizes inside are results of one run; neighbours are whole launches with all their runs",),
    )


def _neighbour(row: LaunchRow) -> Block:
    line = Row(row.family, row.dynamic_launches, row.flops, row.bytes)
    notes = (f"{row.dynamic_launches:,} launches",)
    return Block(row.name, (), (line,), row.stage, row.role if row.stage or row.phase else "", notes)


def _member(one: Instruction) -> Block:
    shape = one.shape_text.partition("{")[0]
    if one.opcode == "parameter":
        size = (bytes_text(one.shape.byte_size),)
        return Block(f"parameter {one.operand_text.strip('()')} {shape}", ("kernel",), notes=size, look="gate")
    family = family_of_kernel(one.name, one.opcode, one.custom_call_target)
    row = Row(family, 1, 0, one.shape.byte_size)
    return Block(f"{one.opcode} {shape}", ("kernel",), (row,), attribute(one.op_name).stage)


def _inside(module: HloModule, name: str) -> tuple[list[Instruction], list[tuple[str, str, int]]]:
    """The instructions of the kernel, without views, and who of them reads whom (with the bytes of the value)."""
    _, instruction = _place(module, name)
    body: Computation | None = None
    if instruction.opcode in ("fusion", "call") and instruction.called:
        body = module.computations[instruction.called[0]]
    if body is None:
        return [instruction], []
    every = [one for one in body.instructions if one.opcode not in _INVISIBLE]
    if len(every) > _MOST:
        largest = sorted(every, key=lambda one: (one.is_root, one.opcode == "parameter", one.shape.byte_size))[-_MOST:]
        every = [one for one in every if one in largest]
    kept = {one.name for one in every}
    edges = []
    for one in every:
        for maker in dict.fromkeys(_through(body, one.operands)):
            if maker in kept:
                edges.append((maker, one.name, body.by_name[maker].shape.byte_size))
    return every, edges


def _through(body: Computation, names: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        one = body.by_name.get(name)
        if one is not None:
            found += _through(body, one.operands) if one.opcode in _INVISIBLE else [name]
    return found


def _parameters(
    view: object, module: HloModule, name: str, before: Sequence[str], inside: Sequence[Instruction]
) -> dict[str, int]:
    """Which parameter (position in ``inside``) each maker of an operand feeds."""
    computation, instruction = _place(module, name)
    numbers = {one.operand_text.strip("()"): i for i, one in enumerate(inside) if one.opcode == "parameter"}
    found: dict[str, int] = {}
    for number, operand in enumerate(instruction.operands):
        maker: str | None = operand
        while maker is not None and maker not in before:
            one = computation.by_name.get(maker)
            maker = one.operands[0] if one is not None and one.operands else None
        if maker is not None and str(number) in numbers:
            found.setdefault(maker, numbers[str(number)])
    return found


def _place(module: HloModule, name: str) -> tuple[Computation, Instruction]:
    for computation in module.computations.values():
        if name in computation.by_name:
            return computation, computation.by_name[name]
    raise unknown("kernel", name, [])
