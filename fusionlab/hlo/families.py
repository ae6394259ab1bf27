"""Families of operations and kernels: those of StableHLO ops (``hlo.ops``), HLO opcodes and custom-call targets.

The families are those of the characterisation's kernel tables (GEMM, TRSM, fused elementwise, transpose and other
layout, reduction, attention), and others that these programs contain. A name that is in no table is ``unknown``.
"""

from __future__ import annotations

import re

from fusionlab.hlo import ops
from fusionlab.hlo.view import Node

FAMILIES = (
    "elementwise",
    "gemm",
    "reduction",
    "layout",
    "gather-scatter",
    "triangular-solve",
    "factorisation",
    "attention",
    "sort",
    "rng",
    "fft",
    "collective",
    "constant",
    "control",
    "custom",
    "unknown",
)

TARGET_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"(?i).*(fmha|flash|attention|mhsea).*", "attention"),
    (r"__cublas\$triangularSolve|.*trsm.*", "triangular-solve"),
    (r"__cublas\$.*|__triton_gemm.*|__onednn\$matmul.*|.*_gemm.*", "gemm"),
    (r"__cudnn\$conv.*", "gemm"),
    (r".*(getrf|potrf|geqrf|orgqr|ungqr|syevd|syevj|heevd|gesvd|gesdd|gesvdj|gesvdp|sytrd|hetrd).*", "factorisation"),
    (r"Qr|Eigh|Householder.*|LuDecomposition|ProductOfElementaryHouseholderReflectors", "factorisation"),
    (r"cu_lu_pivots_to_permutation|hip_lu_pivots_to_permutation", "factorisation"),
    (r".*threefry2x32.*", "rng"),
    (r"(__cub\$.*)?(?i:.*sort.*|top_?k.*)", "sort"),
    (r".*ducc_fft.*", "fft"),
    (r"Sharding|annotate_device_placement|SPMD.*", "layout"),
)
"""Custom-call target (a whole match) to family; the first row that matches wins."""

_HLO_OPCODES: dict[str, str] = {
    **{op.name.partition(".")[2].replace("_", "-"): op.family for op in ops.OPS.values() if op.family != "unknown"},
    "bitcast": "layout",
    "copy": "layout",
    "copy-start": "layout",
    "copy-done": "layout",
    "conditional": "control",
    "call": "control",
    "parameter": "control",
    "rng-get-and-update-state": "rng",
}
"""HLO opcode (hyphens) to family."""

_HEROES = re.compile(
    rf"(?<![a-z])({'|'.join(sorted((op.replace('-', '_') for op in _HLO_OPCODES), key=len, reverse=True))})(?![a-z])"
)
_FUSION_ORDER = (
    "attention",
    "gemm",
    "triangular-solve",
    "factorisation",
    "sort",
    "fft",
    "reduction",
    "rng",
    "elementwise",
    "gather-scatter",
    "layout",
    "constant",
)


def family(node: Node) -> str:
    """The family of one operation of a Program."""
    if node.op is ops.CUSTOM_CALL:
        return _family_of_target(node.call_target)
    return node.op.family


def family_of_kernel(name: str, opcode: str, custom_call_target: str = "") -> str:
    """The family of one instruction of the optimised HLO.

    ``name`` is the instruction's name (``loop_add_tanh_fusion.3``), ``opcode`` its HLO opcode (``fusion``). A fusion
    that XLA named after its heroes is of the heaviest family among them; one that computes and rearranges is
    elementwise, except that a scatter's emitter (``input_scatter_fusion``) makes it gather-scatter.
    """
    if opcode == "custom-call":
        if custom_call_target.startswith("__gpu$xla.gpu.triton"):
            return "attention" if re.search("(?i)attention|flash|mhsea", name) else "custom"
        return _family_of_target(custom_call_target)
    if opcode != "fusion":
        return _HLO_OPCODES.get(opcode, "unknown")
    if re.match(r"(triton_gemm|gemm_fusion|cublas|cudnn)", name):
        return "gemm"
    if re.match(r"triton_softmax", name):
        return "reduction"
    heroes = re.sub(r"(^(loop|input|output|wrapped|fused|horizontal)_)|(_fusion)?([._]\d+)*$|_computation", "", name)
    found = {_HLO_OPCODES[hero.replace("_", "-")] for hero in _HEROES.findall(heroes)}
    if "scatter" in heroes and "reduce_scatter" not in heroes:
        return "gather-scatter"
    return next((candidate for candidate in _FUSION_ORDER if candidate in found), "unknown")


def _family_of_target(target: str) -> str:
    return next((family_ for pattern, family_ in TARGET_FAMILIES if re.fullmatch(pattern, target)), "custom")
