"""The kernels of the optimised HLO: the family and, by rule, the FLOPs of one instruction.

The conventions are those of ``fusionlab.hlo.cost``; a fusion is the sum of its members, each counted once (a member
that XLA recomputes for every reader is still counted once: this is work asked for, not work done). A library call
counts as its operation: a cuBLAS matrix product 2 M N K per batch entry (bias and activation in its epilogue are not
counted), a convolution 2 per tap and output, also where the tap is on padding, a triangular solve n^2 per right-hand
side, LU n^2 (m - n/3).

An instruction without a rule is *unmodelled*: its name is kept, and it counts no FLOPs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fusionlab.hlo.cost import call_flops, may_use_tf32
from fusionlab.hlo.ops import OPS, family_of_target
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, Shape

STATED_FLOPS = "fusionlab_flops"
"""Frontend attribute of a call of a kernel that fusionlab made: its FLOPs, which nothing else records."""

_CONVOLUTION = "__cudnn$conv"
_FREE_FAMILIES = ("layout", "constant", "sort", "gather-scatter", "rng", "control")
_FLOAT = re.compile(r"f\d|bf16")
_COMPLEX = re.compile(r"c\d")


_HLO_OPCODES: dict[str, str] = {
    **{op.name.partition(".")[2].replace("_", "-"): op.family for op in OPS.values() if op.family != "unknown"},
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
HEAVY_FAMILIES = ("attention", "gemm", "triangular-solve", "factorisation", "sort", "fft")
"""Those that decide a fusion's family whatever is fused around them, the heaviest first."""
_FUSION_ORDER = (
    *HEAVY_FAMILIES, "reduction", "rng", "elementwise", "gather-scatter", "layout", "constant",
)  # fmt: skip
"""The heaviest family first."""


def family_of_kernel(name: str, opcode: str, custom_call_target: str = "") -> str:
    """The family of one instruction of the optimised HLO.

    ``name`` is the instruction's name (``loop_add_tanh_fusion.3``), ``opcode`` its HLO opcode (``fusion``). A fusion
    that XLA named after its heroes is of the heaviest family among them; one that computes and rearranges is
    elementwise, except that a scatter's emitter (``input_scatter_fusion``) makes it gather-scatter.
    """
    if opcode == "custom-call":
        if custom_call_target.startswith("__gpu$xla.gpu.triton"):
            return "attention" if re.search("(?i)attention|flash|mhsea", name) else "custom"
        return family_of_target(custom_call_target)
    if opcode not in ("fusion", "fusion-start"):
        return _HLO_OPCODES.get(opcode) or _HLO_OPCODES.get(opcode.removesuffix("-start"), "unknown")
    if re.match(r"(triton_gemm|gemm_fusion|cublas|cudnn)", name):
        return "gemm"
    if re.match(r"triton_softmax", name):
        return "reduction"
    heroes = re.sub(r"(^(loop|input|output|wrapped|fused|horizontal)_)|(_fusion)?([._]\d+)*$|_computation", "", name)
    found = {_HLO_OPCODES[hero.replace("_", "-")] for hero in _HEROES.findall(heroes)}
    if "scatter" in heroes and "reduce_scatter" not in heroes:
        return "gather-scatter"
    return next((candidate for candidate in _FUSION_ORDER if candidate in found), "unknown")


@dataclass(frozen=True)
class Work:
    """FLOPs of one run, its opcodes and custom-call targets without a rule, and the part of the FLOPs that a GPU's
    library may compute in TF32."""

    flops: int = 0
    unmodelled: tuple[str, ...] = ()
    tf32_flops: int = 0

    def __add__(self, other: Work) -> Work:
        unmodelled = (*self.unmodelled, *other.unmodelled)
        return Work(self.flops + other.flops, unmodelled, self.tf32_flops + other.tf32_flops)


