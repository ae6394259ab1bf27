"""Sums and products of jets: the only places where derivatives of two values meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.forward_laplacian.jet import (
    Coordinates,
    Jet,
    Owner,
    at_row,
    densify,
    row_products,
    same_owner,
    select_first,
    sum_rows,
    with_first,
)

Scale = Callable[[Any], Any]
"""How one jet's lap and rows enter a linear combination; must broadcast over a leading axis."""

Front = Callable[..., Any]
"""``(stack, *rows)``: how value and Laplacian come in front of a stack: ``select_first`` or ``with_first``."""


def combine(
    value: Any,
    jets: Sequence[Jet],
    scales: Sequence[Scale],
    coordinates: Coordinates,
    extra_lap: Any = None,
    linear: bool = False,
) -> Jet:
    """The jet with ``value`` whose lap and rows are the sum of those of ``jets``, each through its scale.

    ``linear``: and so is the value itself.
    """
    owners = _union(jets, coordinates)
    if owners is None and extra_lap is None and linear:
        has_lap = any(jet.lap is not None for jet in jets)
        stacks = [densify(jet, coordinates).stack_with(has_lap) for jet in jets]
        return Jet.of_stack(_sum([scale(p) for p, scale in zip(stacks, scales, strict=True)]), has_lap, None)
    laps = [scale(jet.lap) for jet, scale in zip(jets, scales, strict=True) if jet.lap is not None]
    laps += [] if extra_lap is None else [extra_lap]
    lap = _sum(laps) if laps else None
    if owners is None:
        rows = _sum([scale(densify(jet, coordinates).rows) for jet, scale in zip(jets, scales, strict=True)])
        return Jet(value, lap, rows, None)
    each = coordinates.each
    if all(len(jet.owners or ()) == len(owners) for jet in jets):
        ordered = all(all(map(same_owner, jet.owners or (), owners)) for jet in jets)
        if ordered:
            return Jet(value, lap, _sum([s(j.rows) for j, s in zip(jets, scales, strict=True)]), owners)
    blocks = []
    for owner in owners:
        parts = []
        for jet, scale in zip(jets, scales, strict=True):
            for i, other in enumerate(jet.owners or ()):
                if same_owner(owner, other):
                    parts.append(scale(jet.rows[i * each : (i + 1) * each]))
        blocks.append(_sum(parts))
    return Jet(value, lap, jnp.concatenate(blocks), owners)


def multiply(value: Any, left: Jet, right: Jet, coordinates: Coordinates, front: Front = select_first) -> Jet:
    """The jet of the elementwise product: lap = u lap v + v lap u + 2 sum_k u_k v_k."""
    cross = row_products(left, right, coordinates)
    extra = None if cross is None else cross + cross
    if left.dense or right.dense:
        return _multiply_stacks(densify(left, coordinates), densify(right, coordinates), extra, front)
    scales = [lambda part: part * right.value, lambda part: part * left.value]
    return combine(value, [left, right], scales, coordinates, extra)


def _multiply_stacks(left: Jet, right: Jet, cross: Any, front: Front) -> Jet:
    """The product of dense jets as one expression for all rows, which XLA keeps in one kernel, ``front`` aside.

    u V + U v in every row but the first, which is u v; the cross terms belong to the Laplacian in row 1.
    """
    u, v = left.stack_with(True), right.stack_with(True)
    moved = u[0] * v + u * v[0]
    return Jet.of_stack(front(moved, u[0] * v[0], moved[1] + cross), True, None)


def divide(value: Any, top: Jet, bottom: Jet, coordinates: Coordinates, front: Front = select_first) -> Jet:
    """The jet of y = u / v: y_k = (u_k - y v_k) / v and lap y = (lap u - y lap v - 2 sum_k y_k v_k) / v."""
    inverse = 1 / bottom.value
    ratio = value * inverse
    if top.dense or bottom.dense:
        return _divide_stacks(value, inverse, densify(top, coordinates), densify(bottom, coordinates), front)
    scales = [lambda part: part * inverse, lambda part: -(part * ratio)]
    quotient = combine(value, [top, bottom], scales, coordinates)
    cross = row_products(quotient, bottom, coordinates)
    if cross is None:
        return quotient
    extra = -(cross + cross) * inverse
    return Jet(value, extra if quotient.lap is None else quotient.lap + extra, quotient.rows, quotient.owners)


