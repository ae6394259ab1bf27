"""Contractions: one GEMM for a value, its Laplacian and all directions, parts of a concatenation apart."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, at_row, combine, densify, sum_rows, with_first
from fusionlab.codegen.laplacian.owners import Owner, meeting, minimal, moved_owner, where
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising.rules.contraction import precision_of
from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Value

_REPEATS = (ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.TRANSPOSE)
"""Moves of one operand that may repeat elements."""

_Owners = tuple[tuple[Owner, ...], tuple[Owner, ...]]
_Kind = tuple[Any, tuple[int, ...]] | None
"""Shared by parts of a concatenation that are contracted together: owners (None: dense), and axes along which they
repeat; None for parts that do not depend on the coordinates."""
_Part = tuple[Value, Any, int]
"""A part of a concatenation, the operand it is contracted with, and its width."""


@dataclass(frozen=True)
class Contraction:
    """``dot_general`` of two values: its dimension numbers, and ``apply(u, v, numbers)`` at the program's precision."""

    batch: tuple[tuple[int, ...], tuple[int, ...]]
    summed: tuple[tuple[int, ...], tuple[int, ...]]
    ranks: tuple[int, int]
    apply: Callable[..., Any]
    join_rows: bool = False

    def free(self, side: int) -> tuple[int, ...]:
        """Axes of operand ``side`` that are neither batch axes nor summed over."""
        taken = {*self.batch[side], *self.summed[side]}
        return tuple(axis for axis in range(self.ranks[side]) if axis not in taken)

    def with_fixed(self, part: Any, fixed: Any, side: int) -> Any:
        """The contraction of ``part``, operand ``side``, with the other operand."""
        operands = (part, fixed) if side == 0 else (fixed, part)
        return self.apply(*operands, (self.summed, self.batch))

    def owners(self, side: int, owners: Sequence[Owner]) -> tuple[Owner, ...] | None:
        """The owners of operand ``side`` on the result's axes; None when one is summed over."""
        if any(owner.shape[axis] > 1 for owner in owners for axis in self.summed[side]):
            return None
        batch, free = self.batch[side], self.free(side)
        others = (1,) * len(self.free(1 - side))
        found = []
        for owner in owners:
            ordered = owner.transpose([*batch, *free, *self.summed[side]])
            head, tail = ordered.shape[: len(batch)], ordered.shape[len(batch) : len(batch) + len(free)]
            found.append(ordered.reshape((*head, *others, *tail) if side else (*head, *tail, *others)))
        return tuple(found)

    def leading(self, side: int, part: Any) -> Any:
        """[R, *operand] with its axes in the order batch, R, free, summed: one copy serves all contractions."""
        rest = (*self.free(side), *self.summed[side])
        return jnp.transpose(part, [*(axis + 1 for axis in self.batch[side]), 0, *(axis + 1 for axis in rest)])

    def of_rows(self, left: Any, right: Any, rows_in: tuple[bool, bool]) -> Any:
        """[R, *result], contracting operands that went through ``leading``; those of ``rows_in`` have a row axis."""
        count, (u, v) = len(self.batch[0]), self._trailing(left, right)
        batch = tuple(range(count + all(rows_in)))
        if rows_in[0]:
            return jnp.moveaxis(self.apply(left, right, ((u, v), (batch, batch))), count, 0)
        # Rows first, so that the large operand needs no transposition.
        result = self.apply(right, left, ((v, u), (batch, batch)))
        others, mine = len(self.free(1)), len(self.free(0))
        axes = [*batch, *(count + 1 + others + i for i in range(mine)), *(count + 1 + i for i in range(others))]
        return jnp.transpose(result, [count, *axes])

    def of_joined_rows(self, left: Any, right: Any) -> Any:
        """The sum over rows of the contractions row by row, as one contraction over rows too."""
        count, (u, v) = len(self.batch[0]), self._trailing(left, right)
        batch = tuple(range(count))
        return self.apply(left, right, (((count, *u), (count, *v)), (batch, batch)))

    def _trailing(self, *operands: Any) -> tuple[tuple[int, ...], ...]:
        """The axes that are summed over, of operands that went through ``leading``."""
        pairs = zip(operands, self.summed, strict=True)
        return tuple(tuple(range(array.ndim - len(summed), array.ndim)) for array, summed in pairs)


