"""Put a lowered JAX callable in the place of an operation.

    %r = stablehlo.while(%a, %b) ...   -->   %r = func.call @name(%a, %b)

where ``@name`` is the private function that JAX lowers the callable to. Operations of the lowered code carry the name
stacks that were open while they were traced; the enclosing ``jit(...)`` that lowering adds is taken away again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func

from fusionlab.codegen.raising import SCOPE_CLOSE, SCOPE_OPEN, Raising
from fusionlab.hlo.program import TensorType

_ENTRY = "fusionlab_spliced"
_OPEN, _CLOSE = re.escape(SCOPE_OPEN), re.escape(SCOPE_CLOSE)


def splice(
    operation: Any,
    function: Callable[..., Sequence[Any]],
    *,
    name: str,
    platform: str,
    operands: Sequence[Any] | None = None,
) -> str:
    """Replace ``operation`` by a call of ``function(*operands)`` lowered for ``platform``; gives the symbol's name.

    ``operands`` are MLIR values that dominate the operation (its own operands by default); ``function`` takes one
    array per operand and returns one per result, of the same shapes and element types (ValueError otherwise).
    """
    module_operation = _enclosing_module(operation)
    operands = list(operation.operands if operands is None else operands)
    lowered = _lower(function, [TensorType.of(value.type) for value in operands], platform)
    with module_operation.context, ir.Location.unknown():
        entry = _import(module_operation, ir.Module.parse(lowered), name)
        results = [result.type for result in operation.results]
        if list(entry.type.results) != results:
            raise ValueError(f"{name}: lowered to {list(entry.type.results)}, expected {results}")
        call = func.CallOp(results, entry.name.value, operands, ip=ir.InsertionPoint(operation))
        for old, new in zip(operation.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        symbol = str(entry.name.value)
        operation.erase()
    return symbol


def drop_dead_functions(module: ir.Module) -> None:
    """Remove private functions that nothing calls any more."""
    with module.context:
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)


def _lower(function: Callable[..., Sequence[Any]], types: Sequence[TensorType], platform: str) -> bytes:
    raising = Raising()

    def fusionlab_spliced(*arrays: Any) -> tuple[Any, ...]:
        return tuple(function(*arrays))

    with jax.enable_x64(True):
        abstract = [jax.ShapeDtypeStruct(type_.shape, np.dtype(raising.dtype(type_))) for type_ in types]
        traced = jax.jit(fusionlab_spliced, keep_unused=True).trace(*abstract)
        lowered = traced.lower(lowering_platforms=(platform if platform != "any" else "cpu",))
        text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    with make_ir_context():
        return _bytecode(ir.Module.parse(_restore_scopes(text)))


def _restore_scopes(text: str) -> str:
    """Locations of lowered code as those of the code it came from: the innermost scope that was marked, whole."""
    text = re.sub(rf'"[^"]*{_OPEN}([^"]*?){_CLOSE}[^"]*?((?:/[^"/]*)?)"', r'"\1\2"', text)
    return re.sub(rf'"jit\({_ENTRY}\)/?', '"', text)


def _bytecode(module: ir.Module) -> bytes:
    import io

    buffer = io.BytesIO()
    module.operation.write_bytecode(file=buffer)
    return buffer.getvalue()


def _import(target: Any, source: ir.Module, name: str) -> Any:
    """Copy the functions of ``source`` into ``target`` under fresh names; gives the entry function's copy."""
    symbols = ir.SymbolTable(target)
    taken = {op.name.value for op in target.regions[0].blocks[0].operations if op.operation.name == "func.func"}
    entry = None
    for function in list(source.body.operations):
        if function.operation.name != "func.func":
            continue
        old = function.name.value
        wanted = name if old == "main" else f"{name}_{old}"
        fresh = next(n for n in _numbered(wanted) if n not in taken)
        taken.add(fresh)
        ir.SymbolTable.replace_all_symbol_uses(old, fresh, source.operation)
        ir.SymbolTable.set_symbol_name(function, fresh)
        ir.SymbolTable.set_visibility(function, "private")
        if old == "main":
            entry = fresh
    block = target.regions[0].blocks[0]
    for function in list(source.body.operations):
        copy = function.operation.clone(ip=ir.InsertionPoint(block))
        if entry == ir.StringAttr(copy.attributes["sym_name"]).value:
            entry_function = copy.opview
            _drop_argument_attributes(copy)
    del symbols
    return entry_function


def _drop_argument_attributes(function: Any) -> None:
    """The entry's result_info and argument names describe the callable, not the program it is put into."""
    for attribute in ("arg_attrs", "res_attrs"):
        if attribute in function.attributes:
            del function.attributes[attribute]


def _numbered(name: str) -> Any:
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
