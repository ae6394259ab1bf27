"""Put the operations of a lowered JAX callable in the place of one operation, in its block.

    %r = stablehlo.dot_general %a, %b   -->   %0 = stablehlo.multiply ... ; %r = stablehlo.reduce ...

``splice`` puts a call of a private function there; this is for rewrites of a few operations, which read better where
they stand and which analyses of one function then see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir

from fusionlab.codegen.splice import lower_callable
from fusionlab.hlo.program import TensorType


def inline(
    operation: Any, function: Callable[..., Sequence[Any]], operands: Sequence[Any], *, platform: str
) -> list[Any]:
    """Replace ``operation`` by the operations of ``function(*operands)``, which take its location; gives these.

    ``operands`` are MLIR values that dominate ``operation``. ValueError if the function gives other types, or if its
    lowering calls functions (it is to be made of ``lax`` operations). The replaced operation is erased.
    """
    module = _module_of(operation)
    with module.context:
        lowered = ir.Module.parse(lower_callable(function, [TensorType.of(value.type) for value in operands], platform))
        block = _only_function(lowered).body.blocks[0]
        known = dict(zip(block.arguments, operands, strict=True))
        made = []
        for wrapped in block.operations:
            source = wrapped.operation
            if source.name == "func.return":
                results = [known[value] for value in source.operands]
                break
            copy = source.clone(ip=ir.InsertionPoint(operation))
            copy = getattr(copy, "operation", copy)
            for at, value in enumerate(source.operands):
                copy.operands[at] = known[value]
            known.update(zip(source.results, copy.results, strict=True))
            copy.location = operation.location
            made.append(copy)
        wanted = [result.type for result in operation.results]
        if [result.type for result in results] != wanted:
            raise ValueError(f"lowered to {[str(r.type) for r in results]}, expected {list(map(str, wanted))}")
        for old, new in zip(operation.results, results, strict=True):
            old.replace_all_uses_with(new)
        operation.erase()
    return made


def drop_dead(values: Sequence[Any]) -> None:
    """Erase what makes ``values`` and is read by nothing, and then what only that read; arguments stay."""
    waiting = _makers(values)
    while waiting:
        operation = waiting.pop()
        if any(True for result in operation.results for _ in result.uses):
            continue
        makers = _makers(operation.operands)
        operation.erase()
        waiting = [*(other for other in waiting if other not in makers), *makers]


def _makers(values: Sequence[Any]) -> list[Any]:
    """The operations that make ``values``, each once; arguments have none."""
    owners = [value.owner for value in values]
    return list(dict.fromkeys(getattr(o, "operation", o) for o in owners if not isinstance(o, ir.Block)))


def _only_function(module: ir.Module) -> Any:
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    if len(functions) != 1:
        raise ValueError("the callable lowers to more than one function")
    return functions[0]


def _module_of(operation: Any) -> Any:
    while operation.name != "builtin.module":
        operation = getattr(operation.parent, "operation", operation.parent)
    return operation
