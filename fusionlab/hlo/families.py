"""Families of operations and kernels: literal tables from StableHLO ops, HLO opcodes and custom-call targets.

The families are those of the characterisation's kernel tables (GEMM, TRSM, fused elementwise, transpose and other
layout, reduction, attention), with what else these programs contain. A name that is in no table is ``unknown``.
"""

from __future__ import annotations

import re

from fusionlab.hlo.flat import Node

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

_OPS: dict[str, str] = {
    "elementwise": (
        "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential "
        "exponential_minus_one floor imag is_finite log log_plus_one logistic map maximum minimum multiply negate not "
        "or popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left "
        "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor "
        "acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf "
        "lgamma mulhi next_after polygamma sinh square zeta"
    ),
    "gemm": "convolution dot dot_general dynamic_conv einsum ragged_dot unary_einsum",
    "reduction": "reduce reduce_window select_and_scatter",
    "layout": (
        "bitcast_convert broadcast broadcast_in_dim concatenate dynamic_broadcast_in_dim dynamic_pad dynamic_reshape "
        "pad real_dynamic_slice reshape reverse slice transpose"
    ),
    "gather-scatter": "dynamic_gather dynamic_slice dynamic_update_slice gather scatter torch_index_select",
    "triangular-solve": "triangular_solve",
    "factorisation": "cholesky",
    "sort": "sort top_k",
    "rng": "rng rng_bit_generator",
    "fft": "fft",
    "collective": (
        "all_gather all_reduce all_to_all collective_broadcast collective_permute collective_reduce reduce_scatter"
    ),
    "constant": "constant constant_like create_token dynamic_iota get_dimension_size iota partition_id replica_id",
    "control": "after_all case get_tuple_element if optimization_barrier scan tuple while",
    "custom": "composite custom_call",
}

OP_FAMILIES: dict[str, str] = {
    f"{dialect}{op}": family_
    for family_, ops in _OPS.items()
    for op in ops.split()
    for dialect in ("stablehlo.", "chlo.", *(("chlo.broadcast_",) if family_ == "elementwise" else ()))
}
"""StableHLO and CHLO op name to family."""

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
    **{name.partition(".")[2].replace("_", "-"): family_ for name, family_ in OP_FAMILIES.items()},
    "bitcast": "layout",
    "copy": "layout",
    "copy-start": "layout",
    "copy-done": "layout",
    "conditional": "control",
    "call": "control",
    "parameter": "control",
    "exponential-minus-one": "elementwise",
    "log-plus-one": "elementwise",
    "erf": "elementwise",
    "rng-get-and-update-state": "rng",
    "infeed": "control",
    "outfeed": "control",
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
    if node.name == "stablehlo.custom_call":
        return _family_of_target(str(node.attributes["call_target_name"].value))
    return OP_FAMILIES.get(node.name, "unknown")


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
