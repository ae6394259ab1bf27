"""Every StableHLO and CHLO op with its traits, and every element type: the tables that all others read.

A new op is a row here and a raising rule (``codegen/raising/rules``); CONTRIBUTING.md lists the rest. A trait that a
single pass needs stays in that pass, as a set of the names below the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

NUMPY: dict[str, np.dtype[Any]] = {
    name: np.dtype(type_)
    for name, type_ in {
        "i1": np.bool_,
        "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
        "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
        "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
        "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    }.items()
}  # fmt: skip
"""MLIR's element types, and the NumPy types that hold them."""


def _narrow(names: str) -> Iterator[tuple[str, np.dtype[Any]]]:
    """MLIR's names with the types of ``ml_dtypes``: ``f8E4M3FN`` is ``float8_e4m3fn``, ``ui4`` is ``uint4``."""
    for name in names.split():
        kind, bits, rest = re.fullmatch(r"(ui|i|f)(\d)(.*)", name).groups()  # type: ignore[union-attr]
        own = {"ui": "uint", "i": "int", "f": "float"}[kind] + bits + (f"_{rest.lower()}" if rest else "")
        if (found := getattr(ml_dtypes, own, None)) is not None:
            yield name, np.dtype(found)


NARROW: dict[str, np.dtype[Any]] = dict(
    _narrow(
        "i2 i4 ui2 ui4 f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3 f8E4M3B11FNUZ f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ "
        "f8E8M0FNU"
    )
)
"""Element types whose constants can be read, and no more: nothing computes with them here."""

FLOATS = ("f16", "bf16", "f32", "f64")
WIDE_FLOATS = ("f32", "f64")
COMPLEX = ("complex<f32>", "complex<f64>")
INEXACT = (*FLOATS, *COMPLEX)
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")

FAMILIES = (
    "elementwise", "gemm", "reduction", "layout", "gather-scatter", "triangular-solve", "factorisation", "attention",
    "sort", "rng", "fft", "collective", "constant", "control", "custom", "unknown",
)  # fmt: skip
"""Those of the characterisation's kernel tables (GEMM, TRSM, fused elementwise, transpose and other layout, reduction,
attention), and others that these programs contain. A name that is in no table is ``unknown``."""

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


def library_calls(routine: str) -> tuple[str, ...]:
    """The custom calls of a routine of LAPACK: cuSOLVER's, hipSOLVER's, and LAPACK's own in four precisions."""
    return (f"cusolver_{routine}_ffi", f"hipsolver_{routine}_ffi", *(f"lapack_{kind}{routine}_ffi" for kind in "sdcz"))


LU_TARGETS = library_calls("getrf")
"""Custom calls of LU factorisations: their results are the factors, the exchanges (1-based) and an info vector."""
TRSM_TARGETS = tuple(f"lapack_{kind}trsm_ffi" for kind in "sdcz")
"""Custom calls of triangular solves."""

_CUDA_CALLS = re.compile(r"cusolver|(__)?(cublas|cudnn)|__gpu\$|cu_lu_pivots|cuda_|__triton")
_CPU_CALLS = re.compile(r"lapack_|__custom_call_cpu|__onednn|(dynamic_)?ducc_fft|eigen_")
"""How the targets of libraries begin; a call of the user's own may have such a word anywhere else."""


def family_of_target(target: str) -> str:
    """The family of a custom call, by its target."""
    return next((family for pattern, family in TARGET_FAMILIES if re.fullmatch(pattern, target)), "custom")


def platform_of_target(target: str) -> str:
    """``cuda`` or ``cpu`` if ``target`` is a function of a library for one of them; else ""."""
    if _CUDA_CALLS.match(target):
        return "cuda"
    return "cpu" if _CPU_CALLS.match(target) else ""


