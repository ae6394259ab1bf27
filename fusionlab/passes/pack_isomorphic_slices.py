"""pack-isomorphic-slices: apply the ops common to two neighbouring equal slices of a value once, to both.

rewrite:
    %u = slice %x [0:5];  %v = slice %x [5:10]           %z = reshape %x : 2x5x...
    %a = f(%u);           %b = f(%v)              -->    %y = f(%z), for each of two
                                                         %a = slice %y [0:n];  %b = slice %y [n:2n]

Spin-up and spin-down electrons, when there are as many of both: their pair features, means over them, and orbitals are
one kernel each. ``f`` is as much as both lanes have in common: elementwise ops, sums, contractions, concatenations and
views; JAX batches it (``jax.vmap``). Each lane may read other values of fewer axes (the matrices of up and down
orbitals), which are stacked: a contraction becomes a batched one. licm, after this pass, moves the stacking out of a
loop.

requires: ops in one block that do not depend on each other, with equal attributes and types; float32 or float64; at
    least one sum, contraction or concatenation among them (XLA fuses elementwise ops with their readers).
exact: bitwise per op, up to the library's choice of tiles for a batched contraction.
hopes: the launches of one lane, and those that concatenate both again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxlib.mlir import ir

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.loops import Invariant, find_loops, has_effect
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, TensorType, Value, view_of
from fusionlab.passes.hoist_reduce_through_dot import is_sum
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks

_VIEWS = frozenset({ops.CONVERT, *(op for op in ops.OPS.values() if op.strided)})
_ELEMENTWISE = frozenset({ops.COSINE, ops.POWER, ops.SINE, *(op for op in ops.OPS.values() if op.triton)})
_KERNELS = frozenset({ops.CONCATENATE, ops.DOT_GENERAL, ops.REDUCE})


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
                invariant = _invariant_arguments(node.module)
            return _change(block, invariant) if node is block.nodes[0] else None

        return inline_in_blocks(
            program,
            self,
            setting,
            change,
            what="groups of ops on two equal slices became one",
            otherwise="there is no work that is done to two equal slices in the program",
        )


def _change(block: Block, invariant: set[Any]) -> Change | None:
    found = ((value, Slice.of(value)) for value in block.users)
    slices = {value: slice_ for value, slice_ in found if slice_ is not None}
    for first, slice_ in slices.items():
        for second in (other for other, after in slices.items() if slice_.is_before(after)):
            packs = Packs(block, invariant)
            packs.grow(first, second)
            packs.trim()
            outputs = packs.outputs()
            if not packs.kernels() or not outputs:
                continue
            replaced = sorted([node for pair in outputs for node in pair], key=block.place.__getitem__)
            operands = _operands(packs)
            if _move_before(block, operands, replaced[0], packs.nodes()):
                return Change(replaced, _merged(packs, outputs, replaced, operands), operands)
    return None


def _operands(packs: Packs) -> list[Value]:
    """The operands of the merged ops: shared values, sliced values, and the values of each lane."""
    known = {value.handle: value for node in packs.block.nodes for value in node.results}
    roots = dict.fromkeys(slice_.root for slice_, _ in packs.slices.values())
    sliced = [known.get(root) or Value(0, root, None, 0) for root in roots]
    return [*dict.fromkeys([*packs.shared, *sliced, *packs.own, *packs.own.values()])]


def _move_before(block: Block, values: Sequence[Value], place: Node, region: Sequence[Node]) -> bool:
    """Move the producers of ``values`` that come after ``place`` before it; False if they depend on the region, or if
    the move is observable."""
    late: dict[Node, None] = {}

    def collect(value: Value) -> None:
        node = value.producer
        if node is not None and node not in late and block.place[node] >= block.place[place]:
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
    return node.name in ops.CALLEES or node.op is ops.CUSTOM_CALL or node.op.control_flow or has_effect(node)


def _invariant_arguments(module: Any) -> set[Any]:
    """The arguments of blocks and functions, as MLIR values, that are the same in every trip of a loop around them.

    Operands among these are stacked once, when licm has moved the stacking out of the loop.
    """
    same: set[Any] = set()
    varying: set[Any] = set()
    for loop in find_loops(view_of(module)):
        fixed = {loop.body.arguments[at] for at in loop.indices(Invariant)}
        made = {a for a in loop.body.arguments if a not in fixed} | {v for n in loop.body.walk() for v in n.results}
        for node in loop.body.walk():
            for value, handle in zip(node.operands, node.operation.operands, strict=True):
                if isinstance(handle.owner, ir.Block):
                    (varying if value in made else same).add(handle)
    return same - varying


@dataclass(frozen=True)
class Slice:
    """``[first, last)`` of ``root``, an MLIR value, along ``axis``; ``dropped``: the axis, of extent 1, is removed."""

    root: Any
    axis: int
    first: int
    last: int
    dropped: bool

    @staticmethod
    def of(value: Value) -> Slice | None:
        """``value``, of this block or carried into it unchanged, as a slice along one axis; None if it is not one."""
        operation, dropped = _maker(value.handle), False
        if operation is not None and operation.name == ops.RESHAPE.name:
            operation, dropped = _maker(operation.operands[0]), True
        if operation is None or operation.name != ops.SLICE.name or set(operation.attributes["strides"]) != {1}:
            return None
        starts, limits = list(operation.attributes["start_indices"]), list(operation.attributes["limit_indices"])
        root = _outside(operation.operands[0])
        shape = TensorType.of(root.type).shape
        cut = [axis for axis, extent in enumerate(shape) if limits[axis] - starts[axis] != extent]
        if len(cut) != 1:
            return None
        axis = cut[0]
        rest = (*shape[:axis], *shape[axis + 1 :])
        if dropped and (limits[axis] - starts[axis] != 1 or value.type.shape != rest):
            return None
        return Slice(root, axis, starts[axis], limits[axis], dropped)

    def is_before(self, other: Slice) -> bool:
        """True if ``other`` is the next slice of the same length."""
        same = (self.axis, self.dropped) == (other.axis, other.dropped) and self.root == other.root
        return same and self.last == other.first and other.last - other.first == self.last - self.first


def _outside(handle: Any) -> Any:
    """The initial value of ``handle`` before the loops that carry it unchanged."""
    while isinstance(handle.owner, ir.Block):
        block, at = handle.owner, ir.BlockArgument(handle).arg_number
        loop = getattr(block.owner, "operation", block.owner)
        if loop.name != ops.WHILE.name or loop.regions[1].blocks[0] != block:
            return handle
        if block.operations[len(block.operations) - 1].operation.operands[at] != handle:
            return handle
        handle = loop.operands[at]
    return handle


def _maker(handle: Any) -> Any:
    """The operation that produces ``handle``, in any block; None for an argument."""
    owner = _outside(handle).owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


def _number(handle: Any) -> float | None:
    """The number that all elements of ``handle`` equal; None if they differ or are not known."""
    operation = _maker(handle)
    if operation is None or operation.name == ops.CONVERT.name:
        return None
    if operation.name == ops.CONSTANT.name:
        elements = operation.attributes["value"]
        known = isinstance(elements, ir.DenseFPElementsAttr) and elements.is_splat
        return float(elements.get_splat_value().value) if known else None
    return _number(operation.operands[0]) if ops.op_of(operation.name) in _VIEWS else None


@dataclass
class Packs:
    """Isomorphic packs of ``block`` while they grow from two slices: ``pairs`` of an op of the first lane and the same
    op of the second, and ``values`` of the first lane with their twins.

    Inputs are ``shared`` by both lanes, ``slices`` (neighbours, of one value), or each lane's ``own``: of equal shape,
    with fewer axes than the results they contribute to (matrices), or ``invariant``: arguments of blocks that are the
    same in every trip of the loop around them.
    """

    block: Block
    invariant: Container[Any] = ()
    pairs: dict[Node, Node] = field(default_factory=dict)
    values: dict[Value, Value] = field(default_factory=dict)
    slices: dict[Value, tuple[Slice, Value]] = field(default_factory=dict)
    own: dict[Value, Value] = field(default_factory=dict)
    shared: dict[Value, None] = field(default_factory=dict)

    def nodes(self) -> list[Node]:
        """The nodes of both lanes, in program order."""
        return sorted([*self.pairs, *self.pairs.values()], key=self.block.place.__getitem__)

    def outputs(self) -> list[tuple[Node, Node]]:
        """The pairs with a result that is read outside, in program order of the first lane."""
        inside = set(self.nodes())
        found = []
        for one, two in sorted(self.pairs.items(), key=lambda pair: self.block.place[pair[0]]):
            values = [*one.results, *two.results]
            readers = [reader for value in values for reader in self.block.users.get(value, ())]
            if not inside.issuperset(readers) or any(value in self.block.returns for value in values):
                found.append((one, two))
        return found

    def grow(self, first: Value, second: Value) -> None:
        """Add the pairs of isomorphic ops that read both, and their readers in turn."""
        waiting = [(first, second)]
        while waiting:
            one, two = waiting.pop(0)
            for reader in self.block.users.get(one, ()):
                for other in self.block.users.get(two, ()):
                    if reader not in self.pairs and self._take(reader, other):
                        waiting += zip(reader.results, other.results, strict=True)
                        break

    def trim(self) -> None:
        """Remove views that nothing in the region reads: outside, they are free."""
        while ends := [pair for pair in self.outputs() if pair[0].op in _VIEWS and not self._is_read(pair[0])]:
            for one, _ in ends:
                del self.pairs[one]
                for value in one.results:
                    del self.values[value]
        read = {value for node in self.pairs for value in node.operands}
        for inputs in (self.slices, self.own, self.shared):
            for value in inputs.keys() - read:
                del inputs[value]

    def kernels(self) -> int:
        """The number of pairs of ops that XLA does not fuse with all their neighbours."""
        return sum(node.op in _KERNELS for node in self.pairs)

    def _is_read(self, node: Node) -> bool:
        return any(reader in self.pairs for value in node.results for reader in self.block.users.get(value, ()))

    def _take(self, one: Node, two: Node, axes: int = 0) -> bool:
        """Add a pair of equal ops if its inputs are of a known kind; ``axes``: the number of axes of its readers."""
        if one in self.pairs:
            return self.pairs[one] is two
        if two in self.pairs or two in self.pairs.values() or one in self.pairs.values() or not _same(one, two):
            return False
        if self.block.depends(two, [one]) or self.block.depends(one, [two]):
            return False
        if one.op not in _VIEWS:
            axes = max(len(value.type.shape) for value in one.results)
        kept = dict(self.pairs), dict(self.values), dict(self.slices), dict(self.own), dict(self.shared)
        if all(self._match(a, b, axes) for a, b in zip(one.operands, two.operands, strict=True)):
            self.pairs[one] = two
            self.values.update(zip(one.results, two.results, strict=True))
            sliced = (other for _, other in self.slices.values())
            given = {*self.shared, *self.slices, *sliced, *self.own, *self.own.values()}
            if given.isdisjoint([*one.results, *two.results]) and self.block.is_convex(self.nodes()):
                return True
        self.pairs, self.values, self.slices, self.own, self.shared = kept
        return False

    def _match(self, one: Value, two: Value, axes: int) -> bool:
        """True if a pair may read ``one`` in the first lane and ``two`` in the second."""
        for known in (self.values, self.own):
            if one in known:
                return two is known[one]
        if one in self.slices:
            return two is self.slices[one][1]
        if any(value.producer in self.pairs.values() for value in (one, two)):
            return False
        number = _number(one.handle)
        if one is two or (number is not None and number == _number(two.handle)):
            self.shared[one] = None
            return True
        if one in self.shared:
            return False
        before, after = Slice.of(one), Slice.of(two)
        if before is not None and after is not None and before.is_before(after):
            self.slices[one] = before, two
            return True
        makers = [value.producer for value in (one, two) if value.producer is not None]
        if len(makers) == 2 and makers[0].op in _VIEWS and self._take(makers[0], makers[1], axes):
            return True
        if not self._may_be_own(one, two, axes):
            return False
        self.own[one] = two
        return True

    def _may_be_own(self, one: Value, two: Value, axes: int) -> bool:
        """True for each lane's own input: matrices of one type, or what is the same in every trip of a loop."""
        if one.type != two.type or one.type.dtype not in (*WIDE_FLOATS, "i1"):
            return False
        once = one.handle in self.invariant and two.handle in self.invariant
        return once or len(one.type.shape) < axes  # the number of walkers must not decide


