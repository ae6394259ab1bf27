"""swap-dot-operands: a contraction whose result is read transposed is computed transposed.

rewrite:
    %y = dot_general %v, %a       b,j,d and b,i,j to b,d,i         %y = dot_general %a, %v      b,i,j and b,j,d to b,i,d
    %z = transpose (tanh %y)      b,d,i to b,i,d              -->  %t = transpose %y            b,i,d to b,d,i
                                                                   %z = transpose (tanh %t)     b,d,i to b,i,d

The free axes of a result are those of the left operand, then those of the right one. XLA lets the library write in that
order. Where a fusion then writes the left operand's last axis as its own last one, neighbouring threads read elements
that lie apart. With the operands exchanged they read neighbours, and the two transpositions cancel in the fusion.

requires: a contraction with free axes of more than one element in both operands and no explicit algorithm; all that is
    made of its result by ops that XLA fuses has the left operand's last free axis as its last one, and not the right
    one's too, as a product with its own transpose has.
exact: bitwise per element up to the library's choice of tiles for a transposed product.
hopes: the sectors that strided reads load beyond the bytes that they need.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import lax

from fusionlab.codegen.raising.rules.contraction import precision_of
from fusionlab.codegen.raising.splice import drop_dead, inline
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import axes_after
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting, platform_for
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite

_MOVED = {ops.CONCATENATE, ops.DYNAMIC_UPDATE_SLICE, ops.PAD}
"""Ops that XLA fuses, beside elementwise ones and those that read in place by strides."""


@dataclass(frozen=True)
class SwapDotOperands(Pass):
    """No options."""

    name: ClassVar[str] = "swap-dot-operands"

    def run(self, program: Program, setting: Setting) -> Result:
        """Exchange the operands of every contraction that qualifies, in any block."""
        platform = platform_for(program, setting)
        module = program.parse()
        tally = Tally()
        for look in blocks_to_rewrite(module):
            drop_dead([result.handle for node in look().nodes for result in node.results])
            block = look()
            for dot in [node for node in block.nodes if _is_read_transposed(node, block)]:
                tally.rewrite(dot)
                operands = list(dot.operation.operands)
                inline([dot.operation], _swapped(dot), operands, platform=platform)
        otherwise = "there is no contraction that is read with the last axis of its left operand as the last one"
        return tally.result(program, module, self, "contractions exchanged their operands", otherwise)


def _is_read_transposed(node: Node, block: Block) -> bool:
    """True for a contraction if all that XLA makes of its result in fusions ends with the left operand's last free
    axis, and nothing with the right one's."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return False
    axes, shape = DotAxes.of(node).result, node.results[0].type.shape
    left, right = ([at for at, pair in enumerate(axes) if pair[other] is None and shape[at] > 1] for other in (1, 0))
    if not left or not right:
        return False
    return all(
        (last := _last(value)) in ours and last not in others
        for value, (ours, others) in _ends(node.results[0], (left[-1], right[-1]), block)
    )


def _ends(value: Value, axes: tuple[int, int], block: Block) -> Iterator[tuple[Value, list[set[int]]]]:
    """The values made of ``value`` in fusions that something else reads, in order, each with the axes that each of
    ``axes`` has become there. A value comes after all that it is made of."""
    reached = {value: [{axis} for axis in axes]}
    waiting: list[tuple[int, Node]] = []
    yield from _end(value, reached[value], waiting, block)
    while waiting:
        _, node = heapq.heappop(waiting)
        made = node.results[0]
        if made in reached:  # it reads several of them
            continue
        became: list[set[int]] = [set() for _ in axes]
        for operand in set(node.operands) & reached.keys():
            for at, found in enumerate(reached[operand]):
                became[at].update(to for axis in found for to in _followed(node, operand, axis))
        reached[made] = became
        yield from _end(made, became, waiting, block)


def _end(
    value: Value, axes: list[set[int]], waiting: list[tuple[int, Node]], block: Block
) -> Iterator[tuple[Value, list[set[int]]]]:
    """``value`` with its axes if something beside fused ops reads it; the fused ones go to ``waiting``."""
    users = block.users.get(value, ())
    for user in filter(_is_fused, users):
        heapq.heappush(waiting, (block.place[user], user))
    if value in block.returns or not all(map(_is_fused, users)):
        yield value, axes


def _followed(node: Node, value: Value, axis: int) -> Iterator[int]:
    """``axes_after``; the last axis of a reshape's operand is the inner part of its result's last one."""
    if node.op is ops.RESHAPE and axis == _last(value) and (last := _last(node.results[0])) is not None:
        yield last
    else:
        yield from axes_after(node, value, axis)


def _last(value: Value) -> int | None:
    """The last axis of more than one element."""
    return max((axis for axis, extent in enumerate(value.type.shape) if extent > 1), default=None)


def _is_fused(node: Node) -> bool:
    return node.op.triton or node.op.strided or node.op in _MOVED


def _swapped(dot: Node) -> Callable[..., list[Any]]:
    """``dot`` by the product of its operands in the other order, transposed."""
    axes, precision = DotAxes.of(dot), precision_of(dot)
    batch = len(axes.batch_pairs)
    left, right = map(len, axes.free)
    order = [*range(batch), *range(batch + right, batch + right + left), *range(batch, batch + right)]
    numbers = tuple(tuple(reversed(pair)) for pair in (axes.contracted, axes.batch))
    exchanged = tuple(reversed(precision)) if isinstance(precision, tuple) else precision

    def swapped(one: Any, other: Any) -> list[Any]:
        made = lax.dot_general(
            other, one, numbers, precision=exchanged, preferred_element_type=ops.NUMPY[dot.results[0].type.dtype]
        )
        return [lax.transpose(made, order)]

    return swapped
