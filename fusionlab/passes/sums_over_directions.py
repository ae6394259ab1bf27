"""Values of a program that may be a Laplacian: sums over the unit directions of the coordinates.

a loop:     for k in range(K): sum += hessian(eye[k])[k]           (a replay of the inventory)
no loop:    trace(vmap(hessian)(eye))                              (an identity of K rows goes into it)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fusionlab.hlo import ops
from fusionlab.hlo.directions import identity_extent
from fusionlab.hlo.element_types import WIDE_FLOATS
from fusionlab.hlo.loops import Stacked, Sum
from fusionlab.hlo.program import TensorType
from fusionlab.hlo.replay import Replay, reached
from fusionlab.hlo.view import FunctionView, Node, Value, reads

_MOST_TARGETS = 6
_MOST_SIZES = 3


class NoLaplacian(Exception):
    """Something is not the Laplacian of a value of the program; the message says what was tried."""


class NotSeen(NoLaplacian):
    """It agrees with a Laplacian wherever it was tried, but that is not everywhere."""


@dataclass(frozen=True, eq=False)
class DirectionSum:
    """``targets``, the likeliest first, may sum over ``directions`` unit vectors; one of them is asked for.

    ``before`` are the nodes of ``flat`` that do not need the directions, ``read`` the values that are read beside
    them, ``initial`` what the sum starts from (None: zero). ``replay`` is None where there is no loop.
    """

    flat: FunctionView
    targets: tuple[Value, ...]
    directions: int
    before: tuple[Node, ...]
    read: tuple[Value, ...]
    initial: Value | None
    scope: str
    replay: Replay | None
    producer: Node


def sum_of_loop(flat: FunctionView, replay: Replay) -> DirectionSum:
    """What ``replay`` (a loop of ``flat`` itself, not of a region in it) sums; NoLaplacian if that is not one sum."""
    loop = replay.loop
    sums = loop.indices(Sum)
    assert replay.trips is not None
    return DirectionSum(
        flat=flat,
        targets=(_result_of_loop(flat, replay),),
        directions=replay.trips,
        before=tuple(flat.nodes[: flat.nodes.index(loop.node)]),
        read=(*loop.node.operands, *replay.residuals),
        initial=loop.node.operands[sums[0]] if sums else None,
        scope=loop.node.scope,
        replay=replay,
        producer=loop.node,
    )


def with_what_follows(question: DirectionSum) -> DirectionSum | None:
    """``question`` with the nodes behind its loop that do not need it among those before; None where there are none."""
    if question.replay is None:
        return None
    loop = question.replay.loop.node
    needing = reached(question.flat, loop.results)
    every = tuple(node for node in question.flat.nodes if node is not loop and needing.isdisjoint(node.results))
    return replace(question, before=every) if len(every) > len(question.before) else None


def _result_of_loop(flat: FunctionView, replay: Replay) -> Value:
    """The loop's sum, or what a stack of terms is reduced to."""
    loop = replay.loop
    sums = [loop.node.results[i] for i in loop.indices(Sum)]
    stacks = [loop.node.results[i] for i in loop.indices(Stacked)]
    if sums and not stacks:
        return sums[0]
    if len(stacks) == 1 and not sums:
        after = reached(flat, stacks)
        for node in flat.nodes:
            if node.op is ops.REDUCE and node.results[0] in after:
                return node.results[0]
    raise NoLaplacian("the loop does not give one sum over directions")


def sums_without_loop(flat: FunctionView) -> Iterator[DirectionSum]:
    """Sums over the rows of an identity of as many rows as some value has coordinates per walker."""
    identities: dict[int, list[Value]] = {}
    for node in flat.nodes:
        for value in node.results:
            if is_float(value) and (extent := identity_extent(value, {})) > 1:
                identities.setdefault(extent, []).append(value)
    for extent, values in list(identities.items())[:_MOST_SIZES]:
        directed = reached(flat, values)
        before = tuple(node for node in flat.nodes if directed.isdisjoint(node.results))
        plain = [*flat.arguments, *(value for node in before for value in node.results)]
        shapes = {
            value.type.shape[:axes]
            for value in plain
            if is_float(value)
            for axes in range(len(value.type.shape))
            if math.prod(value.type.shape[axes:]) == extent
        }
        moving = reached(flat, [value for value in flat.arguments if is_float(value)])
        types = {v.type for v in plain if v in moving and is_float(v) and v.type.shape in shapes}
        nodes = [node for node in flat.nodes if not directed.isdisjoint(node.results)]
        read = tuple(dict.fromkeys(v for node in nodes for v in reads(node) if v not in directed))
        sums: dict[TensorType, list[Value]] = {}
        for node in nodes:
            for value in node.results:
                if is_float(value) and value.type in types and value in moving:
                    sums.setdefault(value.type, []).append(value)
        for targets in list(sums.values())[:_MOST_SIZES]:
            producer = targets[0].producer
            assert producer is not None
            some = tuple(targets[:_MOST_TARGETS])
            yield DirectionSum(flat, some, extent, before, read, None, producer.scope, None, producer)


def is_float(value: Value) -> bool:
    """Whether it is an array of f32 or f64."""
    return value.dtype in WIDE_FLOATS