def work_of(module: HloModule, computation: Computation, instruction: Instruction) -> Work:
    """The work of one run of ``instruction`` of ``computation`` (loops are not kernels: no rule)."""
    one = instruction
    if one.is_fusion or one.opcode in ("call", "async-start"):
        inside = [module.computations[name] for name in one.called]
        return sum((work_of(module, part, member) for part in inside for member in part.instructions), Work())
    if any(_COMPLEX.match(shape.dtype) for shape in _arrays(one.shape)) and not _is_free(one):
        return Work(unmodelled=(one.opcode,))
    if one.opcode == "custom-call" or one.opcode in _RULES:
        try:
            is_call = one.opcode == "custom-call"
            return _of_call(computation, one) if is_call else Work(_RULES[one.opcode](module, computation, one))
        except (IndexError, KeyError, TypeError, ValueError):  # missing axes, operands or numbers
            return Work(unmodelled=(one.opcode,))
    if family_of_kernel(one.name, one.opcode) == "elementwise" and one.opcode != "map":
        shapes = [one.shape, *(shape for shape in _operands(computation, one))]
        return Work(one.shape.size if any(_FLOAT.match(shape.dtype) for shape in shapes) else 0)
    return Work() if _is_free(one) else Work(unmodelled=(one.opcode,))


def terms_of(computation: Computation, instruction: Instruction) -> int:
    """The scalar steps of one run of an op that is no fusion: the elements of its result, those that a reduction reads,
    the updates of a scatter and what they change, the terms of a product or convolution. At least 1; of several
    results, the largest counts."""
    elements = max((shape.size for shape in _arrays(instruction.shape)), default=1)
    rule = _TERMS.get(instruction.opcode)
    try:
        return max(1, elements, rule(computation, instruction) if rule else 0)
    except (IndexError, ValueError):  # missing axes or operands
        return max(1, elements)


def _terms_of_dot(computation: Computation, one: Instruction) -> int:
    axes = [int(axis) for axis in re.findall(r"\d+", one.attributes.get("lhs_contracting_dims", ""))]
    left = _operands(computation, one)[0]
    return one.shape.size * math.prod(left.dims[axis] for axis in axes)


def _terms_of_convolution(computation: Computation, one: Instruction) -> int:
    _, kernel = _operands(computation, one)
    return _terms_per_convolution(one, one.shape, kernel)


def _terms_per_convolution(one: Instruction, output: Shape, kernel: Shape) -> int:
    labels = one.attributes.get("dim_labels", "").partition("->")[0].partition("_")[2]
    return output.size * kernel.size // max(1, kernel.dims[labels.index("o")])


def _terms_of_reduce(computation: Computation, one: Instruction) -> int:
    return _operands(computation, one)[0].size


def _terms_of_scatter(computation: Computation, one: Instruction) -> int:
    operands = _operands(computation, one)
    return 2 * operands[-1].size


_TERMS: dict[str, Callable[[Computation, Instruction], int]] = {
    "convolution": _terms_of_convolution,
    "dot": _terms_of_dot,
    "reduce": _terms_of_reduce,
    "reduce-window": _terms_of_reduce,
    "scatter": _terms_of_scatter,
}


def _is_free(one: Instruction) -> bool:
    return one.opcode in _FREE or family_of_kernel(one.name, one.opcode) in _FREE_FAMILIES


_FREE = (
    "parameter", "get-tuple-element", "tuple", "after-all", "add-dependency", "opt-barrier", "async-done", "domain",
)  # fmt: skip


