"""Directions made from a loop counter: a row of an identity, or a comparison of the counter with an iota."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.element_types import FLOATS
from fusionlab.hlo.loops import Invariant, Loop
from fusionlab.hlo.view import Node, Region, Value, constant_array, direction_of


@dataclass(frozen=True)
class Seed:
    """The op that makes the direction of a body: ``node`` yields ``rows`` unit vectors of ``extent`` per trip."""

    node: Node
    extent: int
    rows: int
    description: str


def find_seeds(body: Region, varying: Set[Value], origins: Mapping[Value, Value]) -> tuple[list[Seed], list[Node]]:
    """Directions that ``body`` makes from its counters, and the slices at a counter of other arrays.

    ``varying`` are the values that depend on a counter; ``origins`` are those of ``origins_of``.
    """
    seeds, others = [], []
    for node in body.nodes:
        if node.op in (ops.DYNAMIC_SLICE, ops.GATHER):
            table, *at = node.operands
            if table in varying or varying.isdisjoint(at) or table.type.dtype not in FLOATS:
                continue
            seed = _row_of_identity(node, origins)
            if seed is None:
                others.append(node)
            else:
                seeds.append(seed)
        elif node.op is ops.COMPARE and direction_of(node) == "EQ":
            seeds += _comparisons_with_iota(node, varying, origins)
    return seeds, others


def _row_of_identity(node: Node, origins: Mapping[Value, Value]) -> Seed | None:
    extent = identity_extent(node.operands[0], origins)
    if not extent:
        return None
    rows = math.prod(node.results[0].type.shape) // extent
    which = "row k" if rows == 1 else f"{rows} rows"
    return Seed(node, extent, rows, f"{which} of the {extent} x {extent} identity ({node.op.mnemonic} at the counter)")


def _comparisons_with_iota(node: Node, varying: Set[Value], origins: Mapping[Value, Value]) -> Iterator[Seed]:
    for counted, index in (node.operands, node.operands[::-1]):
        axis = _iota_axis(counted, origins)
        if axis is not None and counted not in varying and index in varying:
            shape = node.results[0].type.shape
            rows = math.prod(shape) // shape[axis]
            yield Seed(node, shape[axis], rows, f"comparison of the counter with an iota of {shape[axis]}")


def identity_extent(value: Value, origins: Mapping[Value, Value]) -> int:
    """n if ``value`` is the n x n identity, else 0."""
    value = _peeled(value, origins, (ops.CONVERT, ops.RESHAPE))
    node, shape = value.producer, value.type.shape
    if node is None or len(shape) != 2 or shape[0] != shape[1]:
        return 0
    if node.op is ops.CONSTANT:
        return shape[0] if np.array_equal(constant_array(node), np.eye(shape[0])) else 0
    if node.op is ops.SELECT:
        one, zero = (_splat(operand, origins) for operand in node.operands[1:])
        return identity_extent(node.operands[0], origins) if (one, zero) == (1.0, 0.0) else 0
    if node.op is not ops.COMPARE or direction_of(node) != "EQ":
        return 0
    axes = {_iota_axis(operand, origins) for operand in node.operands}
    return shape[0] if axes == {0, 1} else 0


def _iota_axis(value: Value, origins: Mapping[Value, Value]) -> int | None:
    """The axis along which ``value`` counts 0, 1, 2, ..., or None."""
    value = _peeled(value, origins, (ops.CONVERT,))
    node = value.producer
    if node is None:
        return None
    if node.op is ops.IOTA:
        return int(node.attributes["iota_dimension"].value)
    if node.op is ops.ADD:
        for this, other in (node.operands, node.operands[::-1]):
            if _splat(other, origins) == 0:
                return _iota_axis(this, origins)
    if node.op is ops.BROADCAST_IN_DIM:
        axis = _iota_axis(node.operands[0], origins)
        return None if axis is None else int(node.attributes["broadcast_dimensions"][axis])
    return None


def _splat(value: Value, origins: Mapping[Value, Value]) -> float | None:
    """The number that all elements of ``value`` equal, if it is known; else None."""
    value = _peeled(value, origins, (ops.CONVERT, ops.RESHAPE, ops.BROADCAST_IN_DIM))
    if value.producer is None or value.producer.op is not ops.CONSTANT:
        return None
    array = constant_array(value.producer)
    return float(array.flat[0]) if array.size and (array == array.flat[0]).all() else None


def _peeled(value: Value, origins: Mapping[Value, Value], through: tuple[ops.OpDef, ...]) -> Value:
    """``value`` before ops of ``through`` and before the loops that carry it unchanged."""
    while True:
        if value in origins:
            value = origins[value]
        elif value.producer is not None and value.producer.op in through:
            value = value.producer.operands[0]
        else:
            return value


def origins_of(loops: Iterable[Loop]) -> Iterator[tuple[Value, Value]]:
    """Pairs of a value that a loop carries unchanged (in its regions and results) and its initial value."""
    for loop in loops:
        for i in loop.indices(Invariant):
            carried = [*(region.arguments[i] for region in loop.node.regions), loop.node.results[i]]
            yield from ((value, loop.node.operands[i]) for value in carried)
