"""Constant folding while a program is raised: small arrays that follow from constants alone.

Indices, masks and tables are computed once, here, and not on the device in every step; and moves by known indices can
be analysed at compile time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.raising.rules.rule import RaisedOp, Rule
from fusionlab.hlo import ops
from fusionlab.hlo.constants import evaluate
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.view import Node, reads

_MOST_ELEMENTS = 65_536
_MOST_FLOATS = 4_096
_WHOLE = frozenset(
    (
        *(ops.CLAMP, ops.CONCATENATE, ops.DYNAMIC_SLICE, ops.DYNAMIC_UPDATE_SLICE, ops.GATHER, ops.PAD, ops.REDUCE),
        *(ops.REDUCE_WINDOW, ops.REVERSE, ops.SCATTER, ops.SIGN, ops.SLICE, ops.SORT, ops.TRANSPOSE, ops.WHILE),
        ops.OPS["chlo.scan"],
    )
)
"""Ops that are run here when all their operands are known; others fold by NumPy or not at all."""


def folded(op: RaisedOp, rule: Rule) -> Sequence[Any] | None:
    """The results of ``op`` as NumPy arrays if all its operands are known and small; None otherwise."""
    node = op.node
    if not node.results or not all(isinstance(op.environment[value], np.ndarray) for value in reads(node)):
        return None
    if not is_small(op):
        return None
    if node.op is ops.OPTIMIZATION_BARRIER:
        return op.operands
    if len(node.results) == 1 and node.results[0] not in op.raising.shapes:
        with np.errstate(all="ignore"):
            array = op.jax(evaluate, node, op.operands)
        if array is not None and not _rounds(node, op.operands, array):
            return [np.asarray(array).astype(op.dtype)]
    if node.op not in _WHOLE:
        return None
    with jax.ensure_compile_time_eval():
        return [np.asarray(array) for array in rule(op)]


def is_small(op: RaisedOp) -> bool:
    """True if the results of ``op`` are of a size that is folded."""
    return all(
        math.prod(op.raising.shape(value)) <= (_MOST_FLOATS if value.type.dtype in FLOATS else _MOST_ELEMENTS)
        for value in op.node.results
    )


def _rounds(node: Node, operands: Sequence[np.ndarray], result: Any) -> bool:
    """True if a sum or product of floats is rounded: folded, it would differ from the program's constant."""
    combine = _RING.get(node.op)
    if combine is None or node.results[0].type.dtype not in FLOATS:
        return False
    with np.errstate(all="ignore"):
        wide = combine(*(np.asarray(operand).astype(np.longdouble) for operand in operands))
        return bool((wide != np.asarray(result).astype(np.longdouble)).any() and np.isfinite(wide).all())


_RING = {ops.ADD: np.add, ops.MULTIPLY: np.multiply, ops.SUBTRACT: np.subtract}