def _of_call(computation: Computation, call: Instruction) -> Work:
    target = call.custom_call_target
    if (stated := re.search(rf'{STATED_FLOPS}="(\d+)"', call.attributes.get("frontend_attributes", ""))) is not None:
        return Work(int(stated[1]))
    shapes = _operands(computation, call)
    if "gemm_backend_config" in call.backend_config:
        config, result = call.backend_config["gemm_backend_config"], _arrays(call.shape)[0]
        contracted_axes = config["dot_dimension_numbers"]["lhs_contracting_dimensions"]
        product = 2 * result.size * math.prod(shapes[0].dims[int(axis)] for axis in contracted_axes)
        return Work(product, tf32_flops=product if _gemm_may_use_tf32(config, [*shapes[:2], result]) else 0)
    if target.startswith(_CONVOLUTION):
        return _of_convolution(call, shapes)
    flops = call_flops(target, [shape.dims for shape in shapes])
    return Work(unmodelled=(f"custom-call {target}",)) if flops is None else Work(flops)


def _of_convolution(call: Instruction, shapes: list[Shape]) -> Work:
    """cuDNN's convolution, or its derivative by the input or by the kernel, which has as many terms.

    Bias, activation and scaling in it are not counted.
    """
    result = _arrays(call.shape)[0]
    kind = call.custom_call_target.removeprefix(_CONVOLUTION)
    by_kind = {"BackwardInput": (shapes[0], shapes[1]), "BackwardFilter": (shapes[1], result)}
    output, kernel = by_kind.get(kind, (result, shapes[1]))
    flops = 2 * _terms_per_convolution(call, output, kernel)
    precisions = call.attributes.get("operand_precision", "").strip("{}").upper().split(",")
    in_tf32 = may_use_tf32((one.dtype for one in (*shapes[:2], result)), precisions)
    return Work(flops, tf32_flops=flops if in_tf32 else 0)


def _gemm_may_use_tf32(config: Mapping[str, Any], shapes: Iterable[Shape]) -> bool:
    asked = config.get("precision_config", {})
    if (algorithm := asked.get("algorithm", "ALG_UNSET")) != "ALG_UNSET":
        return bool(algorithm == "ALG_DOT_TF32_TF32_F32")
    return may_use_tf32((one.dtype for one in shapes), asked.get("operand_precision", ()))


def _dot(module: HloModule, computation: Computation, one: Instruction) -> int:
    return 2 * _terms_of_dot(computation, one)


def _convolution(module: HloModule, computation: Computation, one: Instruction) -> int:
    return 2 * _terms_of_convolution(computation, one)


def _reduce(module: HloModule, computation: Computation, one: Instruction) -> int:
    return _operands(computation, one)[0].size * _combiner_flops(module, one)


def _reduce_window(module: HloModule, computation: Computation, one: Instruction) -> int:
    size = re.search(r"size=([\dx]+)", one.attributes.get("window", ""))
    elements = math.prod(int(extent) for extent in size[1].split("x")) if size else 1
    return _arrays(one.shape)[0].size * elements * _combiner_flops(module, one)


def _scatter(module: HloModule, computation: Computation, one: Instruction) -> int:
    return _operands(computation, one)[-1].size * _combiner_flops(module, one)


def _combiner_flops(module: HloModule, one: Instruction) -> int:
    """FLOPs of one application of a reduction's combiner (1 for a sum of floats)."""
    combiner = module.computations[one.attributes["to_apply"].strip().lstrip("%")]
    return sum(work_of(module, combiner, member).flops for member in combiner.instructions)


def _as_call(target: str) -> Callable[[HloModule, Computation, Instruction], int]:
    return lambda module, computation, one: call_flops(target, [s.dims for s in _operands(computation, one)]) or 0


_RULES: dict[str, Callable[[HloModule, Computation, Instruction], int]] = {
    "cholesky": _as_call("potrf"),
    "convolution": _convolution,
    "dot": _dot,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "triangular-solve": _as_call("trsm"),
}


def _operands(computation: Computation, one: Instruction) -> list[Shape]:
    return [computation.by_name[name].shape for name in one.operands if name in computation.by_name]


def _arrays(shape: Shape) -> list[Shape]:
    return [part for element in shape.elements for part in _arrays(element)] if shape.is_tuple else [shape]
