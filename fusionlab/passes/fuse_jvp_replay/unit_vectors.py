"""Directions of which a program has no identity matrix:

Python loop:        for k in range(n): total += jvp(gradient, (x,), (eye[k],))[1][k]
of each electron:   for i in range(n // 3): total += trace(hessian(lambda y: f(x.at[i].set(y)))(x[i]))
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.hlo import ops
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.view import FunctionView, Node, TensorType, Value, reads

_MAKERS = (ops.DYNAMIC_UPDATE_SLICE, ops.PAD, ops.SCATTER)
"""The last op of unit vectors, but for constants; a pad is the transpose of reading one element."""
_PARTS = frozenset((
    *_MAKERS, ops.ADD, ops.AND, ops.BROADCAST_IN_DIM, ops.COMPARE, ops.CONCATENATE, ops.CONSTANT, ops.CONVERT,
    ops.GATHER, ops.IOTA, ops.MULTIPLY, ops.OR, ops.RESHAPE, ops.SELECT, ops.SLICE, ops.SUBTRACT, ops.TRANSPOSE,
))  # fmt: skip
"""Ops by which they are made."""
_MOST_OPS = 100
"""By which one is made."""
_MOST_ELEMENTS = 2**24
"""Of all arrays by which one is made."""
_MOST_TOGETHER = 2**28
"""Of those of all that are looked at."""


def unit_vectors(flat: FunctionView) -> dict[int, list[list[Value]]]:
    """By extent n, for every k < n the values of ``flat`` that hold unit vector k; of complete sets only.

    Of a value [*many, ...] all arrays [...] are unit vectors.
    """
    made = [value for node in flat.nodes if node.op in _MAKERS for value in node.results]
    of_type: dict[TensorType, list[Value]] = defaultdict(list)
    for node in flat.nodes:
        if node.op is ops.CONSTANT:
            of_type[node.results[0].type].append(node.results[0])
    for type_, constants in of_type.items():
        if type_.shape and len(constants) >= type_.shape[-1]:  # else there is no vector for each element
            made += constants
    found: dict[int, dict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
    left = _MOST_TOGETHER
    for value in made:
        if not value.type.shape or value.dtype not in WIDE_FLOATS:
            continue
        nodes, elements = _made_by(value)
        if not nodes or (left := left - elements) < 0:
            continue
        extent, places = _places(_evaluated(value, nodes))
        for k in places:
            found[extent][k].append(value)
    return {n: [places[k] for k in range(n)] for n, places in found.items() if len(places) == n}


def _made_by(value: Value) -> tuple[list[Node], int]:
    """The nodes by which ``value`` is made of constants, and the elements of their results; none if they are more than
    moves, or too large."""
    found: dict[Node, None] = {}
    elements, pending = 0, [value]
    while pending:
        node = pending.pop().producer
        if node is None or node.op not in _PARTS:
            return [], 0
        if node not in found:
            found[node] = None
            elements += math.prod(node.results[0].type.shape)
            if len(found) > _MOST_OPS or elements > _MOST_ELEMENTS:
                return [], 0
            pending += reads(node)
    return sorted(found, key=lambda node: node.id), elements


def _evaluated(value: Value, nodes: Sequence[Node]) -> np.ndarray:
    """The array of ``value``; an empty one if it cannot be computed here."""
    known: dict[Value, Any] = {}
    try:
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            Raising(fold=True).run(nodes, known)
            return np.asarray(known[value])
    except (RaiseError, RuntimeError):  # a form of an op without a rule; no CPU client, or not enough memory
        return np.empty(0)


def _places(array: np.ndarray) -> tuple[int, set[int]]:
    """n and those k of which ``array`` has unit vectors of n elements, behind as few leading axes as possible; of an
    array of anything else no k."""
    for axes in range(array.ndim if array.size else 0):
        rows = array.reshape(math.prod(array.shape[:axes]), -1)
        if rows.shape[1] > 1 and (np.count_nonzero(rows, axis=1) == 1).all() and (rows.max(1) == 1).all():
            return rows.shape[1], set(rows.argmax(1).tolist())
    return 0, set()
