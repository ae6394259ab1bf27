"""Replace an operation by a lowered JAX callable.

    %r = stablehlo.while(%a, %b) ...   -->   %r = func.call @name(%a, %b)

where ``@name`` is the private function that JAX lowers the callable to. Lowered operations get the scope and source
line of the node that they were marked with at tracing (see ``Raising.marks``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.lowering import lower_traced, tracing_for
from fusionlab.hlo.program import bytecode_of
from fusionlab.hlo.view import Node, TensorType, location_name

_MARK = re.compile(r"@<(\d+)>@")


def splice(
    operation: Any,
    function: Callable[..., Sequence[Any]],
    *,
    name: str,
    platform: str,
    operands: Sequence[Any] | None = None,
    origins: Mapping[int, Node] | None = None,
    callers: Sequence[str] = (),
) -> str:
    """Replace ``operation`` by a call of ``function(*operands)`` lowered for ``platform``; returns the symbol's name.

    ``operands`` are MLIR values that dominate the operation (its own operands by default); ``function`` takes one
    array per operand and returns one per result, of the same shapes and element types (ValueError otherwise).
    ``origins`` are the nodes that marks name; ``callers``, the scopes of the calls around ``operation``, are removed
    from the front of their scopes because the call adds them again.
    """
    module = _enclosing_module(operation)
    operands = list(operation.operands if operands is None else operands)
    results = [result.type for result in operation.results]
    types = [value.type for value in operands]
    with module.context, ir.Location.unknown():
        symbol = import_lowered(
            module, function, types, results, name, platform, {} if origins is None else origins, callers
        )
        call = func.CallOp(results, symbol, operands, ip=ir.InsertionPoint(operation))
        for old, new in zip(operation.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        operation.erase()
    return symbol


def import_lowered(
    module: Any,
    function: Callable[..., Sequence[Any]],
    operands: Sequence[ir.Type],
    results: Sequence[ir.Type],
    name: str,
    platform: str,
    origins: Mapping[int, Node],
    callers: Sequence[str] = (),
) -> str:
    """Add ``function``, lowered for ``platform`` from ``operands`` to ``results``, to ``module``; returns its symbol.

    To be called in the module's context. ValueError if it returns other types than ``results``.
    """
    lowered = lower_callable(function, [TensorType.of(type_) for type_ in operands], platform)
    entry, copies = _import(getattr(module, "operation", module), ir.Module.parse(lowered), name)
    outer = "/".join(part for part in callers if part)
    for copy in copies:
        _sink_constants(copy)
        _relocate(copy, origins, outer)
    if list(entry.opview.type.results) != list(results):
        raise ValueError(f"{name}: lowered to {list(entry.opview.type.results)}, expected {list(results)}")
    return str(ir.StringAttr(entry.attributes["sym_name"]).value)


def drop_dead_functions(module: ir.Module) -> None:
    """Remove private functions without callers."""
    with module.context:
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)


def lower_callable(function: Callable[..., Sequence[Any]], types: Sequence[TensorType], platform: str) -> bytes:
    raising = Raising()

    def spliced(*arrays: Any) -> tuple[Any, ...]:
        return tuple(function(*arrays))

    with jax.enable_x64(True), tracing_for(platform):
        abstract = [jax.ShapeDtypeStruct(type_.shape, np.dtype(raising.dtype(type_))) for type_ in types]
        traced = jax.jit(spliced, keep_unused=True).trace(*abstract)
        return bytecode_of(lower_traced(traced, "cpu" if platform == "any" else platform, source_lines=0))


def _import(target: Any, source: ir.Module, name: str) -> tuple[Any, list[Any]]:
    """Copy the functions of ``source`` into ``target`` as private ones, renamed; returns the entry and all of them."""
    block = target.regions[0].blocks[0]
    taken = {ir.StringAttr(op.operation.attributes["sym_name"]).value for op in block.operations if _is_function(op)}
    entry_name = ""
    for function in filter(_is_function, list(source.body.operations)):
        old = function.name.value
        fresh = next(n for n in _numbered(name if old == "main" else f"{name}_{old}") if n not in taken)
        taken.add(fresh)
        entry_name = fresh if old == "main" else entry_name
        ir.SymbolTable.replace_all_symbol_uses(old, fresh, source.operation)
        ir.SymbolTable.set_symbol_name(function, fresh)
        ir.SymbolTable.set_visibility(function, "private")
        # Argument and result names describe the callable, not the program it is inserted into.
        for attribute in ("arg_attrs", "res_attrs"):
            if attribute in function.operation.attributes:
                del function.operation.attributes[attribute]
    functions = filter(_is_function, list(source.body.operations))
    copies = [function.operation.clone(ip=ir.InsertionPoint(block)) for function in functions]
    copies = [getattr(copy, "operation", copy) for copy in copies]
    entry = next(c for c in copies if ir.StringAttr(c.attributes["sym_name"]).value == entry_name)
    return entry, copies


def _relocate(operation: Any, origins: Mapping[int, Node], outer: str) -> None:
    """Give every operation below ``operation`` the location of the node it is marked with."""
    for inner in _below(operation):
        name = location_name(inner)
        marks = _MARK.findall(name)
        last = name.rpartition("/")[2]
        if marks and int(marks[-1]) in origins:
            node = origins[int(marks[-1])]
            loop = node.op is ops.WHILE
            scope = (node.scope if loop else node.scope.rpartition("/")[0]).removeprefix(outer).strip("/")
            child = getattr(node.operation.location, "child_loc", None)
            inner.location = ir.Location.name(
                scope if "@<" in last or (loop and last == "while") else f"{scope}/{last}".strip("/"), child
            )
        else:
            inner.location = ir.Location.name(last) if last and "@<" not in last else ir.Location.unknown()


def _below(operation: Any) -> Iterator[Any]:
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from _below(inner.operation)


def _is_function(operation: Any) -> bool:
    return bool(operation.operation.name == "func.func")


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 0
    while True:
        yield f"{name}_{number}"
        number += 1


def _enclosing_module(operation: Any) -> Any:
    while operation.name != "builtin.module":
        operation = operation.parent
        operation = getattr(operation, "operation", operation)
    return operation


def _sink_constants(function: Any) -> None:
    """Sink loop-carried constants into the body of every ``stablehlo.while`` below ``function``, outer ones first.

        %c = constant; while(%a = %x, %k = %c) { f(%a, %k) } --> while(%a = %x, %k = %c) { %c = constant; f(%a, %c) }

    JAX lowers an array that a loop's body closes over to a value that the loop carries. XLA sinks constants of the same
    computation back into the loop, but not those that pass through a call: each is filled by a kernel, and read from
    memory in every trip.
    """
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
                if inner.name == ops.WHILE.name:
                    yield inner
                yield from _loops(inner)


def _maker(value: Any) -> Any:
    """The operation that produces ``value``; None for an argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


def _is_number(operation: Any) -> bool:
    """True if ``operation`` is a splat constant, which costs nothing in a fusion."""
    if operation.name != ops.CONSTANT.name:
        return False
    if isinstance(ir.ShapedType(operation.results[0].type).element_type, ir.ComplexType):
        return False  # the bindings cannot return complex elements
    numbers = operation.attributes["value"]
    return isinstance(numbers, ir.DenseElementsAttr) and bool(numbers.is_splat)