@dataclass(frozen=True, eq=False)
class OpDef:
    """The traits of an op, whatever its operands are.

    ``family`` is one of FAMILIES; ``flops`` and ``axes`` name a rule of ``hlo.cost`` ("":
    none, the op is unmodelled) and of ``hlo.batch_axes``. ``derivative``, with respect to its floating-point operands:
    ``linear`` (affine in all together), ``product`` (linear in each), ``piecewise`` (linear almost everywhere),
    ``smooth``, ``zero`` (almost everywhere, or of a result that is no float), ``regions`` or ``call`` (that of what
    its regions or its target compute), "" for unknown.

    ``transcendental``: a special function or a polynomial. ``costly``: better kept than recomputed.
    ``strided``: moves one operand's elements, which can be read in place by strides. ``source``: reads nothing.
    ``free``: moves no bytes. ``partial``: reads as much of its first operand as it returns. ``triton``: elementwise,
    and Pallas lowers it for Triton. ``commutative``: in its two operands. ``dynamic``: extents are computed.
    ``control_flow``: a loop or a branch. ``effect``: does more than return its results; ``waits``: for the host or
    another device.
    """

    name: str
    family: str = "unknown"
    flops: str = ""
    axes: str = "unknown"
    derivative: str = ""
    transcendental: bool = False
    costly: bool = False
    strided: bool = False
    source: bool = False
    free: bool = False
    partial: bool = False
    triton: bool = False
    commutative: bool = False
    dynamic: bool = False
    control_flow: bool = False
    effect: bool = False
    waits: bool = False

    @cached_property
    def mnemonic(self) -> str:
        """``add`` of ``stablehlo.add``; ops of other dialects keep their whole name."""
        return self.name.removeprefix("stablehlo.")

    def __repr__(self) -> str:
        return self.name


def _rows(names: str, family: str, dialect: str = "stablehlo", **traits: Any) -> Iterator[OpDef]:
    return (OpDef(f"{dialect}.{name}", family, **traits) for name in names.split())


def _elementwise(names: str, derivative: str, dialect: str = "stablehlo", **traits: Any) -> Iterator[OpDef]:
    return _rows(names, "elementwise", dialect, flops="elements", axes="elementwise", derivative=derivative, **traits)


def _function(names: str, dialect: str = "stablehlo", **traits: Any) -> Iterator[OpDef]:
    return _elementwise(names, "smooth", dialect, transcendental=True, **traits)


def _moves(names: str, axes: str, **traits: Any) -> Iterator[OpDef]:
    return _rows(names, "layout", flops="none", axes=axes, derivative="linear", **traits)


