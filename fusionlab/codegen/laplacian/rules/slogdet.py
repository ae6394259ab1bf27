"""log|det A| by LU factorisation, recognised as a whole because its derivatives need no derivative of the LU.

    LU = getrf(A);  y = sum_i log|LU_ii|     -->     y_k   = tr(A^-1 A_k)
                                                     lap y = tr(A^-1 lap A) - sum_k tr(A^-1 A_k A^-1 A_k)

(Jacobi's formula and its derivative.) Where A is complex, these are the real parts, and the imaginary parts belong to
the phase exp(i t) of the determinant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify
from fusionlab.codegen.laplacian.owners import moved_owner
from fusionlab.codegen.laplacian.rules import moves
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.composites import Composite
from fusionlab.codegen.raising.rules.reduction import combiner, is_nan
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.hlo import ops
from fusionlab.hlo.constants import taken_branch
from fusionlab.hlo.patterns import match, op
from fusionlab.hlo.view import Node, Value

_FOLLOWED = 24
"""The largest matrix whose row exchanges are applied one by one: from 28 rows on each is a separate kernel."""


_LOGARITHM = op("log", op("abs", "diagonal"))
_PATTERNS = (
    ("add", "log_abs_det", _LOGARITHM),
    ("add", "log_abs_det", op("convert", _LOGARITHM)),  # of a complex matrix
    ("multiply", "phase_of_det", op("divide", "diagonal", op("convert", op("abs", "diagonal")))),
)


def find_determinant(node: Node, environment: Mapping[Value, Any], one: Raising) -> Composite | None:
    """The log|det| that ``node`` is, if it is a sum of log|.| over the diagonal of LU factors; or the phase of a
    complex determinant (but for the sign of row exchanges), if it is the product of z / |z| over it."""
    if node.op is not ops.REDUCE or len(node.operands) != 2:
        return None
    how, diagonal = combiner(node.regions[0]), None
    for combined, kind, pattern in _PATTERNS:
        if how == combined and (found := match(pattern, node.operands[0])) is not None:
            diagonal, name = found["diagonal"], kind
            break
    if not isinstance(diagonal, Value) or integers(node.attributes["dimensions"]) != (len(diagonal.type.shape) - 1,):
        return None
    path, factors = _path_to_factors(diagonal)
    if factors is None or factors.producer is None or factors.type.shape[-1] != factors.type.shape[-2]:
        return None
    *batch, n, _ = shape = one.shape(factors)
    places = np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)
    expected = places.reshape(*batch, n * n)[..., :: n + 1]
    for step in reversed(path):
        if step.op is not ops.SELECT:
            moved = moved_owner(step, {step.operands[0]: places}, environment, one)
            if moved is None:
                return None
            places = np.broadcast_to(moved, one.shape(step.results[0]))
    same_axes = diagonal.type.shape[:-1] == factors.type.shape[:-2]
    if not (same_axes and places.shape == expected.shape and (places == expected).all()):
        return None
    return Composite(name, (factors.producer.operands[0],), (factors.producer,))


def _path_to_factors(value: Value) -> tuple[list[Node], Value | None]:
    """The moves (and selections of NaN where a factorisation failed) between LU factors and ``value``."""
    path: list[Node] = []
    while (node := value.producer) is not None:
        if (region := taken_branch(node)) is not None:
            value = region.returns[value.index]
            continue
        if node.call_target in ops.LU_TARGETS:
            return path, value if value is node.results[0] else None
        path.append(node)
        if node.op is ops.SELECT and is_nan(node.operands[2]):
            value = node.operands[1]
        elif node.name in moves.RULES and node.op is not ops.CONCATENATE:
            value = node.operands[0]
        else:
            break
    return path, None


def log_abs_det(state: State, node: Node) -> list[Jet | None]:
    """The sum of the logarithms: the inverse is computed from the same factors as the value."""
    found = state.composites[node]
    value = state.run(node)
    factors, pivots, *_ = (state.environment[result] for result in found.steps[0].results)
    jet = log_determinant_jet(
        value, jet_of(state, found.arguments[0]), factors, pivots, state.coordinates, in_turn=state.options.for_cpu
    )
    return [jet.map_parts(lambda part: part.astype(value.dtype), jet.owners)]


def phase_of_det(state: State, node: Node) -> list[Jet | None]:
    """s = exp(i t), where i t is the imaginary part of log det A: s_k = i t_k s, lap s = (i lap t - sum_k t_k^2) s."""
    found = state.composites[node]
    value, of = state.run(node), state.coordinates
    factors, pivots, *_ = (state.environment[result] for result in found.steps[0].results)
    matrix = densify(jet_of(state, found.arguments[0]), of)
    lap, rows = _logarithm(matrix, factors, pivots, of, in_turn=state.options.for_cpu)
    laplacian, angles = jnp.imag(lap), jnp.imag(rows)
    squares = jnp.sum(of.weigh(angles * angles), 0)
    rows = lax.complex(jnp.zeros_like(angles), angles) * value
    return [Jet(value, lax.complex(-squares, laplacian) * value, rows, None)]


def log_determinant_jet(
    value: Any, matrix: Jet, factors: Any, pivots: Any, coordinates: Coordinates, *, in_turn: bool
) -> Jet:
    """The jet of ``value`` = log|det A| [...] from the jet of A [..., n, n] and its LU factors (pivots 1-based)."""
    laplacian, rows = _logarithm(densify(matrix, coordinates), factors, pivots, coordinates, in_turn=in_turn)
    return Jet(value, jnp.real(laplacian), jnp.real(rows), None)


def _logarithm(matrix: Jet, factors: Any, pivots: Any, coordinates: Coordinates, *, in_turn: bool) -> tuple[Any, Any]:
    """(Laplacian, rows [K, ...]) of log det A, complex where A is.

    ``in_turn``: the target adds the terms of a sum one after another, as XLA:CPU does without YNN fusions. The K n^2
    terms of the quadratic form are then added direction by direction: in one sum of 3,000 (CH4) they lose more float32
    digits than the rest of PauliNet. The barrier keeps XLA from joining both sums again.
    """
    inverse = _inverse(factors, pivots)
    batch = tuple(range(inverse.ndim - 2))
    traces = jnp.sum(matrix.derivatives * jnp.swapaxes(inverse, -1, -2), axis=(-1, -2))
    # [..., i, k, j] = sum_m inverse[..., i, m] rows[k, ..., m, j]
    products = lax.dot_general(
        inverse,
        matrix.jacobian,
        (((inverse.ndim - 1,), (inverse.ndim - 1,)), (batch, tuple(axis + 1 for axis in batch))),
        precision=lax.Precision.HIGHEST,
    )
    quadratic = products * jnp.swapaxes(products, -1, -3)
    if coordinates.weights is not None:
        quadratic = quadratic * coordinates.weights[:, None]
    if in_turn:
        quadratic = jnp.sum(lax.optimization_barrier(jnp.sum(quadratic, axis=(-1, -3))), axis=-1)
    else:
        quadratic = jnp.sum(quadratic, axis=(-1, -2, -3))
    return (-quadratic, traces) if matrix.laplacian is None else (traces[0] - quadratic, traces[1:])


def _inverse(factors: Any, pivots: Any) -> Any:
    permutation = _permutation(pivots, factors.shape[-1]).astype(factors.dtype)
    lower = lax.linalg.triangular_solve(factors, permutation, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(factors, lower, left_side=True, lower=False)


def _permutation(pivots: Any, n: int) -> Any:
    """P [..., n, n] of PA = LU: True where row j of A has become row i, from pivots [..., n] (1-based).

    A few exchanges are applied as elementwise ops, which is a kernel less than JAX's routine.
    """
    if n > _FOLLOWED:
        permutation = lax.linalg.lu_pivots_to_permutation(pivots - 1, n)
        return permutation[..., :, None] == jnp.arange(n, dtype=permutation.dtype)
    rows = jnp.arange(1, n + 1, dtype=pivots.dtype)
    place = jnp.broadcast_to(rows, pivots.shape)
    for step in range(1, n + 1):
        pivot = pivots[..., step - 1 : step]
        place = jnp.where(place == step, pivot, jnp.where(place == pivot, step, place))
    return place[..., None, :] == rows[:, None]


RULES: dict[str, Rule] = {"log_abs_det": log_abs_det, "phase_of_det": phase_of_det}
