"""Where a module says on which devices its arrays lie."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

SHARDINGS = ("mhlo.sharding", "sdy.sharding")
"""Attributes of operations, and of a function's arguments and results."""


def is_sharded(module: ir.Module) -> bool:
    """Whether any operation, argument or result of ``module`` has a sharding."""
    found = False

    def look(operation: Any) -> ir.WalkResult:
        nonlocal found
        attributes = operation.attributes
        found = operation.name.startswith("sdy.") or any(name in attributes for name in SHARDINGS)
        for of in ("arg_attrs", "res_attrs"):
            if of in attributes:
                found = found or any(name in given for given in attributes[of] for name in SHARDINGS)
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found
