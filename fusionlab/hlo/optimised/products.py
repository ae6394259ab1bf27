"""Matrix products that a library computes: their extents, read from the call.

XLA writes the axes and the asked precision of a cuBLAS call into its ``gemm_backend_config``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusionlab.hlo.optimised.kernel_cost import work_of
from fusionlab.hlo.optimised.parser import Computation, HloModule, Instruction, Shape, element_bits


@dataclass(frozen=True)
class MatrixProduct:
    """``batch`` products of ``rows`` x ``contracted`` by ``contracted`` x ``columns``; elements have ``bits``.

    ``tf32``: the library may compute it on tensor cores in TF32. ``lhs_contiguous`` and ``rhs_contiguous``: the
    contracted axis of that operand is its fastest one.
    """

    batch: int
    rows: int
    columns: int
    contracted: int
    bits: int
    tf32: bool
    lhs_contiguous: bool
    rhs_contiguous: bool

    @property
    def flops(self) -> int:
        """A multiplication and an addition per term."""
        return 2 * self.batch * self.rows * self.columns * self.contracted

    @property
    def is_aligned(self) -> bool:
        """True if the rows of both operands start at multiples of 16 bytes, as tensor cores are fed fastest."""
        left = self.contracted if self.lhs_contiguous else self.rows
        right = self.contracted if self.rhs_contiguous else self.columns
        return not (left * self.bits % 128 or right * self.bits % 128)


def product_of(module: HloModule, computation: Computation, call: Instruction) -> MatrixProduct | None:
    """The product that ``call`` of ``computation`` is; None for another instruction, for complex elements, and where an
    axis is unknown."""
    config = call.backend_config.get("gemm_backend_config") if call.opcode == "custom-call" else None
    if not config or any(name not in computation.by_name for name in call.operands[:2]):
        return None
    left, right = (computation.by_name[name].shape for name in call.operands[:2])
    if left.dtype.startswith("c"):
        return None
    numbers = config["dot_dimension_numbers"]
    inner, inner_right, batch = (
        [int(axis) for axis in numbers.get(f"{name}_dimensions", ())]
        for name in ("lhs_contracting", "rhs_contracting", "lhs_batch")
    )
    contracted, batches = math.prod(left.dims[at] for at in inner), math.prod(left.dims[at] for at in batch)
    if not contracted * batches * left.size * right.size:
        return None
    return MatrixProduct(
        batch=batches,
        rows=left.size // (contracted * batches),
        columns=right.size // (contracted * batches),
        contracted=contracted,
        bits=element_bits(left.dtype),
        tf32=work_of(module, computation, call).tf32_flops > 0,
        lhs_contiguous=_fastest(left) in inner,
        rhs_contiguous=_fastest(right) in inner_right,
    )


def _fastest(shape: Shape) -> int:
    """The axis whose neighbours are side by side in memory."""
    first = shape.layout.partition(":")[0].partition(",")[0]
    return int(first) if first.isdigit() else len(shape.dims) - 1
