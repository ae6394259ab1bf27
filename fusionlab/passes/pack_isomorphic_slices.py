"""pack-isomorphic-slices: apply the ops common to two neighbouring equal slices of a value once, to both.

rewrite:
    %u = slice %x [0:5];  %v = slice %x [5:10]           %z = reshape %x : 2x5x...
    %a = f(%u);           %b = f(%v)              -->    %y = f(%z), for each of two
                                                         %a = slice %y [0:n];  %b = slice %y [n:2n]

Spin-up and spin-down electrons, when there are as many of both: their pair features, means over them, and orbitals are
one kernel each. ``f`` is as much as both lanes have in common: elementwise ops, sums, contractions, concatenations and
views; JAX batches it (``jax.vmap``). Each lane may read other values of fewer axes (the matrices of up and down
orbitals), which are stacked: a contraction becomes a batched one. licm, after this pass, moves the
stacking out of a loop.

requires: ops in one block that do not depend on each other, with equal attributes and types; float32 or float64; at
    least one sum, contraction or concatenation among them (XLA fuses elementwise ops with their readers).
exact: bitwise per op, up to the library's choice of tiles for a batched contraction.
hopes: the launches of one lane, and those that concatenate both again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.invariants import has_effect
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.lanes import ELEMENTWISE, Lanes, Part, invariant_arguments, part_of, seeds
from fusionlab.passes.rewriting import Change, inline_in_blocks


@dataclass(frozen=True)
class PackIsomorphicSlices(Pass):
    """No options."""

    name: ClassVar[str] = "pack-isomorphic-slices"

    def run(self, program: Program, setting: Setting) -> Result:
        """Merge wherever two lanes have something in common; see the module's docstring."""
        invariant: set[Any] | None = None

        def change(block: Block, node: Node) -> Change | None:
            nonlocal invariant
            if invariant is None:  # before anything is changed
                invariant = invariant_arguments(node.module)
            return _change(block, invariant) if node is block.nodes[0] else None

        return inline_in_blocks(
            program,
            self,
            setting,
            change,
            there_is="work that is done to two equal slices",
            what="groups of ops on two equal slices became one",
        )


def _change(block: Block, invariant: set[Any]) -> Change | None:
    for first, second in seeds(block):
        lanes = Lanes(block, invariant)
        lanes.grow(first, second)
        lanes.trim()
        outputs = lanes.outputs()
        if not lanes.kernels() or not outputs:
            continue
        replaced = sorted([node for pair in outputs for node in pair], key=block.place.__getitem__)
        operands = _operands(lanes)
        if _move_before(block, operands, replaced[0], lanes.nodes()):
            return replaced, _merged(lanes, outputs, replaced, operands), operands
    return None


def _operands(lanes: Lanes) -> list[Value]:
    """The operands of the merged ops: shared values, sliced values, and the values of each lane."""
    known = {value.handle: value for node in lanes.block.nodes for value in node.results}
    roots = dict.fromkeys(_part(value).root for value in lanes.parts)
    sliced = [known.get(root) or Value(0, root, None, 0) for root in roots]
    return [*dict.fromkeys([*lanes.shared, *sliced, *lanes.own, *lanes.own.values()])]


def _part(value: Value) -> Part:
    part = part_of(value)
    assert part is not None
    return part


def _move_before(block: Block, values: Sequence[Value], place: Node, region: Sequence[Node]) -> bool:
    """Move the producers of ``values`` that come after ``place`` before it; False if they depend on the region, or if
    the move is observable."""
    late: dict[Node, None] = {}

    def collect(value: Value) -> None:
        node = value.producer
        if node is not None and block.place[node] >= block.place[place]:
            for read in block.reads[node]:
                collect(read)
            late[node] = None

    for value in values:
        collect(value)
    if any(_may_have_effect(node) or block.depends(node, region) for node in late):
        return False
    for node in late:
        node.operation.move_before(place.operation)
    return True


def _may_have_effect(node: Node) -> bool:
    return node.name == "func.call" or node.op is ops.CUSTOM_CALL or node.op.control_flow or has_effect(node)


def _merged(
    lanes: Lanes, outputs: Sequence[tuple[Node, Node]], replaced: Sequence[Node], operands: Sequence[Value]
) -> Callable[..., list[Any]]:
    """All results of ``replaced`` from arrays for ``operands``."""
    nodes = sorted(lanes.pairs, key=lanes.block.place.__getitem__)
    results = [value for one, _ in outputs for value in one.results]

    def run(*arrays: Any) -> list[Any]:
        given = dict(zip(operands, arrays, strict=True))
        sliced = {value.handle: array for value, array in given.items()}
        both: dict[Value, _Both] = {value: (given[value], None) for value in lanes.shared}
        for value in lanes.parts:
            both[value] = _of_both(sliced[_part(value).root], _part(value))
        for one, two in lanes.own.items():
            both[one] = (given[one], given[two]), None
        for node in nodes:
            made = _run(node, [both[value] for value in node.operands])
            both.update(zip(node.results, made, strict=True))
        lane: dict[Value, Any] = {}
        for value in results:
            lane[value], lane[lanes.values[value]] = _parted(*both[value])
        return [lane[value] for node in replaced for value in node.results]

    return run


