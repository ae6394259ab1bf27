"""Dataflow of optimised HLO: the ops that a launch runs, the value behind a view, and the readers of a value."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction

VIEWS = ("bitcast", "get-tuple-element", "reshape")


def instructions(module: HloModule) -> Iterator[tuple[Computation, Instruction]]:
    """Every instruction of the module with its computation."""
    for computation in module.computations.values():
        for one in computation.instructions:
            yield computation, one


def members(module: HloModule, instruction: Instruction) -> Iterator[Instruction]:
    """The instructions run by a launch of ``instruction``: itself, or the members of the fusion or call."""
    if not (instruction.is_fusion or instruction.opcode in ("call", "async-start")) or not instruction.called:
        yield instruction
        return
    inside = [member for name in instruction.called for member in module.computations[name].instructions]
    for member in inside:
        yield from members(module, member)
    if instruction.is_fusion and not any(member.op_name for member in inside):
        yield instruction


def behind_views(computation: Computation, name: str) -> tuple[str, int]:
    """The value that ``name`` is a view of: its instruction, and its index in that one's tuple (0 for an array)."""
    index = 0
    while (one := computation.by_name.get(name)) is not None and one.opcode in VIEWS and one.operands:
        if one.opcode == "get-tuple-element":
            index = int(one.attributes.get("index", "0"))
        name = one.operands[0]
    return name, index


def readers(computation: Computation, name: str, through: Collection[str] = VIEWS) -> list[Instruction]:
    """The instructions that read ``name``, also through ops ``through``; such an op that is the root counts itself."""
    pending, found = list(computation.users[name]), dict[str, Instruction]()
    seen = set[str]()
    while pending:
        user = pending.pop(0)
        if user.name in seen:
            continue
        seen.add(user.name)
        if user.opcode in through and not user.is_root:
            pending += computation.users[user.name]
        else:
            found[user.name] = user
    return list(found.values())
