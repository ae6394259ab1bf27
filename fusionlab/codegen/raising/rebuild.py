"""Replace a program's whole body by a lowered JAX callable.

    func @main(%args) { ... }   -->   func @main(%args) { %r = call @name(%args); return %r }

The entry keeps its name, signature and attributes (donations, shardings, result names).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func

from fusionlab.codegen.raising.factorisation_checks import drop_factorisation_checks
from fusionlab.codegen.raising.splice import import_lowered
from fusionlab.hlo.view import Node, public_function


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
