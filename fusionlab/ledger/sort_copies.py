"""The copies that XLA:GPU makes before a sort, which sorts in place: of operands that are not where the result is.

Its thunk list has them. Where launches are counted from the scheduled HLO, they follow from the buffer assignment.
"""

from __future__ import annotations

from fusionlab.hlo.optimised.buffers import places_of
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction

_VIEWS = ("bitcast", "reshape")


def sort_copies(module: HloModule, assignment: str) -> dict[str, int]:
    """The name of each sort that runs by itself to the number of its copies; none without an ``assignment``."""
    places = places_of(assignment)
    return {
        one.name: _copies(computation, one, places)
        for computation in module.computations.values()
        for one in computation.instructions
        if places and one.opcode == "sort"
    }


def _copies(computation: Computation, sort: Instruction, places: dict[str, tuple[int, int]]) -> int:
    several = sort.shape.is_tuple
    found = 0
    for at, name in enumerate(sort.operands):
        result = places.get(f"{sort.name}{{{at}}}" if several else f"{sort.name}{{}}")
        found += result is not None and result != places.get(_made_as(computation, name))
    return found


def _made_as(computation: Computation, name: str) -> str:
    """The name of the array behind ``name``, as the buffer assignment has it."""
    one = computation.by_name[name]
    while one.opcode in _VIEWS:
        one = computation.by_name[one.operands[0]]
    if one.opcode == "get-tuple-element":
        return f"{one.operands[0]}{{{one.attributes.get('index', '')}}}"
    return f"{one.name}{{}}"
