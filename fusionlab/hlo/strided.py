"""Strided views: the positions of a sliced, transposed, broadcast or reshaped value's elements in another array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Value


@dataclass(frozen=True)
class Axis:
    """One axis: its extent, and its stride in each of some arrays; 0 where an array does not have it."""

    extent: int
    steps: tuple[int, ...]

    def joined(self, inner: Axis) -> Axis | None:
        """This axis merged with the next ``inner`` one, if they are contiguous in all arrays; else None."""
        if any(mine != inner.extent * its for mine, its in zip(self.steps, inner.steps, strict=True)):
            return None
        return Axis(self.extent * inner.extent, inner.steps)


def run_on(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    """``axes``, outer ones first, without those of one element, contiguous neighbours merged."""
    joined: list[Axis] = []
    for axis in axes:
        if axis.extent == 1:
            continue
        both = joined[-1].joined(axis) if joined else None
        joined[-1:] = [both] if both is not None else [*joined[-1:], axis]
    return tuple(joined)


def count(axes: Sequence[Axis]) -> int:
    """The number of elements along ``axes``."""
    return math.prod(axis.extent for axis in axes)


@dataclass(frozen=True)
class StridedView:
    """Element ``[i, j, ...]`` of a value of ``shape`` is element ``offset + i strides[0] + j strides[1] + ...`` of
    ``base``, counted in row-major order."""

    base: Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def whole(value: Value) -> StridedView:
        """``value`` as a view of itself."""
        return StridedView(value, value.type.shape, row_major(value.type.shape), 0)

    @staticmethod
    def of(value: Value) -> StridedView:
        """``value`` as a view of the value it was made from by views alone; of itself if there is none."""
        chain: list[Node] = []
        while (node := value.producer) is not None and node.op.strided:
            chain.append(node)
            value = node.operands[0]
        view = StridedView.whole(value)
        for node in reversed(chain):
            view = _VIEWS[node.op](node, view) or StridedView.whole(node.results[0])
        return view

    @property
    def rows(self) -> tuple[Axis, ...]:
        """All axes but the last, outer ones first, contiguous neighbours merged; strides in ``base`` alone."""
        return _together(self.shape[:-1], self.strides[:-1])


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a row-major array of ``shape``."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _together(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[Axis, ...]:
    return run_on([Axis(extent, (stride,)) for extent, stride in zip(shape, strides, strict=True)])


def _broadcast(node: Node, inner: StridedView) -> StridedView:
    shape = node.results[0].type.shape
    strides = [0] * len(shape)
    for axis, to in enumerate(node.attributes["broadcast_dimensions"]):
        if inner.shape[axis] > 1:
            strides[to] = inner.strides[axis]
    return StridedView(inner.base, shape, tuple(strides), inner.offset)


def _slice(node: Node, inner: StridedView) -> StridedView:
    starts, steps = (list(node.attributes[name]) for name in ("start_indices", "strides"))
    offset = inner.offset + sum(s * stride for s, stride in zip(starts, inner.strides, strict=True))
    strides = tuple(step * stride for step, stride in zip(steps, inner.strides, strict=True))
    return StridedView(inner.base, node.results[0].type.shape, strides, offset)


def _transpose(node: Node, inner: StridedView) -> StridedView:
    order = list(node.attributes["permutation"])
    return StridedView(
        inner.base, node.results[0].type.shape, tuple(inner.strides[axis] for axis in order), inner.offset
    )


def _reshape(node: Node, inner: StridedView) -> StridedView | None:
    """The view through a reshape; None where it merges axes that are not contiguous in the base, or has no elements."""
    shape = node.results[0].type.shape
    if 0 in shape:
        return None
    waiting = [(axis.extent, *axis.steps) for axis in _together(inner.shape, inner.strides)]
    strides: list[int] = []
    for extent in reversed(shape):
        if extent == 1:
            strides.append(0)
            continue
        while waiting and waiting[-1][0] == 1:
            waiting.pop()
        if not waiting or waiting[-1][0] % extent:
            return None
        size, stride = waiting.pop()
        strides.append(stride)
        waiting.append((size // extent, stride * extent))
    return StridedView(inner.base, shape, tuple(reversed(strides)), inner.offset)


_VIEWS = {
    ops.BROADCAST_IN_DIM: _broadcast,
    ops.RESHAPE: _reshape,
    ops.SLICE: _slice,
    ops.TRANSPOSE: _transpose,
}