def _same(one: Node, two: Node) -> bool:
    """True if both are the same op, one that lanes may hold, with equal attributes and types."""
    if one.name != two.name or one.op not in _VIEWS | _ELEMENTWISE | _KERNELS or one is two:
        return False
    if one.results[0].type.dtype not in (*WIDE_FLOATS, "i1") or "algorithm" in one.attributes:
        return False
    if one.op is ops.REDUCE and not all(is_sum(node) and _number(node.operands[1].handle) == 0 for node in (one, two)):
        return False
    types = [[str(value.type) for value in (*node.operands, *node.results)] for node in (one, two)]
    return types[0] == types[1] and one.attributes == two.attributes


def _merged(
    packs: Packs, outputs: Sequence[tuple[Node, Node]], replaced: Sequence[Node], operands: Sequence[Value]
) -> Callable[..., list[Any]]:
    """All results of ``replaced`` from arrays for ``operands``."""
    nodes = sorted(packs.pairs, key=packs.block.place.__getitem__)
    results = [value for one, _ in outputs for value in one.results]

    def run(*arrays: Any) -> list[Any]:
        given = dict(zip(operands, arrays, strict=True))
        sliced = {value.handle: array for value, array in given.items()}
        both: dict[Value, _Both] = {value: (given[value], None) for value in packs.shared}
        for value, (slice_, _) in packs.slices.items():
            both[value] = _of_both(sliced[slice_.root], slice_)
        for one, two in packs.own.items():
            both[one] = (given[one], given[two]), None
        for node in nodes:
            made = _run(node, [both[value] for value in node.operands])
            both.update(zip(node.results, made, strict=True))
        lane: dict[Value, Any] = {}
        for value in results:
            lane[value], lane[packs.values[value]] = _parted(*both[value])
        return [lane[value] for node in replaced for value in node.results]

    return run


