"""Jets of contractions: one GEMM for a value, its Laplacian and all directions, parts of a concatenation apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.forward_laplacian import products
from fusionlab.codegen.forward_laplacian.families import REPEATS
from fusionlab.codegen.forward_laplacian.jet import Jet, Owner, densify, minimal
from fusionlab.codegen.forward_laplacian.moves import Moves
from fusionlab.codegen.raising_rules.contraction import precision_of
from fusionlab.hlo.view import Node, Value

_Kind = tuple[Any, ...]
_Part = tuple[Value, Any, int]
"""A part of a concatenation, what it is contracted with, and how wide it is."""


class Contractions(Moves):
    """``dot_general`` of a jet with a jet, and with something that does not move."""

    def _contracted(self, node: Node) -> Jet:
        left, right = node.operands
        contraction = self._contraction(node)
        if self._moves(left) and self._moves(right):
            return products.contract(self._jet(left), self._jet(right), contraction, self.coordinates)
        side = 0 if self._moves(left) else 1
        source, fixed = node.operands[side], self.environment[node.operands[1 - side]]
        if self.how.sparse and (parts := self._parts(source, contraction, side)) is not None:
            return _widened(self._split(parts, fixed, contraction, side), self.raising.shape(node.results[0]))
        return self._through(self._held(source), fixed, contraction, side)

    def _held(self, value: Value) -> Jet:
        """The jet of ``value``, in memory as one stack from here on: a GEMM reads it, and so may everything after."""
        jet = self._jet(value)
        if self.how.lean and jet.dense and value not in self.held:
            self.held.add(value)
            jet = Jet.of_stack(lax.optimization_barrier(jet.stacked), jet.lap is not None, None)
            self._set(value, jet)
        return jet

    def _through(self, jet: Jet, fixed: Any, contraction: products.Contraction, side: int) -> Jet:
        """The contraction of a jet with something that does not move: one GEMM for all of it."""
        owners = None
        if jet.owners is not None:
            moved = [contraction.moved_owner(side, owner) for owner in jet.owners]
            owners = (
                None if any(owner is None for owner in moved) else tuple(minimal(o) for o in moved if o is not None)
            )
        if owners is None:
            jet = densify(jet, self.coordinates)

        def one(part: Any) -> Any:
            operands = (part, fixed) if side == 0 else (fixed, part)
            return contraction.apply(*operands, (contraction.summed, contraction.batch))

        return Jet.of_stack(jax.vmap(one)(jet.stacked), jet.lap is not None, owners)

    def _parts(self, source: Value, contraction: products.Contraction, side: int) -> list[Value] | None:
        """What ``source`` is concatenated from along the one axis that is summed over, if that is worth knowing."""
        node, summed = source.producer, contraction.summed[side]
        if node is None or node.name != "stablehlo.concatenate" or len(summed) != 1:
            return None
        if node.attributes["dimension"].value != summed[0]:
            return None
        kinds = {self._kind(value, contraction.free(side)) for value in node.operands}
        return list(node.operands) if len(kinds) > 1 else None

    def _kind(self, value: Value, free: Sequence[int]) -> tuple[Any, ...]:
        """What operands of a concatenation share that are contracted together: owners, and axes they repeat along."""
        if not self._moves(value):
            return ("fixed",)
        jet = self._jet(value)
        slots = None if jet.owners is None else tuple((owner.shape, owner.tobytes()) for owner in jet.owners)
        return (slots, self._repeated_axes(value, free))

    def _before_broadcast(self, value: Value, free: Sequence[int]) -> Jet | None:
        """The jet of ``value`` with extent 1 on the ``free`` axes along which it was repeated; None when it was not."""
        axes = self._repeated_axes(value, free)
        if not axes:
            return None

        def first(part: Any) -> Any:
            for axis in axes:
                part = lax.slice_in_dim(part, 0, 1, axis=axis)
            return part

        jet = self._jet(value)
        owners = None if jet.owners is None else tuple(_first_of(owner, axes) for owner in jet.owners)
        return jet.map_parts(first, owners)

    def _repeated_axes(self, value: Value, free: Sequence[int]) -> tuple[int, ...]:
        """Those of the axes ``free`` along which the moves that made ``value`` only repeat elements."""
        path: list[Node] = []
        source = value
        while (node := source.producer) is not None and node.name in REPEATS and self._moves(node.operands[0]):
            path.append(node)
            source = node.operands[0]
        shape = self.mover.one.shape(source)
        places: Owner | None = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
        for node in reversed(path):
            assert places is not None
            places = self.mover.move(node, {node.operands[0]: places}, self.environment)
        if not path or places is None:
            return ()
        whole = self.mover.one.shape(value)
        return tuple(axis for axis in free if whole[axis] > 1 and places.shape[axis] == 1)

    def _split(self, parts: Sequence[Value], fixed: Any, contraction: products.Contraction, side: int) -> Jet:
        """[a, b] . W = a . W_a + b . W_b: each part keeps its sparsity, and what was repeated is contracted once."""
        axis, along = contraction.summed[side][0], contraction.summed[1 - side][0]
        free = contraction.free(side)
        groups: dict[_Kind, list[_Part]] = {}
        at = 0
        for value in parts:
            extent = self.raising.shape(value)[axis]
            groups.setdefault(self._kind(value, free), []).append(
                (value, lax.slice_in_dim(fixed, at, at + extent, axis=along), extent)
            )
            at += extent
        total: Jet | None = None
        repeated: list[Jet] = []
        constant = None
        for kind, members in _apart(groups) if self.how.lean else groups.items():
            weights = [weight for _, weight, _ in members]
            weight = jnp.concatenate(weights, along) if len(weights) > 1 else weights[0]
            if kind == ("fixed",):
                arrays = [self.environment[value] for value, _, _ in members]
                joined = jnp.concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]
                operands = (joined, weight) if side == 0 else (weight, joined)
                constant = contraction.apply(*operands, (contraction.summed, contraction.batch))
                continue
            find = self._held if len(members) == 1 else self._jet
            jets = [self._before_broadcast(value, free) or find(value) for value, _, _ in members]
            jet = self._through(_joined(jets, axis), weight, contraction, side)
            if kind[1] or not jet.dense:
                repeated.append(jet)
            else:
                total = jet if total is None else self._sum(total, jet)
        if total is not None and repeated:  # else XLA repeats in memory what it has a GEMM add to
            total = Jet.of_stack(lax.optimization_barrier(total.stacked), total.lap is not None, total.owners)
        for jet in repeated:
            total = jet if total is None else self._sum(total, jet)
        assert total is not None
        if constant is None:
            return total
        return total.with_value(total.value + constant)

    def _sum(self, left: Jet, right: Jet) -> Jet:
        shape = np.broadcast_shapes(left.shape, right.shape)
        jets = [_widened(left, shape), _widened(right, shape)]
        keep = [lambda part: part, lambda part: part]
        return products.combine(jets[0].value + jets[1].value, jets, keep, self.coordinates, linear=True)

    def _contraction(self, node: Node) -> products.Contraction:
        numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
        precision = precision_of(node)

        def apply(left: Any, right: Any, dimensions: Any) -> Any:
            dtype = self.raising.dtype(node.results[0].type)
            return lax.dot_general(left, right, dimensions, precision=precision, preferred_element_type=dtype)

        return products.Contraction(
            batch=(tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)),
            summed=(tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)),
            ranks=(len(node.operands[0].type.shape), len(node.operands[1].type.shape)),
            apply=apply,
            join_rows=self.how.for_cpu,
        )


def _apart(groups: Mapping[_Kind, list[_Part]]) -> Iterator[tuple[_Kind, list[_Part]]]:
    """The groups; of one of dense parts the widest by itself, if it is as wide as the others together."""
    for kind, members in groups.items():
        if kind != ("fixed",) and kind[0] is None and not kind[1] and len(members) > 1:
            widths = [extent for _, _, extent in members]
            widest = members[widths.index(max(widths))]
            if 2 * max(widths) >= sum(widths):
                yield kind, [member for member in members if member is not widest]
                yield kind, [widest]
                continue
        yield kind, members


def _joined(jets: Sequence[Jet], axis: int) -> Jet:
    """Jets of the same owners side by side along ``axis``."""
    if len(jets) == 1:
        return jets[0]
    has_lap = any(jet.lap is not None for jet in jets)
    stack = jnp.concatenate([jet.stack_with(has_lap) for jet in jets], axis + 1)
    return Jet.of_stack(stack, has_lap, jets[0].owners)


def _widened(jet: Jet, shape: tuple[int, ...]) -> Jet:
    """The jet repeated along axes of extent 1 to ``shape``."""
    if jet.shape == shape:
        return jet
    return jet.map_parts(lambda part: jnp.broadcast_to(part, shape), jet.owners)


def _first_of(owner: Owner, axes: Sequence[int]) -> Owner:
    for axis in axes:
        owner = owner.take([0], axis)
    return owner
