"""Ops that move elements, linear in all parts of a jet, so that one op serves them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import jet_of
from fusionlab.codegen.laplacian.jet import Jet, densify
from fusionlab.codegen.laplacian.owners import Owner, minimal, moved_owner
from fusionlab.codegen.laplacian.rules.generic import linear
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Value


def move(state: State, node: Node) -> list[Jet | None]:
    """A move of one operand: owners move as elements do, where the indices are known."""
    [source] = state.varying(node)
    if source in state.postponed:
        state.postpone(node, lambda: _moved(state, node, source))
        return [None]
    return [_moved(state, node, source)]


def _moved(state: State, node: Node, source: Value) -> Jet:
    jet, owners = jet_of(state, source), None
    if jet.owners is not None:
        moved = [moved_owner(node, {source: owner}, state.environment, state.one) for owner in jet.owners]
        owners = None if any(owner is None for owner in moved) else tuple(o for o in moved if o is not None)
    if owners is None:
        jet = densify(jet, state.coordinates)
    return jet.map_parts(lambda part: state.run(node, {source: part}), owners)


def slice_(state: State, node: Node) -> list[Jet | None]:
    """A slice of one part of a concatenation is one of that part, which may have fewer directions than the whole."""
    if (found := _part(node)) is None or not state.depends_on_x(found[0]):
        return move(state, node)
    part, axis, first, last = found
    if first == 0 and last == part.type.shape[axis]:
        return [jet_of(state, part)]
    extents = {raised.shape(part)[axis] for raised in (state.raising, state.one)}
    if extents != {part.type.shape[axis]}:  # walkers are merged into the axis
        return move(state, node)
    jet, taken = jet_of(state, part), range(first, last)
    owners = jet.owners and tuple(o if o.shape[axis] == 1 else minimal(np.take(o, taken, axis)) for o in jet.owners)
    return [jet.map_parts(lambda array: lax.slice_in_dim(array, first, last, axis=axis), owners)]


def _part(node: Node) -> tuple[Value, int, int, int] | None:
    """The part of a concatenation that ``node``, a slice, lies in, along which axis, and from where to where."""
    whole = node.operands[0].producer
    if whole is None or whole.op is not ops.CONCATENATE:
        return None
    axis, shape = int(whole.attributes["dimension"].value), node.operands[0].type.shape
    first, last, steps = ([*node.attributes[name]] for name in ("start_indices", "limit_indices", "strides"))
    if any(step != 1 for step in steps):
        return None
    if any((first[at], last[at]) != (0, n) for at, n in enumerate(shape) if at != axis):
        return None
    start = 0
    for part in whole.operands:
        end = start + part.type.shape[axis]
        if start <= first[axis] < last[axis] <= end:
            return part, axis, first[axis] - start, last[axis] - start
        start = end
    return None


def concatenate(state: State, node: Node) -> list[Jet | None]:
    """Blocks are matched in order of appearance; an operand that does not depend on the coordinates has zeros."""
    coordinates = state.coordinates
    jets = {value: jet_of(state, value) for value in state.varying(node)}
    blocks = max(len(jet.owners) if jet.owners is not None else coordinates.electrons for jet in jets.values())
    if any(jet.dense for jet in jets.values()) or blocks * coordinates.each >= coordinates.count:
        jets = {value: densify(jet, coordinates) for value, jet in jets.items()}
        blocks = 0
    has_laplacian = any(jet.laplacian is not None for jet in jets.values())
    count = blocks * coordinates.each if blocks else coordinates.count
    stacks = [_padded(jets.get(value), state.environment[value], has_laplacian, count) for value in node.operands]
    stack = jnp.concatenate(stacks, node.attributes["dimension"].value + 1)
    owners = tuple(_owner(state, node, jets, block) for block in range(blocks)) if blocks else None
    return [Jet.of_stack(stack, has_laplacian, owners)]


def _padded(jet: Jet | None, array: Any, has_laplacian: bool, count: int) -> Any:
    """The stack of ``jet``, or of a constant ``array``, with ``count`` rows of derivatives."""
    if jet is None:
        first, shape = jnp.asarray(array)[None], (count + has_laplacian, *np.shape(array))
        return jnp.concatenate([first, jnp.zeros(shape, np.result_type(array))])
    missing = count - jet.jacobian.shape[0]
    if jet.stack is not None and not missing and (jet.laplacian is not None) == has_laplacian:
        return jet.stack
    dtype = np.result_type(jet.value)
    laplacian = jnp.zeros(jet.shape, dtype) if jet.laplacian is None else jet.laplacian
    parts = [jet.value[None], *([laplacian[None]] if has_laplacian else []), jet.jacobian]
    return jnp.concatenate(parts + ([jnp.zeros((missing, *jet.shape), dtype)] if missing else []))


def _owner(state: State, node: Node, jets: Mapping[Value, Jet], block: int) -> Owner:
    """The owner of one block of a concatenation."""
    given = {v: jet.owners[block] for v, jet in jets.items() if jet.owners is not None and block < len(jet.owners)}
    owner = moved_owner(node, given, state.environment, state.one)
    assert owner is not None
    return owner


RULES: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": move,
    "stablehlo.concatenate": concatenate,
    "stablehlo.dynamic_slice": move,
    "stablehlo.dynamic_update_slice": linear,
    "stablehlo.gather": move,
    "stablehlo.pad": linear,
    "stablehlo.reshape": move,
    "stablehlo.reverse": move,
    "stablehlo.slice": slice_,
    "stablehlo.transpose": move,
}
