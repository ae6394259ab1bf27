"""Owners: the electron that each element of a value depends on, known at compile time and the same for all walkers.

An op that moves elements moves their owners in the same way: it runs here on integers, for one walker.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen import raising
from fusionlab.codegen.raising.rules.rule import RaisedOp
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Indices
from fusionlab.hlo.ops import INEXACT
from fusionlab.hlo.view import Node, Value

Owner = np.ndarray
"""Electron of each element: i32, the rank of the value, extent 1 on axes along which it does not vary."""

NO_ELECTRON = -1


def minimal(owner: Owner) -> Owner:
    """``owner`` with extent 1 on every axis along which it is constant, elements that depend on no electron aside.

    Derivatives of an element that depends on no electron are zero, so it may as well have its neighbours' owner.
    """
    for axis, extent in enumerate(owner.shape):
        if extent > 1:
            most = owner.max(axis, keepdims=True)
            if ((owner == most) | (owner == NO_ELECTRON)).all():
                owner = most
    return np.asarray(owner, np.int32, order="C")  # ``ascontiguousarray`` gives a scalar an axis


def require_fitting(owner: Owner, shape: Sequence[int]) -> None:
    """NotImplementedError where ``owner`` is not of a value of ``shape``: another axis was taken for the walkers'."""
    if any(n not in (1, m) for n, m in zip(owner.shape, shape, strict=True)):
        raise NotImplementedError(f"its electrons are taken along axes of extents {owner.shape}, of {shape}")


def same_owner(first: Owner, second: Owner) -> bool:
    """True if two blocks have the same owners, element by element."""
    return first.shape == second.shape and bool((first == second).all())


def consecutive(owner: Owner) -> int | None:
    """The first of the electrons that own one element each, in order, along one axis; None if it is not so."""
    electrons = owner.ravel()
    varying = sum(extent > 1 for extent in owner.shape)
    if varying > 1 or electrons[0] == NO_ELECTRON or (np.diff(electrons) != 1).any():
        return None
    return int(electrons[0])


def meeting(first: Sequence[Owner], second: Sequence[Owner]) -> Iterator[tuple[int, int, Owner]]:
    """The pairs of blocks with elements that depend on one electron in both, and the mask of these elements."""
    for s, left in enumerate(first):
        for t, right in enumerate(second):
            both = (left == right) & (left != NO_ELECTRON)
            if both.any():
                yield s, t, both


def where(mask: Owner, array: Any) -> Any:
    """``array`` where ``mask``, which broadcasts, and zero elsewhere."""
    if mask.all():
        return array
    return lax.select(jnp.broadcast_to(mask, array.shape), array, jnp.zeros_like(array))


def moved_owner(
    node: Node, given: Mapping[Value, Owner], environment: Mapping[Value, Any], one: raising.Raising
) -> Owner | None:
    """The owner of the result of ``node``, a move; inexact values not in ``given`` depend on no electron.

    ``one`` raises with one walker. None when the indices of the move are not known at compile time.
    """
    operands: list[Any] = []
    for value in node.operands:
        if value in given:
            operands.append(np.broadcast_to(given[value], one.shape(value)))
        elif value.type.dtype in INEXACT:
            operands.append(np.full(one.shape(value), NO_ELECTRON, np.int32))
        elif isinstance(array := environment.get(value), np.ndarray) and value not in one.shapes:
            operands.append(array)
        elif (indices := _known_indices(node, array, value, one)) is not None:
            operands.append(indices)
        else:
            return None
    return minimal(np.asarray(_moved(node, operands, one)))


def _known_indices(node: Node, array: Any, value: Value, one: raising.Raising) -> Any:
    """The indices of one walker; None unless they are known and the same for all walkers."""
    if not isinstance(array, np.ndarray):
        return None
    shape = one.shape(value)
    if any(extent not in (1, whole) for extent, whole in zip(shape, array.shape, strict=True)):
        return None
    first = array[tuple(map(slice, shape))]
    differs = (array != first).any(axis=tuple(range(array.ndim - 1))) if array.ndim else np.False_
    return None if np.any(np.logical_and(differs, np.logical_not(_finds_walker(node, one)))) else first


def _finds_walker(node: Node, one: raising.Raising) -> Any:
    """For each component of a gather's indices, True if it is the walker's own index."""
    if node.op is not ops.GATHER or (indices := Indices.of(node)) is None:
        return np.False_
    source = node.operands[0]
    walkers = [n != m for n, m in zip(one.shape(source), source.type.shape, strict=True)]
    return np.array([walkers[axis] for axis in indices.axes], np.bool_)


def _moved(node: Node, operands: Sequence[Any], one: raising.Raising) -> Any:
    """The result of a move: by NumPy where possible, since JAX compiles every op of a new shape."""
    op = RaisedOp(node, operands, one, {})
    match node.op:
        case ops.RESHAPE:
            return operands[0].reshape(op.shape)
        case ops.TRANSPOSE:
            return operands[0].transpose(*op.integers("permutation"))
        case ops.BROADCAST_IN_DIM:
            inner = [1] * len(op.shape)
            for extent, to in zip(operands[0].shape, *op.integers("broadcast_dimensions"), strict=True):
                inner[to] = extent
            return np.broadcast_to(operands[0].reshape(inner), op.shape)
        case ops.CONCATENATE:
            return np.concatenate(operands, node.attributes["dimension"].value)
        case ops.SLICE:
            start, strides = op.integers("start_indices", "strides")
            return operands[0][tuple(map(slice, start, op.sizes("limit_indices"), strides))]
        case _:
            with jax.ensure_compile_time_eval():
                return raising.RULES[node.name](op)[0]
