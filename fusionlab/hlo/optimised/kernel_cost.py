"""FLOPs of instructions of the optimised HLO by rule: the work of one kernel.

The conventions are those of ``fusionlab.hlo.cost``; a fusion is the sum of its members, each counted once (a member
that XLA recomputes for every reader is still counted once: this is work asked for, not work done). A library call
counts as its operation: a cuBLAS matrix product 2 M N K per batch entry (bias and activation in its epilogue are not
counted), a triangular solve n^2 per right-hand side, LU n^2 (m - n/3).

An instruction without a rule is *unmodelled*: its name is kept, and it counts no FLOPs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from fusionlab.hlo.families import family_of_kernel
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction
from fusionlab.hlo.optimised.shapes import Shape

STATED_FLOPS = "fusionlab_flops"
"""Frontend attribute of a call of a kernel that fusionlab made: its FLOPs, which nothing else records."""

_FREE_FAMILIES = ("layout", "constant", "sort", "gather-scatter", "rng", "control")
_FLOAT = re.compile(r"f\d|bf16")
_COMPLEX = re.compile(r"c\d")


@dataclass(frozen=True)
class Work:
    """FLOPs of one run, and its opcodes and custom-call targets without a rule."""

    flops: int = 0
    unmodelled: tuple[str, ...] = ()

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, (*self.unmodelled, *other.unmodelled))


def work_of(module: HloModule, computation: Computation, instruction: Instruction) -> Work:
    """The work of one run of ``instruction`` of ``computation`` (loops are not kernels: no rule)."""
    one = instruction
    if one.opcode in ("fusion", "call", "async-start"):
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


def _is_free(one: Instruction) -> bool:
    return one.opcode in _FREE or family_of_kernel(one.name, one.opcode) in _FREE_FAMILIES


_FREE = (
    "parameter",
    "get-tuple-element",
    "tuple",
    "after-all",
    "add-dependency",
    "opt-barrier",
    "async-done",
    "domain",
)


def _of_call(computation: Computation, call: Instruction) -> Work:
    target = call.custom_call_target
    if (stated := re.search(rf'{STATED_FLOPS}="(\d+)"', call.attributes.get("frontend_attributes", ""))) is not None:
        return Work(int(stated[1]))
    shapes = _operands(computation, call)
    if "gemm_backend_config" in call.backend_config:
        numbers = call.backend_config["gemm_backend_config"]["dot_dimension_numbers"]
        contracted = math.prod(shapes[0].dims[int(axis)] for axis in numbers["lhs_contracting_dimensions"])
        return Work(2 * _arrays(call.shape)[0].size * contracted)
    if re.search(r"trsm|triangularSolve", target):
        return Work(shapes[1].size * shapes[0].dims[-1])
    if "getrf" in target:
        *batch, rows, columns = shapes[0].dims
        long, short = max(rows, columns), min(rows, columns)
        return Work(round(math.prod(batch) * short**2 * (long - short / 3)))
    if "potrf" in target:
        return Work(round(math.prod(shapes[0].dims) * shapes[0].dims[-1] / 3))
    if re.search(r"lu_pivots_to_permutation|Sharding|__cub\$|[Tt]op_?[Kk]|threefry", target):
        return Work()
    return Work(unmodelled=(f"custom-call {target}",))


def _dot(module: HloModule, computation: Computation, one: Instruction) -> int:
    axes = [int(axis) for axis in re.findall(r"\d+", one.attributes.get("lhs_contracting_dims", ""))]
    left = _operands(computation, one)[0]
    return 2 * one.shape.size * math.prod(left.dims[axis] for axis in axes)


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


def _triangular_solve(module: HloModule, computation: Computation, one: Instruction) -> int:
    matrix, right = _operands(computation, one)[:2]
    return right.size * matrix.dims[-1]


def _cholesky(module: HloModule, computation: Computation, one: Instruction) -> int:
    return round(one.shape.size * one.shape.dims[-1] / 3)


_RULES: dict[str, Callable[[HloModule, Computation, Instruction], int]] = {
    "cholesky": _cholesky,
    "dot": _dot,
    "reduce": _reduce,
    "reduce-window": _reduce_window,
    "scatter": _scatter,
    "triangular-solve": _triangular_solve,
}


def _operands(computation: Computation, one: Instruction) -> list[Shape]:
    return [computation.by_name[name].shape for name in one.operands if name in computation.by_name]


def _arrays(shape: Shape) -> list[Shape]:
    return [part for element in shape.elements for part in _arrays(element)] if shape.is_tuple else [shape]
