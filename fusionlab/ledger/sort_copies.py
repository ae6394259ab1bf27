"""The copies that XLA:GPU makes before a sort, which sorts in place: of operands that are not where the result is.

A sort runs by itself, or, in JAX 0.9, as the root of a fusion with its producers inside.
Its thunk list has them. Where launches are counted from the scheduled HLO, they follow from the buffer assignment.
"""

from __future__ import annotations

from fusionlab.hlo.optimised.buffers import places_of
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction

_VIEWS = ("bitcast", "reshape")
_Places = dict[str, tuple[int, int]]


def sort_copies(module: HloModule, assignment: str) -> dict[str, int]:
    """The name of each sort that runs by itself, or as the root of a fusion, to the number of its copies.

    Empty without an ``assignment``.
    """
    places, found = places_of(assignment), dict[str, int]()
    if not places:
        return found
    every = module.computations.values()
    fused = {one.called[0] for computation in every for one in computation.instructions if one.is_fusion}
    for computation in every:
        for one in () if computation.name in fused else computation.instructions:
            if one.opcode == "sort":
                found[one.name] = _copies(computation, one, places)
            elif one.is_fusion:
                inside = module.computations[one.called[0]]
                root = next(each for each in inside.instructions if each.is_root)
                if root.opcode == "sort":
                    found[one.name] = _copies_of_fusion(computation, one, inside, root, places)
    return found


def _copies(computation: Computation, sort: Instruction, places: _Places) -> int:
    return sum(
        _is_copied(sort, at, sort.shape.is_tuple, computation, name, places) for at, name in enumerate(sort.operands)
    )


def _copies_of_fusion(
    computation: Computation, fusion: Instruction, inside: Computation, sort: Instruction, places: _Places
) -> int:
    """The copies of a fusion whose root is ``sort``: its kernel writes what it computes itself where the result is."""
    numbers = {one.name: at for at, one in enumerate(inside.parameters)}
    behind = [_behind(inside, name).name for name in sort.operands]
    return sum(
        _is_copied(fusion, at, sort.shape.is_tuple, computation, fusion.operands[numbers[name]], places)
        for at, name in enumerate(behind)
        if name in numbers
    )


def _is_copied(
    made: Instruction, at: int, several: bool, computation: Computation, operand: str, places: _Places
) -> bool:
    """True if result ``at`` of ``made`` is known to be elsewhere than ``operand``."""
    result = places.get(f"{made.name}{{{at}}}" if several else f"{made.name}{{}}")
    return result is not None and result != places.get(_made_as(computation, operand))


def _made_as(computation: Computation, name: str) -> str:
    """The name of the array behind ``name``, as the buffer assignment has it."""
    one = _behind(computation, name)
    if one.opcode == "get-tuple-element":
        return f"{one.operands[0]}{{{one.attributes.get('index', '')}}}"
    return f"{one.name}{{}}"


def _behind(computation: Computation, name: str) -> Instruction:
    """The instruction ``name``, or what it is a view of."""
    one = computation.by_name[name]
    while one.opcode in _VIEWS:
        one = computation.by_name[one.operands[0]]
    return one