def _divide_stacks(value: Any, inverse: Any, top: Jet, bottom: Jet, front: Front) -> Jet:
    """The quotient of dense jets as one expression for all rows but for the sum over directions."""
    u, v = top.stack_with(True), bottom.stack_with(True)
    moved = u * inverse - v * (value * inverse)
    extra = -(sum_rows(moved[2:] * (v + v)[2:]) * inverse)
    return Jet.of_stack(front(moved + at_row(extra[None], 1, u.shape[0]), value), True, None)


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

    def moved_owner(self, side: int, owner: Owner) -> Owner | None:
        """The owner of operand ``side`` on the result's axes; None when it is summed over."""
        if any(owner.shape[axis] > 1 for axis in self.summed[side]):
            return None
        batch, free = self.batch[side], self.free(side)
        ordered = owner.transpose([*batch, *free, *self.summed[side]])
        ordered = ordered.reshape(ordered.shape[: len(batch) + len(free)])
        others = (1,) * len(self.free(1 - side))
        head, tail = ordered.shape[: len(batch)], ordered.shape[len(batch) :]
        return ordered.reshape((*head, *others, *tail) if side else (*head, *tail, *others))

    def leading(self, side: int, part: Any) -> Any:
        """[R, *operand] with its axes in the order batch, R, free, summed: one copy serves all contractions."""
        return jnp.transpose(part, [axis + 1 for axis in self.batch[side]] + [0]
                             + [axis + 1 for axis in (*self.free(side), *self.summed[side])])  # fmt: skip

    def of_rows(self, left: Any, right: Any, rows_in: tuple[bool, bool]) -> Any:
        """Contract operands that went through ``leading``; those with rows have a row axis. Gives [R, *result]."""
        count = len(self.batch[0])
        batch = tuple(range(count))
        numbers = []
        for side, array in enumerate((left, right)):
            summed = tuple(range(array.ndim - len(self.summed[side]), array.ndim))
            numbers.append((summed, (*batch, count) if all(rows_in) else batch))
        if not rows_in[0]:  # rows first, so that the large operand needs no transposition
            result = self.apply(right, left, ((numbers[1][0], numbers[0][0]), (numbers[1][1], numbers[0][1])))
            others, mine = len(self.free(1)), len(self.free(0))
            axes = [*batch, *(count + 1 + others + i for i in range(mine)), *(count + 1 + i for i in range(others))]
            return jnp.transpose(result, [count, *axes])
        result = self.apply(left, right, ((numbers[0][0], numbers[1][0]), (numbers[0][1], numbers[1][1])))
        return jnp.moveaxis(result, count, 0)

    def of_joined_rows(self, left: Any, right: Any) -> Any:
        """The sum over rows of the contractions row by row, as one contraction over rows too."""
        count = len(self.batch[0])
        batch = tuple(range(count))
        summed = [(count, *range(p.ndim - len(self.summed[s]), p.ndim)) for s, p in enumerate((left, right))]
        return self.apply(left, right, ((summed[0], summed[1]), (batch, batch)))


def contract(left: Jet, right: Jet, contraction: Contraction, coordinates: Coordinates) -> Jet:
    """The jet of a contraction of two jets.

    y_k = u . v_k + u_k . v,  lap y = u . lap v + lap u . v + 2 sum_k u_k . v_k, each kind of term one contraction.
    """
    owners = _contracted_owners(left, right, contraction, coordinates)
    if owners is None:
        left, right = densify(left, coordinates), densify(right, coordinates)
    u, v = (contraction.leading(side, jet.stack_with(True)) for side, jet in enumerate((left, right)))
    u, v = lax.optimization_barrier((u, v))  # from here on nothing reads what they were transposed from
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
    keep: Scale = lambda part: part  # noqa: E731
    return combine(through_right[0], [of_left, of_right], [keep, keep], coordinates, extra)


def _contracted_owners(
    left: Jet, right: Jet, contraction: Contraction, coordinates: Coordinates
) -> tuple[tuple[Owner, ...], tuple[Owner, ...]] | None:
    """Owners of both sides on the result's axes; None when the result has to be dense."""
    if left.owners is None or right.owners is None:
        return None
    moved = [[contraction.moved_owner(s, o) for o in owners] for s, owners in enumerate((left.owners, right.owners))]
    if any(owner is None for side in moved for owner in side):
        return None
    if sum(map(len, moved)) * coordinates.each >= coordinates.count:
        return None
    return tuple(moved[0]), tuple(moved[1])  # type: ignore[arg-type]


def _cross(
    u: Any,
    v: Any,
    contraction: Contraction,
    owners: tuple[tuple[Owner, ...], tuple[Owner, ...]] | None,
    coordinates: Coordinates,
) -> Any:
    """sum_k u_k . v_k, of stacks that went through ``leading``; None where no electron owns elements of both."""
    axis, each, total = len(contraction.batch[0]), coordinates.each, None
    if owners is None:  # all rows of both, so that no operand has to be cut out of its copy; then those of directions
        if contraction.join_rows:
            return contraction.of_joined_rows(*(lax.slice_in_dim(p, 2, p.shape[axis], axis=axis) for p in (u, v)))
        return sum_rows(contraction.of_rows(u, v, (True, True))[2:])
    for s, first in enumerate(owners[0]):
        for t, second in enumerate(owners[1]):
            meet = (first == second) & (first >= 0)
            if not meet.any():
                continue
            slots = [lax.slice_in_dim(p, 2 + i * each, 2 + (i + 1) * each, axis=axis) for p, i in ((u, s), (v, t))]
            term = sum_rows(contraction.of_rows(slots[0], slots[1], (True, True)))
            term = term if meet.all() else jnp.where(jnp.broadcast_to(meet, term.shape), term, np.zeros((), term.dtype))
            total = term if total is None else total + term
    return total


def _union(jets: Sequence[Jet], coordinates: Coordinates) -> tuple[Owner, ...] | None:
    if any(jet.owners is None for jet in jets):
        return None
    owners: list[Owner] = []
    for jet in jets:
        for owner in jet.owners or ():
            if not any(same_owner(owner, other) for other in owners):
                owners.append(owner)
    return None if len(owners) * coordinates.each >= coordinates.count else tuple(owners)


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
