"""Directions that a program writes one by one, as a Python loop over the coordinates does:

for k in range(n): total += jax.jvp(gradient, (x,), (jnp.eye(n)[k],))[1][k]     (n pushes, and no array of directions)
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection

import jax
import numpy as np

from fusionlab.codegen.raising import RaiseError, Raising, raise_nodes
from fusionlab.hlo import ops
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.view import FunctionView, Value

_MAKERS = (ops.CONSTANT, ops.DYNAMIC_UPDATE_SLICE, ops.PAD, ops.SCATTER)
"""The last op of a unit vector; a pad is the transpose of reading one element."""
_MOST_ELEMENTS = 2**24
"""Of all arrays that may be unit vectors, together."""


def unit_vectors(flat: FunctionView, given: Collection[Value]) -> dict[int, list[list[Value]]]:
    """By extent n, for every k < n the values of ``flat`` that are unit vector k; of complete sets only.

    A value [*repeated, ...] is unit vector k if all its arrays [...] are 1 at element k and else 0. ``given`` are the
    values that depend on the arguments.
    """
    made = [v for node in flat.nodes if node.op in _MAKERS for v in node.results]
    made = [v for v in made if v.dtype in WIDE_FLOATS and v not in given and v.type.shape and v.type.shape[-1] > 1]
    counts = Counter(value.type.shape for value in made)
    made = [value for value in made if counts[value.type.shape] >= value.type.shape[-1]]
    if not made or sum(math.prod(value.type.shape) for value in made) > _MOST_ELEMENTS:
        return {}
    try:
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            arrays = raise_nodes(flat.nodes, (), made, Raising(fold=True))()
    except (RaiseError, NotImplementedError):  # an op without a rule
        return {}
    found: dict[int, dict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for value, array in zip(made, arrays, strict=True):
        if (place := _place(np.asarray(array))) is not None:
            extent, k = place
            found[extent][k].append(value)
    return {n: [places[k] for k in range(n)] for n, places in found.items() if len(places) == n}


def _place(array: np.ndarray) -> tuple[int, int] | None:
    """(n, k) of unit vector k of n elements, repeated along as few leading axes as possible; else None."""
    for axes in range(array.ndim):
        rows = array.reshape(math.prod(array.shape[:axes]), -1)
        if rows.shape[1] < 2:
            return None
        first = rows[0]
        if first.max() == 1 and np.count_nonzero(first) == 1 and (rows == first).all():
            return len(first), int(first.argmax())
    return None
