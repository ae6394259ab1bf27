"""Replace some operations of a block by a kernel, with the operations themselves as its twin.

    %y = dot_general %x, %w; %z = tanh %y   -->   %z = call @kernel(%x, %w)      @kernel { twin = @kernel_twin }

``@kernel`` holds the kernel; ``@kernel_twin`` the operations that it replaces, unchanged. Whatever needs the program's
semantics reads the twin (``fusionlab.hlo.view``): analyses, the equivalence check, other passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from fusionlab.codegen.raising import Raising, raise_nodes
from fusionlab.codegen.raising.splice import has_uses, import_lowered
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.optimised.kernel_cost import STATED_FLOPS
from fusionlab.hlo.view import TWIN, Node, Value


def outline(
    block: Block,
    members: Sequence[Node],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    kernel: Callable[..., Sequence[Any]] | None,
    *,
    name: str,
    platform: str,
    flops: int,
) -> str:
    """Replace ``members`` (convex, in program order) by a call of ``kernel(*inputs) -> outputs``; returns its symbol.

    Members whose results have other readers stay for these. ``flops`` of the kernel are an attribute of its call, which
    ``hlo.optimised.kernel_cost`` reads. Without a ``kernel`` the function holds the plain operations too.
    """
    module = members[0].module
    last = block.place[members[-1]]
    with module.context, ir.Location.unknown():
        types = [value.handle.type for value in inputs]
        results = [value.handle.type for value in outputs]
        raising = Raising(marks={})
        twin = raise_nodes(block.nodes, list(inputs), list(outputs), raising)
        marks = raising.marks or {}
        symbol = import_lowered(module.operation, kernel or twin, types, results, name, platform, {})
        twin_symbol = import_lowered(module.operation, twin, types, results, f"{name}_twin", platform, marks)
        function = ir.SymbolTable(module.operation)[symbol]
        for call in (op.operation for op in function.operation.regions[0].blocks[0].operations):
            if call.name == ops.CUSTOM_CALL.name:
                stated = ir.DictAttr.get({STATED_FLOPS: ir.StringAttr.get(str(flops))})
                call.attributes["mhlo.frontend_attributes"] = stated
        function.operation.attributes[TWIN] = ir.FlatSymbolRefAttr.get(twin_symbol)
        place = _after(members[-1].operation)
        call = func.CallOp(results, symbol, [value.handle for value in inputs], ip=place)
        call.operation.location = members[0].operation.location
        _move_behind(block, members, last, call.operation)
        for value, made in zip(outputs, call.results, strict=True):
            value.handle.replace_all_uses_with(made)
        for member in reversed(members):
            if not any(map(has_uses, member.operation.results)):
                member.operation.erase()
    return symbol


def _after(operation: Any) -> ir.InsertionPoint:
    operations = list(operation.block.operations)
    at = next(i for i, other in enumerate(operations) if other.operation == operation)
    return ir.InsertionPoint(operations[at + 1])


def _move_behind(block: Block, members: Sequence[Node], last: int, call: Any) -> None:
    """Move the readers of members that stand between them after ``call``, in order."""
    inside = set(members)
    first = block.place[members[0]]
    behind = call
    for node in block.nodes[first : last + 1]:
        if node not in inside and block.depends(node, inside):
            node.operation.move_after(behind)
            behind = node.operation
