"""Step 3, tail: what follows the products T of a program, as a function of them.

y = tail(T) = tail(0) + sum_k a_k H_kk          T_k = H d_k, d_k the unit vectors of the program
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import accumulated, with_given
from fusionlab.hlo import ops
from fusionlab.hlo.constants import constant_behind, fold
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.loops import Stacked, Sum, accumulated_by
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut
from fusionlab.passes.fuse_jvp_replay.identify.degrees import degrees, degrees_of

_TRANSPOSED = (
    ops.ADD, ops.BROADCAST_IN_DIM, ops.CONCATENATE, ops.CONVERT, ops.DIVIDE, ops.DOT_GENERAL, ops.MULTIPLY,
    ops.NEGATE, ops.REDUCE, ops.RESHAPE, ops.REVERSE, ops.SUBTRACT, ops.TRANSPOSE,
)  # fmt: skip
"""Ops that have a transpose, and take all elements of their operands."""
_LEAVING_OUT = (ops.DYNAMIC_SLICE, ops.GATHER, ops.PAD, ops.SELECT, ops.SLICE)
"""Ops that have a transpose, and may leave elements out."""
_PRODUCTS = (ops.DIVIDE, ops.DOT_GENERAL, ops.MULTIPLY)


class Tail:
    """What computes ``targets`` of ``flat`` from the ``cuts``, which are given, and from values without directions.

    RaiseError if a loop with cuts cannot be taken apart.
    """

    def __init__(self, flat: FunctionView, cuts: Sequence[Cut], targets: Sequence[Value]) -> None:
        self.flat, self.targets = flat, tuple(targets)
        self.loops = {cut.place.loop.node: cut.place.loop for cut in cuts if cut.place.loop is not None}
        given = {cut.value for cut in cuts}
        self.outer = {cut.value for cut in cuts if cut.place.loop is None}
        self.inside: dict[Node, list[Node]] = {}
        self.reads: dict[Node, set[Value]] = {}
        for node, loop in self.loops.items():
            body, terms = loop.body, accumulated(loop)
            captured = free_values(body)
            nodes = live_nodes(body.nodes, [*body.arguments, *captured, *given], terms)
            self.inside[node] = nodes
            used = {v for n in nodes for v in reads(n)} | set(terms)
            carried = {outer for inner, outer in loop.unchanged.items() if inner in used}
            self.reads[node] = {v for v in captured if v in used} | carried
            self.reads[node] |= {loop.node.operands[i] for i in loop.indices(Sum, Stacked)}
        self.nodes = self._live(self.targets)
        used = {v for node in self.nodes for v in self._read(node)} | set(self.targets)
        used |= {v for node in self.nodes if node in self.loops for n in self.inside[node] for v in reads(n)}
        used |= {v for node in self.nodes if node in self.loops for v in accumulated(self.loops[node])}
        self.cuts = [cut for cut in cuts if cut.value in used]

    def _read(self, node: Node) -> Iterable[Value]:
        return self.reads[node] if node in self.loops else reads(node)

    def _live(self, wanted: Iterable[Value], known: Collection[Value] = ()) -> list[Node]:
        needed, found = set(wanted) - self.outer - set(known), list[Node]()
        for node in reversed(self.flat.nodes):
            if not needed.isdisjoint(node.results):
                found.append(node)
                needed.difference_update(node.results)
                needed.update(v for v in self._read(node) if v not in self.outer and v not in known)
        return found[::-1]

    def every_node(self, known: Collection[Value]) -> list[Node]:
        """The nodes that the targets need where ``known`` values are given; of loops with cuts, those of a trip."""
        nodes = list[Node]()
        for node in self._live(self.targets, known):
            nodes += self.inside[node] if node in self.loops else [node]
        return nodes

    def before(self, known: Collection[Value]) -> list[Node]:
        """The nodes without directions that the targets need where ``known`` values are given."""
        after = set(self.outer)
        for node in self.nodes:
            if node in self.loops or not after.isdisjoint(self._read(node)):
                after.update(node.results)
        return [node for node in self._live(self.targets, known) if after.isdisjoint(node.results)]

    def arguments(self, x: Value) -> list[Value]:
        """Those of the function that the targets need beside ``x``."""
        nodes = self._live(self.targets, [x])
        read = {v for node in nodes for v in self._read(node)} | set(self.targets)
        return [a for a in self.flat.arguments if a in read and a is not x]

    @cached_property
    def starts(self) -> dict[Value, Value]:
        """The initial values, other than 0, of the sums of loops with cuts; without those that such a loop computes."""
        found: dict[Value, Value] = {}
        after = reached(self.flat, [result for node in self.loops for result in node.results])
        for loop in {cut.place.loop: None for cut in self.cuts if cut.place.loop is not None}:
            for i in loop.indices(Sum):
                at = loop.node.operands[i]
                if at not in after and ((array := fold(at)) is None or np.any(array)):
                    found[loop.node.results[i]] = at
        return found

    @cached_property
    def is_affine(self) -> bool:
        """True if the targets are affine in all products together, op by op."""
        return all(degree == 1 for degree in self._degrees.values())

    @cached_property
    def has_transpose(self) -> bool:
        """True if it is affine and real, and its transpose is defined where it is itself.

            slice(a h)[0]          its transpose a pad(t) has a 0 times each factor that the slice leaves out
            a h, b h               of two targets, that of one has a 0 times the other's factors

        So nothing is left out of what other factors than constants multiply, and these have one target. A loop leaves
        out what its trips write over in a stack. A loop without cuts has no transpose.
        """
        nodes = [node for node in self.every_node(()) if any(value in self._degrees for value in reads(node))]
        if not self.is_affine or any(value.dtype not in ops.FLOATS for node in nodes for value in node.results):
            return False
        if any(node.op not in (*_TRANSPOSED, *_LEAVING_OUT) for node in nodes):
            return False
        stacks = (loop.node.operands[i] for loop in self.loops.values() for i in loop.indices(Stacked))
        return not self._scaled or (
            len(self.targets) == 1
            and self._scaled.isdisjoint(stacks)
            and not any(node.op in _LEAVING_OUT and not self._scaled.isdisjoint(reads(node)) for node in nodes)
        )

    @cached_property
    def _scaled(self) -> set[Value]:
        """What is computed from products times other factors than constants."""
        found: set[Value] = set()
        for node in self.nodes:
            loop = self.loops.get(node)
            if loop is not None:
                found.update(inner for inner, outer in loop.unchanged.items() if outer in found)
            for each in [node] if loop is None else self.inside[node]:
                if not found.isdisjoint(reads(each)) or self._has_factor(each):
                    found.update(each.results)
            for i, role in enumerate(loop.roles if loop is not None else ()):
                if not found.isdisjoint((*accumulated_by(role), node.operands[i])):
                    found.add(node.results[i])
        return found

    def _has_factor(self, node: Node) -> bool:
        if node.op not in _PRODUCTS or not any(value in self._degrees for value in node.operands):
            return False
        moved = (ops.BROADCAST_IN_DIM, ops.CONVERT, ops.RESHAPE)
        arrays = [constant_behind(value, moved) for value in node.operands if value not in self._degrees]
        return any(a is None or not np.isfinite(a).all() or (node.op is ops.DIVIDE and not a.all()) for a in arrays)

    @cached_property
    def _degrees(self) -> dict[Value, int]:
        """The degree of each value as a polynomial of the products, op by op."""
        found = dict.fromkeys((cut.value for cut in self.cuts if cut.order == 2), 1)
        for node in self.nodes:
            if node not in self.loops:
                if self.outer.isdisjoint(node.results):
                    found.update(degrees_of(node, found))
                continue
            loop = self.loops[node]
            found.update({inner: found[outer] for inner, outer in loop.unchanged.items() if outer in found})
            found.update(degrees(self.inside[node], found))
            for i, role in enumerate(loop.roles):
                of = [found[value] for value in (*accumulated_by(role), node.operands[i]) if value in found]
                if of:
                    found[node.results[i]] = max(of)
        return found

    def run(
        self,
        raising: Raising,
        environment: Mapping[Value, Any],
        given: Mapping[Value, Any],
        known: Collection[Value] | None = None,
    ) -> dict[Value, Any]:
        """The targets, from the arrays [trips, *shape] of the cuts in loops, [*shape] of the others.

        ``known`` are the values that ``environment`` has, or computes when they are read; by default its keys.
        """
        found: Any = ChainMap({v: array for v, array in given.items() if v in self.outer}, environment)  # type: ignore[arg-type]
        for node in self._live(self.targets, environment if known is None else known):
            if node in self.loops:
                made = with_given(self.loops[node], self.inside[node], raising, found, given)
                found.update(zip(node.results, made, strict=True))
            else:
                raising.run([node], found)
        return {target: found[target] for target in self.targets}


def array_of(cut: Cut, raising: Raising, of: Any, off_diagonal: Any = None) -> Any:
    """The array of ``cut`` where the diagonal (or the slopes) [*F, K] is ``of``; [T, *shape], without T of no loop."""
    shape = raising.shape(cut.value)
    places = cut.seed.places.reshape(len(cut.seed.places), -1)  # [T, R]
    dtype = raising.dtype(cut.value.type)
    if cut.axes is None:
        rows = jnp.moveaxis(of[..., places], (-2, -1), (0, 1))
    else:
        at = np.eye(of.shape[-1])[places].reshape(*places.shape, *(1,) * (of.ndim - 1), of.shape[-1])
        rows = at.astype(dtype) * of
        if off_diagonal is not None:
            others = jnp.moveaxis(off_diagonal[..., places, :], (-3, -2), (0, 1))
            rows = rows + (1 - at).astype(dtype) * others
    placed = cut.placed((rows * np.asarray(cut.scale, dtype)).astype(dtype), shape)
    return placed if cut.place.loop is not None else placed[0]
