"""merge-dots: layers of the same value become one, with their weights side by side; by default those in loops.

rewrite:
    while ...:                                 while ...:
        %q = dot_general %x, %wq                   %w = concatenate(%wq, %wk, axis 1)
        %k = dot_general %x, %wk      -->          %y = dot_general %x, %w
                                                   %q, %k = slices of %y

XLA merges such contractions by itself, after all passes that could hoist the concatenation of the weights: it is copied
in every trip. With the concatenation in the program, licm moves it out of the loop.

Outside of loops layers are merged up to ``widest`` columns (0: none), where that reads less: the value is read once,
as the rows of queries, keys and values are, and the weights are copied in every run. Layers whose result a product of
the library reads are left: it would copy the slice. ``dot-chain-kernels``, which reads slices in place, comes later.

requires: two or more contractions in one block, of one value, over one axis each, with matrices that are
    defined before the first of them; the same precision and type, and no explicit algorithm.
exact: bitwise per element up to the library's choice of tiles for a wider matrix.
hopes: in every trip the launch of the concatenation, and those of all layers but one; outside of loops the bytes of
    all reads of the value but one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import Node, Value, location_name
from fusionlab.passes.interface import Applied, Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks, place_of

_WHAT = "layers were merged with others of the same input"


@dataclass(frozen=True)
class MergeDots(Pass):
    """Option: ``widest``; see the module's docstring."""

    widest: int = 0

    name: ClassVar[str] = "merge-dots"

    def __post_init__(self) -> None:
        if self.widest < 0:
            raise InputError(f"{self.name}: widest must be at least 0, not {self.widest}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Merge in every loop, and outside up to ``widest``; see the module's docstring."""
        nodes = list(program_view(program).walk())
        result = self._merged(program, setting, nodes)
        # A block knows the scopes of its own function; the program's view, those of the calls around it.
        dots = [node for node in reversed(nodes) if node.op is ops.DOT_GENERAL]
        places = {place_of(location_name(node.operation)): place_of(node.scope) for node in dots}
        events = (replace(event, location=places.get(event.location, event.location)) for event in result.events)
        return Result(result.program, tuple(events))

    def _merged(self, program: Program, setting: Setting, nodes: Sequence[Node]) -> Result:
        merge = partial(inline_in_blocks, pass_=self, setting=setting, what=_WHAT)
        loops = any(node.op is ops.WHILE for node in nodes)
        otherwise = "no loop applies several layers to one value" if loops else "there is no loop in the program"
        inside = merge(program, change=_change, otherwise=otherwise, in_loops=True)
        if not self.widest:
            return inside
        otherwise = "no layers of one value would read less as one"
        outside = merge(inside.program, change=partial(_change_that_reads_less, self.widest), otherwise=otherwise)
        merged = [event for event in (*inside.events, *outside.events) if isinstance(event, Applied)]
        return Result(outside.program, tuple(merged) or outside.events)


def _change(block: Block, first: Node, widest: float = math.inf) -> Change | None:
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
    weights = _within(widest, {layer.operands[1]: layer.results[0].type.shape[-1] for layer in layers})
    if len(weights) < 2 or weights[0] is not first.operands[1]:
        return None
    layers = [layer for layer in layers if layer.operands[1] in weights]
    return Change(layers, _merged(layers, weights), [value, *weights], len(layers))


def _within(widest: float, columns: Mapping[Value, int]) -> list[Value]:
    """The matrices, in order, that have at most ``widest`` columns together."""
    found, together = list[Value](), 0
    for matrix, own in columns.items():
        if together + own <= widest:
            together += own
            found.append(matrix)
    return found


def _change_that_reads_less(widest: int, block: Block, first: Node) -> Change | None:
    """``_change`` up to ``widest`` columns, if one layer reads less than all, and no library call reads a result."""
    change = _change(block, first, widest)
    if change is None:
        return None
    value, *weights = change.operands
    copied = 2 * sum(math.prod(matrix.type.shape) for matrix in weights)
    saved = (len(weights) - 1) * math.prod(value.type.shape)
    by_library = any(_is_read_by_library(layer.results[0], block) for layer in change.nodes)
    return change if saved > copied and not by_library else None


def _is_read_by_library(value: Value, block: Block) -> bool:
    """True if a contraction without batch axes reads ``value`` or a view of it: one of those is a call of its own."""
    return any(
        (user.op is ops.DOT_GENERAL and not DotAxes.of(user).batch_pairs)
        or (user.op.strided and _is_read_by_library(user.results[0], block))
        for user in block.users.get(value, ())
    )


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


def _merged(layers: Sequence[Node], matrices: Sequence[Value]) -> Callable[..., list[Any]]:
    """One contraction with all weights, cut into the results of ``layers``; called with the input and ``matrices``."""
    first = layers[0]
    [columns] = DotAxes.of(first).free[1]
    widths = [matrix.type.shape[columns] for matrix in matrices]
    ends = list(itertools.accumulate(widths))
    at = [matrices.index(layer.operands[1]) for layer in layers]

    def merged(value: Any, *weights: Any) -> list[Any]:
        wide = lax.concatenate(weights, columns)
        (made,) = Raising().node(first, dict(zip(first.operands, (value, wide), strict=True)))
        return [lax.slice_in_dim(made, ends[i] - widths[i], ends[i], axis=-1) for i in at]

    return merged
