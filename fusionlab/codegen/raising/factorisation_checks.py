"""Remove the NaNs that JAX's lowering of LU selects where the library reports an illegal argument.

    %lu, %pivots, %info = custom_call @getrf(%a)
    %ok = compare GE %info, 0        --->    readers of %checked read %lu
    %checked = select %ok, %lu, NaN

``info`` is negative when argument ``-info`` of the call is illegal (LAPACK Users' Guide, 3rd ed., section on INFO; the
same in cuSOLVER), and the call was written by JAX. For a singular matrix it is positive, and passes. Between the
factorisation and the triangular solves the selection is a separate kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.view import TensorType, array_of_constant, inner_operations, keyword


def drop_factorisation_checks(module: ir.Module) -> int:
    """Let the readers of checked LU factors in ``module`` read the factors; returns the number of checks."""
    found = [
        operation
        for operation in inner_operations(module.operation)
        if operation.name == ops.SELECT.name and _is_check(*operation.operands)
    ]
    for operation in found:
        operation.results[0].replace_all_uses_with(operation.operands[1])
    return len(found)


def _is_check(chosen: Any, factors: Any, other: Any) -> bool:
    """True if ``select(chosen, factors, other)`` selects LU factors where ``info`` is not negative, else NaN."""
    lu = factors.owner
    if not _is(lu, ops.CUSTOM_CALL) or factors != lu.results[0]:
        return False
    if ir.StringAttr(lu.attributes["call_target_name"]).value not in ops.LU_TARGETS:
        return False
    compare = _source(chosen).owner
    if not _is(compare, ops.COMPARE) or keyword(compare.attributes["comparison_direction"]) != "GE":
        return False
    info, bound = compare.operands
    return bool(info == lu.results[2] and _all(lambda array: array == 0, bound) and _all(np.isnan, other))


def selects_nan_alone(info: Any) -> bool:
    """True if ``info`` is read where NaN is selected unless it is zero, and nowhere else, as JAX's lowering does."""
    for use in info.uses:
        reader = use.owner
        if _is(reader, ops.COMPARE):
            is_zero = keyword(reader.attributes["comparison_direction"]) == "EQ" and reader.operands[0] == info
            passes = (
                is_zero and _all(lambda array: array == 0, reader.operands[1]) and selects_nan_alone(reader.results[0])
            )
        elif _is(reader, ops.BROADCAST_IN_DIM):
            passes = selects_nan_alone(reader.results[0])
        else:
            passes = _is(reader, ops.SELECT) and use.operand_number == 0 and _all(np.isnan, reader.operands[2])
        if not passes:
            return False
    return True


def _is(operation: Any, op: ops.OpDef) -> bool:
    return not isinstance(operation, ir.Block) and bool(operation.name == op.name)


def _source(value: Any) -> Any:
    """The value that ``value`` is broadcast from."""
    while _is(value.owner, ops.BROADCAST_IN_DIM):
        value = value.owner.operands[0]
    return value


def _all(holds: Callable[[Any], Any], value: Any) -> bool:
    """True if ``value`` is a constant, broadcast or not, all elements of which hold."""
    constant = _source(value).owner
    if not _is(constant, ops.CONSTANT):
        return False
    array = array_of_constant(constant, TensorType.of(constant.results[0].type))
    return bool(np.all(holds(array)))
