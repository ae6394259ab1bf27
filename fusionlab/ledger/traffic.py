"""Bytes that one run of an HLO instruction reads and writes: a model by shapes alone (XLA does not report them).

Operands are read whole and results are written whole, except that

- ``slice``, ``dynamic-slice`` and ``gather`` read what they return, also when a fusion's parameter is only used by
  them (through ``bitcast``);
- ``dynamic-update-slice`` and ``scatter`` work in place and touch what they update, in a fusion where its result is a
  parameter with such updates that nothing else reads whole;
- the scratch of a library call (the ``s8`` elements of its result tuple) is not data.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
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


@dataclass(frozen=True)
class Update:
    """An update in place of ``operands`` (one, or several by one scatter): its bytes, and those of the whole arrays."""

    operands: tuple[str, ...]
    bytes: int
    array_bytes: int


def traffic_of(module: HloModule, computation: Computation, instruction: Instruction) -> Traffic:
    """Bytes of one run of ``instruction``, which stands in ``computation``."""
    read = sum(reads_of(module, computation, instruction).values())
    if instruction.is_fusion:
        inside = module.computations[instruction.called[0]]
        in_place = _in_place(inside)
        written = (in_place[name][1] if name in in_place else inside.by_name[name].shape.byte_size
                   for name in _results(inside))  # fmt: skip
        return Traffic(read, sum(written))
    if instruction.opcode in _UPDATE_A_PART and any(name in computation.by_name for name in instruction.operands):
        return Traffic(read, _update_bytes(computation, instruction))
    return Traffic(read, data_bytes(instruction))


def updates_in_place(module: HloModule, computation: Computation, instruction: Instruction) -> list[Update]:
    """What one run of ``instruction`` updates in place."""
    if instruction.is_fusion:
        inside = module.computations[instruction.called[0]]
        operands = {one.name: name for one, name in zip(inside.parameters, instruction.operands, strict=True)}
        return [
            Update((operands[parameter],), updated, inside.by_name[name].shape.byte_size)
            for name, (parameter, updated) in _in_place(inside).items()
        ]
    if instruction.opcode in _UPDATE_A_PART and any(name in computation.by_name for name in instruction.operands):
        operands_of_it = tuple(instruction.operands[: _updated_operands(instruction)])
        return [Update(operands_of_it, _update_bytes(computation, instruction), data_bytes(instruction))]
    return []


def reads_of(module: HloModule, computation: Computation, instruction: Instruction) -> dict[str, int]:
    """Operand name to the bytes of it that one run of ``instruction`` reads."""
    read: dict[str, int] = {}
    if instruction.is_fusion:
        inside = module.computations[instruction.called[0]]
        updated = {parameter for parameter, _ in _in_place(inside).values()}
        for parameter, operand in zip(inside.parameters, instruction.operands, strict=True):
            read[operand] = max(read.get(operand, 0), _read_of_parameter(inside, parameter, parameter.name in updated))
        return read
    names = instruction.operands
    if instruction.opcode in _UPDATE_A_PART:
        names = names[_updated_operands(instruction) :]
    read = {name: computation.by_name[name].shape.byte_size for name in names if name in computation.by_name}
    if instruction.opcode in _READ_A_PART and names[0] in read:
        read[names[0]] = data_bytes(instruction)
    return read


def _results(inside: Computation) -> Sequence[str]:
    return inside.root.operands if inside.root.opcode == "tuple" else [inside.root.name]


def _in_place(inside: Computation) -> dict[str, tuple[str, int]]:
    """The results of a fusion that are a parameter with parts of it updated: (the parameter, the bytes of the updates).

    Nothing else may read the parameter, but parts of it, or be another version of it.
    """
    found: dict[str, tuple[str, int]] = {}
    results = list(_results(inside))
    for name in results:
        value, written, versions = inside.by_name[name], 0, [name]
        while value.opcode in _VIEWS or (value.opcode in _UPDATE_A_PART and _updated_operands(value) == 1):
            written += _update_bytes(inside, value) if value.opcode in _UPDATE_A_PART else 0
            value = inside.by_name[value.operands[0]]
            versions.append(value.name)
        read = (user for version in versions for user in inside.users[version] if user is not inside.root)
        only = all(user.name in versions or _reads_a_part(user, versions) for user in read)
        if value.opcode == "parameter" and written and only and sum(map(results.count, versions)) == 1:
            found[name] = value.name, written
    return found


def _reads_a_part(user: Instruction, versions: Collection[str]) -> bool:
    """True if ``user`` reads as much of its first operand as it returns, and no other one is in ``versions``."""
    return user.opcode in _READ_A_PART and not any(name in versions for name in user.operands[1:])


def _read_of_parameter(inside: Computation, parameter: Instruction, updated: bool) -> int:
    """Bytes of ``parameter`` that are read; ``updated``: a result is made of it in place."""
    whole, parts = parameter.shape.byte_size, 0
    pending = [parameter]
    while pending:
        value = pending.pop()
        if value.is_root and not updated:
            return whole
        for user in inside.users[value.name]:
            if user.opcode in _VIEWS or (
                user.opcode in _UPDATE_A_PART and value.name not in user.operands[_updated_operands(user) :]
            ):
                pending.append(user)
            elif _reads_a_part(user, [value.name]):
                parts += user.shape.byte_size
            elif not updated:
                return whole
    return min(whole, parts)


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