OPS: dict[str, OpDef] = {
    op.name: op
    for row in (
        # Elementwise, arithmetic first.
        _elementwise("add", "linear", triton=True, commutative=True),
        _elementwise("negate subtract", "linear", triton=True),
        _elementwise("complex convert imag real", "linear"),
        _elementwise("multiply", "product", triton=True, commutative=True),
        _elementwise("divide", "smooth", triton=True, costly=True),
        _elementwise("maximum minimum", "piecewise", triton=True, commutative=True),
        _elementwise("abs select", "piecewise", triton=True),
        _elementwise("clamp reduce_precision remainder", "piecewise"),
        _function("exponential exponential_minus_one log log_plus_one logistic tanh", triton=True, costly=True),
        _function("rsqrt sqrt", triton=True),
        _function("atan2 cbrt cosine power sine tan"),
        _elementwise("and or", "zero", triton=True, commutative=True),
        _elementwise("compare not", "zero", triton=True),
        _elementwise("xor", "zero", commutative=True),
        _elementwise("ceil count_leading_zeros floor is_finite popcnt round_nearest_afz round_nearest_even", "zero"),
        _elementwise("shift_left shift_right_arithmetic shift_right_logical sign", "zero"),
        _rows("map", "elementwise", axes="elementwise", derivative="regions"),
        _function("acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh", "chlo"),
        _function("broadcast_atan2 broadcast_polygamma broadcast_power broadcast_zeta polygamma tan zeta", "chlo"),
        _elementwise("broadcast_divide square", "smooth", "chlo"),
        _elementwise("broadcast_add broadcast_complex broadcast_subtract conj", "linear", "chlo"),
        _elementwise("broadcast_multiply", "product", "chlo"),
        _elementwise("broadcast_maximum broadcast_minimum broadcast_remainder broadcast_select", "piecewise", "chlo"),
        _elementwise("broadcast_next_after next_after", "piecewise", "chlo"),
        _elementwise("broadcast_and broadcast_compare broadcast_or broadcast_xor is_inf is_neg_inf", "zero", "chlo"),
        _elementwise("broadcast_shift_left broadcast_shift_right_arithmetic is_pos_inf mulhi", "zero", "chlo"),
        _elementwise("broadcast_shift_right_logical", "zero", "chlo"),
        # Linear algebra and reductions.
        _rows("dot_general", "gemm", flops="dot_general", axes="dot_general", derivative="product"),
        _rows("convolution", "gemm", flops="convolution", axes="convolution", derivative="product"),
        _rows("dot dynamic_conv einsum unary_einsum", "gemm"),
        _rows("ragged_dot", "gemm", "chlo"),
        _rows("triangular_solve", "triangular-solve", flops="triangular_solve", axes="batched", derivative="smooth"),
        _rows("cholesky", "factorisation", flops="cholesky", axes="batched", derivative="smooth"),
        _rows("reduce", "reduction", flops="reduce", axes="reduce", derivative="regions"),
        _rows("reduce_window", "reduction", flops="reduce_window", axes="reduce_window", derivative="regions"),
        _rows("select_and_scatter", "reduction"),
        # Moves.
        _moves("broadcast_in_dim", "broadcast_in_dim", strided=True),
        _moves("reshape", "reshape", strided=True, free=True),
        _moves("slice", "slice", strided=True, partial=True),
        _moves("transpose", "transpose", strided=True),
        _moves("concatenate", "concatenate"),
        _moves("pad", "pad"),
        _moves("reverse", "reverse"),
        _rows("bitcast_convert", "layout", flops="none", axes="elementwise", derivative="zero", free=True),
        _rows("broadcast", "layout", flops="none"),
        _rows("dynamic_broadcast_in_dim dynamic_pad dynamic_reshape", "layout", flops="none", dynamic=True),
        _rows("real_dynamic_slice", "layout", flops="none", dynamic=True),
        _rows("dynamic_slice", "gather-scatter", flops="none", axes="dynamic_slice", derivative="linear", partial=True),
        _rows("dynamic_update_slice", "gather-scatter", flops="none", axes="dynamic_update_slice", derivative="linear"),
        _rows("gather", "gather-scatter", flops="none", axes="gather", derivative="linear", partial=True),
        _rows("scatter", "gather-scatter", flops="scatter", axes="scatter", derivative="regions"),
        _rows("dynamic_gather", "gather-scatter", dynamic=True),
        _rows("torch_index_select", "gather-scatter"),
        _rows("sort", "sort", flops="none", axes="sort", derivative="piecewise"),
        _rows("top_k", "sort", "chlo", flops="none", axes="rows", derivative="piecewise"),
        # Sources, and random numbers.
        _rows("constant", "constant", flops="none", axes="source", derivative="zero", source=True, free=True),
        _rows("iota", "constant", flops="none", axes="source", derivative="zero", source=True),
        _rows("dynamic_iota get_dimension_size", "constant", flops="none", dynamic=True),
        _rows("create_token partition_id replica_id", "constant", flops="none"),
        _rows("constant constant_like", "constant", "chlo", flops="none"),
        _rows("rng_bit_generator", "rng", flops="none"),
        _rows("rng", "rng", effect=True),
        _rows("fft", "fft", axes="fft", derivative="linear"),
        # Control flow, calls, and collectives.
        _rows("while", "control", flops="while", axes="carried", derivative="regions", control_flow=True),
        _rows("case if", "control", flops="branches", axes="carried", derivative="regions", control_flow=True),
        _rows("manual_computation", "control", "sdy", flops="branches", axes="carried", control_flow=True),
        _rows("scan", "control", "chlo", derivative="regions"),
        _rows("sharding_constraint", "unknown", "sdy", axes="elementwise"),
        _rows("optimization_barrier", "control", flops="none", axes="carried", derivative="linear", free=True),
        _rows("after_all get_tuple_element tuple", "control", flops="none", free=True),
        _rows("custom_call", "custom", flops="call", axes="call", derivative="call"),
        _rows("composite", "custom"),
        _rows("infeed outfeed", "control", effect=True, waits=True),
        _rows("recv send", "unknown", effect=True, waits=True),
        _rows("all_gather all_reduce all_to_all collective_broadcast collective_permute", "collective"),
        _rows("collective_reduce reduce_scatter", "collective"),
    )
    for op in row
}


def op_of(name: str) -> OpDef:
    """The op called ``name``; one without traits if it is not in the table."""
    return OPS.get(name) or OpDef(name)


CALLEES = {"func.call": "callee", "stablehlo.composite": "decomposition"}
"""Ops that run a function of the module on their operands, and the attribute that names it."""

