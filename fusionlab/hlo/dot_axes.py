"""The axes of a ``dot_general``: the only reader of its dimension numbers.

    batch       an axis of both operands and of the result
    contracted  an axis of both operands, summed over
    free        an axis of one operand and of the result

The result has the batch axes first, then the free ones of the left operand, then those of the right one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo.view import Node

_NUMBER_BYTES = 4


@dataclass(frozen=True)
class DotAxes:
    """The axes of each operand by kind, left operand first: ``batch[side][i]`` and ``contracted[side][i]`` are axis i
    of that kind in operand ``side``, of extents ``shapes[side]``."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    batch: tuple[tuple[int, ...], tuple[int, ...]]
    contracted: tuple[tuple[int, ...], tuple[int, ...]]

    @staticmethod
    def of(node: Node) -> DotAxes:
        """The axes of ``node``, a ``stablehlo.dot_general``."""
        numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
        left, right = (value.type.shape for value in node.operands)
        return DotAxes(
            (left, right),
            (tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)),
            (tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)),
        )

    @property
    def free(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The axes of each operand that are neither batch axes nor contracted, in order."""
        left, right = (
            tuple(axis for axis in range(len(shape)) if axis not in (*batch, *contracted))
            for shape, batch, contracted in zip(self.shapes, self.batch, self.contracted, strict=True)
        )
        return left, right

    @property
    def batch_pairs(self) -> Sequence[tuple[int, int]]:
        """(left axis, right axis) of each batch axis; the i-th is axis i of the result."""
        return tuple(zip(*self.batch, strict=True))

    @property
    def contracted_pairs(self) -> Sequence[tuple[int, int]]:
        """(left axis, right axis) of each contracted axis."""
        return tuple(zip(*self.contracted, strict=True))

    @property
    def result(self) -> Sequence[tuple[int | None, int | None]]:
        """(left axis, right axis) that each axis of the result is; None for an operand that does not have it."""
        left, right = self.free
        return (*self.batch_pairs, *((axis, None) for axis in left), *((None, axis) for axis in right))

    @property
    def batch_in_front(self) -> bool:
        """True if the batch axes come first, in the same order, in both operands."""
        return all(pair == (at, at) for at, pair in enumerate(self.batch_pairs))

    @property
    def extents(self) -> tuple[int, int, int]:
        """M, N and K of one batch element, as a matrix product."""
        (left, right), (rows, columns), (terms, _) = self.shapes, self.free, self.contracted
        return (
            math.prod(left[axis] for axis in rows),
            math.prod(right[axis] for axis in columns),
            math.prod(left[axis] for axis in terms),
        )

    @property
    def intensity(self) -> float:
        """FLOP/byte of one batch element."""
        m, n, k = self.extents
        return 2 * m * n * k / (_NUMBER_BYTES * (m * k + k * n + m * n))
