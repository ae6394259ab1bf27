"""The contents of a parsed module, by walking its operations.

Never by searching its text: strings, names and locations in it are arbitrary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

MOST_ELEMENTS = 2**48
SHARDINGS = ("mhlo.sharding", "sdy.sharding")
"""Attributes of operations, and of a function's arguments and results, that say on which devices arrays lie."""
_CPU_CALLS = re.compile(r"lapack_|__custom_call_cpu|ducc_fft|eigen_")
_CUDA_CALLS = re.compile(r"cusolver_|cublas|__gpu\$|cu_lu_pivots|cudnn|cuda_")
_COUNTED = ("stablehlo", "chlo")


def inner_operations(operation: ir.Operation) -> Iterator[ir.Operation]:
    """The operations nested in ``operation``, in pre-order."""
    for region in operation.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner.operation
                yield from inner_operations(inner.operation)


def operations_in(module: ir.Module) -> int:
    """Number of StableHLO and CHLO operations of ``module``, in all functions and regions; terminators do not count."""
    count = 0

    def look(operation: Any) -> Any:
        nonlocal count
        dialect, _, name = operation.name.partition(".")
        count += dialect in _COUNTED and name != "return"
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return count


def platform_of(module: ir.Module) -> str:
    """``cuda`` or ``cpu``, by the libraries that custom calls of ``module`` name; ``any`` where they name neither."""
    targets = set()

    def look(operation: Any) -> Any:
        if operation.name.endswith("custom_call") and "call_target_name" in operation.attributes:
            targets.add(operation.attributes["call_target_name"].value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    if any(map(_CUDA_CALLS.search, targets)):
        return "cuda"
    return "cpu" if any(map(_CPU_CALLS.search, targets)) else "any"


def is_sharded(module: ir.Module) -> bool:
    """True if any operation, argument or result of ``module`` has a sharding."""
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


def parts_by_hand(module: ir.Module) -> str | None:
    """The function (``@main``) in which ``module`` partitions work by hand (``shard_map``); None if there is none."""
    for wrapped in module.body.operations:
        function = wrapped.operation
        if any(inner.name == "sdy.manual_computation" for inner in inner_operations(function)):
            return f"@{ir.StringAttr(function.attributes['sym_name']).value}"
    return None


def types_in(module: ir.Module) -> dict[ir.Type, str]:
    """Types of all values in ``module``, and of the arguments and results of functions without a body, each with the
    first function that has it (``@main``), or ``the module``."""
    found: dict[ir.Type, str] = {}
    for top in module.body.operations:
        is_function = top.operation.name == "func.func"
        where = f"@{top.name.value}" if is_function else "the module"
        for type_ in (*top.type.inputs, *top.type.results) if is_function else ():
            found.setdefault(type_, where)
        _collect_types(top, found, where)
    return found


def _collect_types(top: Any, found: dict[ir.Type, str], where: str) -> None:
    def look(operation: Any) -> Any:
        for result in operation.results:
            found.setdefault(result.type, where)
        for region in operation.regions:
            for block in region:
                for argument in block.arguments:
                    found.setdefault(argument.type, where)
        return ir.WalkResult.ADVANCE

    top.operation.walk(look, ir.WalkOrder.PRE_ORDER)


def is_dynamic(type_: ir.Type) -> bool:
    """True if ``type_`` is a tensor of unknown shape, or a tuple that contains one."""
    return any(isinstance(t, ir.UnrankedTensorType) or not t.has_static_shape for t in _tensors(type_))


def is_impossible(type_: ir.Type) -> bool:
    """True if ``type_``, which is not dynamic, has more elements than any memory holds."""
    return any(math.prod(tensor.shape) > MOST_ELEMENTS for tensor in _tensors(type_))


def _tensors(type_: Any) -> Iterator[Any]:
    if isinstance(type_, ir.TupleType):
        for index in range(type_.num_types):
            yield from _tensors(type_.get_type(index))
    elif isinstance(type_, ir.RankedTensorType | ir.UnrankedTensorType):
        yield type_
