"""Reductions over axes by a sum, a maximum or a minimum."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify, of_electrons, sum_of
from fusionlab.codegen.laplacian.owners import Owner, consecutive, minimal
from fusionlab.codegen.laplacian.rules.generic import linear, second_order
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising.rules.reduction import combiner, is_arg_extreme
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.hlo.view import Node

_LARGE = 1024
"""The elements of one walker from which on a sum is worth kernels of its own."""


def reduce(state: State, node: Node) -> list[Jet | None]:
    """A reduction of one array from a constant; a sum reduces all parts of the jet at once."""
    if is_arg_extreme(node):
        return linear(state, node)
    name = combiner(node.regions[0])
    if state.varying(node) != [node.operands[0]] or name not in ("add", "maximum", "minimum"):
        return second_order(state, node)
    jet, axes = jet_of(state, node.operands[0]), integers(node.attributes["dimensions"])
    if jet.owners is None or not any(owner.shape[axis] > 1 for owner in jet.owners for axis in axes):
        return [_reduced(state, node, name, jet)]
    if name == "add" and not state.options.adjoint:
        state.postpone(node, lambda: _summed(state, node, jet))
        return [None]
    return [_reduced(state, node, name, densify(jet, state.coordinates))]


def _summed(state: State, node: Node, jet: Jet) -> Jet:
    """The dense sum of ``jet`` over axes along which its owners vary.

    Where electron e owns element e along one of them, the derivatives by e are those of that element, and nothing is
    added up; blocks that do not vary along them are summed before they get their rows. Others, and small arrays, whose
    sums XLA fuses into fewer kernels, are summed with a mask (``densify``), zeros and all.
    """
    source, axes = node.operands[0], integers(node.attributes["dimensions"])
    blocks = [(owner, jet.block(number, state.coordinates)) for number, owner in enumerate(jet.owners or ())]
    apart = _starts_at_zero(state, node) and all(_is_apart(owner, axes, jet.shape) for owner, _ in blocks)
    if not apart or math.prod(jet.shape[1:]) < _LARGE:
        return _reduced(state, node, "add", densify(jet, state.coordinates))
    value = state.run(node, {source: jet.value})
    laplacian = None if jet.laplacian is None else state.run(node, {source: jet.laplacian})
    parts = []
    for owner, rows in blocks:
        if _varies(owner, axes):
            parts.append(_by_element(rows, owner, axes, state.coordinates))
        else:
            summed = jax.vmap(lambda part: state.run(node, {source: part}))(rows)
            block = Jet(value, None, summed, (np.squeeze(owner, axes),))
            parts.append(densify(block, state.coordinates).jacobian)
    return Jet(value, laplacian, sum_of(parts), None)


def _varies(owner: Owner, axes: tuple[int, ...]) -> bool:
    return any(owner.shape[axis] > 1 for axis in axes)


def _is_apart(owner: Owner, axes: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """True if ``owner`` does not vary along ``axes``, or along one of them alone, by consecutive electrons."""
    if not _varies(owner, axes):
        return True
    return consecutive(owner) is not None and all(n in (1, m) for n, m in zip(owner.shape, shape, strict=True))


def _by_element(rows: Any, owner: Owner, axes: tuple[int, ...], coordinates: Coordinates) -> Any:
    """[K, *S without ``axes``] of the rows [c, *S] of a block with an electron for each element along one of these."""
    (along,) = (axis for axis in axes if owner.shape[axis] > 1)
    others = tuple(1 + axis for axis in axes if axis != along)
    moved = 1 + along - sum(axis < 1 + along for axis in others)
    summed = lax.reduce(rows, np.zeros((), rows.dtype), lax.add, others) if others else rows
    first = consecutive(owner)
    assert first is not None
    of_each = of_electrons(jnp.moveaxis(summed, moved, 0), first, coordinates)
    return of_each.reshape(coordinates.count, *of_each.shape[2:])


def _starts_at_zero(state: State, node: Node) -> bool:
    initial = state.environment[node.operands[1]]
    return isinstance(initial, np.ndarray) and not initial.any()


def _reduced(state: State, node: Node, name: str, jet: Jet) -> Jet:
    """The reduction of ``jet`` over axes along which its owners do not vary."""
    source, axes = node.operands[0], integers(node.attributes["dimensions"])
    owners = None if jet.owners is None else tuple(minimal(np.squeeze(owner, axes)) for owner in jet.owners)
    has_laplacian = jet.laplacian is not None
    if name == "add" and _starts_at_zero(state, node):
        stack = jax.vmap(lambda part: state.run(node, {source: part}))(jet.stacked())
        return Jet.of_stack(stack, has_laplacian, owners)
    value = state.run(node, {source: jet.value})
    share = None if name == "add" else shares(jet.value, axes, name == "maximum")

    def summed(part: Any) -> Any:
        weighted = part if share is None else part * share
        return lax.reduce(weighted, np.zeros((), part.dtype), lax.add, axes)

    return Jet.of_derivatives(value, jax.vmap(summed)(jet.derivatives), has_laplacian, owners)


def shares(array: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """The share of each element in the maximum (or minimum) of ``array`` over ``axes``; shares add up to 1.

    JAX's rule compares with the result, which XLA may recompute with another rounding: then no element is the
    largest, and the share is 0/0. A barrier keeps the compared value from being recomputed.
    """
    array = lax.optimization_barrier(array)
    among = (array == (jnp.max if largest else jnp.min)(array, axes, keepdims=True)).astype(array.dtype)
    return among / among.sum(axes, keepdims=True)


RULES: dict[str, Rule] = {"stablehlo.reduce": reduce}
