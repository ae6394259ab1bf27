"""Order by optimization barriers: what XLA fuses in front of a kernel is not fused with what later kernels read.

    %m = reduce %p                                     %m = reduce %p
    %y = call @kernel(%m)                              %y = call @kernel(%m)
    %n = reduce (tanh %p)                 -->          %q, %z = optimization_barrier %p, %y
    %r = call @kernel(%n)                              %n = reduce (tanh %q)
                                                       %r = call @kernel(%n)

Two sums of one array become one fusion of several results, where nothing keeps them apart: with a library call between
them something does, and a kernel that reads both sums directly does not. Such a fusion runs out of registers (FermiNet
on the H100: six sums of pairs, 139 registers, 2.0 ms by the model instead of 0.8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.view import Node, Value, callee_of

_FUSED = {op for op in ops.OPS.values() if op.triton or op.strided} | {
    ops.CONCATENATE,
    ops.CONVERT,
    ops.PAD,
    ops.REDUCE,
}
"""Ops that XLA fuses with their readers."""


def order_behind(symbol: str, look: Callable[[], Block]) -> None:
    """Let what shares arrays with the operands of the call of ``symbol``, and is not for it, wait for its results."""
    block = look()
    call = next((node for node in block.nodes if callee_of(node.operation) == symbol), None)
    if call is None:
        return
    needed = _ancestors(call, block)
    shared = _made_in_front(call)
    late = [node for node in block.nodes if node not in needed and not shared.isdisjoint(node.operands)]
    values = [value for value in shared if any(value in node.operands for node in late)]
    if not values:
        return
    handles = [value.handle for value in sorted(values, key=lambda value: value.id)]
    (result, *_) = (value.handle for value in call.results)
    readers = [use.owner.operation for use in result.uses]
    barrier = _barrier_behind(call.operation, [*handles, result])
    instead = list(zip([*handles, result], barrier.results, strict=True))
    for operation in (*(node.operation for node in late), *readers):
        _replace(operation, instead)
    _move_behind(block, call, late, barrier)


def _barrier_behind(operation: Any, operands: Sequence[Any]) -> Any:
    """An optimization barrier of ``operands`` directly after ``operation``."""
    behind = list(operation.block.operations)
    after = next(at for at, each in enumerate(behind) if each.operation == operation) + 1
    with operation.context, operation.location, ir.InsertionPoint(behind[after]):
        return stablehlo.OptimizationBarrierOp(operands).operation


def _ancestors(call: Node, block: Block) -> set[Node]:
    """All that ``call`` depends on, itself included."""
    found: set[Node] = set()
    waiting = [call]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [value.producer for value in block.reads[node] if value.producer is not None]
    return found


def _made_in_front(call: Node) -> set[Value]:
    """The arrays that XLA may compute in one fusion in front of ``call``, and those that this reads."""
    found: set[Value] = set()
    waiting = [value for value in call.operands if value.producer is not None and value.producer.op in _FUSED]
    while waiting:
        value = waiting.pop()
        if value in found or value.producer is None or _is_constant(value):
            continue
        found.add(value)
        if value.producer.op in _FUSED:
            waiting += value.producer.operands
    return found


def _is_constant(value: Value) -> bool:
    """True if ``value`` is a constant, moved or broadcast."""
    while value.producer is not None and value.producer.op.strided:
        value = value.producer.operands[0]
    return value.producer is not None and value.producer.op.source


def _replace(operation: Any, instead: Iterable[tuple[Any, Any]]) -> None:
    for at, operand in enumerate(operation.operands):
        for old, new in instead:
            if operand == old:
                operation.operands[at] = new


def _move_behind(block: Block, call: Node, late: Iterable[Node], barrier: Any) -> None:
    """Move ``late`` ones, and what depends on them, from before ``call`` behind the barrier, in order."""
    first = set(late)
    behind = barrier
    for node in block.nodes[: block.place[call]]:
        if node in first or block.depends(node, first):
            node.operation.move_after(behind)
            behind = node.operation
