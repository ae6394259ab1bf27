"""Jets of the forward Laplacian: a value, its derivatives along directions and its Laplacian.

A value depends on K = N c coordinates: c of each of N electrons (c = 3). A *dense* jet has one row per coordinate:
``rows[k] = d value / d x_k``, row k = c e + d for coordinate d of electron e. A *sparse* jet has slots: in slot s,
element i of the value depends on the one electron ``owner[i]`` (-1: on none), so that c rows per slot hold all its
derivatives. Owners are known at compile time and do not depend on the walker.

Forward Laplacian: R. Li et al., Nature Machine Intelligence 6, 209 (2024), Eq. 5; sparsity as a property of the
program and not of the ansatz.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Owner = np.ndarray
"""Electron of each element: i32, the rank of the value, extent 1 on axes along which it does not vary."""


@dataclass(frozen=True)
class Coordinates:
    """What is differentiated by: ``electrons`` N times ``each`` c coordinates."""

    electrons: int
    each: int

    @property
    def count(self) -> int:
        """K, the number of coordinates."""
        return self.electrons * self.each


@dataclass(frozen=True, eq=False)
class Jet:
    """``value`` [S]; ``lap`` [S], None for zero; ``rows`` [R, *S], R = K if dense, else c per slot.

    No two slots have the same owners, and none belongs to nobody alone (``distinct``). ``owners`` is None for a dense
    jet. ``stack`` may hold [value, lap (if any), rows] as one array already.
    """

    value: Any
    lap: Any
    rows: Any
    owners: tuple[Owner, ...] | None
    stack: Any = field(default=None, repr=False)

    @property
    def dense(self) -> bool:
        """Whether there is a row for every coordinate."""
        return self.owners is None

    @property
    def shape(self) -> tuple[int, ...]:
        """S."""
        return tuple(np.shape(self.value))

    @property
    def stacked(self) -> Any:
        """[value, lap (if any), rows] along a new leading axis, for ops that are linear in all of them."""
        if self.stack is not None:
            return self.stack
        front = [self.value] if self.lap is None else [self.value, self.lap]
        return jnp.concatenate([*(jnp.asarray(part)[None] for part in front), self.rows])

    def stack_with(self, has_lap: bool) -> Any:
        """``stacked``, with a Laplacian of zeros if one is asked for and there is none."""
        if has_lap and self.lap is None:
            return jnp.concatenate([self.value[None], jnp.zeros((1, *self.shape), self.rows.dtype), self.rows])
        return self.stacked

    def with_value(self, value: Any) -> Jet:
        """The jet of this value plus a constant, where ``value`` is that sum."""
        if not self.dense:
            return Jet(value, self.lap, self.rows, self.owners)
        return Jet.of_stack(with_first(self.stacked, value), self.lap is not None, None)

    @property
    def moving(self) -> Any:
        """[lap (if any), rows]: what is mapped by the Jacobian."""
        if self.stack is not None:
            return lax.slice_in_dim(self.stack, 1, self.stack.shape[0])
        return self.rows if self.lap is None else jnp.concatenate([jnp.asarray(self.lap)[None], self.rows])

    @staticmethod
    def of_stack(stack: Any, has_lap: bool, owners: tuple[Owner, ...] | None) -> Jet:
        """The jet whose ``stacked`` is ``stack``."""
        front = 2 if has_lap else 1
        rows = lax.slice_in_dim(stack, front, stack.shape[0])
        return Jet(stack[0], stack[1] if has_lap else None, rows, owners, stack)

    @staticmethod
    def of_moving(value: Any, moving: Any, has_lap: bool, owners: tuple[Owner, ...] | None) -> Jet:
        """The jet with ``value`` whose ``moving`` is given."""
        rows = lax.slice_in_dim(moving, int(has_lap), moving.shape[0])
        return Jet(value, moving[0] if has_lap else None, rows, owners)

    def map_parts(self, function: Callable[[Any], Any], owners: tuple[Owner, ...] | None) -> Jet:
        """Apply a ``function`` that is linear and only moves elements to every part, without joining parts for it."""
        if self.stack is not None:
            return Jet.of_stack(jax.vmap(function)(self.stack), self.lap is not None, owners)
        lap = None if self.lap is None else function(self.lap)
        return Jet(function(self.value), lap, jax.vmap(function)(self.rows), owners)


def scaled_stack(jet: Jet, value: Any, slope: Any, source: Any, lean: bool, cheap: bool) -> Jet:
    """The dense jet with ``value``, Laplacian ``slope lap + source`` (None: none) and rows ``slope rows``.

    The small arrays are made first, by one kernel; those that are ``cheap`` where they are read, but for the Laplacian.
    ``lean``: the rest is elementwise, so that XLA can write it over the stack that it is made from; else the first rows
    are put in their place, which is less work.
    """
    has_lap = jet.lap is not None or source is not None
    stack = jet.stack_with(has_lap)
    if not has_lap:
        return Jet.of_stack(with_first(slope * stack, value), False, None)
    laps = ([] if jet.lap is None else [slope * jet.lap]) + ([] if source is None else [source])
    lap = sum(laps[1:], laps[0])
    if cheap:
        lap = lax.optimization_barrier(lap)
    else:
        value, slope, lap = lax.optimization_barrier((value, slope, lap))
    return Jet.of_stack((select_first if lean else with_first)(slope * stack, value, lap), True, None)


def with_first(stack: Any, *rows: Any) -> Any:
    """``stack`` with its first rows replaced by ``rows``."""
    return lax.dynamic_update_slice(stack, _front(rows), [np.int32(0)] * stack.ndim)


def select_first(stack: Any, *rows: Any) -> Any:
    """What ``with_first`` gives, as an elementwise op of ``stack``."""
    number = np.arange(stack.shape[0]).reshape((-1,) + (1,) * (stack.ndim - 1))
    return jnp.where(number < len(rows), at_row(_front(rows), 0, stack.shape[0]), stack)


def _front(rows: Sequence[Any]) -> Any:
    return jnp.concatenate([row[None] for row in rows]) if len(rows) > 1 else rows[0][None]


def at_row(part: Any, row: int, count: int) -> Any:
    """[``count``, *S]: ``part`` [R, *S] from row ``row`` on, zeros elsewhere."""
    config = [(row, count - row - part.shape[0], 0)] + [(0, 0, 0)] * (part.ndim - 1)
    return lax.pad(part, np.zeros((), part.dtype), config)


def identity_jet(x: Any, coordinates: Coordinates, walker_axes: int) -> Jet:
    """The jet of the coordinates themselves: ``x`` [*walkers, ...] with K trailing elements, electron-major."""
    shape = tuple(np.shape(x))
    inner = shape[walker_axes:]
    numbers = np.arange(coordinates.count, dtype=np.int32)
    owner = (numbers // coordinates.each).reshape((1,) * walker_axes + inner)
    one_hot = np.equal.outer(np.arange(coordinates.each), numbers % coordinates.each)
    dtype = np.result_type(x)
    constant = one_hot.reshape((coordinates.each,) + (1,) * walker_axes + inner).astype(dtype)
    rows = jnp.broadcast_to(constant, (coordinates.each, *shape))
    return Jet(x, None, rows, (minimal(owner),))


def minimal(owner: Owner) -> Owner:
    """``owner`` with extent 1 on every axis along which it is constant, elements that belong to nobody aside.

    Rows of an element that depends on no electron are zero, so it may as well belong to its neighbours' electron.
    """
    for axis, extent in enumerate(owner.shape):
        if extent > 1:
            most = owner.max(axis, keepdims=True)
            if ((owner == most) | (owner < 0)).all():
                owner = most
    return np.ascontiguousarray(owner, dtype=np.int32)


def densify(jet: Jet, coordinates: Coordinates) -> Jet:
    """The same jet with one row per coordinate: each slot's rows where its owner is the row's electron, else zero.

    NotImplementedError where the owners do not fit the jet: an axis of another kind was taken for the walkers'.
    """
    if jet.owners is None:
        return jet
    total = None
    each = coordinates.each
    for slot, owner in enumerate(jet.owners):
        electrons = np.arange(coordinates.electrons).reshape((-1,) + (1,) * owner.ndim)
        mask = (electrons == owner[None])[:, None]  # [N, 1, *S]
        rows = jet.rows[slot * each : (slot + 1) * each][None]  # [1, c, *S]
        shape = (coordinates.electrons, each, *jet.shape)
        zero = np.zeros((), np.result_type(rows))
        if any(n not in (1, m) for n, m in zip(mask.shape, shape, strict=True)):
            raise NotImplementedError(f"its electrons are taken along axes of extents {owner.shape}, of {jet.shape}")
        if mask.all():
            part = jnp.broadcast_to(rows, shape)
        else:
            part = jnp.where(jnp.broadcast_to(mask, shape), jnp.broadcast_to(rows, shape), zero)
        total = part if total is None else total + part
    if total is None:
        total = jnp.zeros((coordinates.electrons, each, *jet.shape), np.result_type(jet.value))
    return Jet(jet.value, jet.lap, total.reshape(coordinates.count, *jet.shape), None)


def distinct(jet: Jet, coordinates: Coordinates) -> Jet:
    """The same jet with the rows of slots that have the same owners added up, and without slots of nobody."""
    kept: list[Owner] = []
    blocks: list[Any] = []
    each = coordinates.each
    for slot, owner in enumerate(jet.owners or ()):
        if (owner < 0).all():
            continue
        rows = jet.rows[slot * each : (slot + 1) * each]
        at = next((i for i, other in enumerate(kept) if same_owner(owner, other)), None)
        if at is None:
            kept.append(owner)
            blocks.append(rows)
        else:
            blocks[at] = blocks[at] + rows
    if len(kept) == len(jet.owners or ()):
        return jet
    rows = jnp.concatenate(blocks) if blocks else jnp.zeros((0, *jet.shape), np.result_type(jet.rows))
    return Jet(jet.value, jet.lap, rows, tuple(kept))


def same_owner(first: Owner, second: Owner) -> bool:
    """Whether two slots belong to the same electrons, element by element."""
    return first.shape == second.shape and bool((first == second).all())


def row_products(first: Jet, second: Jet, coordinates: Coordinates) -> Any:
    """sum_k (d first / d x_k) (d second / d x_k), [S]; where two slots belong to one electron, their cross terms too.

    ``first`` and ``second`` have one shape; neither has to be aligned with the other.
    """
    if first.owners is None or second.owners is None:
        first, second = densify(first, coordinates), densify(second, coordinates)
        return sum_rows(first.rows * second.rows)
    each = coordinates.each
    total: Any = None
    for s, left in enumerate(first.owners):
        for t, right in enumerate(second.owners):
            meet = (left == right) & (left >= 0)
            if not meet.any():
                continue
            if first is second and t < s:
                continue
            twice = 2.0 if first is second and t > s else 1.0
            products = first.rows[s * each : (s + 1) * each] * second.rows[t * each : (t + 1) * each]
            if not meet.all():
                products = jnp.where(jnp.broadcast_to(meet, products.shape), products, np.zeros((), products.dtype))
            term = sum_rows(products)
            term = term * np.asarray(twice, term.dtype) if twice != 1.0 else term
            total = term if total is None else total + term
    return total


def sum_rows(products: Any) -> Any:
    """``products`` [K, ...] summed over its rows."""
    return lax.reduce(products, np.zeros((), products.dtype), lax.add, (0,))
