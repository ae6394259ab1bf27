"""Jets of ops that move or reduce elements: linear in all parts of a jet, so that one op serves them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.forward_laplacian import determinants, extremes
from fusionlab.codegen.forward_laplacian.elementwise import Elementwise
from fusionlab.codegen.forward_laplacian.families import reduced_axes
from fusionlab.codegen.forward_laplacian.jet import Jet, Owner, densify, minimal
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.hlo.view import Node, Value


class Moves(Elementwise):
    """Moves, concatenations and reductions."""

    def _moved(self, node: Node) -> Jet | None:
        moving = [value for value in dict.fromkeys(node.operands) if self._moves(value)]
        jets = [self._jet(value) for value in moving]
        if (len(moving) == 1 and len(node.operands) == 1) or node.name in (
            "stablehlo.gather",
            "stablehlo.dynamic_slice",
        ):
            source, jet = moving[0], jets[0]
            owners = self._moved_owners(node, source, jet)
            if owners is None and jet.owners is not None:
                jet = densify(jet, self.coordinates)
            return jet.map_parts(lambda part: self._with(node, {source: part}), owners)
        if node.name == "stablehlo.concatenate":
            return self._concatenated(node, moving, jets)
        return None

    def _moved_owners(self, node: Node, source: Value, jet: Jet) -> tuple[Owner, ...] | None:
        if jet.owners is None:
            return None
        moved = [self.mover.move(node, {source: owner}, self.environment) for owner in jet.owners]
        if any(owner is None for owner in moved):
            return None
        return tuple(owner for owner in moved if owner is not None)

    def _concatenated(self, node: Node, moving: Sequence[Value], jets: Sequence[Jet]) -> Jet:
        """Slots are matched in order of appearance; an operand that does not move has zeros."""
        slots = max((len(jet.owners) if jet.owners is not None else self.coordinates.electrons) for jet in jets)
        if any(jet.owners is None for jet in jets) or slots * self.coordinates.each >= self.coordinates.count:
            jets = [densify(jet, self.coordinates) for jet in jets]
            slots = 0
        by_value = dict(zip(moving, jets, strict=True))
        stacks = []
        some_lap = any(jet.lap is not None for jet in jets)
        count = self.coordinates.count if not slots else slots * self.coordinates.each
        for value in node.operands:
            array = self.environment[value]
            jet = by_value.get(value)
            if jet is None:
                shape, dtype = np.shape(array), np.result_type(array)
                parts = [jnp.asarray(array)[None], jnp.zeros((count + some_lap, *shape), dtype)]
            else:
                missing = count - jet.rows.shape[0]
                shape, dtype = jet.shape, np.result_type(jet.value)
                if jet.stack is not None and not missing and (jet.lap is not None) == some_lap:
                    parts = [jet.stack]
                else:
                    lap = jnp.zeros(shape, dtype) if jet.lap is None else jet.lap
                    parts = [jet.value[None], *([lap[None]] if some_lap else []), jet.rows]
                    parts += [jnp.zeros((missing, *shape), dtype)] if missing else []
            stacks.append(jnp.concatenate(parts) if len(parts) > 1 else parts[0])
        stack = jnp.concatenate(stacks, node.attributes["dimension"].value + 1)
        owners = None if not slots else tuple(self._slot(node, by_value, slot) for slot in range(slots))
        return Jet.of_stack(stack, some_lap, owners)

    def _slot(self, node: Node, jets: Mapping[Value, Jet], slot: int) -> Owner:
        moved = {}
        for value, jet in jets.items():
            assert jet.owners is not None
            if slot < len(jet.owners):
                moved[value] = jet.owners[slot]
        owner = self.mover.move(node, moved, self.environment)
        assert owner is not None
        return owner

    def _reduced(self, node: Node) -> Jet | None:
        name = combiner(node.regions[0])
        source = node.operands[0]
        if (found := self.determinants.get(node)) is not None:
            value = self._with(node, {})
            factors, pivots = self.environment[found.factors], self.environment[found.pivots]
            return determinants.log_determinant_jet(value, self._jet(found.matrix), factors, pivots, self.coordinates)
        if self._moves(node.operands[1]) or not self._moves(source):
            return None
        jet = self._jet(source)
        axes = reduced_axes(node)
        if jet.owners is not None and any(owner.shape[axis] > 1 for owner in jet.owners for axis in axes):
            jet = densify(jet, self.coordinates)
        owners = None
        if jet.owners is not None:
            owners = tuple(minimal(np.squeeze(owner, axes)) for owner in jet.owners)
        if name == "add" and _is_zero(self.environment[node.operands[1]]):
            stack = jax.vmap(lambda part: self._with(node, {source: part}))(jet.stacked)
            return Jet.of_stack(stack, jet.lap is not None, owners)
        if name == "add":
            value = self._with(node, {source: jet.value})
            through = jax.vmap(lambda part: lax.reduce(part, np.zeros((), part.dtype), lax.add, axes))
            return Jet.of_moving(value, through(jet.moving), jet.lap is not None, owners)
        if name in ("maximum", "minimum"):
            value = self._with(node, {source: jet.value})
            share = extremes.shares(jet.value, axes, name == "maximum")
            through = jax.vmap(lambda part: lax.reduce(part * share, np.zeros((), part.dtype), lax.add, axes))
            return Jet.of_moving(value, through(jet.moving), jet.lap is not None, owners)
        return None


def _is_zero(array: Any) -> bool:
    return isinstance(array, np.ndarray) and not array.any()
