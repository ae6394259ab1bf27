"""Where in another array the elements of a sliced, transposed, broadcast or reshaped value stand."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusionlab.hlo.flat import Node, Value


@dataclass(frozen=True)
class View:
    """Element ``[i, j, ...]`` of a value of ``shape`` is element ``offset + i strides[0] + j strides[1] + ...`` of
    ``base``, counted in row-major order."""

    base: Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def whole(value: Value) -> View:
        """``value`` as a view of itself."""
        return View(value, value.type.shape, row_major(value.type.shape), 0)

    @staticmethod
    def of(value: Value) -> View:
        """``value`` as a view of what it was made from by views alone; of itself where there is no such thing."""
        chain: list[Node] = []
        while (node := value.producer) is not None and node.name in _VIEWS:
            chain.append(node)
            value = node.operands[0]
        view = View.whole(value)
        for node in reversed(chain):
            view = _VIEWS[node.name](node, view) or View.whole(node.results[0])
        return view

    @property
    def rows(self) -> list[tuple[int, int]]:
        """All axes but the last as (extent, stride), outer ones first, neighbours that run on merged into one."""
        return _merged([*zip(self.shape[:-1], self.strides[:-1], strict=True)])


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array of ``shape`` that has its last axis together."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _merged(axes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for extent, stride in axes:
        if extent == 1:
            continue
        if merged and merged[-1][1] == extent * stride:
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return merged


def _broadcast(node: Node, inner: View) -> View:
    shape = node.results[0].type.shape
    strides = [0] * len(shape)
    for axis, to in enumerate(node.attributes["broadcast_dimensions"]):
        if inner.shape[axis] > 1:
            strides[to] = inner.strides[axis]
    return View(inner.base, shape, tuple(strides), inner.offset)


def _slice(node: Node, inner: View) -> View:
    starts, steps = (list(node.attributes[name]) for name in ("start_indices", "strides"))
    offset = inner.offset + sum(s * stride for s, stride in zip(starts, inner.strides, strict=True))
    strides = tuple(step * stride for step, stride in zip(steps, inner.strides, strict=True))
    return View(inner.base, node.results[0].type.shape, strides, offset)


def _transpose(node: Node, inner: View) -> View:
    order = list(node.attributes["permutation"])
    return View(inner.base, node.results[0].type.shape, tuple(inner.strides[axis] for axis in order), inner.offset)


def _reshape(node: Node, inner: View) -> View | None:
    """None where axes are put together that do not run on in the base, or there are no elements."""
    shape = node.results[0].type.shape
    if 0 in shape:
        return None
    waiting = _merged([*zip(inner.shape, inner.strides, strict=True)])
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
    return View(inner.base, shape, tuple(reversed(strides)), inner.offset)


_VIEWS = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _reshape,
    "stablehlo.slice": _slice,
    "stablehlo.transpose": _transpose,
}
