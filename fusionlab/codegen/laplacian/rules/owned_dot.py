"""Contractions of jets with blocks, of which one is owned along the axis that is summed over.

    y_i = sum_j a_ij v_j,   a_ij of electrons i and j,   v_j of electron j, or of all:

    dy_i / dx_k  =  (da_ik / dx_k) v_k  +  a_ik (dv_k / dx_k)  +  [i = k] sum_j (da_ij / dx_i) v_j

A block owned along the summed axis has one term per electron: the sum becomes a batch of products, whose index is the
electron of the row. Blocks owned along other axes keep their owners. Of the cross terms sum_k (da_ij / dx_k)
(dv_j / dx_k) a pair of blocks has one electron for each of its elements. The result is dense, for an N-th of the
products of dense operands.

Weights of attention are such blocks divided by their sum, which depends on all electrons:

    a_ij = e_ij / s_i:   da_ij / dx_k  =  (de_ij / dx_k) / s_i - a_ij t_ik,   t_ik = (ds_i / dx_k) / s_i
                         dy_i / dx_k   =  as above of e_ij / s_i  -  y_i t_ik
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify, of_electrons, sum_of, sum_rows
from fusionlab.codegen.laplacian.owners import NO_ELECTRON, Owner, consecutive, where

_ROW = "r"


@dataclass(frozen=True)
class Axes:
    """The axes of both operands and of the result of a contraction as letters, equal where they are one axis;
    ``apply(left, right, numbers)`` is ``dot_general`` at the program's precision, ``dtype`` that of its result."""

    operands: tuple[str, str]
    summed: str
    result: str
    apply: Callable[..., Any]
    dtype: Any

    @staticmethod
    def of(batch: Any, summed: Any, ranks: tuple[int, int], apply: Callable[..., Any], dtype: Any) -> Axes:
        """Those of ``dot_general`` with these dimension numbers, of operands of these ranks."""
        letters = iter(string.ascii_uppercase)
        names: tuple[dict[int, str], dict[int, str]] = ({}, {})
        for pairs in (batch, summed):
            for left, right in zip(*pairs, strict=True):
                names[0][left] = names[1][right] = next(letters)
        free = [
            [own.setdefault(axis, next(letters)) for axis in range(rank) if axis not in own]
            for own, rank in zip(names, ranks, strict=True)
        ]
        left, right = ("".join(own[axis] for axis in range(len(own))) for own in names)
        over = "".join(names[0][axis] for axis in summed[0])
        result = "".join([*(names[0][axis] for axis in batch[0]), *free[0], *free[1]])
        return Axes((left, right), over, result, apply, dtype)

    def product(self, left: str, x: Any, right: str, y: Any, result: str) -> Any:
        """The einsum of two operands with these axes; elementwise, so that it fuses, where no operand is reused."""
        common = [axis for axis in left if axis in right]
        summed, batch = ([axis for axis in common if (axis in result) == kept] for kept in (False, True))
        every = result + "".join(summed)
        if not summed or all(axis in common for axis in left + right):
            wide = jnp.result_type(x, y, self.dtype)
            products = _placed(x, left, every).astype(wide) * _placed(y, right, every).astype(wide)
            over = tuple(range(len(result), len(every)))
            return (lax.reduce(products, np.zeros((), wide), lax.add, over) if over else products).astype(self.dtype)
        numbers = tuple(tuple(tuple(map(own.index, axes)) for own in (left, right)) for axes in (summed, batch))
        found = [*batch, *(axis for axis in left if axis not in right), *(axis for axis in right if axis not in left)]
        return jnp.transpose(self.apply(x, y, numbers), [found.index(axis) for axis in result])

    def pair(self, side: int, array: Any, other: Any, *, rows: tuple[bool, bool], result: str) -> Any:
        """``product`` of ``array``, operand ``side``, and ``other``; the operands of ``rows`` have a row axis first."""
        given = [(array, rows[0]), (other, rows[1])]
        (x, of_x), (y, of_y) = given if side == 0 else given[::-1]
        left, right = self.operands
        return self.product(_ROW * of_x + left, x, _ROW * of_y + right, y, result)

    def moved(self, part: Any, side: int, to: str) -> Any:
        """``part`` of operand ``side`` on the axes ``to``, of extent 1 on those that the operand does not have.

        It has extent 1 on the axes that are not in ``to``.
        """
        own = self.operands[side]
        gone = tuple(number for number, axis in enumerate(own) if axis not in to)
        return _placed(part.reshape([n for at, n in enumerate(part.shape) if at not in gone]), _without(own, gone), to)

    def moved_rows(self, rows: Any, side: int) -> Any:
        """``moved`` of rows [N, c, *S] to the result."""
        return jax.vmap(jax.vmap(lambda row: self.moved(row, side, self.result)))(rows)


