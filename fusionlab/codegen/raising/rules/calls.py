"""Raising rules for custom calls that JAX itself emits, by target name. Any other target is opaque.

Calling conventions are those of jaxlib's own lowering rules (``jax/_src/lax/linalg.py``): getrf returns 1-based pivots
and an info vector that is negative only for an illegal argument; trsm passes BLAS characters as bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.raising.rules.rule import RaiseError, Rule, in_jax
from fusionlab.hlo.view import Node


def _getrf(node: Node, operands: list[Any], raising: Any) -> list[Any]:
    factors, pivots, _ = in_jax(node, lax.linalg.lu, operands[0])
    return [factors, pivots + 1, in_jax(node, jnp.zeros, raising.shape(node.results[2]), np.int32)]


def _pivots_to_permutation(node: Node, operands: list[Any], raising: Any) -> list[Any]:
    return [in_jax(node, lax.linalg.lu_pivots_to_permutation, operands[0], raising.shape(node.results[0])[-1])]


def _trsm(node: Node, operands: list[Any], raising: Any) -> list[Any]:
    config = node.attributes["mhlo.backend_config"]
    character = {name: chr(config[name].value) for name in ("side", "uplo", "trans_x", "diag")}
    return [
        in_jax(
            node,
            lax.linalg.triangular_solve,
            operands[0],
            operands[1],
            left_side=character["side"] == "L",
            lower=character["uplo"] == "L",
            transpose_a=character["trans_x"] != "N",
            conjugate_a=character["trans_x"] == "C",
            unit_diagonal=character["diag"] == "U",
        )
    ]


def _annotation(node: Node, operands: list[Any], raising: Any) -> list[Any]:
    """The operand itself where a program is run; raising to lower again would lose the annotation."""
    if raising.marks is not None:
        raise RaiseError(f"{node.label} would lose the sharding that it says", node)
    return list(operands)


def _constraint(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return _annotation(node, operands, raising)


TARGETS: dict[str, Callable[[Node, list[Any], Any], list[Any]]] = {
    "Sharding": _annotation,
    "cu_lu_pivots_to_permutation": _pivots_to_permutation,
    "cusolver_getrf_ffi": _getrf,
    "lapack_dgetrf_ffi": _getrf,
    "lapack_dtrsm_ffi": _trsm,
    "lapack_sgetrf_ffi": _getrf,
    "lapack_strsm_ffi": _trsm,
}


def _custom_call(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    target = node.call_target
    if target not in TARGETS:
        raise RaiseError(f"custom call @{target} is opaque", node)
    return TARGETS[target](node, operands, raising)


RULES: dict[str, Rule] = {"stablehlo.custom_call": _custom_call, "sdy.sharding_constraint": _constraint}
