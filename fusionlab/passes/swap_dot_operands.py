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
            while (dot := _first(look())) is not None:
                tally.rewrite(dot)
                operands = list(dot.operation.operands)
                inline([dot.operation], _swapped(dot), operands, platform=platform)
        otherwise = "no contraction is read with the last axis of its left operand as the last one"
        return tally.result(program, module, self, "contractions exchanged their operands", otherwise)


def _first(block: Block) -> Node | None:
    return next((node for node in block.nodes if node.op is ops.DOT_GENERAL and _is_read_transposed(node, block)), None)


def _is_read_transposed(dot: Node, block: Block) -> bool:
    """True if all that XLA makes of the result in fusions ends with the last free axis of the left operand."""
    axes, shape = DotAxes.of(dot).result, dot.results[0].type.shape
    left, right = ([at for at, pair in enumerate(axes) if pair[other] is None and shape[at] > 1] for other in (1, 0))
    if not left or not right or "algorithm" in dot.attributes:
        return False
    ours, others = (_reached(dot.results[0], side[-1], block) for side in (left, right))
    lasts = [(value, _last(value)) for value in _ends(dot.results[0], block)]
    return bool(lasts) and all(at in ours.get(value, ()) and at not in others.get(value, ()) for value, at in lasts)


def _ends(value: Value, block: Block) -> Iterator[Value]:
    """The values made of ``value`` in fusions that something else reads."""
    waiting, seen = [value], {value}
    while waiting:
        one = waiting.pop()
        users = block.users.get(one, ())
        if one in block.returns or not all(map(_is_fused, users)):
            yield one
        for user in filter(_is_fused, users):
            new = [result for result in user.results if result not in seen]
            waiting += new
            seen.update(new)


def _reached(value: Value, axis: int, block: Block) -> dict[Value, set[int]]:
    """The axes that ``axis`` of ``value`` becomes in fusions, by value."""
    waiting, found = [(value, axis)], {value: {axis}}
    while waiting:
        one, at = waiting.pop()
        for user in filter(_is_fused, block.users.get(one, ())):
            made = user.results[0]
            for to in _axes_after(user, one, at):
                if to not in found.setdefault(made, set()):
                    found[made].add(to)
                    waiting.append((made, to))
    return found


def _axes_after(node: Node, value: Value, axis: int) -> Iterator[int]:
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
