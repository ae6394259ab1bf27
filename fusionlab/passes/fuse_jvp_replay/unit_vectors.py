"""Directions of which a program has no identity matrix:

Python loop:        for k in range(n): total += jvp(gradient, (x,), (eye[k],))[1][k]
of each electron:   for i in range(n // 3): total += trace(hessian(lambda y: f(x.at[i].set(y)))(x[i]))
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection

import jax
import numpy as np

from fusionlab.codegen.raising import RaiseError, Raising, raise_nodes
from fusionlab.hlo import ops
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.view import FunctionView, TensorType, Value

_MAKERS = (ops.DYNAMIC_UPDATE_SLICE, ops.PAD, ops.SCATTER)
"""The last op of unit vectors, but for constants; a pad is the transpose of reading one element."""
_MOST_ELEMENTS = 2**24
"""Of all arrays that may be unit vectors, together."""


def unit_vectors(flat: FunctionView, given: Collection[Value]) -> dict[int, list[list[Value]]]:
    """By extent n, for every k < n the values of ``flat`` that hold unit vector k; of complete sets only.

    Of a value [*many, ...] all arrays [...] are unit vectors. ``given`` are the values that depend on the arguments.
    """
    made = [value for node in flat.nodes if node.op in _MAKERS for value in node.results]
    of_type: dict[TensorType, list[Value]] = defaultdict(list)
    for node in flat.nodes:
        if node.op is ops.CONSTANT:
            of_type[node.results[0].type].append(node.results[0])
    for type_, constants in of_type.items():
        if type_.shape and len(constants) >= type_.shape[-1]:  # else there is no vector for each element
            made += constants
    made = [value for value in made if value.type.shape and value.dtype in WIDE_FLOATS and value not in given]
    if not made or sum(math.prod(value.type.shape) for value in made) > _MOST_ELEMENTS:
        return {}
    try:
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            arrays = raise_nodes(flat.nodes, (), made, Raising(fold=True))()
    except (RaiseError, NotImplementedError):  # an op without a rule
        return {}
    found: dict[int, dict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for value, array in zip(made, arrays, strict=True):
        extent, places = _places(np.asarray(array))
        for k in places:
            found[extent][k].append(value)
    return {n: [places[k] for k in range(n)] for n, places in found.items() if len(places) == n}


def _places(array: np.ndarray) -> tuple[int, set[int]]:
    """n and those k of which ``array`` has unit vectors of n elements, behind as few leading axes as possible; of an
    array of anything else no k."""
    for axes in range(array.ndim):
        rows = array.reshape(math.prod(array.shape[:axes]), -1)
        if rows.shape[1] > 1 and (np.count_nonzero(rows, axis=1) == 1).all() and (rows.max(1) == 1).all():
            return rows.shape[1], set(rows.argmax(1).tolist())
    return 0, set()
