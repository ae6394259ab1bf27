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
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.inline import inline
from fusionlab.hlo import ops
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Region, view_of
from fusionlab.passes.interface import Pass, Result, Setting, platform_for
from fusionlab.passes.rewriting import changed, functions_of_others


@dataclass(frozen=True)
class MergeDots(Pass):
    """No options."""

    name: ClassVar[str] = "merge-dots"

    def run(self, program: Program, setting: Setting) -> Result:
        """Merge in every loop; see the module's docstring."""
        platform = platform_for(program, setting)
        module = program.parse()
        flat = view_of(module)
        loops = list(_loop_bodies(flat))
        rewritten: Counter[str] = Counter()
        for layers in _chosen(loops, functions_of_others(module)):
            operations = [layer.operation for layer in layers]
            rewritten[layers[0].scope.rpartition("/")[0]] += len(layers)
            operands = [operations[0].operands[0], *(operation.operands[1] for operation in operations)]
            inline(operations, _merged(layers), operands, platform=platform)
        what = "layers were merged with others of the same input"
        otherwise = "no loop applies several layers to one value" if loops else "there is no loop in the program"
        return changed(program, module, self, rewritten, what, otherwise=otherwise)


def _loop_bodies(region: Region) -> Iterator[Region]:
    """The bodies of all loops, outer ones first, with the regions in them."""
    for node in region.walk():
        if node.op is ops.WHILE:
            yield node.regions[1]


def _chosen(bodies: Sequence[Region], shared: set[str]) -> list[list[Node]]:
    """The groups of all ``bodies``, each operation in one of them at most; none of functions that are ``shared``."""
    done: set[Any] = set()
    chosen = []
    for group in (group for body in bodies for group in _groups(body)):
        operations = [layer.operation for layer in group]
        if done.isdisjoint(operations) and group[0].function not in shared:
            done.update(operations)
            chosen.append(group)
    return chosen


def _groups(body: Region) -> list[list[Node]]:
    """Layers of one input that can be merged, each group in program order; two or more in each."""
    groups: dict[Hashable, list[Node]] = {}
    for layer in filter(_is_layer, body.nodes):
        group = groups.setdefault((layer.operands[0], layer.function, layer.callers, _kind(layer)), [])
        seen = [one.operation for one in group]
        if not seen or (layer.operation not in seen and _joins(layer.operation, seen[0])):
            group.append(layer)
    return [group for group in groups.values() if len(group) > 1]


def _is_layer(node: Node) -> bool:
    """True if ``node`` contracts one axis of a value with one of a matrix."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return False
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    return (
        len(numbers.lhs_contracting_dimensions) == 1
        and not list(numbers.lhs_batching_dimensions)
        and len(node.operands[1].type.shape) == 2
    )


def _kind(node: Node) -> Hashable:
    """The properties that must be equal: precision, element types, and the contracted axes."""
    types = tuple(value.type.dtype for value in (*node.operands, *node.results))
    return str(node.attributes["dot_dimension_numbers"]), str(node.attributes.get("precision_config")), types


def _joins(operation: Any, first: Any) -> bool:
    """True if ``operation`` is in the block of ``first`` and reads a matrix that is defined before ``first``."""
    weight = operation.operands[1]
    if operation.block != first.block:
        return False
    if isinstance(weight.owner, ir.Block):
        return True
    maker = getattr(weight.owner, "operation", weight.owner)
    return bool(maker.block == first.block) and bool(maker.is_before_in_block(first))


def _merged(layers: Sequence[Node]) -> Callable[..., list[Any]]:
    """One contraction with all weights, cut into the results; called with the input and each layer's weights."""
    first = layers[0]
    numbers = stablehlo.DotDimensionNumbers(first.attributes["dot_dimension_numbers"])
    columns = 1 - numbers.rhs_contracting_dimensions[0]
    widths = [layer.operands[1].type.shape[columns] for layer in layers]
    ends = list(itertools.accumulate(widths))

    def merged(value: Any, *weights: Any) -> list[Any]:
        wide = lax.concatenate(weights, columns)
        (made,) = Raising().node(first, dict(zip(first.operands, (value, wide), strict=True)))
        starts = (end - width for end, width in zip(ends, widths, strict=True))
        return [lax.slice_in_dim(made, start, end, axis=-1) for start, end in zip(starts, ends, strict=True)]

    return merged
