"""Contractions: one GEMM for a value, its Laplacian and all directions, parts of a concatenation apart."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import (
    Coordinates,
    Jet,
    at_row,
    combine,
    constant_jet,
    densify,
    select_padded,
    sum_of,
    sum_rows,
    update_first,
)
from fusionlab.codegen.laplacian.owners import Owner, minimal, moved_owner
from fusionlab.codegen.laplacian.rules.owned_dot import Axes, contract_blocks, contract_quotient, products_of_blocks
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising.rules.contraction import precision_of
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.hlo import ops
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.view import Node, Value

_REPEATS = (ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.TRANSPOSE)
"""Moves of one operand that may repeat elements."""

_Owners = tuple[tuple[Owner, ...], tuple[Owner, ...]]
_Kind = tuple[Any, tuple[int, ...]] | None
"""Shared by parts of a concatenation that are contracted together: owners (None: dense), and axes along which they
repeat; None for parts that do not depend on the coordinates."""
_Part = tuple[Value, Any, int]
"""A part of a concatenation, the operand it is contracted with, and its width."""
_NARROW = 8
"""Constants this many times narrower than the other parts are contracted with them: a GEMM of their own is a launch
and a copy of weights."""


@dataclass(frozen=True)
class Contraction:
    """``dot_general`` of two values: its dimension numbers, and ``apply(u, v, numbers)`` at the program's precision,
    whose result is of type ``dtype``; ``precision`` is that of both operands, if it is one each."""

    batch: tuple[tuple[int, ...], tuple[int, ...]]
    summed: tuple[tuple[int, ...], tuple[int, ...]]
    ranks: tuple[int, int]
    apply: Callable[..., Any]
    dtype: Any
    join_rows: bool = False
    precision: Any = None

    def apply_swapped(self, v: Any, u: Any, numbers: Any) -> Any:
        """``apply`` with the right operand first."""
        swapped = {"precision": self.precision[::-1]} if self.precision else {}
        return self.apply(v, u, numbers, **swapped)

    @property
    def axes(self) -> Axes:
        """The axes of operands and result, by letters."""
        return Axes.of(self.batch, self.summed, self.ranks, self.apply, self.dtype)

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
        result = self.apply_swapped(right, left, ((v, u), (batch, batch)))
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
        if (found := _of_quotient(state, node, contraction)) is not None:
            return [found]
        left, right = (jet_of(state, value) for value in node.operands)
        return [contract(left, right, contraction, state.coordinates)]
    side = varying.index(True)
    source, fixed = node.operands[side], state.environment[node.operands[1 - side]]
    if state.options.sparse and (split := _split(state, source, fixed, contraction, side)) is not None:
        return [_widened(split, state.raising.shape(node.results[0]))]
    return [_with_fixed(state, _materialised(state, source), fixed, contraction, side)]


def _of_quotient(state: State, node: Node, contraction: Contraction) -> Jet | None:
    """sum_j (a_ij / s_i) v_j = (sum_j a_ij v_j) / s_i, where a_ij has blocks and s_i is dense; None if it is not that.

    The quotient would be dense, and so would the contraction be. The value is the program's own.
    """
    for side, value in enumerate(node.operands):
        if value not in state.postponed or (quotient := value.producer) is None or quotient.op is not ops.DIVIDE:
            continue
        top, bottom = quotient.operands
        summed, extents = contraction.summed[side], state.one.shape(bottom)
        repeated = _repeated_axes(state, bottom, summed)
        if any(axis not in repeated and extents[axis] > 1 for axis in summed):
            continue
        if _is_sum(state, bottom, top, summed):
            divisor = constant_jet(functools.reduce(_first_along, summed, state.environment[bottom]))
        else:
            divisor = _before_broadcast(jet_of(state, bottom), summed)
        operands = jet_of(state, top), divisor, jet_of(state, node.operands[1 - side])
        array, axes = state.environment[value], contraction.axes
        if (found := contract_quotient(array, *operands, side, axes, state.coordinates)) is not None:
            return found
    return None


def _is_sum(state: State, value: Value, of: Value, axes: Sequence[int]) -> bool:
    """True if ``value`` is the sum of ``of`` over ``axes``, repeated along these."""
    path, source = _moves_before(state, value)
    node = source.producer
    if node is None or node.op is not ops.REDUCE or node.operands[0] is not of or combiner(node.regions[0]) != "add":
        return False
    start = state.environment[node.operands[1]]
    if {*integers(node.attributes["dimensions"])} != {*axes} or not isinstance(start, np.ndarray) or start.any():
        return False
    expected = np.expand_dims(_places(state, source), tuple(sorted(axes)))
    shape = state.one.shape(value)
    return np.array_equal(np.broadcast_to(_moved(state, path, source), shape), np.broadcast_to(expected, shape))


def _contraction(state: State, node: Node) -> Contraction:
    axes = DotAxes.of(node)
    dtype = state.raising.dtype(node.results[0].type)
    precision = precision_of(node, with_algorithm=state.raising.marks is not None)
    return Contraction(
        batch=axes.batch,
        summed=axes.contracted,
        ranks=(len(axes.shapes[0]), len(axes.shapes[1])),
        apply=functools.partial(
            lax.dot_general,
            precision=precision,
            preferred_element_type=dtype,
        ),
        dtype=dtype,
        join_rows=state.options.for_cpu,
        precision=precision if isinstance(precision, tuple) else None,
    )


def contract(left: Jet, right: Jet, contraction: Contraction, coordinates: Coordinates) -> Jet:
    """The jet of a contraction of two jets.

    y_k = u . v_k + u_k . v,  lap y = u . lap v + lap u . v + 2 sum_k u_k . v_k, each kind of term one contraction.
    """
    owners = _contracted_owners(left, right, contraction, coordinates)
    if owners is None and (found := contract_blocks(left, right, contraction.axes, coordinates)) is not None:
        return found
    if owners is None:
        left, right = densify(left, coordinates), densify(right, coordinates)
        if not contraction.join_rows and (side := _smaller_side(left, right, contraction)) is not None:
            return _contract_with_smaller(left, right, contraction, side, coordinates)
    u, v = (contraction.leading(side, jet.stacked(True)) for side, jet in enumerate((left, right)))
    u, v = lax.optimization_barrier((u, v))  # from here on nothing reads the untransposed operands
    count = len(contraction.batch[0])
    u0, v0 = (lax.index_in_dim(part, 0, count, keepdims=False) for part in (u, v))
    if owners is not None:
        u = lax.slice_in_dim(u, 1, u.shape[count], axis=count)
    u, v, u0, v0 = lax.optimization_barrier((u, v, u0, v0))
    through_right = contraction.of_rows(u0, v, (False, True))
    through_left = contraction.of_rows(u, v0, (True, False))
    if owners is None:
        cross = _cross(u, v, contraction, coordinates)
        # Row 0 is u . v in both; the cross terms belong to the Laplacian in row 1.
        others = update_first(through_left[1:], through_left[1] + (cross + cross))
        return Jet.of_stack(through_right + at_row(others, 1, through_right.shape[0]), True, None)
    pairs = itertools.product(*(enumerate(of_side) for of_side in owners))
    products = (
        products_of_blocks(left.block(s, coordinates), right.block(t, coordinates), first, second, contraction.axes)
        for (s, first), (t, second) in pairs
    )
    crosses = [found for found in products if found is not None]
    extra = sum_of([through_right[1], through_left[0], *crosses, *crosses])
    of_left = Jet(None, None, through_left[1:], owners[0])
    of_right = Jet(None, None, through_right[2:], owners[1])
    return combine(through_right[0], [(of_left, _as_it_is), (of_right, _as_it_is)], coordinates, extra)


def _smaller_side(left: Jet, right: Jet, contraction: Contraction) -> int | None:
    """The smaller operand, 0 or 1, if it has at most half as many elements as the result; else None."""
    shapes = left.shape, right.shape
    kept = [shapes[0][axis] for axis in contraction.batch[0]]
    kept += [shape[axis] for side, shape in enumerate(shapes) for axis in contraction.free(side)]
    sizes = [math.prod(shape) for shape in shapes]
    return sizes.index(min(sizes)) if 2 * min(sizes) <= math.prod(kept) else None


def _contract_with_smaller(left: Jet, right: Jet, contraction: Contraction, side: int, coordinates: Coordinates) -> Jet:
    """``contract`` of dense jets a (of operand ``side``) and v, of which a is smaller than the result.

        y_k = a . v_k + a_k . v                     sum_k a_k . v_k = (a_1, ..., a_K) . (v_1, ..., v_K)

    Products row by row would be as large as the result, in every row. As one contraction over rows too they need
    another layout of a, which is small; that of v [batch, summed, rows, free] serves all contractions.
    """
    small, large = (left, right) if side == 0 else (right, left)
    batch, summed, free = contraction.batch[side], contraction.summed[side], contraction.free(side)
    other = 1 - side
    stack = small.stacked(True)
    rows, count, inner = stack.shape[0], len(batch), len(summed)

    def ordered(array: Any, *axes: Sequence[int] | None) -> Any:
        """Axes of an operand in order, that of rows where it is None."""
        return jnp.transpose(array, [axis for of in axes for axis in ([0] if of is None else [a + 1 for a in of])])

    def contracted(a: Any, v: Any, over: int) -> Any:
        """[batch, the rest of a, the rest of v]: the contraction over the last axes of a and the first of v."""
        axes = (tuple(range(a.ndim - over, a.ndim)), tuple(range(count, count + over)))
        apply = contraction.apply if side == 0 else contraction.apply_swapped
        return apply(a, v, (axes, (tuple(range(count)),) * 2))

    v = ordered(large.stacked(True), contraction.batch[other], contraction.summed[other], None, contraction.free(other))
    derivatives, directions = at_row(stack[1:], 1, rows), at_row(coordinates.weigh(stack[2:]), 2, rows)
    arrays = (
        v, lax.index_in_dim(v, 0, count + inner, keepdims=False), ordered(stack[:1], batch, free, summed, None)[..., 0],
        ordered(derivatives, batch, free, None, summed), ordered(directions, batch, free, summed, None),
    )  # fmt: skip
    v, v0, a0, a_rows, a_products = lax.optimization_barrier(arrays)
    cross = contracted(a_products, v, inner + 1)
    total = jnp.moveaxis(contracted(a0, v, inner) + contracted(a_rows, v0, inner), count + len(free), 0)
    # The value apart: an infinite one in v, times the zeros in row 0 of a's derivatives, would be no number. XLA would
    # merge its product with those that share an operand, and copy the large ones for it.
    a0, v0 = lax.optimization_barrier((a0, v0))
    value = contracted(a0, v0, inner)
    stack = select_padded(total + at_row((cross + cross)[None], 1, rows), value)
    if side == 1:  # the free axes of v come first
        mine = range(1 + count, 1 + count + len(free))
        stack = jnp.transpose(stack, [*range(1 + count), *range(mine.stop, stack.ndim), *mine])
    return Jet.of_stack(stack, True, None)


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


def _cross(u: Any, v: Any, contraction: Contraction, coordinates: Coordinates) -> Any:
    """sum_k u_k . v_k, of dense stacks that went through ``leading``."""
    axis = len(contraction.batch[0])
    # All rows of both, so that no operand has to be cut out of its copy; then those of directions.
    if contraction.join_rows and coordinates.weights is None:
        return contraction.of_joined_rows(*(lax.slice_in_dim(p, 2, p.shape[axis], axis=axis) for p in (u, v)))
    return sum_rows(coordinates.weigh(contraction.of_rows(u, v, (True, True))[2:]))


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
    path, source = _moves_before(state, value)
    if not path:
        return ()
    whole, places = state.one.shape(value), _moved(state, path, source)
    return tuple(axis for axis in free if whole[axis] > 1 and places.shape[axis] == 1)


def _moves_before(state: State, value: Value) -> tuple[list[Node], Value]:
    """The moves that made ``value``, the last one first, and what they began with."""
    path: list[Node] = []
    while (node := value.producer) is not None and node.op in _REPEATS and state.depends_on_x(node.operands[0]):
        path.append(node)
        value = node.operands[0]
    return path, value


def _places(state: State, value: Value) -> Owner:
    """A number for every element of ``value`` of one walker."""
    shape = state.one.shape(value)
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


def _moved(state: State, path: Sequence[Node], source: Value) -> Owner:
    """The elements of ``source`` after the moves of ``path``, by their numbers."""
    places = _places(state, source)
    for node in reversed(path):
        moved = moved_owner(node, {node.operands[0]: places}, state.environment, state.one)
        assert moved is not None  # none of these has indices
        places = moved
    return places


def _before_broadcast(jet: Jet, axes: Sequence[int]) -> Jet:
    """The jet with extent 1 on ``axes``, along which it was repeated, if there are any."""
    if not axes:
        return jet

    def first(part: Any) -> Any:
        return functools.reduce(_first_along, axes, part)

    at = tuple(slice(1) if axis in axes else slice(None) for axis in range(len(jet.shape)))
    return jet.map_parts(first, None if jet.owners is None else tuple(owner[at] for owner in jet.owners))


def _first_along(array: Any, axis: int) -> Any:
    return lax.slice_in_dim(array, 0, 1, axis=axis)


def _split(state: State, source: Value, fixed: Any, contraction: Contraction, side: int) -> Jet | None:
    """[a, b] . W = a . W_a + b . W_b: each part keeps its sparsity, and repeated parts are contracted once.

    None unless ``source`` is concatenated along the one axis that is summed over, of parts of several kinds. Narrow
    constants go with the other parts where these are of one kind and not repeated.
    """
    node, summed, free = source.producer, contraction.summed[side], contraction.free(side)
    if node is None or node.op is not ops.CONCATENATE or summed != (node.attributes["dimension"].value,):
        return None
    axis, along = summed[0], contraction.summed[1 - side][0]
    kinds = [_kind(state, value, free) for value in node.operands]
    extents = [state.raising.shape(value)[axis] for value in node.operands]
    constants = sum(extent for kind, extent in zip(kinds, extents, strict=True) if kind is None)
    varying = {kind for kind in kinds if kind is not None}
    narrow = constants * _NARROW <= sum(extents) - constants
    if not varying:  # the coordinates themselves, which the program computes from others
        return None
    if len(varying) == 1 and (not constants or (narrow and not any(axes for _, axes in varying))):
        return None
    weights = [
        lax.slice_in_dim(fixed, end - extent, end, axis=along)
        for end, extent in zip(itertools.accumulate(extents), extents, strict=True)
    ]
    groups = _by_kind(kinds, zip(node.operands, weights, extents, strict=True))
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
    if constant is None:
        return total
    total = _widened(total, np.broadcast_shapes(total.shape, np.shape(constant)))
    return total.with_value(total.value + constant)


def _by_kind(kinds: Sequence[_Kind], parts: Iterable[_Part]) -> dict[_Kind, list[_Part]]:
    """The parts of each kind, in their order."""
    groups: dict[_Kind, list[_Part]] = {}
    for kind, part in zip(kinds, parts, strict=True):
        groups.setdefault(kind, []).append(part)
    return groups


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
    owners = jets[0].owners
    if owners is not None:  # electrons may lie along ``axis``: then the parts are as long as one another
        owners = tuple(o if o.shape[axis] == 1 else np.concatenate([o] * len(jets), axis) for o in owners)
    return Jet.of_stack(jnp.concatenate(stacks, axis + 1), has_laplacian, owners)


def _sum(state: State, left: Jet, right: Jet) -> Jet:
    shape = np.broadcast_shapes(left.shape, right.shape)
    left, right = _widened(left, shape), _widened(right, shape)
    terms = [(left, _as_it_is), (right, _as_it_is)]
    return combine(left.value + right.value, terms, state.coordinates, linear=True)


def _widened(jet: Jet, shape: tuple[int, ...]) -> Jet:
    """The jet repeated along axes of extent 1 to ``shape``."""
    return jet if jet.shape == shape else jet.map_parts(lambda part: jnp.broadcast_to(part, shape), jet.owners)


RULES: dict[str, Rule] = {"stablehlo.dot_general": dot_general}