def dot_general(state: State, node: Node) -> list[Jet | None]:
    """A contraction of a jet with a jet, or with a constant."""
    contraction = _contraction(state, node)
    varying = [state.depends_on_x(value) for value in node.operands]
    if all(varying):
        left, right = (jet_of(state, value) for value in node.operands)
        return [contract(left, right, contraction, state.coordinates)]
    side = varying.index(True)
    source, fixed = node.operands[side], state.environment[node.operands[1 - side]]
    if state.options.sparse and (split := _split(state, source, fixed, contraction, side)) is not None:
        return [_widened(split, state.raising.shape(node.results[0]))]
    return [_with_fixed(state, _materialised(state, source), fixed, contraction, side)]


def _contraction(state: State, node: Node) -> Contraction:
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    dtype = state.raising.dtype(node.results[0].type)
    return Contraction(
        batch=(tuple(numbers.lhs_batching_dimensions), tuple(numbers.rhs_batching_dimensions)),
        summed=(tuple(numbers.lhs_contracting_dimensions), tuple(numbers.rhs_contracting_dimensions)),
        ranks=(len(node.operands[0].type.shape), len(node.operands[1].type.shape)),
        apply=functools.partial(
            lax.dot_general,
            precision=precision_of(node, with_algorithm=state.raising.marks is not None),
            preferred_element_type=dtype,
        ),
        join_rows=state.options.for_cpu,
    )


def contract(left: Jet, right: Jet, contraction: Contraction, coordinates: Coordinates) -> Jet:
    """The jet of a contraction of two jets.

    y_k = u . v_k + u_k . v,  lap y = u . lap v + lap u . v + 2 sum_k u_k . v_k, each kind of term one contraction.
    """
    owners = _contracted_owners(left, right, contraction, coordinates)
    if owners is None:
        left, right = densify(left, coordinates), densify(right, coordinates)
    u, v = (contraction.leading(side, jet.stacked(True)) for side, jet in enumerate((left, right)))
    u, v = lax.optimization_barrier((u, v))  # from here on nothing reads the untransposed operands
    count = len(contraction.batch[0])
    u0, v0 = (lax.index_in_dim(part, 0, count, keepdims=False) for part in (u, v))
    u, v, u0, v0 = lax.optimization_barrier((u, v, u0, v0))
    through_right = contraction.of_rows(u0, v, (False, True))
    through_left = contraction.of_rows(u, v0, (True, False))
    cross = _cross(u, v, contraction, owners, coordinates)
    if owners is None:
        # Row 0 is u . v in both; the cross terms belong to the Laplacian in row 1.
        others = with_first(through_left[1:], through_left[1] + (cross + cross))
        return Jet.of_stack(through_right + at_row(others, 1, through_right.shape[0]), True, None)
    extra = through_right[1] + through_left[1]
    extra = extra if cross is None else extra + (cross + cross)
    of_left = Jet(None, None, through_left[2:], owners[0])
    of_right = Jet(None, None, through_right[2:], owners[1])
    return combine(through_right[0], [(of_left, _as_it_is), (of_right, _as_it_is)], coordinates, extra)


def _as_it_is(part: Any) -> Any:
    return part


def _contracted_owners(left: Jet, right: Jet, contraction: Contraction, coordinates: Coordinates) -> _Owners | None:
    """Owners of both sides on the result's axes; None when the result has to be dense."""
    if left.owners is None or right.owners is None or coordinates.weights is not None:
        return None
    of_left, of_right = contraction.owners(0, left.owners), contraction.owners(1, right.owners)
    if of_left is None or of_right is None:
        return None
    return (of_left, of_right) if (len(of_left) + len(of_right)) * coordinates.each < coordinates.count else None


