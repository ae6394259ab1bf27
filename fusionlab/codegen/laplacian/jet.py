"""Jets of the forward Laplacian: a value, its Laplacian and its derivatives along directions.

A value depends on K = N c coordinates: c of each of N electrons (c = 3). A *dense* jet has one row per coordinate:
``jacobian[k] = d value / d x_k``, row k = c e + d for coordinate d of electron e. A *sparse* jet has blocks: in block
b, element i of the value depends on the one electron ``owners[b][i]`` (or on none), so that c rows per block hold all
its derivatives.

Forward Laplacian: R. Li et al., Nature Machine Intelligence 6, 209 (2024), Eq. 5; sparsity as a property of the
program and not of the ansatz.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.owners import (
    NO_ELECTRON,
    Owner,
    consecutive,
    meeting,
    minimal,
    require_fitting,
    same_owner,
    where,
)

Scale = Callable[[Any], Any]
"""Maps the Laplacian and the rows of a jet where they enter a linear combination; broadcasts over a leading axis."""


@dataclass(frozen=True)
class Coordinates:
    """The coordinates that jets are derivatives by: ``each`` c of each of ``electrons`` N.

    ``weights`` [K], if there are any, are those of the second derivatives in a Laplacian.
    """

    electrons: int
    each: int
    weights: Any = field(default=None, compare=False)

    @property
    def count(self) -> int:
        """K, the number of coordinates."""
        return self.electrons * self.each

    def weigh(self, rows: Any) -> Any:
        """Rows [K, ...] times the weights."""
        return rows if self.weights is None else rows * self._like(rows).reshape(-1, *(1,) * (rows.ndim - 1))

    def _like(self, rows: Any) -> Any:
        """The weights at the precision of ``rows``, where the program converts between x and these."""
        return self.weights.astype(rows.real.dtype)

    def weigh_block(self, rows: Any, owner: Owner) -> Any:
        """The rows [c, *S] of a block of ``owner`` times the weights of its electrons."""
        if self.weights is None:
            return rows
        of_electrons = self._like(rows).reshape(self.electrons, self.each)
        if (first := consecutive(owner)) is not None:
            own = lax.slice_in_dim(of_electrons, first, first + owner.size)
            return rows * own.T.reshape(self.each, *owner.shape)
        return rows * jnp.moveaxis(of_electrons[owner], -1, 0)


@dataclass(frozen=True, eq=False)
class Jet:
    """``value`` [S]; ``laplacian`` [S], None for zero; ``jacobian`` [R, *S], R = K if dense, else c per block.

    No two blocks have the same owners, and none is of no electron alone (``distinct``). ``owners`` is None for a dense
    jet. ``stack`` may hold [value, laplacian (if any), jacobian] as one array already.
    """

    value: Any
    laplacian: Any
    jacobian: Any
    owners: tuple[Owner, ...] | None
    stack: Any = field(default=None, repr=False)

    @property
    def dense(self) -> bool:
        """True if there is a row for every coordinate."""
        return self.owners is None

    @property
    def shape(self) -> tuple[int, ...]:
        """S."""
        return tuple(np.shape(self.value))

    def stacked(self, has_laplacian: bool = False) -> Any:
        """[value, laplacian (if any, else zeros if ``has_laplacian``), jacobian] along a new leading axis."""
        if self.stack is not None and (self.laplacian is not None or not has_laplacian):
            return self.stack
        front = [jnp.asarray(self.value)[None]]
        if self.laplacian is not None:
            front.append(jnp.asarray(self.laplacian)[None])
        elif has_laplacian:
            front.append(jnp.zeros((1, *self.shape), self.jacobian.dtype))
        return jnp.concatenate([*front, self.jacobian])

    @property
    def derivatives(self) -> Any:
        """[laplacian (if any), jacobian]: the parts that a linear op maps by its own Jacobian."""
        if self.stack is not None:
            return lax.slice_in_dim(self.stack, 1, self.stack.shape[0])
        if self.laplacian is None:
            return self.jacobian
        return jnp.concatenate([jnp.asarray(self.laplacian)[None], self.jacobian])

    @staticmethod
    def of_stack(stack: Any, has_laplacian: bool, owners: tuple[Owner, ...] | None) -> Jet:
        """The jet whose ``stacked()`` is ``stack``."""
        jacobian = lax.slice_in_dim(stack, 1 + has_laplacian, stack.shape[0])
        return Jet(stack[0], stack[1] if has_laplacian else None, jacobian, owners, stack)

    @staticmethod
    def of_derivatives(value: Any, derivatives: Any, has_laplacian: bool, owners: tuple[Owner, ...] | None) -> Jet:
        """The jet with ``value`` whose ``derivatives`` are given."""
        jacobian = lax.slice_in_dim(derivatives, int(has_laplacian), derivatives.shape[0])
        return Jet(value, derivatives[0] if has_laplacian else None, jacobian, owners)

    def with_value(self, value: Any) -> Jet:
        """The jet of this value plus a constant, where ``value`` is that sum: one row is written, in place."""
        if not self.dense:
            return Jet(value, self.laplacian, self.jacobian, self.owners)
        return Jet.of_stack(update_first(self.stacked(), value), self.laplacian is not None, None)

    def map_parts(self, function: Callable[[Any], Any], owners: tuple[Owner, ...] | None) -> Jet:
        """Apply a linear ``function`` that only moves elements to every part, without stacking the parts."""
        if self.stack is not None:
            return Jet.of_stack(jax.vmap(function)(self.stack), self.laplacian is not None, owners)
        laplacian = None if self.laplacian is None else function(self.laplacian)
        return Jet(function(self.value), laplacian, jax.vmap(function)(self.jacobian), owners)

    def block(self, number: int, coordinates: Coordinates) -> Any:
        """The rows [c, *S] of one block."""
        return self.jacobian[number * coordinates.each : (number + 1) * coordinates.each]


def identity_jet(x: Any, coordinates: Coordinates, walker_axes: int) -> Jet:
    """The jet of the coordinates themselves: ``x`` [*walkers, ...] with K trailing elements, electron-major."""
    shape = tuple(np.shape(x))
    inner = shape[walker_axes:]
    numbers = np.arange(coordinates.count, dtype=np.int32)
    owner = (numbers // coordinates.each).reshape((1,) * walker_axes + inner)
    one_hot = np.equal.outer(np.arange(coordinates.each), numbers % coordinates.each)
    constant = one_hot.reshape((coordinates.each,) + (1,) * walker_axes + inner).astype(np.result_type(x))
    return Jet(x, None, jnp.broadcast_to(constant, (coordinates.each, *shape)), (minimal(owner),))


def constant_jet(array: Any) -> Jet:
    """The jet of a constant."""
    return Jet(array, None, jnp.zeros((0, *np.shape(array)), np.result_type(array)), ())


def densify(jet: Jet, coordinates: Coordinates) -> Jet:
    """The same jet with one row per coordinate: those of each block where its owner is the row's electron, else zero.

    NotImplementedError where the owners do not fit the jet: another axis was taken for the walkers'.
    """
    if jet.owners is None:
        return jet
    total = None
    shape = (coordinates.electrons, coordinates.each, *jet.shape)
    for number, owner in enumerate(jet.owners):
        electrons = np.arange(coordinates.electrons).reshape((-1,) + (1,) * owner.ndim)
        mask = (electrons == owner[None])[:, None]  # [N, 1, *S]
        rows = jet.block(number, coordinates)[None]  # [1, c, *S]
        require_fitting(owner, jet.shape)
        part = where(mask, jnp.broadcast_to(rows, shape))
        total = part if total is None else total + part
    if total is None:
        total = jnp.zeros(shape, np.result_type(jet.value))
    return Jet(jet.value, jet.laplacian, total.reshape(coordinates.count, *jet.shape), None)


def distinct(jet: Jet, coordinates: Coordinates) -> Jet:
    """The same jet with the rows of blocks of the same owners added, and without blocks of no electron."""
    kept: list[Owner] = []
    blocks: list[Any] = []
    for number, owner in enumerate(jet.owners or ()):
        if (owner == NO_ELECTRON).all():
            continue
        rows = jet.block(number, coordinates)
        at = next((i for i, other in enumerate(kept) if same_owner(owner, other)), None)
        if at is None:
            kept.append(owner)
            blocks.append(rows)
        else:
            blocks[at] = blocks[at] + rows
    if len(kept) == len(jet.owners or ()):
        return jet
    rows = jnp.concatenate(blocks) if blocks else jnp.zeros((0, *jet.shape), np.result_type(jet.jacobian))
    return Jet(jet.value, jet.laplacian, rows, tuple(kept))


def combine(
    value: Any, terms: Sequence[tuple[Jet, Scale]], coordinates: Coordinates, extra: Any = None, linear: bool = False
) -> Jet:
    """The jet with ``value`` whose derivatives are the sum of those of ``terms``, each through its scale.

    ``extra`` is added to the Laplacian. ``linear``: the value is the same sum of values.
    """
    owners = _union([jet for jet, _ in terms], coordinates)
    if owners is None and extra is None and linear:
        has_laplacian = any(jet.laplacian is not None for jet, _ in terms)
        stacks = [(densify(jet, coordinates).stacked(has_laplacian), scale) for jet, scale in terms]
        return Jet.of_stack(sum_of([scale(stack) for stack, scale in stacks]), has_laplacian, None)
    laplacians = [scale(jet.laplacian) for jet, scale in terms if jet.laplacian is not None]
    laplacians += [] if extra is None else [extra]
    laplacian = sum_of(laplacians) if laplacians else None
    if owners is None:
        return Jet(value, laplacian, sum_of([s(densify(jet, coordinates).jacobian) for jet, s in terms]), None)
    if all(len(jet.owners or ()) == len(owners) and all(map(same_owner, jet.owners or (), owners)) for jet, _ in terms):
        return Jet(value, laplacian, sum_of([scale(jet.jacobian) for jet, scale in terms]), owners)
    blocks = []
    for owner in owners:
        of = [(jet, i, s) for jet, s in terms for i, other in enumerate(jet.owners or ()) if same_owner(owner, other)]
        blocks.append(sum_of([scale(jet.block(number, coordinates)) for jet, number, scale in of]))
    return Jet(value, laplacian, jnp.concatenate(blocks), owners)


def _union(jets: Sequence[Jet], coordinates: Coordinates) -> tuple[Owner, ...] | None:
    """The owners of blocks of any of ``jets``; None when one is dense, or as many rows as coordinates are needed."""
    owners: list[Owner] = []
    for jet in jets:
        if jet.owners is None:
            return None
        for owner in jet.owners:
            if not any(same_owner(owner, other) for other in owners):
                owners.append(owner)
    return None if len(owners) * coordinates.each >= coordinates.count else tuple(owners)


def row_products(first: Jet, second: Jet, coordinates: Coordinates) -> Any:
    """sum_k (d first / d x_k) (d second / d x_k), weighted, [S]; None where no electron owns elements of both.

    ``first`` and ``second`` have one shape; neither has to be aligned with the other.
    """
    if first.owners is None or second.owners is None:
        first, second = densify(first, coordinates), densify(second, coordinates)
        return sum_rows(coordinates.weigh(first.jacobian) * second.jacobian)
    total: Any = None
    for s, t, both in meeting(first.owners, second.owners):
        if first is second and t < s:
            continue
        left = coordinates.weigh_block(first.block(s, coordinates), first.owners[s])
        term = sum_rows(where(both, left * second.block(t, coordinates)))
        if first is second and t > s:
            term = term * np.asarray(2.0, term.dtype)
        total = term if total is None else total + term
    return total


def sum_rows(products: Any) -> Any:
    """``products`` [K, ...] summed over its rows."""
    return lax.reduce(products, np.zeros((), products.dtype), lax.add, (0,))


def of_electrons(rows: Any, first: int, of: Coordinates) -> Any:
    """[N, ...] of ``rows`` [n, ...] of electrons from ``first`` on; those of the others are zero."""
    after = of.electrons - first - rows.shape[0]
    if not (first or after):
        return rows
    return lax.pad(rows, np.zeros((), rows.dtype), [(first, after, 0), *[(0, 0, 0)] * (rows.ndim - 1)])


def sum_of(parts: Sequence[Any]) -> Any:
    """The sum of one or more arrays."""
    return functools.reduce(operator.add, parts)


def update_first(stack: Any, *rows: Any) -> Any:
    """[R, *S]: ``stack`` with its first rows replaced by ``rows``, each [S] and of one dtype with it: written over."""
    return lax.dynamic_update_slice(stack, _front(rows), [np.int32(0)] * stack.ndim)


def select_padded(stack: Any, *rows: Any) -> Any:
    """``update_first`` as an elementwise op: a selection between ``stack`` and ``rows`` padded by zeros."""
    front = at_row(_front(rows), 0, stack.shape[0])
    return lax.select(_row_mask(np.arange(stack.shape[0]) < len(rows), stack), front, stack)


def select_broadcast(stack: Any, *rows: Any) -> Any:
    """``update_first`` by selections between ``stack`` and each of ``rows`` broadcast over all rows."""
    number = np.arange(stack.shape[0])
    *others, front = (lax.broadcast(row, stack.shape[:1]) for row in rows)
    for at, row in enumerate(others):
        front = lax.select(_row_mask(number == at, stack), row, front)
    return lax.select(_row_mask(number < len(rows), stack), front, stack)


def _row_mask(mask: np.ndarray, stack: Any) -> Any:
    return lax.broadcast_in_dim(mask, stack.shape, (0,))


def _front(rows: Sequence[Any]) -> Any:
    return jnp.concatenate([row[None] for row in rows]) if len(rows) > 1 else rows[0][None]


def at_row(part: Any, row: int, count: int) -> Any:
    """[``count``, *S]: ``part`` [R, *S] from row ``row`` on, zeros elsewhere."""
    config = [(row, count - row - part.shape[0], 0)] + [(0, 0, 0)] * (part.ndim - 1)
    return lax.pad(part, np.zeros((), part.dtype), config)