def _without(axes: str, gone: Sequence[int]) -> str:
    return "".join(axis for number, axis in enumerate(axes) if number not in gone)


def _placed(array: Any, axes: str, to: str) -> Any:
    """``array`` [``axes``] on the axes ``to``, of extent 1 on the others."""
    ordered = array.transpose([axes.index(axis) for axis in to if axis in axes])
    extents = iter(ordered.shape)
    return ordered.reshape([next(extents) if axis in axes else 1 for axis in to])


@dataclass(frozen=True)
class _Block:
    """Rows [c, *S] owned by ``owner``: along one axis ``along`` that is summed over, by consecutive electrons from
    ``first`` on; or, without ``along``, along axes that are not."""

    rows: Any
    owner: Owner
    along: str = ""
    first: int = 0


@dataclass(frozen=True)
class _Side:
    """An operand: its value, Laplacian and blocks, or the rows [N, c, *S] of a dense one.

    ``common`` are rows t [N, c, *S] of extent 1 on the summed axes: the derivatives are those of the blocks minus
    value times t.
    """

    value: Any
    laplacian: Any
    blocks: tuple[_Block, ...] = ()
    dense: Any = None
    common: Any = None

    @property
    def kept(self) -> list[_Block]:
        return [block for block in self.blocks if not block.along]

    @property
    def along(self) -> list[_Block]:
        return [block for block in self.blocks if block.along]


class _OtherOwners(Exception):
    """Owners are not consecutive electrons along one axis."""


def contract_blocks(left: Jet, right: Jet, axes: Axes, of: Coordinates) -> Jet | None:
    """The dense jet of a contraction; None where no block is owned along a summed axis, or one in another way."""
    return _contracted(axes, of, lambda: [_side(jet, number, axes, of) for number, jet in enumerate((left, right))])


def contract_quotient(
    value: Any, top: Jet, bottom: Jet, other: Jet, side: int, axes: Axes, of: Coordinates
) -> Jet | None:
    """The same, operand ``side`` the quotient ``value`` of ``top`` and ``bottom``, of extent 1 on the summed axes.

    ``bottom`` is dense, or without rows if it is the sum of ``top`` over these axes.
    """

    def sides() -> list[_Side]:
        blocks = _side(top, side, axes, of)
        divisor = bottom if bottom.dense else _sum_over(blocks, bottom.value, side, axes, of)
        found = [_quotient(value, blocks, divisor, side, axes, of)]
        found.insert(1 - side, _side(other, 1 - side, axes, of))
        return found

    return _contracted(axes, of, sides)


def _sum_over(blocks: _Side, value: Any, side: int, axes: Axes, of: Coordinates) -> Jet:
    """The dense jet of the sum of an operand over the axes that are summed over, which stay, of extent 1."""
    own = axes.operands[side]
    over = tuple(own.index(axis) for axis in axes.summed)
    rows = []

    def summed(part: Any, over: tuple[int, ...]) -> Any:
        if not over:
            return part
        reduced = lax.reduce(part, np.zeros((), part.dtype), lax.add, over)
        return jnp.expand_dims(reduced, over)

    for block in blocks.kept:
        part = Jet(value, None, summed(block.rows, tuple(axis + 1 for axis in over)), (block.owner,))
        rows.append(_by_electron(densify(part, of).jacobian, of))
    for block in blocks.along:
        at = own.index(block.along)
        part = summed(block.rows, tuple(axis + 1 for axis in over if axis != at))
        rows.append(of_electrons(jnp.expand_dims(jnp.moveaxis(part, 1 + at, 0), 2 + at), block.first, of))
    laplacian = None if blocks.laplacian is None else summed(blocks.laplacian, over)
    return Jet(value, laplacian, sum_of(rows).reshape(of.count, *value.shape), None)


def _contracted(axes: Axes, of: Coordinates, sides: Callable[[], Sequence[_Side]]) -> Jet | None:
    if of.weights is not None:
        return None
    try:
        found = sides()
        return _assembled(found, axes, of) if any(side.along for side in found) else None
    except _OtherOwners:
        return None


