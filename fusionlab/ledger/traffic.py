"""Bytes that one run of an HLO instruction reads and writes: a model by shapes alone (XLA does not report them).

Operands are read whole and results are written whole, except that

- ``slice``, ``dynamic-slice`` and ``gather`` read what they return, also when a fusion's parameter is only used by
  them (through ``bitcast``);
- ``dynamic-update-slice`` and ``scatter`` work in place, those in a fusion where they are its result: they touch what
  they update;
- the scratch of a library call (the ``s8`` elements of its result tuple) is not data.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, Shape

_READ_A_PART = ("slice", "dynamic-slice", "gather")
_UPDATE_A_PART = ("dynamic-update-slice", "scatter")
_VIEWS = ("bitcast", "reshape")


@dataclass(frozen=True)
class Traffic:
    """Bytes read and written by one run."""

    operand_bytes: int
    result_bytes: int


def traffic_of(module: HloModule, computation: Computation, instruction: Instruction) -> Traffic:
    """Bytes of one run of ``instruction``, which stands in ``computation``."""
    read = sum(reads_of(module, computation, instruction).values())
    if instruction.opcode == "fusion":
        inside = module.computations[instruction.called[0]]
        root = inside.root
        results = [inside.by_name[name] for name in root.operands] if root.opcode == "tuple" else [root]
        return Traffic(read, sum(_written_by_root(inside, result) for result in results))
    if instruction.opcode in _UPDATE_A_PART and any(name in computation.by_name for name in instruction.operands):
        return Traffic(read, _update_bytes(computation, instruction))
    return Traffic(read, data_bytes(instruction))


def reads_of(module: HloModule, computation: Computation, instruction: Instruction) -> dict[str, int]:
    """Operand name to the bytes of it that one run of ``instruction`` reads."""
    read: dict[str, int] = {}
    if instruction.opcode == "fusion":
        inside = module.computations[instruction.called[0]]
        for parameter, operand in zip(inside.parameters, instruction.operands, strict=True):
            read[operand] = max(read.get(operand, 0), _read_of_parameter(inside, parameter))
        return read
    names = instruction.operands
    if instruction.opcode in _UPDATE_A_PART:
        names = names[_updated_operands(instruction) :]
    read = {name: computation.by_name[name].shape.byte_size for name in names if name in computation.by_name}
    if instruction.opcode in _READ_A_PART and names[0] in read:
        read[names[0]] = data_bytes(instruction)
    return read


def _read_of_parameter(inside: Computation, parameter: Instruction) -> int:
    whole, parts = parameter.shape.byte_size, 0
    pending = [(parameter, False)]
    while pending:
        value, updated = pending.pop()
        if value.is_root and not updated:
            return whole
        for user in inside.users[value.name]:
            if user.opcode in _VIEWS:
                pending.append((user, updated))
            elif user.opcode in _READ_A_PART and user.operands[0] == value.name and value.name not in user.operands[1:]:
                parts += user.shape.byte_size
            elif user.opcode in _UPDATE_A_PART and value.name not in user.operands[_updated_operands(user) :]:
                pending.append((user, True))
            elif not (updated and user.opcode == "tuple" and user.is_root):
                return whole
    return min(whole, parts)


def _written_by_root(inside: Computation, root: Instruction) -> int:
    while root.opcode in _VIEWS:
        root = inside.by_name[root.operands[0]]
    return _update_bytes(inside, root) if root.opcode in _UPDATE_A_PART else root.shape.byte_size


def _updated_operands(instruction: Instruction) -> int:
    """The number of leading operands that are updated (a scatter may update several at once)."""
    return 1 if instruction.opcode == "dynamic-update-slice" else (len(instruction.operands) - 1) // 2


def _update_bytes(computation: Computation, instruction: Instruction) -> int:
    arrays = _updated_operands(instruction)
    first = 1 if instruction.opcode == "dynamic-update-slice" else arrays + 1
    updates = instruction.operands[first : first + arrays]
    return sum(computation.by_name[name].shape.byte_size for name in updates)


def data_bytes(instruction: Instruction) -> int:
    """Bytes of the result of ``instruction``, without the scratch space of a library call."""
    shape = instruction.shape
    if instruction.opcode == "custom-call" and shape.is_tuple:
        shape = Shape("tuple", elements=tuple(one for one in shape.elements if one.dtype != "s8"))
    return shape.byte_size
