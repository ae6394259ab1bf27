"""sink-broadcast-through-dot: contract features shared by several rows once for all of them.

rewrite:
    %b = broadcast %m  (over electrons)               %y = dot_general (concatenate %h, %p), %w[own rows]
    %x = concatenate %h, %b, %p             -->       %s = dot_general %m, %w[shared rows]
    %y = dot_general %x, %w                           %y + broadcast %s

FermiNet's layers read, beside an electron's own features, means over all electrons: 512 of 832 features are the same
for the ten electrons of a walker, and are written and contracted ten times.

requires: a layer (the last axis with one of a matrix) of concatenated features, some of which do not vary along some
    axes of rows; float32 or float64, and no explicit algorithm.
exact: reassociates the sum over features.
hopes: the FLOPs of the repeated rows and the bytes of the wide concatenation, for one small contraction more. Run
    licm after it: otherwise every trip concatenates the rows of the matrix.

Option ``fewest``: the number of shared features below which a layer is left alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.program import Program
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Change, inline_in_blocks


@dataclass(frozen=True)
class SinkBroadcastThroughDot(Pass):
    """Option: ``fewest``; see the module's docstring."""

    fewest: int = 32

    name: ClassVar[str] = "sink-broadcast-through-dot"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every such layer, in any block."""
        return inline_in_blocks(
            program,
            self,
            setting,
            self._change,
            what="layers contract shared features once",
            otherwise="there is no layer of features put side by side in the program",
        )

    def _change(self, block: Block, node: Node) -> Change | None:
        maker = node.operands[0].producer if (axis := contracted_axis(node)) is not None else None
        if axis is None or maker is None or maker.op is not ops.CONCATENATE:
            return None
        if int(maker.attributes["dimension"]) != len(node.operands[0].type.shape) - 1:
            return None
        parts = maker.operands
        repeated = [_repeated_axes(part) for part in parts]
        axes = max(repeated, key=len)
        is_shared = [own == axes for own in repeated]
        widths = [part.type.shape[-1] for part in parts]
        if not axes or all(is_shared) or sum(itertools.compress(widths, is_shared)) < self.fewest:
            return None
        return Change([node], _split(node, axis, widths, is_shared, axes), [*parts, node.operands[1]])


def contracted_axis(node: Node) -> int | None:
    """The matrix axis that ``node`` contracts with the last one of its input; None if it is no layer."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return None
    if {value.type.dtype for value in (*node.operands, *node.results)} not in ({"f32"}, {"f64"}):
        return None
    axes = DotAxes.of(node)
    last = len(axes.shapes[0]) - 1
    if axes.contracted[0] != (last,) or axes.batch_pairs or last < 1 or len(axes.shapes[1]) != 2:
        return None
    return axes.contracted[1][0]


def _repeated_axes(part: Value) -> tuple[int, ...]:
    """The axes of rows along which ``part`` repeats itself."""
    view = StridedView.of(part)
    axes = range(len(view.shape) - 1)
    return tuple(axis for axis in axes if view.strides[axis] == 0 and view.shape[axis] > 1)


def _split(
    node: Node, axis: int, widths: Sequence[int], is_shared: Sequence[bool], axes: tuple[int, ...]
) -> Callable[..., list[Any]]:
    """The sum of both contractions, called with the parts and the matrix, of which ``axis`` is contracted."""
    ends = list(itertools.accumulate(widths))

    def run(*arrays: Any) -> list[Any]:
        *parts, matrix = arrays

        def contracted(shared: bool) -> Any:
            rows, inputs = [], []
            for part, width, end in itertools.compress(
                zip(parts, widths, ends, strict=True), (one is shared for one in is_shared)
            ):
                rows.append(lax.slice_in_dim(matrix, end - width, end, axis=axis))
                for repeated in axes if shared else ():
                    part = lax.slice_in_dim(part, 0, 1, axis=repeated)
                inputs.append(part)
            features = lax.concatenate(inputs, inputs[0].ndim - 1)
            given = zip(node.operands, (features, lax.concatenate(rows, axis)), strict=True)
            return Raising().node(node, dict(given))[0]

        own, common = contracted(False), contracted(True)
        return [own + lax.broadcast_in_dim(common, own.shape, range(own.ndim))]

    return run