def _side(jet: Jet, side: int, axes: Axes, of: Coordinates) -> _Side:
    if jet.owners is None:
        return _Side(jet.value, jet.laplacian, dense=_by_electron(jet.jacobian, of))
    blocks = []
    for number, owner in enumerate(jet.owners):
        varying = _varying(owner, axes.operands[side])
        rows = jet.block(number, of)
        if not set(varying) & set(axes.summed):
            blocks.append(_Block(rows, owner))
        else:
            blocks.append(_Block(rows, owner, *_consecutive(owner, varying)))
    return _Side(jet.value, jet.laplacian, tuple(blocks))


def _by_electron(rows: Any, of: Coordinates) -> Any:
    return rows.reshape(of.electrons, of.each, *rows.shape[1:])


def _varying(owner: Owner, axes: str) -> str:
    return "".join(axis for axis, extent in zip(axes, owner.shape, strict=True) if extent > 1)


def _consecutive(owner: Owner, varying: str) -> tuple[str, int]:
    """The one axis along which consecutive electrons own the elements ("" if one owns all), and the first of them."""
    if (first := consecutive(owner)) is None:
        raise _OtherOwners
    return varying, first


def _quotient(value: Any, top: _Side, bottom: Jet, side: int, axes: Axes, of: Coordinates) -> _Side:
    """a = e / s: lap a = (lap e) / s - a (lap s) / s - 2 sum_k a_k t_k, in which a_k = e_k / s - a t_k."""
    inverse = 1 / bottom.value
    common = _by_electron(bottom.jacobian * inverse, of)
    blocks = tuple(_Block(block.rows * inverse, block.owner, block.along, block.first) for block in top.blocks)
    shared = [sum_rows(block.rows * _of_owner(common, block, side, axes)) for block in blocks]
    squares = sum_rows((common * common).reshape(-1, *common.shape[2:]))
    terms = [value * (squares + squares), *(-(one + one) for one in shared)]
    terms += [] if top.laplacian is None else [top.laplacian * inverse]
    terms += [] if bottom.laplacian is None else [-(value * (bottom.laplacian * inverse))]
    return _Side(value, sum_of(terms), blocks, common=common)


def _of_owner(rows: Any, block: _Block, side: int, axes: Axes) -> Any:
    """[c, *S]: of ``rows`` [N, c, *S] of operand ``side`` those by the electron that owns an element of ``block``."""
    varying, first = _consecutive(block.owner, _varying(block.owner, axes.operands[side]))
    if not varying:
        return rows[first]
    return _rows_of(rows, axes.operands[side].index(varying), first, block.owner.size)


def _rows_of(rows: Any, axis: int, first: int, count: int) -> Any:
    """[c, *S]: of ``rows`` [N, c, *S] those by electron ``first`` + j at index j < ``count`` of ``axis``.

    Of an axis of extent 1, the rows do not vary along it.
    """
    own = lax.slice_in_dim(rows, first, first + count)
    if rows.shape[2 + axis] == 1:
        return jnp.moveaxis(own.squeeze(2 + axis), 0, 1 + axis)
    inner = [1] * (rows.ndim - 2)
    inner[axis] = count
    return sum_rows(where(np.eye(count, dtype=bool).reshape(count, 1, *inner), own))


def _cross_terms(sides: Sequence[_Side], axes: Axes) -> Iterator[Any]:
    """Arrays of the result's shape whose sum is sum_k u_k . v_k, but for common rows with others than blocks owned
    along a summed axis."""
    for number, side in enumerate(sides):
        other, theirs = sides[1 - number], axes.operands[1 - number]
        for block in side.along:
            # The derivatives of the other operand by the electron of each term; pairs of such blocks on one side.
            rows = []
            owner = axes.moved(block.owner, number, theirs)
            for one in other.blocks if number else other.kept:
                both = (one.owner == owner) & (one.owner != NO_ELECTRON)
                rows += [where(both, one.rows)] if both.any() else []
            at = theirs.index(block.along), block.first, block.owner.size
            rows += [] if other.dense is None else [_rows_of(other.dense, *at)]
            rows += [] if other.common is None else [-(other.value * _rows_of(other.common, *at))]
            if rows:
                yield axes.pair(number, block.rows, sum_of(rows), rows=(True, True), result=axes.result)
        if other.dense is not None:
            for block in side.kept:
                yield _with_dense(block, number, other.dense, axes)
    for left in sides[0].kept:
        for right in sides[1].kept:
            first, second = (axes.moved(one.owner, side, axes.result) for side, one in enumerate((left, right)))
            if (found := products_of_blocks(left.rows, right.rows, first, second, axes)) is not None:
                yield found