MANUAL = "sdy.manual_computation"
"""The op of ``shard_map``, whose region is the program of one device."""
CONSTRAINT = "sdy.sharding_constraint"
"""The op that says how its operand, which it returns, is divided over devices."""

ACROSS = {
    *(name for name, op in OPS.items() if op.family == "collective"),
    *("stablehlo.partition_id", "stablehlo.replica_id", MANUAL),
}
"""The ops whose meaning needs the other devices, or the number of one."""

ABS = OPS["stablehlo.abs"]
ADD = OPS["stablehlo.add"]
AND = OPS["stablehlo.and"]
BITCAST_CONVERT = OPS["stablehlo.bitcast_convert"]
BROADCAST_IN_DIM = OPS["stablehlo.broadcast_in_dim"]
BROADCASTS = (BROADCAST_IN_DIM, OPS["stablehlo.broadcast"], OPS["stablehlo.dynamic_broadcast_in_dim"])
CASE = OPS["stablehlo.case"]
CEIL = OPS["stablehlo.ceil"]
CLAMP = OPS["stablehlo.clamp"]
COMPARE = OPS["stablehlo.compare"]
COMPOSITE = OPS["stablehlo.composite"]
CONCATENATE = OPS["stablehlo.concatenate"]
CONSTANT = OPS["stablehlo.constant"]
CONVERT = OPS["stablehlo.convert"]
CONVOLUTION = OPS["stablehlo.convolution"]
COSINE = OPS["stablehlo.cosine"]
CUSTOM_CALL = OPS["stablehlo.custom_call"]
DIVIDE = OPS["stablehlo.divide"]
DOT = OPS["stablehlo.dot"]
DOT_GENERAL = OPS["stablehlo.dot_general"]
DYNAMIC_GATHER = OPS["stablehlo.dynamic_gather"]
DYNAMIC_SLICE = OPS["stablehlo.dynamic_slice"]
DYNAMIC_UPDATE_SLICE = OPS["stablehlo.dynamic_update_slice"]
FLOOR = OPS["stablehlo.floor"]
GATHER = OPS["stablehlo.gather"]
GET_TUPLE_ELEMENT = OPS["stablehlo.get_tuple_element"]
IF = OPS["stablehlo.if"]
IOTA = OPS["stablehlo.iota"]
LOG = OPS["stablehlo.log"]
MAXIMUM = OPS["stablehlo.maximum"]
MINIMUM = OPS["stablehlo.minimum"]
MULTIPLY = OPS["stablehlo.multiply"]
NEGATE = OPS["stablehlo.negate"]
NOT = OPS["stablehlo.not"]
OPTIMIZATION_BARRIER = OPS["stablehlo.optimization_barrier"]
OR = OPS["stablehlo.or"]
PAD = OPS["stablehlo.pad"]
POWER = OPS["stablehlo.power"]
SQRT = OPS["stablehlo.sqrt"]
REDUCE = OPS["stablehlo.reduce"]
REDUCE_PRECISION = OPS["stablehlo.reduce_precision"]
REDUCE_WINDOW = OPS["stablehlo.reduce_window"]
REMAINDER = OPS["stablehlo.remainder"]
RESHAPE = OPS["stablehlo.reshape"]
REVERSE = OPS["stablehlo.reverse"]
RNG_BIT_GENERATOR = OPS["stablehlo.rng_bit_generator"]
ROUND_NEAREST_AFZ = OPS["stablehlo.round_nearest_afz"]
ROUND_NEAREST_EVEN = OPS["stablehlo.round_nearest_even"]
SCATTER = OPS["stablehlo.scatter"]
SELECT = OPS["stablehlo.select"]
SHIFT_LEFT = OPS["stablehlo.shift_left"]
SHIFT_RIGHT_ARITHMETIC = OPS["stablehlo.shift_right_arithmetic"]
SHIFT_RIGHT_LOGICAL = OPS["stablehlo.shift_right_logical"]
SIGN = OPS["stablehlo.sign"]
SINE = OPS["stablehlo.sine"]
SLICE = OPS["stablehlo.slice"]
SORT = OPS["stablehlo.sort"]
SUBTRACT = OPS["stablehlo.subtract"]
TRANSPOSE = OPS["stablehlo.transpose"]
TUPLE = OPS["stablehlo.tuple"]
TRIANGULAR_SOLVE = OPS["stablehlo.triangular_solve"]
WHILE = OPS["stablehlo.while"]
XOR = OPS["stablehlo.xor"]
