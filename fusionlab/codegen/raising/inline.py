"""Replace one operation (or several) by the operations of a lowered JAX callable, in their block.

    %r = stablehlo.dot_general %a, %b   -->   %0 = stablehlo.multiply ... ; %r = stablehlo.reduce ...

``splice`` puts a call of a private function there; this is for rewrites of a few operations, which read better inline
and are then seen by analyses of one function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.raising.splice import lower_callable
from fusionlab.hlo.loops import has_effect_inside
from fusionlab.hlo.view import TensorType


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
            copy = source.clone(ip=ir.InsertionPoint(first))
            copy = getattr(copy, "operation", copy)
            for at, value in enumerate(source.operands):
                copy.operands[at] = known[value]
            known.update(zip(source.results, copy.results, strict=True))
            copy.location = first.location
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
        if any(True for result in operation.results for _ in result.uses) or has_effect_inside(operation, functions):
            continue
        makers = _makers(operation.operands)
        operation.erase()
        waiting = [*(other for other in waiting if other not in makers), *makers]


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
