"""hoist-reduce-through-dot: sum rows before a layer instead of after it, so that they are contracted once.

rewrite:
    %y = dot_general %x, %w                           %y = dot_general %x, %w[own columns]
    %a = slice %y (own columns)             -->       %t = reduce add %x (over electrons)
    %b = reduce add (slice %y) (over electrons)       %b = dot_general %t, %w[other columns]

The reverse pass of a layer that reads means over all electrons (sink-broadcast-through-dot is for the layer itself):
512 of 832 columns are contracted for each of ten electrons and then summed.

requires: a layer (the last axis with one of a matrix) all of whose readers are slices of its columns, some of them read
    by one sum over rows alone; float32 or float64, and no explicit algorithm.
exact: reassociates sums over rows and features.
hopes: the FLOPs of the summed rows, the bytes of the wide result, and the kernels of the sums, for one sum and one
    small contraction. Run licm after it.

Option ``fewest``: the number of summed columns below which a layer is left alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks
from fusionlab.passes.sink_broadcast_through_dot import contracted_axis


@dataclass(frozen=True)
class HoistReduceThroughDot(Pass):
    """Option: ``fewest``; see the module's docstring."""

    fewest: int = 32

    name: ClassVar[str] = "hoist-reduce-through-dot"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every such layer, in any block."""
        return inline_in_blocks(
            program,
            self,
            setting,
            self._change,
            what="layers sum before they contract",
            otherwise="there is no layer with columns that are summed over rows in the program",
        )

    def _change(self, block: Block, node: Node) -> Change | None:
        if (axis := contracted_axis(node)) is None:
            return None
        (result,) = node.results
        readers = block.users.get(result, [])
        if result in block.returns or not all(_is_of_columns(reader) for reader in readers):
            return None
        found = [of for reader in readers if (of := _sum_of(block, reader)) is not None]
        if not found:
            return None
        axes = max((of.axes for of in found), key=lambda axes: sum(of.width for of in found if of.axes == axes))
        summed = [of for of in found if of.axes == axes]
        own = [reader for reader in readers if all(of.slice is not reader for of in summed)]
        if not own or sum(of.width for of in summed) < self.fewest:
            return None
        replaced = sorted([*own, *(of.reduce for of in summed)], key=block.place.__getitem__)
        return Change(replaced, _split(node, 1 - axis, own, summed, axes, replaced), node.operands)


@dataclass(frozen=True)
class _Sum:
    """``reduce`` adds the columns of ``slice`` over ``axes`` of rows (those of the layer's result)."""

    slice: Node
    reduce: Node
    axes: tuple[int, ...]

    @property
    def width(self) -> int:
        """The number of columns."""
        return int(self.slice.results[0].type.shape[-1])


def _is_of_columns(node: Node) -> bool:
    """True if ``node`` is a slice that takes all rows."""
    if node.op is not ops.SLICE:
        return False
    before, after = node.operands[0].type.shape, node.results[0].type.shape
    return before[:-1] == after[:-1] and set(node.attributes["strides"]) == {1}


def _sum_of(block: Block, node: Node) -> _Sum | None:
    """The sum over rows that alone reads the slice ``node``, directly or with axes of one element added."""
    value = node.results[0]
    while (reader := _only_reader(block, value)) is not None and reader.op is ops.RESHAPE:
        value = reader.results[0]
    if reader is None or not is_sum(reader) or number_of(reader.operands[1]) != 0:
        return None
    long_before = [axis for axis, extent in enumerate(node.results[0].type.shape) if extent > 1]
    long_after = [axis for axis, extent in enumerate(value.type.shape) if extent > 1]
    if [node.results[0].type.shape[a] for a in long_before] != [value.type.shape[a] for a in long_after]:
        return None
    reduced = set(reader.attributes["dimensions"])
    axes = tuple(before for before, after in zip(long_before, long_after, strict=True) if after in reduced)
    last = len(node.results[0].type.shape) - 1
    return _Sum(node, reader, axes) if axes and last not in axes and last in long_before else None


def _only_reader(block: Block, value: Value) -> Node | None:
    readers = block.users.get(value, [])
    return readers[0] if len(readers) == 1 and value not in block.returns else None


def is_sum(node: Node) -> bool:
    """True if ``node`` reduces one operand by addition."""
    if node.op is not ops.REDUCE or len(node.operands) != 2:
        return False
    return [op.operation.name for op in node.operation.regions[0].blocks[0].operations][:-1] == [ops.ADD.name]


def _split(
    node: Node, columns: int, own: list[Node], summed: list[_Sum], axes: tuple[int, ...], replaced: list[Node]
) -> Callable[..., list[Any]]:
    """Both contractions and their slices, in the order of ``replaced``; called with the layer's operands.

    ``columns`` is the axis of the matrix that is not contracted.
    """

    def layer(value: Any, matrix: Any, slices: list[Node]) -> list[Any]:
        bounds = [[list(s.attributes[name])[-1] for name in ("start_indices", "limit_indices")] for s in slices]
        wide = lax.concatenate([lax.slice_in_dim(matrix, a, b, axis=columns) for a, b in bounds], columns)
        (made,) = Raising().node(node, dict(zip(node.operands, (value, wide), strict=True)))
        ends = itertools.accumulate(b - a for a, b in bounds)
        return [lax.slice_in_dim(made, e - (b - a), e, axis=-1) for e, (a, b) in zip(ends, bounds, strict=True)]

    def run(value: Any, matrix: Any) -> list[Any]:
        results = dict(zip(own, layer(value, matrix, own), strict=True))
        total = jnp.sum(value, axis=axes, keepdims=True)
        for of, made in zip(summed, layer(total, matrix, [of.slice for of in summed]), strict=True):
            results[of.reduce] = lax.reshape(made, of.reduce.results[0].type.shape)
        return [results[one] for one in replaced]

    return run