def _cross(u: Any, v: Any, contraction: Contraction, owners: _Owners | None, coordinates: Coordinates) -> Any:
    """sum_k u_k . v_k, of stacks that went through ``leading``; None where no electron owns elements of both."""
    axis, each, total = len(contraction.batch[0]), coordinates.each, None
    if owners is None:  # all rows of both, so that no operand has to be cut out of its copy; then those of directions
        if contraction.join_rows and coordinates.weights is None:
            return contraction.of_joined_rows(*(lax.slice_in_dim(p, 2, p.shape[axis], axis=axis) for p in (u, v)))
        return sum_rows(coordinates.weigh(contraction.of_rows(u, v, (True, True))[2:]))
    for s, t, both in meeting(*owners):
        left, right = (
            lax.slice_in_dim(part, 2 + i * each, 2 + (i + 1) * each, axis=axis) for part, i in ((u, s), (v, t))
        )
        term = where(both, sum_rows(contraction.of_rows(left, right, (True, True))))
        total = term if total is None else total + term
    return total


def _with_fixed(state: State, jet: Jet, fixed: Any, contraction: Contraction, side: int) -> Jet:
    """The contraction of a jet with a constant: one GEMM for all of it."""
    owners = None if jet.owners is None else contraction.owners(side, jet.owners)
    if owners is None:
        jet = densify(jet, state.coordinates)
    stack = jax.vmap(lambda part: contraction.with_fixed(part, fixed, side))(jet.stacked())
    return Jet.of_stack(stack, jet.laplacian is not None, None if owners is None else tuple(map(minimal, owners)))


def _materialised(state: State, value: Value) -> Jet:
    """The jet of ``value``, in memory as one stack from here on, for a GEMM and all later readers."""
    jet = jet_of(state, value)
    if state.options.low_memory and jet.dense and value not in state.materialised:
        state.materialised.add(value)
        jet = Jet.of_stack(lax.optimization_barrier(jet.stacked()), jet.laplacian is not None, None)
        state.set(value, jet)
    return jet


def _kind(state: State, value: Value, free: Sequence[int]) -> _Kind:
    if not state.depends_on_x(value):
        return None
    owners = jet_of(state, value).owners
    key = None if owners is None else tuple((owner.shape, owner.tobytes()) for owner in owners)
    return key, _repeated_axes(state, value, free)


def _repeated_axes(state: State, value: Value, free: Sequence[int]) -> tuple[int, ...]:
    """The axes of ``free`` along which the moves that made ``value`` only repeat elements."""
    path: list[Node] = []
    source = value
    while (node := source.producer) is not None and node.op in _REPEATS and state.depends_on_x(node.operands[0]):
        path.append(node)
        source = node.operands[0]
    if not path:
        return ()
    shape, whole = state.one.shape(source), state.one.shape(value)
    places = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    for node in reversed(path):
        moved = moved_owner(node, {node.operands[0]: places}, state.environment, state.one)
        assert moved is not None  # none of these has indices
        places = moved
    return tuple(axis for axis in free if whole[axis] > 1 and places.shape[axis] == 1)


def _before_broadcast(jet: Jet, axes: Sequence[int]) -> Jet:
    """The jet with extent 1 on ``axes``, along which it was repeated, if there are any."""
    if not axes:
        return jet

    def first(part: Any) -> Any:
        return functools.reduce(lambda array, axis: lax.slice_in_dim(array, 0, 1, axis=axis), axes, part)

    at = tuple(slice(1) if axis in axes else slice(None) for axis in range(len(jet.shape)))
    return jet.map_parts(first, None if jet.owners is None else tuple(owner[at] for owner in jet.owners))


