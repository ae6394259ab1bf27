"""The axes of a dot_general by kind: batch, free, contracted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo.view import Node

_NUMBER_BYTES = 4


@dataclass(frozen=True)
class Axes:
    """The axes of a dot_general by kind, as pairs (left axis, right axis) or as one axis."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    batch: tuple[tuple[int, int], ...]
    contracted: tuple[tuple[int, int], ...]

    @staticmethod
    def of(node: Node) -> Axes:
        """The axes of ``node``, a ``stablehlo.dot_general``."""
        numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
        left, right = (value.type.shape for value in node.operands)
        batch = zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True)
        contracted = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
        return Axes(left, right, tuple(batch), tuple(contracted))

    @property
    def free_left(self) -> list[int]:
        """Axes of the left operand that are axes of the result."""
        used = {left for left, _ in (*self.batch, *self.contracted)}
        return [axis for axis in range(len(self.left)) if axis not in used]

    @property
    def free_right(self) -> list[int]:
        """Axes of the right operand that are axes of the result."""
        used = {right for _, right in (*self.batch, *self.contracted)}
        return [axis for axis in range(len(self.right)) if axis not in used]

    @property
    def batch_in_front(self) -> bool:
        """True if the batch axes come first, in the same order, in both operands."""
        return all(pair == (at, at) for at, pair in enumerate(self.batch))

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N and K of one batch element, as a matrix product."""
        rows = math.prod(self.left[axis] for axis in self.free_left)
        columns = math.prod(self.right[axis] for axis in self.free_right)
        return rows, columns, math.prod(self.left[axis] for axis, _ in self.contracted)

    @property
    def intensity(self) -> float:
        """FLOP/byte of one batch element."""
        m, n, k = self.extents
        return 2 * m * n * k / (_NUMBER_BYTES * (m * k + k * n + m * n))