_Both = tuple[Any, int | None]
"""An array for both lanes, and its axis of two; None where both lanes have the same, or a tuple of one array each."""


def _of_both(root: Any, part: Part) -> _Both:
    """``root`` with an axis of two before the sliced one; without the latter where the part drops it."""
    extent = part.last - part.first
    whole = 2 * extent == root.shape[part.axis]
    cut = root if whole else lax.slice_in_dim(root, part.first, part.first + 2 * extent, axis=part.axis)
    rest = cut.shape[part.axis + 1 :]
    shape = (*cut.shape[: part.axis], 2, *(() if part.dropped else (extent,)), *rest)
    return lax.reshape(cut, shape), part.axis


def _run(node: Node, operands: Sequence[_Both]) -> list[_Both]:
    """The results of ``node`` for both lanes, their axis of two where JAX's rule leaves it."""

    def one_lane(*arrays: Any) -> Sequence[Any]:
        if node.op is ops.REDUCE:  # a sum from zero; its region is not in the view of a block
            return [jnp.sum(arrays[0], axis=tuple(node.attributes["dimensions"]))]
        return Raising().node(node, dict(zip(node.operands, arrays, strict=True)))

    if not any(isinstance(array, tuple) or at is not None for array, at in operands):
        return [(array, None) for array in one_lane(*(array for array, _ in operands))]
    place = max((at for _, at in operands if at is not None), default=0)
    if node.op in ELEMENTWISE | {ops.CONCATENATE}:
        # All where the slices have it: JAX moves the axis to the front where operands differ.
        operands = [(_placed(array, at, place), place) for array, at in operands]
    else:
        operands = [(_placed(array, at, 0), 0) if isinstance(array, tuple) else (array, at) for array, at in operands]
    inputs, axes = [array for array, _ in operands], [at for _, at in operands]
    if node.op is ops.CONCATENATE:
        dimension = int(node.attributes["dimension"])
        return [(lax.concatenate(inputs, dimension + (dimension >= place)), place)]
    if len(operands) == 1 and (seen := _view(node, inputs[0], place)) is not None:
        return [seen]
    ends = _natural_places(one_lane, axes, inputs)
    return list(zip(jax.vmap(one_lane, in_axes=axes, out_axes=ends)(*inputs), ends, strict=True))


def _view(node: Node, array: Any, place: int) -> _Both | None:
    """``node``, a view, with the axis of two kept before the same axis (JAX would move it to the front).

    None for other ops.
    """
    before, after = node.operands[0].type.shape, node.results[0].type.shape
    if place >= len(before):
        return None
    if node.op is ops.TRANSPOSE:
        order = list(node.attributes["permutation"])
        end = order.index(place)
        order = [axis + (axis >= place) for axis in order]
        return lax.transpose(array, (*order[:end], place, *order[end:])), end
    if node.op is ops.BROADCAST_IN_DIM:
        axes = list(node.attributes["broadcast_dimensions"])
        end = int(axes[place])
        axes = [axis + (axis >= end) for axis in axes]
        axes = [*axes[:place], end, *axes[place:]]
        return lax.broadcast_in_dim(array, (*after[:end], 2, *after[end:]), axes), end
    if node.op is ops.RESHAPE:
        rows = math.prod(before[:place])
        ends = [at for at in range(len(after)) if math.prod(after[:at]) == rows]
        return (lax.reshape(array, (*after[: ends[0]], 2, *after[ends[0] :])), ends[0]) if ends else None
    return None


def _placed(array: Any, at: int | None, place: int) -> Any:
    """``array`` with its axis of two at ``place``."""
    if isinstance(array, tuple):
        return jnp.stack(array, axis=place)
    if at is not None:
        return jnp.moveaxis(array, at, place)
    shape = [*jnp.shape(array)]
    shape.insert(place, 2)
    return lax.broadcast_in_dim(array, shape, [axis for axis in range(len(shape)) if axis != place])


def _natural_places(function: Callable[..., Any], axes: Sequence[int | None], inputs: Sequence[Any]) -> list[int]:
    """The positions at which JAX's rules leave the axis of two in each result: others would need a transpose."""
    shapes = [jax.ShapeDtypeStruct(jnp.shape(array), array.dtype) for array in inputs]
    jaxpr = jax.make_jaxpr(jax.vmap(function, in_axes=axes))(*shapes).jaxpr
    makers = {result: equation for equation in jaxpr.eqns for result in equation.outvars}
    places = []
    for result in jaxpr.outvars:
        maker = makers.get(result)
        moved = maker is not None and maker.primitive.name == "transpose"
        places.append(int(maker.params["permutation"][0]) if maker is not None and moved else 0)
    return places


def _parted(array: Any, place: int | None) -> tuple[Any, Any]:
    """Both lanes of ``array``, as neighbouring slices of one value along an axis of the unmerged op."""
    if place is None:
        return array if isinstance(array, tuple) else (array, array)
    if place == array.ndim - 1:
        one, two = (lax.index_in_dim(array, at, axis=place, keepdims=False) for at in range(2))
        return one, two
    extent = array.shape[place + 1]
    joined = lax.reshape(array, (*array.shape[:place], 2 * extent, *array.shape[place + 2 :]))
    one, two = (lax.slice_in_dim(joined, at * extent, (at + 1) * extent, axis=place) for at in range(2))
    return one, two
