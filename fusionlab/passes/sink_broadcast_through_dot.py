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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
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
        parts = concatenated(node)
        if parts is None:
            return None
        shared = [_shared_axes(part) for part in parts]
        axes = max(shared, key=len)
        if sum(part.type.shape[-1] for part, own in zip(parts, shared, strict=True) if own == axes) < self.fewest:
            return None
        if not axes or all(own == axes for own in shared):
            return None
        split = _split(node, parts, [own == axes for own in shared], axes)
        return Change([node], split, [*parts, node.operands[1]])


def concatenated(node: Node) -> tuple[Value, ...] | None:
    """The concatenated parts of the input of ``node``, a layer; None for anything else."""
    if contracted_axis(node) is None:
        return None
    maker = node.operands[0].producer
    last = len(node.operands[0].type.shape) - 1
    if maker is None or maker.op is not ops.CONCATENATE or int(maker.attributes["dimension"]) != last:
        return None
    return maker.operands


def contracted_axis(node: Node) -> int | None:
    """The matrix axis that ``node`` contracts with the last one of its input; None if it is no layer."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return None
    if {value.type.dtype for value in (*node.operands, *node.results)} not in ({"f32"}, {"f64"}):
        return None
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    last = len(node.operands[0].type.shape) - 1
    plain = list(numbers.lhs_contracting_dimensions) == [last] and not list(numbers.lhs_batching_dimensions)
    if not plain or last < 1 or len(node.operands[1].type.shape) != 2:
        return None
    return int(numbers.rhs_contracting_dimensions[0])


def _shared_axes(part: Value) -> tuple[int, ...]:
    """The axes of rows along which ``part`` repeats itself."""
    view = StridedView.of(part)
    axes = range(len(view.shape) - 1)
    return tuple(axis for axis in axes if view.strides[axis] == 0 and view.shape[axis] > 1)


def _split(
    node: Node, parts: tuple[Value, ...], is_shared: list[bool], axes: tuple[int, ...]
) -> Callable[..., list[Any]]:
    """The sum of both contractions, called with the parts and the matrix."""
    axis = contracted_axis(node)
    assert axis is not None
    widths = [part.type.shape[-1] for part in parts]

    def contracted(arrays: tuple[Any, ...], matrix: Any, wanted: bool) -> Any:
        rows, inputs = [], []
        for at, array in enumerate(arrays):
            if is_shared[at] is not wanted:
                continue
            first = sum(widths[:at])
            rows.append(lax.slice_in_dim(matrix, first, first + widths[at], axis=axis))
            for shared in axes if wanted else ():
                array = lax.slice_in_dim(array, 0, 1, axis=shared)
            inputs.append(array)
        features = lax.concatenate(inputs, inputs[0].ndim - 1)
        (made,) = Raising().node(node, dict(zip(node.operands, (features, lax.concatenate(rows, axis)), strict=True)))
        return made

    def run(*arrays: Any) -> list[Any]:
        own = contracted(arrays[:-1], arrays[-1], False)
        common = contracted(arrays[:-1], arrays[-1], True)
        return [own + lax.broadcast_in_dim(common, own.shape, range(own.ndim))]

    return run
