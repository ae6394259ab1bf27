"""Raising rules for custom calls that JAX itself emits, by target name. Any other target is opaque.

Calling conventions are those of jaxlib's own lowering rules (``jax/_src/lax/linalg.py``): trsm passes BLAS characters
as bytes. Factorisations have a file of their own.
"""

from __future__ import annotations

from typing import Any

from jax import lax

from fusionlab.codegen.raising.rules import factorisations
from fusionlab.codegen.raising.rules.contraction import solved
from fusionlab.codegen.raising.rules.rule import OpaqueCall, RaisedOp, Rule, ShardingLost
from fusionlab.hlo.meshes import constrains_nothing
from fusionlab.hlo.ops import TRSM_TARGETS


def _pivots_to_permutation(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.linalg.lu_pivots_to_permutation, op.operands[0], op.shape[-1])]


def _trsm(op: RaisedOp) -> list[Any]:
    config = op.node.attributes["mhlo.backend_config"]
    side, lower, transpose, diagonal = (chr(config[name].value) for name in ("side", "uplo", "trans_x", "diag"))
    return solved(op, transpose, left_side=side == "L", lower=lower == "L", unit_diagonal=diagonal == "U")


def _annotation(op: RaisedOp) -> list[Any]:
    """The operand itself where a program is run; raising to lower again would lose the annotation, unless it is that of
    a single device."""
    if op.raising.marks is not None and not constrains_nothing(op.node.operation):
        raise ShardingLost(f"{op.node.label} would lose the sharding that it says", op.node)
    return list(op.operands)


TARGETS: dict[str, Rule] = {
    "Sharding": _annotation,
    "cu_lu_pivots_to_permutation": _pivots_to_permutation,
    **factorisations.TARGETS,
    **dict.fromkeys(TRSM_TARGETS, _trsm),
}


def _custom_call(op: RaisedOp) -> list[Any]:
    target = op.node.call_target
    if target not in TARGETS:
        raise OpaqueCall(f"custom call @{target} is opaque", op.node)
    return list(TARGETS[target](op))


RULES: dict[str, Rule] = {"stablehlo.custom_call": _custom_call, "sdy.sharding_constraint": _annotation}
