"""merge-dots: layers that a loop applies to the same value become one, with their weights side by side.

rewrite:
    while ...:                                 while ...:
        %q = dot_general %x, %wq                   %w = concatenate(%wq, %wk, axis 1)
        %k = dot_general %x, %wk      -->          %y = dot_general %x, %w
                                                   %q, %k = slices of %y

XLA merges such contractions by itself, after all passes that could hoist the concatenation of the weights: it is copied
in every trip. With the concatenation in the program, licm moves it out of the loop.

requires: two or more contractions in one block of a loop, of one value, over one axis each, with matrices that are
    defined before the first of them; the same precision and type, and no explicit algorithm.
exact: bitwise per element up to the library's choice of tiles for a wider matrix.
hopes: in every trip the launch of the concatenation, and those of all layers but one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import Node, location_name
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks, place_of


@dataclass(frozen=True)
class MergeDots(Pass):
    """No options."""

    name: ClassVar[str] = "merge-dots"

    def run(self, program: Program, setting: Setting) -> Result:
        """Merge in every loop; see the module's docstring."""
        nodes = list(program_view(program).walk())
        loops = any(node.op is ops.WHILE for node in nodes)
        result = inline_in_blocks(
            program,
            self,
            setting,
            _change,
            what="layers were merged with others of the same input",
            otherwise="no loop applies several layers to one value" if loops else "there is no loop in the program",
            in_loops=True,
        )
        # A block knows the scopes of its own function; the program's view, those of the calls around it.
        dots = [node for node in reversed(nodes) if node.op is ops.DOT_GENERAL]
        places = {place_of(location_name(node.operation)): place_of(node.scope) for node in dots}
        events = (replace(event, location=places.get(event.location, event.location)) for event in result.events)
        return Result(result.program, tuple(events))


def _change(block: Block, first: Node) -> Change | None:
    """``first``, a layer, merged with later ones of its input whose matrices are defined before it."""
    if not _is_layer(first):
        return None
    (value, _), place = first.operands, block.place
    layers = [
        reader
        for reader in block.users[value]
        if place[reader] >= place[first]
        and _is_layer(reader)
        and reader.operands[0] is value
        and _kind(reader) == _kind(first)
        and ((maker := reader.operands[1].producer) is None or place[maker] < place[first])
    ]
    if len(layers) < 2:
        return None
    return Change(layers, _merged(layers), [value, *(layer.operands[1] for layer in layers)], len(layers))


def _is_layer(node: Node) -> bool:
    """True if ``node`` contracts one axis of a value with one of a matrix."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return False
    axes = DotAxes.of(node)
    return len(axes.contracted_pairs) == 1 and not axes.batch_pairs and len(axes.shapes[1]) == 2


def _kind(node: Node) -> Hashable:
    """The properties that must be equal: precision, element types, and the contracted axes."""
    types = tuple(value.type.dtype for value in (*node.operands, *node.results))
    axes = DotAxes.of(node)
    return axes.batch, axes.contracted, str(node.attributes.get("precision_config")), types


def _merged(layers: Sequence[Node]) -> Callable[..., list[Any]]:
    """One contraction with all weights, cut into the results; called with the input and each layer's weights."""
    first = layers[0]
    [columns] = DotAxes.of(first).free[1]
    widths = [layer.operands[1].type.shape[columns] for layer in layers]
    ends = list(itertools.accumulate(widths))

    def merged(value: Any, *weights: Any) -> list[Any]:
        wide = lax.concatenate(weights, columns)
        (made,) = Raising().node(first, dict(zip(first.operands, (value, wide), strict=True)))
        starts = (end - width for end, width in zip(ends, widths, strict=True))
        return [lax.slice_in_dim(made, start, end, axis=-1) for start, end in zip(starts, ends, strict=True)]

    return merged