_Both = tuple[Any, int | None]
"""An array for both lanes, and its axis of two; None where both lanes have the same, or a tuple of one array each."""


def _of_both(root: Any, slice_: Slice) -> _Both:
    """``root`` with an axis of two before the sliced one; without the latter where the slice drops it."""
    axis, extent = slice_.axis, slice_.last - slice_.first
    whole = 2 * extent == root.shape[axis]
    cut = root if whole else lax.slice_in_dim(root, slice_.first, slice_.first + 2 * extent, axis=axis)
    shape = (*cut.shape[:axis], 2, *(() if slice_.dropped else (extent,)), *cut.shape[axis + 1 :])
    return lax.reshape(cut, shape), axis


def _run(node: Node, operands: Sequence[_Both]) -> list[_Both]:
    """The results of ``node`` for both lanes, their axis of two where JAX's rule leaves it."""

    def one_lane(*arrays: Any) -> Sequence[Any]:
        if node.op is ops.REDUCE:  # a sum from zero; its region is not in the view of a block
            return [jnp.sum(arrays[0], axis=tuple(node.attributes["dimensions"]))]
        return Raising().node(node, dict(zip(node.operands, arrays, strict=True)))

    if not any(isinstance(array, tuple) or at is not None for array, at in operands):
        return [(array, None) for array in one_lane(*(array for array, _ in operands))]
    place = max((at for _, at in operands if at is not None), default=0)
    if node.op in _ELEMENTWISE | {ops.CONCATENATE}:
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