def _split(state: State, source: Value, fixed: Any, contraction: Contraction, side: int) -> Jet | None:
    """[a, b] . W = a . W_a + b . W_b: each part keeps its sparsity, and repeated parts are contracted once.

    None unless ``source`` is concatenated along the one axis that is summed over, of parts of several kinds.
    """
    node, summed, free = source.producer, contraction.summed[side], contraction.free(side)
    if node is None or node.op is not ops.CONCATENATE or summed != (node.attributes["dimension"].value,):
        return None
    kinds = [_kind(state, value, free) for value in node.operands]
    if len(set(kinds)) == 1:
        return None
    axis, along = summed[0], contraction.summed[1 - side][0]
    groups: dict[_Kind, list[_Part]] = {}
    at = 0
    for kind, value in zip(kinds, node.operands, strict=True):
        extent = state.raising.shape(value)[axis]
        weight = lax.slice_in_dim(fixed, at, at + extent, axis=along)
        groups.setdefault(kind, []).append((value, weight, extent))
        at += extent
    total: Jet | None = None
    repeated: list[Jet] = []
    constant = None
    for kind, members in _wide_apart(groups) if state.options.low_memory else groups.items():
        weight = _joined([weight for _, weight, _ in members], along)
        if kind is None:
            arrays = _joined([state.environment[value] for value, _, _ in members], axis)
            constant = contraction.with_fixed(arrays, weight, side)
            continue
        axes = kind[1]
        find = _materialised if len(members) == 1 and not axes else jet_of
        jets = [_before_broadcast(find(state, value), axes) for value, _, _ in members]
        jet = _with_fixed(state, _side_by_side(jets, axis), weight, contraction, side)
        if axes or not jet.dense:
            repeated.append(jet)
        else:
            total = jet if total is None else _sum(state, total, jet)
    if total is not None and repeated:  # else XLA materialises the repeated addend of a GEMM
        total = Jet.of_stack(lax.optimization_barrier(total.stacked()), total.laplacian is not None, total.owners)
    for jet in repeated:
        total = jet if total is None else _sum(state, total, jet)
    assert total is not None
    return total if constant is None else total.with_value(total.value + constant)


def _wide_apart(groups: Mapping[_Kind, list[_Part]]) -> Iterator[tuple[_Kind, list[_Part]]]:
    """The groups; of one of dense parts the widest by itself, if it is as wide as the others together."""
    for kind, members in groups.items():
        widths = [extent for _, _, extent in members]
        widest = members[widths.index(max(widths))]
        if kind == (None, ()) and len(members) > 1 and 2 * max(widths) >= sum(widths):
            yield kind, [member for member in members if member is not widest]
            yield kind, [widest]
        else:
            yield kind, members


def _joined(arrays: Sequence[Any], axis: int) -> Any:
    return jnp.concatenate(arrays, axis) if len(arrays) > 1 else arrays[0]


def _side_by_side(jets: Sequence[Jet], axis: int) -> Jet:
    """Jets of the same owners concatenated along ``axis``."""
    if len(jets) == 1:
        return jets[0]
    has_laplacian = any(jet.laplacian is not None for jet in jets)
    stacks = [jet.stacked(has_laplacian) for jet in jets]
    return Jet.of_stack(jnp.concatenate(stacks, axis + 1), has_laplacian, jets[0].owners)


def _sum(state: State, left: Jet, right: Jet) -> Jet:
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = _widened(left, shape), _widened(right, shape)
    terms = [(left, _as_it_is), (right, _as_it_is)]
    return combine(left.value + right.value, terms, state.coordinates, linear=True)


def _widened(jet: Jet, shape: tuple[int, ...]) -> Jet:
    """The jet repeated along axes of extent 1 to ``shape``."""
    return jet if jet.shape == shape else jet.map_parts(lambda part: jnp.broadcast_to(part, shape), jet.owners)


RULES: dict[str, Rule] = {"stablehlo.dot_general": dot_general}
