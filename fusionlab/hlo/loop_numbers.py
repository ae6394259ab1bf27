"""A number in the name of every loop, so that what a pass reports of a place belongs to one loop.

Loops of one scope (two sums in one function) have one name stack, and a pass reports by name stack. Names decide
nothing, so a program with numbered loops is analysed and rewritten like the original.
"""

from __future__ import annotations

import re

from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.contents import inner_operations
from fusionlab.hlo.flat import location_name
from fusionlab.hlo.program import Program

_NUMBER = re.compile(r"#loop(\d+)(?=/|$)")


def with_numbered_loops(program: Program) -> Program:
    """``program`` with ``#loop0``, ``#loop1``, ... at the end of the name of every ``stablehlo.while``."""
    module = program.parse()
    loops = [operation for operation in inner_operations(module.operation) if operation.name == ops.WHILE.name]
    with module.context:
        for number, operation in enumerate(loops):
            place = operation.location
            child = getattr(place, "child_loc", None) or place
            operation.location = ir.Location.name(f"{location_name(operation)}#loop{number}", childLoc=child)
    return Program.from_module(module, name=program.name, provenance=program.provenance, platform=program.platform)


def loop_number(scope: str) -> int | None:
    """The number of the innermost loop in a name stack; None when it names no numbered loop."""
    numbers = _NUMBER.findall(scope)
    return int(numbers[-1]) if numbers else None


def without_numbers(scope: str) -> str:
    """The name stack as it was."""
    return _NUMBER.sub("", scope)