def products_of_blocks(left: Any, right: Any, first: Owner, second: Owner, axes: Axes) -> Any:
    """sum_k u_k . v_k of rows [c, *S] whose owners, on the axes of the result, are ``first`` and ``second``.

    None where no electron owns elements of both. Of two axes with the same electrons only the diagonal is computed.
    """
    both = (first == second) & (first != NO_ELECTRON)
    if not both.any():
        return None
    i, j = (_varying(owner, axes.result) for owner in (first, second))
    own, theirs = (_ROW + operand for operand in axes.operands)
    apart = len(i) == len(j) == 1 and i not in theirs and j not in own
    if not apart or consecutive(first) is None or not np.array_equal(first.ravel(), second.ravel()):
        return where(both, axes.pair(0, left, right, rows=(True, True), result=axes.result))
    diagonal = axes.product(own, left, theirs.replace(j, i), right, axes.result.replace(j, ""))
    repeated = jnp.expand_dims(diagonal, axes.result.index(j))
    return where(both, jnp.broadcast_to(repeated, np.broadcast_shapes(both.shape, repeated.shape)))


def _with_dense(block: _Block, side: int, dense: Any, axes: Axes) -> Any:
    """The cross terms of a block that keeps its owners, operand ``side``, with the rows [N, c, *S] of the other."""
    own, theirs = axes.operands[side], axes.operands[1 - side]
    varying, first = _consecutive(block.owner, _varying(block.owner, own))
    if not varying:
        return axes.pair(side, block.rows, dense[first], rows=(True, True), result=axes.result)
    if varying in theirs:
        rows = _rows_of(dense, theirs.index(varying), first, block.owner.size)
        return axes.pair(side, block.rows, rows, rows=(True, True), result=axes.result)
    # An axis of the result that the other operand has as the electrons of its rows.
    rows = lax.slice_in_dim(dense, first, first + block.owner.size)
    given = [(_ROW + own, block.rows), (varying + _ROW + theirs, rows)]
    (left, x), (right, y) = given if side == 0 else given[::-1]
    return axes.product(left, x, right, y, axes.result)


def _assembled(sides: Sequence[_Side], axes: Axes, of: Coordinates) -> Jet:
    """The jet from u . v_k + u_k . v, u . lap v + lap u . v + 2 sum_k u_k . v_k."""
    crosses, laplacians, rows = list(_cross_terms(sides, axes)), list[Any](), list[Any]()
    value: Any = None
    for number in (1, 0):
        side, other = sides[number], sides[1 - number]
        front = [one[None] for one in (side.value if number else None, side.laplacian) if one is not None]
        whole = [side.dense.reshape(-1, *side.value.shape)] if side.dense is not None else []
        if parts := [*front, *whole, *(block.rows for block in side.kept)]:
            stack = jnp.concatenate(parts) if len(parts) > 1 else parts[0]
            found = axes.pair(number, stack, other.value, rows=(True, False), result=_ROW + axes.result)
            value = found[0] if number else value
            laplacians += [] if side.laplacian is None else [found[len(front) - 1]]
            if len(parts) > len(front):
                owners = tuple(axes.moved(block.owner, number, axes.result) for block in side.kept)
                own = Jet(value, None, found[len(front) :], None if whole else owners)
                rows.append(_by_electron(densify(own, of).jacobian, of))
                if other.common is not None:
                    products = rows[-1] * axes.moved_rows(other.common, 1 - number)
                    crosses.append(-sum_rows(products.reshape(-1, *value.shape)))
        for block in side.along:
            each = axes.pair(
                number, block.rows, other.value, rows=(True, False), result=block.along + _ROW + axes.result
            )
            rows.append(of_electrons(each, block.first, of))
    total = sum_of(rows)
    for number, side in enumerate(sides):
        if side.common is not None:
            total = total - value * axes.moved_rows(side.common, number)
    jacobian = total.reshape(of.count, *value.shape)
    laplacians += [sum_of(crosses) * np.asarray(2, value.dtype)] if crosses else []
    stack = Jet(value, sum_of(laplacians) if laplacians else None, jacobian, None).stacked(True)
    return Jet.of_stack(stack.astype(axes.dtype), True, None)
