"""Loops that make their constants themselves: a ``while`` carries none unchanged.

    %c = constant; while(%a = %x, %k = %c) { f(%a, %k) }   -->   while(%a = %x, %k = %c) { %c = constant; f(%a, %c) }

JAX lowers an array that a loop's body closes over to a value that the loop carries. XLA takes constants back into the
loop that it meets beside it, but not those that come by way of a call: each is filled by a kernel, and read from memory
in every trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir


def sink_constants(function: Any) -> None:
    """Do so for every ``stablehlo.while`` below the operation ``function``, outer ones first."""
    for loop in _loops(function):
        for at, operand in enumerate(loop.operands):
            maker = _maker(operand)
            if maker is None or not _is_number(maker):
                continue
            blocks = [region.blocks[0] for region in loop.regions]
            terminator = blocks[1].operations[len(blocks[1].operations) - 1].operation
            if terminator.operands[at] != blocks[1].arguments[at]:
                continue
            for block in blocks:
                argument = block.arguments[at]
                if any(True for _ in argument.uses):
                    copy = maker.clone(ip=ir.InsertionPoint.at_block_begin(block))
                    argument.replace_all_uses_with(getattr(copy, "operation", copy).results[0])
            terminator.operands[at] = blocks[1].arguments[at]


def _loops(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for wrapped in list(block.operations):
                inner = wrapped.operation
                if inner.name == "stablehlo.while":
                    yield inner
                yield from _loops(inner)


def _maker(value: Any) -> Any:
    """The operation that makes ``value``; None for an argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


def _is_number(operation: Any) -> bool:
    """Whether ``operation`` makes one number everywhere: a fusion makes it for nothing."""
    if operation.name != "stablehlo.constant":
        return False
    if isinstance(ir.ShapedType(operation.results[0].type).element_type, ir.ComplexType):
        return False  # the bindings cannot hand over complex elements
    numbers = operation.attributes["value"]
    return isinstance(numbers, ir.DenseElementsAttr) and bool(numbers.is_splat)
