"""Reductions over axes by a sum, a maximum or a minimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify, sum_of
from fusionlab.codegen.laplacian.owners import Owner, consecutive, minimal, require_fitting
from fusionlab.codegen.laplacian.rules.generic import linear, second_order
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising.rules.reduction import combiner, is_arg_extreme
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.hlo.view import Node


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
        state.postpone(node, lambda: _summed(state, node, jet, axes))
        return [None]
    return [_reduced(state, node, name, densify(jet, state.coordinates))]


def _reduced(state: State, node: Node, name: str, jet: Jet) -> Jet:
    """The reduction of ``jet`` over axes along which its owners do not vary."""
    (source, start), axes = node.operands, integers(node.attributes["dimensions"])
    owners = None if jet.owners is None else tuple(minimal(np.squeeze(owner, axes)) for owner in jet.owners)
    has_laplacian = jet.laplacian is not None
    if name == "add" and isinstance(initial := state.environment[start], np.ndarray) and not initial.any():
        stack = jax.vmap(lambda part: state.run(node, {source: part}))(jet.stacked())
        return Jet.of_stack(stack, has_laplacian, owners)
    value = state.run(node, {source: jet.value})
    share = None if name == "add" else shares(jet.value, axes, name == "maximum")

    def summed(part: Any) -> Any:
        weighted = part if share is None else part * share
        return lax.reduce(weighted, np.zeros((), part.dtype), lax.add, axes)

    return Jet.of_derivatives(value, jax.vmap(summed)(jet.derivatives), has_laplacian, owners)


def _summed(state: State, node: Node, jet: Jet, axes: tuple[int, ...]) -> Jet:
    """The dense sum of ``jet`` over ``axes``, along some of which its owners vary.

        sum_s [s = k] u_s        -->      u_k

    Of a block in which each element of one summed axis has an electron of its own, the row of electron k has one term:
    the block is placed. Masked and summed, it would be read once for each electron.
    """
    of, owners = state.coordinates, jet.owners or ()
    placed = {i: axis for i, owner in enumerate(owners) if (axis := _axis_of_electrons(owner, axes)) is not None}
    rest = [i for i in range(len(owners)) if i not in placed]
    of_rest = jnp.concatenate([jet.jacobian[:0], *(jet.block(i, of) for i in rest)])
    summed = Jet(jet.value, jet.laplacian, of_rest, tuple(owners[i] for i in rest))
    rows = [_placed(jet.block(i, of), owners[i], axis, axes, of) for i, axis in placed.items()]
    if not rest:
        front = _reduced(state, node, "add", replace(summed, owners=None)).stacked()
        return Jet.of_stack(jnp.concatenate([front, sum_of(rows)]), jet.laplacian is not None, None)
    stack = _reduced(state, node, "add", densify(summed, of)).stacked()
    if rows:
        before = [(len(stack) - of.count, 0, 0), *((0, 0, 0) for _ in stack.shape[1:])]
        stack = stack + lax.pad(sum_of(rows), np.zeros((), stack.dtype), before)
    return Jet.of_stack(stack, jet.laplacian is not None, None)


def _placed(rows: Any, owner: Owner, axis: int, axes: tuple[int, ...], of: Coordinates) -> Any:
    """[K, *S']: the ``rows`` [c, *S] of a block, of electrons one after another along ``axis``, summed over the other
    ``axes``. NotImplementedError where the owners do not fit, as in ``densify``."""
    require_fitting(owner, rows.shape[1:])
    zero = np.zeros((), rows.dtype)
    rows = jnp.moveaxis(rows, 1 + axis, 0)  # [n, c, *S without the axis]
    rows = lax.reduce(rows, zero, lax.add, [2 + other - (other > axis) for other in axes if other != axis])
    before, end = int(owner.flat[0]), of.electrons - int(owner.flat[0]) - owner.size
    rows = rows.reshape(-1, *rows.shape[2:])
    if not before and not end:
        return rows
    return lax.pad(rows, zero, [(of.each * before, of.each * end, 0), *((0, 0, 0) for _ in rows.shape[1:])])


def _axis_of_electrons(owner: Owner, axes: tuple[int, ...]) -> int | None:
    """The one of ``axes`` along which alone ``owner`` varies, by one electron after another; None without it."""
    varying = [axis for axis, extent in enumerate(owner.shape) if extent > 1]
    return varying[0] if len(varying) == 1 and varying[0] in axes and consecutive(owner) is not None else None


def shares(array: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """The share of each element in the maximum (or minimum) of ``array`` over ``axes``; shares add up to 1.

    JAX's rule compares with the result, which XLA may recompute with another rounding: then no element is the
    largest, and the share is 0/0. A barrier keeps the compared value from being recomputed.
    """
    array = lax.optimization_barrier(array)
    among = (array == (jnp.max if largest else jnp.min)(array, axes, keepdims=True)).astype(array.dtype)
    return among / among.sum(axes, keepdims=True)


RULES: dict[str, Rule] = {"stablehlo.reduce": reduce}
