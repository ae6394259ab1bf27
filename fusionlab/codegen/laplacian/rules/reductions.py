"""Reductions over axes by a sum, a maximum or a minimum."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Jet, densify
from fusionlab.codegen.laplacian.owners import minimal
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
        state.postpone(node, lambda: _reduced(state, node, name, densify(jet, state.coordinates)))
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


def shares(array: Any, axes: tuple[int, ...], largest: bool) -> Any:
    """The share of each element in the maximum (or minimum) of ``array`` over ``axes``; shares add up to 1.

    JAX's rule compares with the result, which XLA may recompute with another rounding: then no element is the
    largest, and the share is 0/0. A barrier keeps the compared value from being recomputed.
    """
    array = lax.optimization_barrier(array)
    among = (array == (jnp.max if largest else jnp.min)(array, axes, keepdims=True)).astype(array.dtype)
    return among / among.sum(axes, keepdims=True)


RULES: dict[str, Rule] = {"stablehlo.reduce": reduce}
