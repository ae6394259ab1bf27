"""Replace operations by a lowered JAX callable: by a call of it, by its operations, or in place of a whole body.

    splice    %r = stablehlo.while(%a, %b) ...         -->   %r = func.call @name(%a, %b)
    inline    %r = stablehlo.dot_general %a, %b        -->   %0 = stablehlo.multiply ... ; %r = stablehlo.reduce ...
    rebuild   func @main(%args) { ... }                -->   func @main(%args) { %r = call @name(%args); return %r }

where ``@name`` is the private function that JAX lowers the callable to. Lowered operations get the scope and source
line of the node that they were marked with at tracing (see ``Raising.marks``). What is inlined reads better where a few
operations are rewritten, and is then seen by analyses of one function.
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
from fusionlab.codegen.raising.factorisation_checks import drop_factorisation_checks
from fusionlab.hlo import ops
from fusionlab.hlo.loops import has_effect_inside
from fusionlab.hlo.lowering import lower_traced, tracing_for
from fusionlab.hlo.program import bytecode_of
from fusionlab.hlo.view import Node, TensorType, child_location, inner_operations, location_name, public_function

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
    module = _module_of(operation)
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


def copy_here(operation: Any, known: dict[Any, Any]) -> Any:
    """Copy ``operation`` to the insertion point; it reads, and then adds to, ``known`` values there."""
    copy = operation.clone(ip=ir.InsertionPoint.current)
    copy = getattr(copy, "operation", copy)
    for one in (copy, *inner_operations(copy)):
        for at, value in enumerate(one.operands):
            if value in known:
                one.operands[at] = known[value]
    known.update(zip(operation.results, copy.results, strict=True))
    return copy


def inline(
    operations: Sequence[Any], function: Callable[..., Sequence[Any]], operands: Sequence[Any], *, platform: str
) -> None:
    """Replace ``operations`` by those of ``function(*operands)``, inserted at the first of them.

    The function returns the results of all of them, in order. ``operands`` are MLIR values that dominate the first.
    Inserted operations take the first one's location; the replaced ones are erased. ValueError if the function returns
    other types, or if its lowering calls functions (it must consist of ``lax`` operations).
    """
    first = operations[0]
    with _module_of(first).context:
        lowered = ir.Module.parse(lower_callable(function, [TensorType.of(value.type) for value in operands], platform))
        block = _only_function(lowered).body.blocks[0]
        known = dict(zip(block.arguments, operands, strict=True))
        results: list[Any] = []
        for wrapped in block.operations:
            source = wrapped.operation
            if source.name == "func.return":
                results = [known[value] for value in source.operands]
                break
            with ir.InsertionPoint(first):
                copy_here(source, known).location = first.location
        replaced = [result for operation in operations for result in operation.results]
        types = [(str(old.type), str(new.type)) for old, new in zip(replaced, results, strict=True)]
        if any(old != new for old, new in types):
            raise ValueError(f"lowered to other types than it replaces: {types}")
        for old, new in zip(replaced, results, strict=True):
            old.replace_all_uses_with(new)
        for operation in operations:
            operation.erase()


def drop_dead(values: Sequence[Any]) -> None:
    """Erase producers of ``values`` that are dead, and then those that become dead; arguments and effects stay."""
    waiting = _makers(values)
    functions = _functions_around(waiting[0]) if waiting else {}
    while waiting:
        operation = waiting.pop()
        if any(map(has_uses, operation.results)) or has_effect_inside(operation, functions):
            continue
        makers = _makers(operation.operands)
        operation.erase()
        waiting = [*(other for other in waiting if other not in makers), *makers]


def rebuild(
    module: ir.Module, function: Callable[..., Sequence[Any]], *, name: str, platform: str, origins: Mapping[int, Node]
) -> str:
    """Make the entry of ``module`` compute ``function(*arguments)``, lowered for ``platform``; returns its symbol.

    ``origins`` as for ``splice``. Common subexpressions and dead code are eliminated, and so are the checks that JAX's
    lowering adds to its own LU calls (``factorisation_checks``).
    """
    entry = public_function(module)
    block = entry.body.blocks[0]
    results = list(entry.type.results)
    with module.context, ir.Location.unknown():
        callee = import_lowered(
            module, function, [argument.type for argument in block.arguments], results, name, platform, origins
        )
        for operation in reversed(list(block.operations)):
            operation.operation.erase()
        with ir.InsertionPoint(block):
            call = func.CallOp(results, callee, list(block.arguments))
            func.ReturnOp(list(call.results))
        drop_factorisation_checks(module)
        passmanager.PassManager.parse("builtin.module(cse,symbol-dce)").run(module.operation)
    return callee


def has_uses(value: Any) -> bool:
    """True if an operation reads ``value``."""
    return any(True for _ in value.uses)


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
    entry, copies = import_functions(getattr(module, "operation", module), ir.Module.parse(lowered), name)
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


def import_functions(target: Any, source: ir.Module, name: str) -> tuple[Any, list[Any]]:
    """Copy the functions of ``source`` into ``target`` as private ones, renamed; returns the entry and all of them."""
    block = target.regions[0].blocks[0]
    taken = {ir.StringAttr(op.operation.attributes["sym_name"]).value for op in block.operations if _is_function(op)}
    entry_name = ""
    for function in filter(_is_function, list(source.body.operations)):
        old = function.name.value
        own = name if old == "main" else old if old.startswith(f"{name}_") else f"{name}_{old}"
        fresh = next(n for n in _numbered(own) if n not in taken)
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
    for inner in inner_operations(operation):
        name = location_name(inner)
        marks = _MARK.findall(name)
        last = name.rpartition("/")[2]
        if marks and int(marks[-1]) in origins:
            node = origins[int(marks[-1])]
            loop = node.op is ops.WHILE
            scope = (node.scope if loop else node.scope.rpartition("/")[0]).removeprefix(outer).strip("/")
            child = child_location(node.operation)
            inner.location = ir.Location.name(
                scope if "@<" in last or (loop and last == "while") else f"{scope}/{last}".strip("/"), child
            )
        else:
            inner.location = ir.Location.name(last) if last and "@<" not in last else ir.Location.unknown()


def _is_function(operation: Any) -> bool:
    return bool(operation.operation.name == "func.func")


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 0
    while True:
        yield f"{name}_{number}"
        number += 1


def _sink_constants(function: Any) -> None:
    """Sink loop-carried constants into the body of every ``stablehlo.while`` below ``function``, outer ones first.

        %c = constant; while(%a = %x, %k = %c) { f(%a, %k) } --> while(%a = %x, %k = %c) { %c = constant; f(%a, %c) }

    JAX lowers an array that a loop's body closes over to a value that the loop carries. XLA sinks constants of the same
    computation back into the loop, but not those that pass through a call: each is filled by a kernel, and read from
    memory in every trip.
    """
    for loop in [inner for inner in inner_operations(function) if inner.name == ops.WHILE.name]:
        for at, operand in enumerate(loop.operands):
            maker = next(iter(_makers([operand])), None)
            if maker is None or not _is_number(maker):
                continue
            blocks = [region.blocks[0] for region in loop.regions]
            terminator = blocks[1].operations[len(blocks[1].operations) - 1].operation
            if terminator.operands[at] != blocks[1].arguments[at]:
                continue
            for block in blocks:
                argument = block.arguments[at]
                if has_uses(argument):
                    copy = maker.clone(ip=ir.InsertionPoint.at_block_begin(block))
                    argument.replace_all_uses_with(getattr(copy, "operation", copy).results[0])
            terminator.operands[at] = blocks[1].arguments[at]


def _is_number(operation: Any) -> bool:
    """True if ``operation`` is a splat constant, which costs nothing in a fusion."""
    if operation.name != ops.CONSTANT.name:
        return False
    if isinstance(ir.ShapedType(operation.results[0].type).element_type, ir.ComplexType):
        return False  # the bindings cannot return complex elements
    numbers = operation.attributes["value"]
    return isinstance(numbers, ir.DenseElementsAttr) and bool(numbers.is_splat)


def _makers(values: Sequence[Any]) -> list[Any]:
    """The operations that produce ``values``, each once; arguments have none."""
    owners = [value.owner for value in values]
    return list(dict.fromkeys(getattr(o, "operation", o) for o in owners if not isinstance(o, ir.Block)))


def _functions_around(operation: Any) -> dict[str, Any]:
    """The functions of the module that ``operation`` is in, by name."""
    operations = (wrapped.operation for wrapped in _module_of(operation).regions[0].blocks[0].operations)
    return {ir.StringAttr(op.attributes["sym_name"]).value: op for op in operations if op.name == "func.func"}


def _only_function(module: ir.Module) -> Any:
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise ValueError("the callable lowers to more than one function")
    return functions[0]


def _module_of(operation: Any) -> Any:
    while operation.name != "builtin.module":
        operation = getattr(operation.parent, "operation", operation.parent)
    return operation
