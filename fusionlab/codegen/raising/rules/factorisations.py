"""Raising rules for the library calls of JAX's factorisations: LU, Cholesky, QR, eigenvalues and singular values.

    %l, %info = custom_call @potrf(%a)     -->     l = lax.linalg.cholesky(a);  info = any(isnan(l))

Their conventions are those of jaxlib's own lowering rules (``jax/_src/lax/linalg.py``). getrf returns 1-based pivots
and an info vector that JAX reads for its sign: it is taken as zero. The info vectors of the others are positive where
the routine fails; JAX's primitives return NaN there. What a routine leaves in place of its operand is not computed:
RaiseError where it is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax._src.lax.linalg import geqrf

from fusionlab.codegen.raising.factorisation_checks import selects_nan_alone
from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule
from fusionlab.hlo import ops


def _option(op: RaisedOp, name: str) -> int:
    """An integer or boolean of the call's configuration."""
    return int(op.node.attributes["mhlo.backend_config"][name].value)


def _is_lower(op: RaisedOp) -> bool:
    """True if the lower triangle of the operand is read; LAPACK's calls say so by a letter, cuSOLVER's by a flag."""
    config = op.node.attributes["mhlo.backend_config"]
    return chr(config["uplo"].value) == "L" if "uplo" in config else bool(config["lower"].value)


def _zeros(op: RaisedOp, number: int) -> Any:
    result = op.node.results[number]
    return op.jax(jnp.zeros, op.raising.shape(result), op.raising.dtype(result.type))


def _info(op: RaisedOp, found: Any, axes: int = 1) -> Any:
    """1 where ``found`` has NaN, as JAX's primitives have where the routine failed; 0 if it selects NaN alone."""
    if selects_nan_alone(op.node.results[-1].handle):
        return _zeros(op, -1)
    return jnp.any(jnp.isnan(found), axis=tuple(range(-axes, 0))).astype(np.int32)


def _getrf(op: RaisedOp) -> list[Any]:
    factors, pivots, _ = op.jax(lax.linalg.lu, op.operands[0])
    return [factors, pivots + 1, _zeros(op, 2)]


def _potrf(op: RaisedOp) -> list[Any]:
    """The other triangle is left as it was."""
    [given] = op.operands
    if _is_lower(op):
        factor = op.jax(lax.linalg.cholesky, given, symmetrize_input=False)
        return [factor + jnp.triu(given, 1), _info(op, factor, 2)]
    factor = op.jax(lax.linalg.cholesky, jnp.conj(jnp.swapaxes(given, -1, -2)), symmetrize_input=False)
    return [jnp.conj(jnp.swapaxes(factor, -1, -2)) + jnp.tril(given, -1), _info(op, factor, 2)]


def _syevd(op: RaisedOp) -> list[Any]:
    vectors, values = op.jax(lax.linalg.eigh, op.operands[0], lower=_is_lower(op), symmetrize_input=False)
    return [vectors, values, _info(op, values)]


def _geqrf(op: RaisedOp) -> list[Any]:
    return list(op.jax(geqrf, op.operands[0]))


def _orgqr(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.linalg.householder_product, *op.operands)]


def _singular(op: RaisedOp, *, full: bool, vectors: bool, adjoint: bool) -> list[Any]:
    """The results of a singular value decomposition; ``adjoint``: the call returns V, not its adjoint."""
    if list(op.node.results[0].handle.uses):
        raise RaiseError("what a singular value decomposition leaves of its operand is read", op.node)
    if not vectors:
        values = op.jax(lax.linalg.svd, op.operands[0], full_matrices=False, compute_uv=False)
        return [_zeros(op, 0), values, _zeros(op, 2), _zeros(op, 3), _info(op, values)]
    left, values, right = op.jax(lax.linalg.svd, op.operands[0], full_matrices=full)
    if adjoint:
        right = jnp.conj(jnp.swapaxes(right, -1, -2))
    return [_zeros(op, 0), values, left, right, _info(op, values)]


def _gesdd(op: RaisedOp) -> list[Any]:
    """LAPACK's letters: all vectors, some, or none."""
    mode = chr(_option(op, "mode"))
    return _singular(op, full=mode == "A", vectors=mode != "N", adjoint=False)


def _gesvdj(op: RaisedOp) -> list[Any]:
    """cuSOLVER's by Jacobi's method and by polar decomposition return V."""
    return _singular(op, full=bool(_option(op, "full_matrices")), vectors=bool(_option(op, "compute_uv")), adjoint=True)


_ROUTINES: dict[str, Callable[[RaisedOp], list[Any]]] = {
    "getrf": _getrf, "potrf": _potrf, "syevd": _syevd, "heevd": _syevd, "geqrf": _geqrf, "orgqr": _orgqr,
    "ungqr": _orgqr, "gesvdj": _gesvdj, "gesvdp": _gesvdj,
}  # fmt: skip

TARGETS: dict[str, Rule] = {
    target: rule for routine, rule in _ROUTINES.items() for target in ops.library_calls(routine)
} | {target: _gesdd for target in ops.library_calls("gesdd") if target.startswith("lapack")}
